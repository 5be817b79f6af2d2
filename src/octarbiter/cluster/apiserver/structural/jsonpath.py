"""What does `.status.conditions[?(@.type=="Ready")].status` point at?

The JSONPath of printer columns, of scale and of selectable fields: names, quoted names, indices, slices, `*`, filters
and `..`. A path that points at nothing is not an error; a path that cannot be read is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

from octarbiter.cluster.apiserver.structural import wording

Step = Callable[[Any], Iterator[Any]]

_NAME = re.compile(r"\.([^.\[\]\s]+)")
_QUOTED = re.compile(r"""\[('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")\]""")
_SLICE = re.compile(r"\[(-?\d*)(?::(-?\d*)(?::(\d*))?)?\]")
_FILTER = re.compile(r"""\[\?\((@[^=<>!]*)(?:(==|!=|<=|>=|<|>)(.*?))?\)\]""")
_MOST_RESULTS = 10_000
"""`..` on a large object would otherwise visit everything again and again."""


class BadPath(ValueError):
    """The path cannot be read; the message says where."""


def first(value: Any, path: str) -> Any | None:
    """What the path points at first; None where there is nothing."""
    return next(find(value, path), None)


def find(value: Any, path: str) -> Iterator[Any]:
    found = iter([value])
    for step in steps(path):
        found = _each(step, found)
    for count, each in enumerate(found):
        if count >= _MOST_RESULTS:
            return
        yield each


def _each(step: Step, values: Iterator[Any]) -> Iterator[Any]:
    for value in values:
        yield from step(value)


@lru_cache(maxsize=1024)
def steps(path: str) -> tuple[Step, ...]:
    rest = path.removeprefix("{").removesuffix("}").removeprefix("$")
    found: list[Step] = []
    while rest and rest != ".":
        step, length = _step(rest, path)
        found.append(step)
        rest = rest[length:]
    return tuple(found)


def _step(rest: str, path: str) -> tuple[Step, int]:
    if rest.startswith(".."):
        return _descend, 1
    if match := _NAME.match(rest):
        # A dot that belongs to a name is written with a backslash.
        name = match[1]
        end = match.end()
        while name.endswith("\\") and (more := _NAME.match(rest, end)):
            name = f"{name[:-1]}.{more[1]}"
            end = more.end()
        return (_all if name == "*" else _named(name)), end
    if match := _QUOTED.match(rest):
        return _named(re.sub(r"\\(.)", r"\1", match[1][1:-1])), match.end()
    if rest.startswith("[*]"):
        return _all, 3
    if match := _FILTER.match(rest):
        return _filter(match[1], match[2], match[3]), match.end()
    if (match := _SLICE.match(rest)) and (match[1] or match[2] is not None):
        return _slice(match), match.end()
    raise BadPath(f"cannot read {rest!r} in the path {path!r}")


def _named(name: str) -> Step:
    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, dict) and name in value:
            yield value[name]

    return step


def _all(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, list):
        yield from value


def _descend(value: Any) -> Iterator[Any]:
    yield value
    for below in _all(value):
        yield from _descend(below)


def _slice(match: re.Match[str]) -> Step:
    def step(value: Any) -> Iterator[Any]:
        if not isinstance(value, list):
            return
        if match[2] is None and ":" not in match[0]:
            index = int(match[1])
            if -len(value) <= index < len(value):
                yield value[index]
            return
        begin, end, every = (int(part) if part else None for part in match.groups())
        yield from value[begin : end : every or 1]

    return step


def _filter(left: str, operator: str | None, right: str | None) -> Step:
    below = left.strip().removeprefix("@")

    def fits(item: Any) -> bool:
        value = first(item, below)
        if operator is None:
            return value is not None
        wanted = _literal((right or "").strip(), item)
        if value.__class__ is not wanted.__class__ and not (_is_number(value) and _is_number(wanted)):
            return operator == "!="
        return _COMPARE[operator](value, wanted)

    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, list):
            yield from (item for item in value if fits(item))

    return step


_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "==": lambda a, b: bool(a == b),
    "!=": lambda a, b: bool(a != b),
    "<": lambda a, b: _is_ordered(a) and bool(a < b),
    "<=": lambda a, b: _is_ordered(a) and bool(a <= b),
    ">": lambda a, b: _is_ordered(a) and bool(a > b),
    ">=": lambda a, b: _is_ordered(a) and bool(a >= b),
}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_ordered(value: Any) -> bool:
    return isinstance(value, str) or _is_number(value)


def _literal(text: str, item: Any) -> Any:
    if text.startswith("@"):
        return first(item, text.removeprefix("@"))
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        return text[1:-1]
    if text in ("true", "false"):
        return text == "true"
    try:
        return int(text) if re.fullmatch(r"-?\d+", text) else float(text)
    except ValueError:
        return text


def printed(value: Any) -> str | None:
    """As a cell of type string shows it: strings bare, anything else as JSON."""
    if value is None:
        return None
    if isinstance(value, str):
        return value
    return wording.number(value) if _is_number(value) else wording.compact(value)
