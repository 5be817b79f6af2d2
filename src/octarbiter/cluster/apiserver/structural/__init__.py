"""What may a custom object look like? The schemas of CustomResourceDefinitions.

`parse` reads a schema; with its type `prune`, `default` and `validate` treat an object as the server does, in that
order. `problems_of` asks everything there is to ask, `validate` and the rules in CEL (`cel`); `check_crd` asks whether
a definition is one.
"""

from __future__ import annotations

from collections.abc import Sequence

from octarbiter.api.meta import Json
from octarbiter.cluster.apiserver.structural import cel, embedded, lists, values, wording
from octarbiter.cluster.apiserver.structural.correlation import Pair
from octarbiter.cluster.apiserver.structural.crd import check_crd
from octarbiter.cluster.apiserver.structural.defaulting import default
from octarbiter.cluster.apiserver.structural.parsing import parse
from octarbiter.cluster.apiserver.structural.pruning import prune
from octarbiter.cluster.apiserver.types import Type
from octarbiter.cluster.apiserver.validation.problems import Problem

__all__ = ["cel", "check_crd", "default", "parse", "problems_of", "prune", "validate"]

_HIDE_RULES = frozenset(
    ("FieldValueNotSupported", "FieldValueRequired", "FieldValueTooLong", "FieldValueTooMany", "FieldValueTypeInvalid")
)
_RULES_SKIPPED = (
    "some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation"
)


def validate(obj: Json, type: Type, old: Json | None = None, part: str = "") -> list[Problem]:
    """What the schema and the kinds of lists say; what did not change since `old` is not held against it. `part`: only
    this field of the object is looked at, as if it were the whole."""
    pair = None if old is None else Pair(obj, old, type)
    problems = _part(obj, type, pair, part) if part else values.check(obj, type.schema, "", pair).problems
    problems += embedded.check(obj, type)
    if old is None or not lists.check(old, type):
        problems += lists.check(obj, type)
    return problems


def _part(obj: Json, type: Type, pair: Pair | None, name: str) -> list[Problem]:
    schema = (type.schema.get("properties") or {}).get(name)
    if name not in obj or not isinstance(schema, dict):
        return []
    found = values.check(obj[name], schema, "", pair.key(name) if pair is not None else None).problems
    return [Problem(each.reason, _below(name, each.field), each.message) for each in found]


def _below(name: str, field: str) -> str:
    if field in ("", wording.ROOT):
        return name
    return f"{name}{field}" if field.startswith("[") else f"{name}.{field}"


def problems_of(
    obj: Json, type: Type, old: Json | None = None, part: str = "", others: Sequence[Problem] = ()
) -> list[Problem]:
    """Schema, lists and rules, with what `others` found. Rules trust the shape of what they read: a wrong one hides
    them."""
    problems = [*validate(obj, type, old, part), *others]
    if not cel.has_rules(type):
        return problems
    if any(problem.reason in _HIDE_RULES for problem in problems):
        return [*problems, wording.invalid("", None, _RULES_SKIPPED)]
    return problems + cel.validate(obj, old, type)
