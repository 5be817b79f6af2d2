"""What tree does a schema of a CustomResourceDefinition describe?"""

from __future__ import annotations

from typing import Any

import msgspec

from octarbiter.api.meta import Json
from octarbiter.cluster.apiserver.types import ListType, Shape, Type

_SCALARS = {
    "string": Shape.STRING,
    "integer": Shape.INTEGER,
    "number": Shape.NUMBER,
    "boolean": Shape.BOOLEAN,
}


def parse(schema: Json) -> Type:
    """The type of a whole custom object: `embedded` says that apiVersion, kind and metadata need not be declared."""
    root = _parse(schema)
    root.embedded = True
    return root


def _parse(schema: Json) -> Type:
    shape = _shape(schema)
    return Type(
        shape=shape,
        name=schema.get("type") or shape.value,
        properties={name: _parse(below) for name, below in properties(schema).items()},
        required=tuple(schema.get("required") or ()),
        element=_element(schema),
        list_type=_list_type(schema),
        list_keys=tuple(schema.get("x-kubernetes-list-map-keys") or ()),
        atomic=schema.get("x-kubernetes-map-type") == "atomic",
        keeps_unknown=bool(schema.get("x-kubernetes-preserve-unknown-fields")),
        embedded=bool(schema.get("x-kubernetes-embedded-resource")),
        nullable=bool(schema.get("nullable")),
        # A default of null is no default.
        default=msgspec.UNSET if schema.get("default") is None else schema["default"],
        schema=schema,
    )


def properties(schema: Json) -> dict[str, Json]:
    return schema.get("properties") or {}


def values_schema(schema: Json) -> Json | None:
    """Of a map: the schema of its values. `additionalProperties: true` names none."""
    additional: Any = schema.get("additionalProperties")
    return additional if isinstance(additional, dict) else None


def _shape(schema: Json) -> Shape:
    if schema.get("x-kubernetes-int-or-string"):
        return Shape.INT_OR_STRING
    kind = schema.get("type")
    if kind == "object":
        return Shape.MAP if schema.get("additionalProperties") and not properties(schema) else Shape.OBJECT
    if kind == "array":
        return Shape.LIST
    return _SCALARS.get(str(kind), Shape.ANY)


def _element(schema: Json) -> Type | None:
    below = schema.get("items") if schema.get("type") == "array" else values_schema(schema)
    return _parse(below) if isinstance(below, dict) else None


def _list_type(schema: Json) -> ListType:
    given = schema.get("x-kubernetes-list-type")
    return ListType(given) if given in ("set", "map") else ListType.ATOMIC
