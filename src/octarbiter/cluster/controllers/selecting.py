"""Do these labels match? Label selectors, and the terms of node affinity."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from octarbiter.cluster.controllers.kinds import LabelSelector, NodeSelectorTerm, Requirement


def matches(selector: LabelSelector, labels: Mapping[str, str]) -> bool:
    """An empty selector matches everything."""
    if any(labels.get(key) != value for key, value in selector.match_labels.items()):
        return False
    return meets(selector.match_expressions, labels)


def matches_any_term(terms: Iterable[NodeSelectorTerm], labels: Mapping[str, str], name: str) -> bool:
    """Terms are alternatives; one without any requirement matches nothing."""
    fields = {"metadata.name": name}
    return any(
        (term.match_expressions or term.match_fields)
        and meets(term.match_expressions, labels)
        and meets(term.match_fields, fields)
        for term in terms
    )


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
