"""How does the type of a value divide it into what can be owned?

A value is a leaf (owned as a whole), a map (each field for itself) or a list (each element for itself, told apart by
its keys or its value).
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Any, Final

import msgspec

from octarbiter.api.meta import Json
from octarbiter.cluster.apiserver.patching import field_sets
from octarbiter.cluster.apiserver.types import ANYTHING, ListType, Presence, Shape, Type


class Form(Enum):
    LEAF = auto()
    MAP = auto()
    LIST = auto()


class NoKey(Exception):
    """An element of a list that cannot be told apart from others; the message says why."""


_STRING = Type(shape=Shape.STRING)
_STRINGS = Type(shape=Shape.MAP, element=_STRING)
_TIME = Type(shape=Shape.TIME)
_INTEGER = Type(shape=Shape.INTEGER)
_OWNER = Type(
    shape=Shape.OBJECT,
    atomic=True,
    properties={
        **dict.fromkeys(("apiVersion", "kind", "name", "uid"), _STRING),
        **dict.fromkeys(("controller", "blockOwnerDeletion"), Type(shape=Shape.BOOLEAN)),
    },
)
OBJECT_META = Type(
    shape=Shape.OBJECT,
    name="ObjectMeta",
    properties={
        **dict.fromkeys(("name", "generateName", "namespace", "selfLink", "uid", "resourceVersion"), _STRING),
        **dict.fromkeys(("creationTimestamp", "deletionTimestamp"), _TIME),
        **dict.fromkeys(("generation", "deletionGracePeriodSeconds"), _INTEGER),
        **dict.fromkeys(("labels", "annotations"), _STRINGS),
        "finalizers": Type(shape=Shape.LIST, list_type=ListType.SET, element=_STRING),
        "ownerReferences": Type(shape=Shape.LIST, list_type=ListType.MAP, list_keys=("uid",), element=_OWNER),
        "managedFields": Type(shape=Shape.LIST, element=ANYTHING),
    },
)


def whole_object(type: Type) -> Type:
    """With metadata and the two fields every object has; the schema of a custom kind says little or nothing of them."""
    metadata = type.properties.get("metadata")
    if metadata is not None and "labels" in metadata.properties:
        return type
    declared = {"apiVersion": _STRING, "kind": _STRING, **type.properties, "metadata": OBJECT_META}
    return msgspec.structs.replace(type, properties=declared)


_ZEROS: Final = {Shape.STRING: "", Shape.INTEGER: 0, Shape.NUMBER: 0, Shape.BOOLEAN: False}


def empty(type: Type) -> Json:
    """An object of this type before anything is written: a built-in kind has parts that are always there."""
    return {
        name: empty(part) if part.shape is Shape.OBJECT else _ZEROS.get(part.shape)
        for name, part in type.properties.items()
        if part.presence in (Presence.FILLED, Presence.NULL)
    }


def below(type: Type, name: str) -> Type:
    """The type of a field, ANYTHING for one that is not declared."""
    found = type.field(name)
    if found is None:
        return ANYTHING
    return whole_object(found) if found.embedded else found


def items(type: Type) -> Type:
    if type.element is None:
        return ANYTHING
    return whole_object(type.element) if type.element.embedded else type.element


def at(type: Type, element: str) -> Type | None:
    """The type at one path element; None where a set of fields does not fit the type."""
    if element.startswith("f:"):
        return below(type, element[2:]) if type.shape in (Shape.OBJECT, Shape.MAP, Shape.ANY) else None
    return items(type) if type.shape is Shape.LIST else None


def form(type: Type, value: Any) -> Form:
    match type.shape:
        case Shape.OBJECT | Shape.MAP:
            return Form.LEAF if type.atomic else Form.MAP
        case Shape.LIST:
            return Form.LEAF if type.list_type is ListType.ATOMIC else Form.LIST
        case Shape.ANY:
            return Form.MAP if isinstance(value, dict) and not type.atomic else Form.LEAF
        case _:
            return Form.LEAF


def element_of(item: Any, type: Type) -> str:
    """What tells this element of a list apart from the others."""
    if type.list_type is ListType.SET:
        match item:
            case dict():
                raise NoKey("associative list without keys has an element that's a map type")
            case list():
                raise NoKey("not supported: associative list with lists as elements")
            case None:
                raise NoKey("associative list without keys has an element that's an explicit null")
            case _:
                return field_sets.scalar(item)
    if item is None:
        raise NoKey("associative list with keys may not have a null element")
    if not isinstance(item, dict):
        raise NoKey("associative list with keys may not have non-map elements")
    keys: dict[str, Any] = {}
    for name in type.list_keys:
        declared = items(type).properties.get(name)
        if name in item:
            keys[name] = item[name]
        elif declared is not None and declared.default not in (msgspec.UNSET, None):
            keys[name] = declared.default
    if not keys:
        names = " ".join(f'"{name}"' for name in type.list_keys)
        raise NoKey(
            f"associative list with keys has an element that omits all key fields [{names}] "
            "(and doesn't have default values for any key fields)"
        )
    return field_sets.key(keys)
