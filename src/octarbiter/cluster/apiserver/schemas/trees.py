"""The table of built-in kinds as trees of types, grown when they are asked for and kept."""

from __future__ import annotations

import functools
from typing import Any

import msgspec

from octarbiter.cluster.apiserver.schemas import table
from octarbiter.cluster.apiserver.types import ListType, Presence, Shape, Type

_PREFIX = "#/components/schemas/"
_APIMACHINERY = "io.k8s.apimachinery.pkg"
_APIEXTENSIONS = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1"
_SPECIAL = {
    f"{_APIMACHINERY}.api.resource.Quantity": Type(shape=Shape.QUANTITY, name="resource.Quantity"),
    f"{_APIMACHINERY}.apis.meta.v1.Time": Type(shape=Shape.TIME, name="v1.Time"),
    f"{_APIMACHINERY}.apis.meta.v1.MicroTime": Type(shape=Shape.MICRO_TIME, name="v1.MicroTime"),
    f"{_APIMACHINERY}.apis.meta.v1.FieldsV1": Type(shape=Shape.ANY, name="v1.FieldsV1", keeps_unknown=True),
    f"{_APIMACHINERY}.runtime.RawExtension": Type(shape=Shape.ANY, name="runtime.RawExtension", keeps_unknown=True),
    f"{_APIMACHINERY}.util.intstr.IntOrString": Type(shape=Shape.INT_OR_STRING, name="intstr.IntOrString"),
    f"{_APIEXTENSIONS}.JSON": Type(shape=Shape.ANY, name="v1.JSON", keeps_unknown=True),
    f"{_APIEXTENSIONS}.JSONSchemaPropsOrArray": Type(shape=Shape.ANY, name="v1.JSONSchemaPropsOrArray"),
    f"{_APIEXTENSIONS}.JSONSchemaPropsOrBool": Type(shape=Shape.ANY, name="v1.JSONSchemaPropsOrBool"),
    f"{_APIEXTENSIONS}.JSONSchemaPropsOrStringArray": Type(shape=Shape.ANY, name="v1.JSONSchemaPropsOrStringArray"),
}
"""What looks like an ordinary object or string in the published schemas, and is not."""

_SCALARS = {
    ("string", ""): (Shape.STRING, "string"),
    ("string", "byte"): (Shape.BYTES, "[]uint8"),
    ("boolean", ""): (Shape.BOOLEAN, "bool"),
    ("integer", ""): (Shape.INTEGER, "int64"),
    ("integer", "int32"): (Shape.INTEGER, "int32"),
    ("integer", "int64"): (Shape.INTEGER, "int64"),
    ("number", ""): (Shape.NUMBER, "float64"),
    ("number", "double"): (Shape.NUMBER, "float64"),
}


def type_of(group: str, version: str, kind: str) -> Type | None:
    """None for a kind that is not built in."""
    component = table.component_of(group, version, kind)
    return None if component is None else type_named(component)


_grown: dict[str, Type] = dict(_SPECIAL)


def type_named(component: str) -> Type:
    """The type of a component of the table, such as `io.k8s.api.core.v1.PodSpec`."""
    found = _grown.get(component)
    if found is None:
        schema = table.schema(component)
        # Known before it is complete: a JSON schema contains JSON schemas.
        found = _grown[component] = Type(
            shape=Shape.OBJECT,
            name=_go_name(component),
            properties={},
            required=tuple(schema.get("required", ())),
            atomic=schema.get("x-kubernetes-map-type") == "atomic",
        )
        facts = table.fields(component)
        for name, inner in schema.get("properties", {}).items():
            found.properties[name] = _property(inner, facts.get(name))
    return found


def _property(schema: dict[str, Any], fact: tuple[str, table.StructField] | None) -> Type:
    found = value_of(schema)
    changes: dict[str, Any] = {
        "patch_strategies": frozenset(filter(None, schema.get("x-kubernetes-patch-strategy", "").split(","))),
        "merge_key": schema.get("x-kubernetes-patch-merge-key", ""),
        "list_type": ListType(schema.get("x-kubernetes-list-type", "atomic")),
        "list_keys": tuple(schema.get("x-kubernetes-list-map-keys", ())),
        "atomic": found.atomic or schema.get("x-kubernetes-map-type") == "atomic",
        "default": schema.get("default", msgspec.UNSET),
    }
    if fact is not None:
        inlined, field = fact
        changes |= {"name": field.go, "presence": Presence(field.presence), "inlined": inlined}
    # Copies share `properties`, so a copy of a type that is still growing grows with it.
    return msgspec.structs.replace(found, **changes)


def reference_in(schema: dict[str, Any]) -> str | None:
    """The component that a schema stands for."""
    reference = schema.get("$ref") or next((part["$ref"] for part in schema.get("allOf", ()) if "$ref" in part), None)
    return None if reference is None else str(reference).removeprefix(_PREFIX)


def value_of(schema: dict[str, Any]) -> Type:
    """Of a schema inside the table."""
    if reference := reference_in(schema):
        return type_named(reference)
    match schema.get("type"):
        case "array":
            return Type(shape=Shape.LIST, element=value_of(schema["items"]))
        case "object" if "additionalProperties" in schema:
            return Type(shape=Shape.MAP, element=value_of(schema["additionalProperties"]))
        case "string" | "boolean" | "integer" | "number" as kind:
            return _scalar(kind, schema.get("format", ""))
    return Type(shape=Shape.ANY, keeps_unknown=True)


@functools.cache
def _scalar(kind: str, form: str) -> Type:
    shape, name = _SCALARS.get((kind, form)) or _SCALARS[kind, ""]
    return Type(shape=shape, name=name)


def _go_name(component: str) -> str:
    package, _, name = component.rpartition(".")
    return f"{package.rpartition('.')[2]}.{name}"
