"""Does an applied object fit its type? An apply says nothing of fields the type does not have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from octarbiter.cluster.apiserver.patching import field_sets, shapes, values
from octarbiter.cluster.apiserver.types import ListType, Shape, Type


class Misfit(NamedTuple):
    path: str
    message: str


def problems(value: Any, type: Type) -> list[Misfit]:
    return [Misfit(field_sets.text(path), message) for path, message in _misfits(value, type, (), False)]


def text(misfits: list[Misfit]) -> str:
    lines = [f"{path}: {message}" if path else message for path, message in misfits]
    return lines[0] if len(lines) == 1 else "\n  ".join(["errors:", *lines])


_Found = Iterator[tuple[field_sets.Path, str]]


def _misfits(value: Any, type: Type, path: field_sets.Path, anything_goes: bool) -> _Found:
    if value is None:
        return
    match type.shape:
        case Shape.OBJECT | Shape.MAP:
            if not isinstance(value, dict):
                yield path, f"expected map, got {_shown(value)}"
            else:
                yield from _in_map(value, type, path, anything_goes or type.keeps_unknown)
        case Shape.LIST:
            if not isinstance(value, list):
                yield path, f"expected list, got {_shown(value)}"
            else:
                yield from _in_list(value, type, path, anything_goes)
        case Shape.INTEGER | Shape.NUMBER:
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                yield path, f"expected numeric (int or float), got {values.go_type(value)}"
        case Shape.STRING | Shape.BYTES:
            if not isinstance(value, str):
                yield path, f"expected string, got {_detailed(value)}"
        case Shape.BOOLEAN:
            if not isinstance(value, bool):
                yield path, f"expected boolean, got {_shown(value)}"
        case Shape.ANY:
            return
        case Shape.INT_OR_STRING if type.schema:
            return  # of a custom kind: its schema names no type, so other rules than these refuse what is neither
        case _:
            if isinstance(value, (dict, list)):
                yield path, f"expected any scalar, got {_shown(value)}"


def _in_map(value: dict[str, Any], type: Type, path: field_sets.Path, anything_goes: bool) -> _Found:
    # An object of which nothing is declared may hold anything.
    free = anything_goes or type.shape is Shape.MAP or not type.properties
    for name in sorted(value):
        here = (*path, field_sets.field(name))
        if not free and name not in type.properties:
            yield here, "field not declared in schema"
            return
        yield from _misfits(value[name], shapes.below(type, name), here, anything_goes)


def _in_list(value: list[Any], type: Type, path: field_sets.Path, anything_goes: bool) -> _Found:
    seen: set[str] = set()
    for index, item in enumerate(value):
        element = f"i:{index}"
        if type.list_type is not ListType.ATOMIC:
            try:
                element = shapes.element_of(item, type)
            except shapes.NoKey as problem:
                yield path, f"element {index}: {problem}"
                return
            if element in seen:
                yield path, f"duplicate entries for key {field_sets.text((element,))}"
            seen.add(element)
        yield from _misfits(item, shapes.items(type), (*path, element), anything_goes)


def _shown(value: Any) -> str:
    return "&{" + values.go_text(value) + "}"


def _detailed(value: Any) -> str:
    return "&value.valueUnstructured{Value:" + values.go_text(value) + "}"
