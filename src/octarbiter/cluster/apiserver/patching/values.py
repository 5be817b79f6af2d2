"""What can be said of a JSON value without knowing what it means?

Everything here recurses, so everything here is bounded: nothing deeper than MAX_DEPTH gets through.
"""

from __future__ import annotations

from typing import Any

import msgspec

from octarbiter.cluster.apiserver.patching import errors
from octarbiter.cluster.apiserver.schemas import nesting

MAX_DEPTH = nesting.DEEPEST + 10
"""Objects and lists inside one another. More than what can be decoded: the record of an object's owners is as deep as
the object, and lies some levels down in it."""


def copied(value: Any, room: int = MAX_DEPTH) -> Any:
    if isinstance(value, dict):
        if not room:
            raise errors.too_deep(MAX_DEPTH)
        return {key: copied(item, room - 1) for key, item in value.items()}
    if isinstance(value, list):
        if not room:
            raise errors.too_deep(MAX_DEPTH)
        return [copied(item, room - 1) for item in value]
    return value


def check_depth(value: Any, room: int = MAX_DEPTH) -> None:
    if isinstance(value, (dict, list)):
        if not room:
            raise errors.too_deep(MAX_DEPTH)
        for item in value.values() if isinstance(value, dict) else value:
            check_depth(item, room - 1)


def equal(left: Any, right: Any, room: int = MAX_DEPTH) -> bool:
    """As JSON, not as Python: true is not 1."""
    if isinstance(left, dict):
        if not isinstance(right, dict) or left.keys() != right.keys():
            return False
        if not room:
            raise errors.too_deep(MAX_DEPTH)
        return all(equal(item, right[key], room - 1) for key, item in left.items())
    if isinstance(left, list):
        if not isinstance(right, list) or len(left) != len(right):
            return False
        if not room:
            raise errors.too_deep(MAX_DEPTH)
        return all(equal(one, other, room - 1) for one, other in zip(left, right, strict=True))
    return isinstance(left, bool) == isinstance(right, bool) and bool(left == right)


def go_type(value: Any) -> str:
    """As kube-apiserver names the type in error messages."""
    match value:
        case bool():
            return "bool"
        case str():
            return "string"
        case int():
            return "int64"
        case float():
            return "float64"
        case dict():
            return "map[string]interface {}"
        case list():
            return "[]interface {}"
        case _:
            return "%!s(<nil>)"


def go_text(value: Any, room: int = MAX_DEPTH) -> str:
    """As kube-apiserver prints a value in error messages."""
    if not room:
        raise errors.too_deep(MAX_DEPTH)
    match value:
        case None:
            return "<nil>"
        case bool():
            return "true" if value else "false"
        case dict():
            return "map[" + " ".join(f"{key}:{go_text(value[key], room - 1)}" for key in sorted(value)) + "]"
        case list():
            return "[" + " ".join(go_text(item, room - 1) for item in value) + "]"
        case float():
            return str(int(value)) if value.is_integer() and abs(value) < 1e21 else repr(value)
        case _:
            return str(value)


def go_json(value: Any) -> str:
    """As Go writes JSON: sorted, whole numbers without a fraction, nothing a browser could take for a tag."""
    encoded = msgspec.json.encode(_whole_numbers(value), order="sorted").decode()
    return encoded.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _whole_numbers(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _whole_numbers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_whole_numbers(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 1e21 else value
