"""Do these labels match? Label selectors, and their single requirements."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from octarbiter.api.meta import Noun


class Requirement(Noun, frozen=True):
    """`key operator values`, of label selectors and of node affinity."""

    key: str
    operator: str
    values: list[str] = []


class LabelSelector(Noun, frozen=True):
    match_labels: dict[str, str] = {}
    match_expressions: list[Requirement] = []


OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")
"""Of label selectors; node affinity also knows Gt and Lt."""


def matches(selector: LabelSelector, labels: Mapping[str, str]) -> bool:
    """An empty selector matches everything."""
    if any(labels.get(key) != value for key, value in selector.match_labels.items()):
        return False
    return meets(selector.match_expressions, labels)


def meets(requirements: Iterable[Requirement], labels: Mapping[str, str]) -> bool:
    return all(_meets(requirement, labels.get(requirement.key)) for requirement in requirements)


def _meets(requirement: Requirement, value: str | None) -> bool:
    match requirement.operator:
        case "In":
            return value is not None and value in requirement.values
        case "NotIn":
            return value is None or value not in requirement.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt":
            bound = _integer(requirement.values[0]) if len(requirement.values) == 1 else None
            number = _integer(value)
            if number is None or bound is None:
                return False
            return number > bound if requirement.operator == "Gt" else number < bound
        case _:
            return False


def _integer(text: str | None) -> int | None:
    try:
        return int(text) if text is not None and len(text) < 20 and "_" not in text else None
    except ValueError:
        return None
