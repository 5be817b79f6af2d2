"""Small questions that many kinds ask, answered with problems."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from octarbiter.cluster.apiserver.structural import wording
from octarbiter.cluster.apiserver.validation import names
from octarbiter.cluster.apiserver.validation.problems import Problem

Json = dict[str, Any]
Problems = Iterator[Problem]

IMMUTABLE = "field is immutable"


def each(value: object, path: str) -> Iterator[tuple[str, Json]]:
    """The objects of a list, each with its path."""
    if isinstance(value, list):
        for index, item in enumerate(value):
            if isinstance(item, dict):
                yield f"{path}[{index}]", item


def part(obj: Json, name: str) -> Json:
    found = obj.get(name)
    return found if isinstance(found, dict) else {}


def well_formed(value: str, path: str, rule: Callable[[str], list[str]]) -> Problems:
    for wrong in rule(value):
        yield wording.invalid(path, value, wrong)


def named(value: object, path: str, rule: Callable[[str], list[str]]) -> Problems:
    """There, and well formed."""
    if not value:
        yield wording.required(path)
    else:
        yield from well_formed(str(value), path, rule)


def one_of(value: object, path: str, words: Iterable[str]) -> Problems:
    known = list(words)
    if value is not None and value not in known:
        yield wording.not_supported(path, value, known)


def at_least(value: object, path: str, least: int = 0) -> Problems:
    if isinstance(value, int) and value < least:
        yield wording.invalid(path, value, f"must be greater than or equal to {least}")


def unchanged(new: object, old: object, path: str, rule: str = IMMUTABLE) -> Problems:
    if new != old:
        yield wording.invalid(path, new, rule)


def not_found(path: str, value: object, detail: str = "") -> Problem:
    message = f"Not found: {wording.shown(value)}"
    return Problem("FieldValueNotFound", path, f"{message}: {detail}" if detail else message)


def int_or_percent(value: object, path: str) -> Problems:
    if isinstance(value, str):
        yield from well_formed(value, path, names.percent)
    else:
        yield from at_least(value, path)


def labels(value: object, path: str) -> Problems:
    for key, text in (value if isinstance(value, dict) else {}).items():
        yield from well_formed(key, path, names.qualified)
        yield from well_formed(str(text), path, names.label_value)


_SET_OPERATORS = ("In", "NotIn")
_EXISTENCE = ("Exists", "DoesNotExist")


def selector(value: object, path: str) -> Problems:
    """A label selector."""
    if not isinstance(value, dict):
        return
    yield from labels(value.get("matchLabels"), f"{path}.matchLabels")
    for where, term in each(value.get("matchExpressions"), f"{path}.matchExpressions"):
        yield from requirement(term, where)
        yield from well_formed(str(term.get("key", "")), f"{where}.key", names.qualified)
        for index, text in enumerate(term.get("values") or []):
            yield from well_formed(text, f"{where}.values[{index}]", names.label_value)


def requirement(term: Json, path: str, *, compares: bool = False) -> Problems:
    """Whether operator and values of a term fit; `compares`: numbers may be compared, too."""
    operator, values = term.get("operator"), term.get("values") or []
    if operator in _SET_OPERATORS:
        if not values:
            yield wording.required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'")
    elif operator in _EXISTENCE:
        if values:
            rule = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            yield wording.forbidden(f"{path}.values", rule)
    elif compares and operator in ("Gt", "Lt"):
        if len(values) != 1:
            yield wording.required(f"{path}.values", "must be specified single value when `operator` is 'Lt' or 'Gt'")
    else:
        yield wording.invalid(f"{path}.operator", operator, "not a valid selector operator")


def selects(value: object, of: object) -> bool:
    """Whether a label selector matches labels; none matches nothing."""
    mine = of if isinstance(of, dict) else {}
    if not isinstance(value, dict):
        return False
    if any(mine.get(key) != text for key, text in (value.get("matchLabels") or {}).items()):
        return False
    return all(_holds(term, mine) for _, term in each(value.get("matchExpressions"), ""))


def _holds(term: Json, of: Json) -> bool:
    key, values = str(term.get("key") or ""), term.get("values") or []
    match term.get("operator"):
        case "In":
            return of.get(key) in values
        case "NotIn":
            return of.get(key) not in values
        case "Exists":
            return key in of
        case "DoesNotExist":
            return key not in of
    return False
