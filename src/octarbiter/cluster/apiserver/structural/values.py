"""Does a value fit its schema?

The checks, their order and their words are those of the server's OpenAPI validator. `matches` counts what was right, as
it does: of several alternatives that all fail, the problems of the one that came closest are shown.

What an update leaves unchanged is not held against it (`pair`), however wrong it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from octarbiter.api.meta import Json
from octarbiter.cluster.apiserver.structural import formats, parsing, regexes, wording
from octarbiter.cluster.apiserver.structural.correlation import Pair, same
from octarbiter.cluster.apiserver.validation.problems import Problem


class Outcome(NamedTuple):
    problems: list[Problem]
    matches: int


_FINE = Outcome([], 1)


def check(value: Any, schema: Json, path: str = "", pair: Pair | None = None) -> Outcome:
    """`pair` holds the value and the old one it comes from; None where there is none to compare with."""
    if pair is not None and pair.unchanged:
        return _FINE
    outcomes = [_type(value, schema, path)]
    if value is None:
        outcomes.append(_enum(value, schema, path))
        return _merged(outcomes, 0)
    outcomes.append(_combinations(value, schema, path, pair))
    applied = 3
    if isinstance(value, str):
        outcomes.append(_string(value, schema, path))
        outcomes.append(_format(value, schema, path))
        applied += 1
    elif isinstance(value, int | float) and not isinstance(value, bool):
        outcomes.append(_number(value, schema, path))
        applied += 1
    elif isinstance(value, list):
        outcomes.append(_list(value, schema, path, pair))
        applied += 1
    outcomes.append(_enum(value, schema, path))
    if isinstance(value, dict):
        outcomes.append(_object(value, schema, path, pair))
        applied += 1
    return _merged(outcomes, applied + 1)


def _merged(outcomes: Iterable[Outcome], matches: int) -> Outcome:
    problems: list[Problem] = []
    for outcome in outcomes:
        problems += [problem for problem in outcome.problems if problem not in problems]
        matches += outcome.matches
    return Outcome(problems, matches)


def _wrong(problem: Problem) -> Outcome:
    return Outcome([problem], 0)


_NONE = Outcome([], 0)
_EXACT = 2**53
"""Beyond this not every whole number is one of those that a server without long integers can tell apart."""


def _type(value: Any, schema: Json, path: str) -> Outcome:
    allowed = _allowed_types(schema)
    format = _known_format(schema)
    if not allowed and not format:
        return _NONE
    actual, actual_format = _type_of(value)
    if value is None:
        return _FINE if not allowed or schema.get("nullable") else _type_problem(path, ",".join(allowed), actual)
    whole = actual == "number" and "integer" in allowed and abs(value) < _EXACT and float(value).is_integer()
    fits = actual in allowed or whole or (actual == "integer" and "number" in allowed)
    if format and not isinstance(value, str | list) and not fits:
        return _type_problem(path, format, actual_format)
    if format and isinstance(value, str | list) and not {"number", "integer"} & set(allowed):
        return _FINE
    return _FINE if fits else _type_problem(path, ",".join(allowed), actual)


def _type_problem(path: str, wanted: str, actual: str) -> Outcome:
    detail = f"{path} in body must be of type {wanted}: {wording.quoted(actual)}"
    return _wrong(wording.type_invalid(_field(path), actual, detail))


def _allowed_types(schema: Json) -> list[str]:
    if schema.get("x-kubernetes-int-or-string"):
        return ["integer", "string"]
    return [schema["type"]] if schema.get("type") else []


def _known_format(schema: Json) -> str:
    format = schema.get("format") or ""
    return format if format and formats.is_known(format) else ""


def _type_of(value: Any) -> tuple[str, str]:
    """The type's name and, for numbers, its format."""
    if value is None:
        return "null", ""
    if isinstance(value, bool):
        return "boolean", ""
    if isinstance(value, str):
        return "string", ""
    if isinstance(value, int) and -(2**63) <= value < 2**63:
        return "integer", "int64"
    if isinstance(value, int | float):
        return "number", "float64"
    return ("array", "") if isinstance(value, list) else ("object", "")


def _combinations(value: Any, schema: Json, path: str, pair: Pair | None) -> Outcome:
    outcomes = []
    if schema.get("anyOf"):
        outcomes.append(_any_of(value, schema["anyOf"], path, pair))
    if schema.get("oneOf"):
        outcomes.append(_one_of(value, schema["oneOf"], path, pair))
    if schema.get("allOf"):
        outcomes.append(_all_of(value, schema["allOf"], path, pair))
    if schema.get("not") is not None and not _nested(value, schema["not"], path, pair).problems:
        outcomes.append(_whole(f"{wording.quoted(path)} must not validate the schema (not)"))
    return _merged(outcomes, 1)


def _nested(value: Any, schema: Json, path: str, pair: Pair | None) -> Outcome:
    """An alternative speaks of the same value. Only what is below it may be excused for being unchanged."""
    unchanged_below = None if pair is None else _Below(pair)
    return check(value, schema, path, unchanged_below)


class _Below(Pair):
    __slots__ = ("_pair",)

    def __init__(self, pair: Pair) -> None:
        super().__init__(pair.new, pair.old, pair.type)
        self._pair = pair

    def key(self, name: str) -> Pair | None:
        return self._pair.key(name)

    def index(self, index: int) -> Pair | None:
        return self._pair.index(index)

    @property
    def unchanged(self) -> bool:
        return False


def _any_of(value: Any, schemas: list[Json], path: str, pair: Pair | None) -> Outcome:
    best: Outcome | None = None
    for schema in schemas:
        outcome = _nested(value, schema, path, pair)
        if not outcome.problems:
            return outcome
        if best is None or outcome.matches > best.matches:
            best = outcome
    failure = _whole(f"{wording.quoted(path)} must validate at least one schema (anyOf)")
    return _merged([failure, best or _NONE], 0)


def _one_of(value: Any, schemas: list[Json], path: str, pair: Pair | None) -> Outcome:
    outcomes = [_nested(value, schema, path, pair) for schema in schemas]
    fitting = [outcome for outcome in outcomes if not outcome.problems]
    if len(fitting) == 1:
        return fitting[0]
    found = f"Found {len(fitting)} valid alternatives" if fitting else "Found none valid"
    failure = _whole(f"{wording.quoted(path)} must validate one and only one schema (oneOf). {found}")
    # The first of those that came closest.
    closest = _NONE if fitting else max(outcomes, key=lambda outcome: outcome.matches)
    return _merged([failure, closest], 0)


def _all_of(value: Any, schemas: list[Json], path: str, pair: Pair | None) -> Outcome:
    outcomes = [_nested(value, schema, path, pair) for schema in schemas]
    fitting = sum(not outcome.problems for outcome in outcomes)
    if fitting < len(outcomes):
        none = "" if fitting else ". None validated"
        outcomes.append(_whole(f"{wording.quoted(path)} must validate all the schemas (allOf){none}"))
    return _merged(outcomes, 0)


def _whole(detail: str) -> Outcome:
    """Problems of alternatives name no field of their own, only their text does."""
    return _wrong(wording.invalid("", "", detail))


def _string(value: str, schema: Json, path: str) -> Outcome:
    most, least, pattern = schema.get("maxLength"), schema.get("minLength"), schema.get("pattern")
    if most is not None and len(value) > most:
        return _wrong(wording.too_long(_field(path), most))
    if least is not None and len(value) < least:
        return _limit(path, value, f"should be at least {least} chars long")
    if pattern and not regexes.compile(pattern).search(value):
        return _limit(path, value, f"should match '{pattern}'")
    return _NONE


def _format(value: str, schema: Json, path: str) -> Outcome:
    format = _known_format(schema)
    if not format or formats.matches(format, value):
        return _NONE
    detail = f"{path} in body must be of type {format}: {wording.quoted(value)}"
    return _wrong(wording.type_invalid(_field(path), value, detail))


def _number(value: float, schema: Json, path: str) -> Outcome:
    outcomes = [_multiple(value, schema, path)]
    least, most = schema.get("minimum"), schema.get("maximum")
    if least is not None:
        strict = bool(schema.get("exclusiveMinimum"))
        words = "greater than" if strict else "greater than or equal to"
        outcomes.append(_bound(value, least, lambda v, b: v > b if strict else v >= b, words, path))
    if most is not None:
        strict_most = bool(schema.get("exclusiveMaximum"))
        words = "less than" if strict_most else "less than or equal to"
        outcomes.append(_bound(value, most, lambda v, b: v < b if strict_most else v <= b, words, path))
    return _merged(outcomes, 1)


def _bound(value: float, bound: float, fits: Callable[[float, float], bool], words: str, path: str) -> Outcome:
    limit = int(bound) if isinstance(value, int) else float(bound)
    return _NONE if fits(value, limit) else _limit(path, value, f"should be {words} {wording.number(limit)}")


def _multiple(value: float, schema: Json, path: str) -> Outcome:
    factor = schema.get("multipleOf")
    if factor is None:
        return _NONE
    step = int(factor) if isinstance(value, int) else float(factor)
    if step <= 0:
        detail = f"factor MultipleOf declared for {path} must be positive: {wording.number(step)}"
        return _wrong(wording.invalid(_field(path), step, detail))
    times = value / step
    if value % step == 0 or (isinstance(value, float) and abs(times - round(times)) < 1e-9 * max(1.0, abs(times))):
        return _NONE
    return _limit(path, value, f"should be a multiple of {wording.number(step)}")


def _list(value: list[Any], schema: Json, path: str, pair: Pair | None) -> Outcome:
    outcomes = []
    items = schema.get("items")
    if isinstance(items, dict):
        for index, item in enumerate(value):
            outcomes.append(check(item, items, f"{path}[{index}]", pair.index(index) if pair else None))
    least, most = schema.get("minItems"), schema.get("maxItems")
    if least is not None and len(value) < least:
        outcomes.append(_limit(path, len(value), f"should have at least {least} items"))
    if most is not None and len(value) > most:
        outcomes.append(_wrong(wording.too_many(_field(path), len(value), most)))
    return _merged(outcomes, 1)


def _enum(value: Any, schema: Json, path: str) -> Outcome:
    words = schema.get("enum")
    if not words or any(_is_word(value, word) for word in words):
        return _NONE
    supported = [word if isinstance(word, str) else wording.compact(word) for word in words]
    return _wrong(wording.not_supported(_field(path), value, supported))


def _is_word(value: Any, word: Any) -> bool:
    if value is None or word is None:
        return False
    numbers = (_type_of(value)[0] in ("integer", "number"), _type_of(word)[0] in ("integer", "number"))
    return bool(value == word) if all(numbers) else same(value, word)


def _object(value: Json, schema: Json, path: str, pair: Pair | None) -> Outcome:
    outcomes = []
    least, most = schema.get("minProperties"), schema.get("maxProperties")
    if least is not None and len(value) < least:
        outcomes.append(_limit(path, len(value), f"should have at least {least} properties"))
    if most is not None and len(value) > most:
        outcomes.append(_wrong(wording.too_many(_field(path), len(value), most)))
    declared = parsing.properties(schema)
    values = parsing.values_schema(schema)
    if schema.get("additionalProperties") is False:
        outcomes += [
            _wrong(wording.invalid(_field(path), name, f"{path}.{name} in body is a forbidden property"))
            for name in value
            if name not in declared
        ]
    elif values is not None:
        for name, item in value.items():
            if name not in declared:
                outcomes.append(check(item, values, f"{path}.{name}", _below(pair, path, name)))
    for name, below in declared.items():
        if name in value:
            here = f"{path}.{name}" if path else name
            outcomes.append(check(value[name], below, here, _below(pair, path, name)))
    for name in schema.get("required") or ():
        if name not in value:
            outcomes.append(_wrong(wording.required(_field(f"{path}.{name}"))))
    return _merged(outcomes, 0)


def _below(pair: Pair | None, path: str, name: str) -> Pair | None:
    # What the API version says about itself is not the user's doing, so it is never excused.
    return None if pair is None or (not path and name in ("kind", "apiVersion")) else pair.key(name)


def _limit(path: str, value: Any, words: str) -> Outcome:
    return _wrong(wording.invalid(_field(path), value, f"{path} in body {words}"))


def _field(path: str) -> str:
    return path.removeprefix(".")
