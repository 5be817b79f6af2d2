"""In which form is an object of a built-in kind kept?

As if it had gone through the Go struct of its kind and back: no unknown fields, no nulls but where Go writes them,
zeros left out or written as the struct says, times in UTC, quantities canonical, declared defaults filled in. So
whatever a client sends, readers see exactly what a real server would show. Expects an object without wrong types.
"""

from __future__ import annotations

import copy
from typing import Any

import msgspec

from octarbiter.cluster.apiserver.schemas import quantities, times
from octarbiter.cluster.apiserver.types import Presence, Shape, Type

# Plain names: an enumeration's members are looked up slowly, and this is done for every value of every write.
_STRING, _OBJECT, _MAP, _LIST = Shape.STRING, Shape.OBJECT, Shape.MAP, Shape.LIST
_QUANTITY, _TIME, _MICRO_TIME = Shape.QUANTITY, Shape.TIME, Shape.MICRO_TIME
_KEPT, _DROPPED, _FILLED, _NULL = Presence.KEPT, Presence.DROPPED, Presence.FILLED, Presence.NULL


def prune(obj: dict[str, Any], type: Type) -> None:
    """In place. Doing it twice changes nothing more."""
    properties = type.properties
    for name, value in list(obj.items()):
        below = properties.get(name)
        if below is None:
            if not type.keeps_unknown:
                del obj[name]
        elif value is None:
            del obj[name]
        else:
            obj[name] = value = _settled(value, below)
            if not value and below.presence is _DROPPED:
                del obj[name]
    for name, below in _written_when_absent(properties):
        if name not in obj:
            obj[name] = _absent(below)


_known: dict[int, tuple[dict[str, Type], list[tuple[str, Type]]]] = {}
"""By identity of the properties, which are held here so that no other ones get it."""


def _written_when_absent(properties: dict[str, Type]) -> list[tuple[str, Type]]:
    found = _known.get(id(properties))
    if found is None:
        wanted = [(name, below) for name, below in properties.items() if _is_written_when_absent(below)]
        found = _known[id(properties)] = (properties, wanted)
    return found[1]


def _is_written_when_absent(type: Type) -> bool:
    return type.presence in (_FILLED, _NULL) or _has_default(type)


def _has_default(type: Type) -> bool:
    # The schemas name the zero of Go's plain fields as their default, which says nothing.
    return type.default is not msgspec.UNSET and (bool(type.default) or (type.default == "" and type.presence is _KEPT))


def _absent(type: Type) -> Any:
    if _has_default(type):
        return copy.deepcopy(type.default)
    return _zero(type) if type.presence is _FILLED else None


def _settled(value: Any, type: Type) -> Any:
    shape, element = type.shape, type.element
    if shape is _STRING:
        return value
    if shape is _OBJECT:
        prune(value, type)
    elif shape is _LIST and element is not None:
        return [_zero(element) if inner is None else _settled(inner, element) for inner in value]
    elif shape is _MAP and element is not None:
        if type.name == "v1.ResourceList":
            return {name: quantities.rounded(amount) for name, amount in value.items()}
        for name, inner in value.items():
            value[name] = _zero(element) if inner is None else _settled(inner, element)
    elif shape is _QUANTITY:
        return quantities.canonical(value)
    elif shape is _TIME:
        return times.canonical(value, times.SECONDS)
    elif shape is _MICRO_TIME:
        return times.canonical(value, times.MICROSECONDS)
    return value


def _zero(type: Type) -> Any:
    match type.shape:
        case Shape.STRING:
            return ""
        case Shape.INTEGER | Shape.NUMBER | Shape.INT_OR_STRING:
            return 0
        case Shape.BOOLEAN:
            return False
        case Shape.QUANTITY:
            return "0"
        case Shape.OBJECT:
            empty: dict[str, Any] = {}
            prune(empty, type)
            return empty
    return None
