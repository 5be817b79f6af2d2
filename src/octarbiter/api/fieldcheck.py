"""Does this JSON have the form that a tree of `schema.Node`s describes, and what changed in it that must not?"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterator
from typing import Any

from octarbiter.api import quantity
from octarbiter.api.errors import FieldProblem, Refused
from octarbiter.api.facts import INT32_MAX
from octarbiter.api.meta import Json
from octarbiter.api.schema import Node

_SHOWN = 60
"""More of a wrong value is not repeated back."""

_PYTHON: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "time": (str,),
    "integer": (int,),
    "boolean": (bool,),
    "int-or-string": (int, str),
    "any": (object,),
}
_WORDS = {
    "object": "an object",
    "array": "a list",
    "string": "a string",
    "time": "a time",
    "integer": "a whole number",
    "boolean": "true or false",
    "int-or-string": "a whole number or a string",
}
_NUMBERS = ("integer", "int-or-string")


def shown(value: Any) -> str:
    """A wrong value as its author would recognise it."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int() if value.bit_length() > 64:
            return "a number of more than 64 bits"
        case int() | float():
            return str(value)
        case str():
            return f'"{value}"' if len(value) <= _SHOWN else f'"{value[:_SHOWN]}..." ({len(value)} characters)'
        case list():
            return "a list"
        case dict():
            return "an object"
        case _:
            return f"a {type(value).__name__}"


def suggestion(word: str, known: Collection[str]) -> str:
    near = difflib.get_close_matches(word[:_SHOWN], list(known), n=1)
    return f"; did you mean {near[0]}?" if near else ""


def problems(node: Node, value: Any, path: str) -> Iterator[FieldProblem]:
    # To Python true is a number; to the author of a manifest it is not.
    if not isinstance(value, _PYTHON[node.type]) or (isinstance(value, bool) and node.type in _NUMBERS):
        yield FieldProblem(path, f"must be {_WORDS[node.type]}, is {shown(value)}")
        return
    match value:
        case dict():
            yield from _object_problems(node, value, path)
        case list():
            yield from _list_problems(node, value, path)
        case str():
            yield from _string_problems(node, value, path)
        case int():
            yield from _number_problems(node, value, path)


def unknown(value: Json, known: Collection[str], path: str) -> Iterator[FieldProblem]:
    for name in value:
        if name not in known:
            yield FieldProblem(_child(path, name), f"unknown field{suggestion(name, known)}")


def changes(node: Node, before: Any, after: Any, path: str) -> Iterator[FieldProblem]:
    """What differs although it must not. Items of a list are followed by their key; new ones are not looked at."""
    if node.facts.immutable:
        if before != after:
            yield FieldProblem(path, f"cannot be changed after creation{_from_to(before, after)}")
    elif isinstance(before, dict) and isinstance(after, dict):
        for name, child in node.fields.items():
            yield from changes(child, before.get(name), after.get(name), f"{path}.{name}")
    elif isinstance(before, list) and isinstance(after, list) and node.items and (key := node.facts.key):
        old = {item[key]: item for item in before if isinstance(item, dict) and isinstance(item.get(key), str)}
        for index, item in enumerate(after):
            if isinstance(item, dict) and isinstance(item.get(key), str) and item[key] in old:
                yield from changes(node.items, old[item[key]], item, f"{path}[{index}]")


def _object_problems(node: Node, value: Json, path: str) -> Iterator[FieldProblem]:
    least, most = node.facts.min_properties, node.facts.max_properties
    if len(value) < least:
        yield FieldProblem(path, "must not be empty")
    if most is not None and len(value) > most:
        yield FieldProblem(path, f"must have at most {most} entries, has {len(value)}")
        return
    if node.values:
        yield from _map_problems(node, node.values, value, path)
        return
    if not node.is_open:
        yield from unknown(value, node.fields, path)
    for name, child in node.fields.items():
        if name in value:
            yield from problems(child, value[name], _child(path, name))
        elif child.required:
            yield FieldProblem(_child(path, name), "is required")


def _map_problems(node: Node, values: Node, value: Json, path: str) -> Iterator[FieldProblem]:
    form = node.facts.names
    for name, item in value.items():
        where = f"{path}[{name}]" if form and len(name) <= _SHOWN else _child(path, name)
        if form and not matches(form.pattern, name):
            yield FieldProblem(where, f"must be {form.words}, is {shown(name)}")
        yield from problems(values, item, where)


def _list_problems(node: Node, value: list[Any], path: str) -> Iterator[FieldProblem]:
    facts = node.facts
    if len(value) < facts.min_items:
        yield FieldProblem(path, "must not be empty")
    if facts.max_items is not None and len(value) > facts.max_items:
        yield FieldProblem(path, f"must have at most {facts.max_items} items, has {len(value)}")
        return
    seen: dict[str, int] = {}
    for index, item in enumerate(value):
        if node.items:
            yield from problems(node.items, item, f"{path}[{index}]")
        if facts.key and isinstance(item, dict) and isinstance(name := item.get(facts.key), str):
            first = seen.setdefault(name, index)
            if first != index:
                yield FieldProblem(f"{path}[{index}]", f"{facts.key} {shown(name)} is already used by item {first}")


def _string_problems(node: Node, value: str, path: str) -> Iterator[FieldProblem]:
    facts = node.facts
    if facts.words and value not in facts.words:
        hint = f"{suggestion(value, facts.words)}{_because(node)}"
        yield FieldProblem(path, f"must be one of {', '.join(facts.words)}, is {shown(value)}{hint}")
    elif facts.max_length is not None and len(value) > facts.max_length:
        yield FieldProblem(path, f"must have at most {facts.max_length} characters, has {len(value)}")
    elif facts.is_quantity and (found := _quantity_problem(value, path)):
        yield found
    elif facts.form and not matches(facts.form.pattern, value):
        yield FieldProblem(path, f"must be {facts.form.words}, is {shown(value)}")


def matches(pattern: str, text: str) -> bool:
    """As servers see it: `$` is the very end, not before a last line break, and digits are those of ASCII."""
    return "\n" not in text and re.search(pattern, text, re.ASCII) is not None


def _quantity_problem(value: str, path: str) -> FieldProblem | None:
    """Its own words are better than those of the form."""
    try:
        amount = quantity.parse(value, path)
    except Refused as refused:
        return refused.problems[0]
    return FieldProblem(path, f"must be at least 0, is {shown(value)}") if amount.nano < 0 else None


def _number_problems(node: Node, value: int, path: str) -> Iterator[FieldProblem]:
    low, high = node.facts.minimum, node.facts.maximum
    if node.facts.is_quantity:
        high = quantity.LARGEST
    if (low is None or value >= low) and (high is None or value <= high):
        return
    # The largest number that fits is a limit, but not what somebody who wrote -1 wants to read.
    is_plain_minimum = high in (INT32_MAX, quantity.LARGEST) and low is not None and value < low
    wanted = f"at least {low}" if is_plain_minimum else f"between {low} and {high}"
    yield FieldProblem(path, f"must be {wanted}, is {shown(value)}{_because(node)}")


def _because(node: Node) -> str:
    return f" ({node.facts.because})" if node.facts.because else ""


def _from_to(before: Any, after: Any) -> str:
    if isinstance(before, dict | list) or isinstance(after, dict | list):
        return ""
    was, now = ("absent" if value is None else shown(value) for value in (before, after))
    return f": was {was}, is {now}"


def _child(path: str, name: str) -> str:
    plain = name.isidentifier() and len(name) <= _SHOWN
    if not plain:
        return f"{path}[{shown(name)}]"
    return f"{path}.{name}" if path else name


def as_object(value: Any) -> Json:
    return value if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def as_whole(value: Any) -> int | None:
    """Numbers that no field allows, and Python would refuse to print, are as good as none."""
    is_whole = isinstance(value, int) and not isinstance(value, bool) and value.bit_length() <= 64
    return value if is_whole else None
