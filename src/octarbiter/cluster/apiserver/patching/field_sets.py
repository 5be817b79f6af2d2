"""Which fields: sets of paths into an object, in the form `managedFields` keeps them in.

A set is a tree of path elements, and its own encoding: `{"f:data": {".": {}, "f:a": {}}}` holds `.data` and `.data.a`.
Elements are `f:name` (a field), `k:{"name":"main"}` (an element of a list, by its keys), `v:"x"` (an element of a list
of scalars, by its value) and `i:0` (by its position). A node without children is a member; one with children is a
member only if it holds `.`. The root is no member of itself: `{}` is the empty set.

Sets are values: nothing here changes one, and results may share parts. `encode` makes a copy of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

import msgspec

from octarbiter.cluster.apiserver.patching import values

Fields = dict[str, Any]
Path = tuple[str, ...]

SELF = "."
MEMBER: Fields = {}

_ELEMENT_KINDS = "fkvi"
_POSITION = re.compile("-?[0-9]{1,18}")
_TOO_DEEP = f"nested more than {values.MAX_DEPTH} levels deep"


class BadFields(ValueError):
    """Not a set of fields; the message says why."""


def is_member(node: Fields) -> bool:
    return not node or SELF in node


def node_of(children: Fields, member: bool) -> Fields | None:
    """A node of the tree, None if there is nothing to say."""
    if not children:
        return MEMBER if member else None
    return {SELF: {}, **children} if member else children


def children_of(node: Fields) -> Fields:
    if SELF not in node:
        return node
    return {element: child for element, child in node.items() if element != SELF}


def union(left: Fields, right: Fields) -> Fields:
    if not left or not right:
        return left or right
    result = dict(left)
    for element, other in right.items():
        own = left.get(element)
        if own is None:
            result[element] = other
        elif own is not other:
            children = union(children_of(own), children_of(other))
            result[element] = node_of(children, is_member(own) or is_member(other))
    return result


def intersection(left: Fields, right: Fields) -> Fields:
    result: Fields = {}
    for element, own in left.items():
        other = right.get(element)
        if other is not None and element != SELF:
            children = intersection(children_of(own), children_of(other))
            node = node_of(children, is_member(own) and is_member(other))
            if node is not None:
                result[element] = node
    return result


def difference(left: Fields, right: Fields) -> Fields:
    """Without the members of `right`; what is below them stays."""
    result: Fields = {}
    for element, own in left.items():
        other = right.get(element)
        if other is None:
            result[element] = own
        else:
            children = difference(children_of(own), children_of(other))
            node = node_of(children, is_member(own) and not is_member(other))
            if node is not None:
                result[element] = node
    return result


def without(left: Fields, right: Fields) -> Fields:
    """Without the members of `right` and everything below them."""
    result: Fields = {}
    for element, own in left.items():
        other = right.get(element)
        if other is None:
            result[element] = own
        elif not is_member(other):
            node = node_of(without(children_of(own), other), is_member(own))
            if node is not None:
                result[element] = node
    return result


def has(fields: Fields, path: Path) -> bool:
    node: Fields | None = fields
    for element in path:
        node = node.get(element) if node is not None else None
    return node is not None and bool(path) and is_member(node)


def paths(fields: Fields, prefix: Path = ()) -> Iterator[Path]:
    """All members in the server's order: those of a level, then what is below each."""
    elements = sorted(children_of(fields), key=order)
    for element in elements:
        if is_member(fields[element]):
            yield (*prefix, element)
    for element in elements:
        yield from paths(fields[element], (*prefix, element))


def of_paths(members: Iterable[Path]) -> Fields:
    result: Fields = {}
    for path in members:
        node = MEMBER
        for element in reversed(path):
            node = {element: node}
        result = union(result, node)
    return result


def text(path: Path) -> str:
    """As people read it: `.spec.containers[name="main"].image`."""
    return "".join(map(_element_text, path))


# --- elements


def field(name: str) -> str:
    return f"f:{name}"


def key(keys: dict[str, Any]) -> str:
    return "k:" + values.go_json(keys)


def scalar(value: Any) -> str:
    return "v:" + values.go_json(value)


@lru_cache(maxsize=1 << 14)
def order(element: str) -> tuple[Any, ...]:
    """The server's order: fields by name, then keys, values and positions."""
    kind, rest = element[0], element[2:]
    if kind == "f":
        return (0, rest)
    if kind == "i":
        return (3, int(rest))
    value = msgspec.json.decode(rest)
    if kind == "v":
        return (2, _value_order(value))
    return (1, tuple((name, _value_order(value[name])) for name in sorted(value)))


def _value_order(value: Any) -> tuple[Any, ...]:
    match value:
        case bool():
            return (2, value)
        case int() | float():
            return (0, value)
        case str():
            return (1, value)
        case None:
            return (4,)
        case _:
            return (3, values.go_json(value))


def _element_text(element: str) -> str:
    kind, rest = element[0], element[2:]
    if kind == "f":
        return f".{rest}"
    if kind == "i":
        return f"[{rest}]"
    if kind == "v":
        return f"[={_plain(rest)}]"
    keys = msgspec.json.decode(rest)
    return "[" + ",".join(f"{name}={_plain(values.go_json(keys[name]))}" for name in sorted(keys)) + "]"


def _plain(encoded: str) -> str:
    return encoded.replace("\\u0026", "&").replace("\\u003c", "<").replace("\\u003e", ">")


# --- to and from what clients send
#
# Thousands of pods have the same owners of the same fields: what was read or written once is known.


def encode(fields: Fields) -> Fields:
    """In the server's order, sharing nothing."""
    encoded: Fields = msgspec.json.decode(_ordered_text(msgspec.json.encode(fields)))
    return encoded


@lru_cache(maxsize=1 << 10)
def _ordered_text(fields: bytes) -> bytes:
    return msgspec.json.encode(_ordered(msgspec.json.decode(fields)))


def _ordered(fields: Fields) -> Fields:
    result: Fields = {SELF: {}} if SELF in fields else {}
    for element in sorted(children_of(fields), key=order):
        result[element] = _ordered(fields[element])
    return result


def decode(raw: Any) -> Fields:
    """In one spelling, so that equal elements are equal strings. Kinds of elements that are not known are dropped."""
    try:
        return _decoded_text(msgspec.json.encode(raw))
    except RecursionError:
        raise BadFields(_TOO_DEEP) from None


@lru_cache(maxsize=1 << 10)
def _decoded_text(raw: bytes) -> Fields:
    return _decoded(msgspec.json.decode(raw), values.MAX_DEPTH)


def _decoded(raw: Any, room: int) -> Fields:
    if not isinstance(raw, dict):
        raise BadFields(f"expected an object, got {type(raw).__name__}")
    if not room:
        raise BadFields(_TOO_DEEP)
    result: Fields = {}
    for element, below in raw.items():
        if element == SELF:
            result[SELF] = {}
        elif (spelled := _canonical(element)) is not None:
            node = _decoded(below, room - 1)
            seen = result.get(spelled)
            result[spelled] = node if seen is None else _joined(seen, node)
    return MEMBER if result.keys() == {SELF} else result


def _joined(one: Fields, other: Fields) -> Fields:
    joined = node_of(union(children_of(one), children_of(other)), is_member(one) or is_member(other))
    return joined or MEMBER


def _canonical(element: str) -> str | None:
    if len(element) < 2:
        raise BadFields(f"an element needs two characters at least: {element!r}")
    kind, colon, rest = element[0], element[1], element[2:]
    if colon != ":":
        raise BadFields(f"missing colon: {element}")
    if kind not in _ELEMENT_KINDS:
        return None
    if kind == "f":
        return element
    if kind == "i":
        if not _POSITION.fullmatch(rest):
            raise BadFields(f"not a position: {element}")
        return f"i:{int(rest)}"
    try:
        value = msgspec.json.decode(rest)
    except (msgspec.DecodeError, RecursionError) as problem:
        raise BadFields(f"{element}: {problem}") from None
    if kind == "v":
        return scalar(value)
    if not isinstance(value, dict):
        raise BadFields(f"keys must be an object: {element}")
    return key(value)
