"""What do our kinds look like, field by field?

One tree of `Node`s for each: the shape comes from the types, what types cannot say (limits, words, defaults, what may
change later) from `facts`, the meaning from `fields`. The CRDs, the defaults, the validator and the reference pages
all read these trees; that is why they cannot disagree about a single field. Rules that relate several fields are the
only thing written twice: as CEL in `rules`, in Python in `taskset_checks` and `arbitrator_checks`.
"""

from __future__ import annotations

import msgspec
from msgspec import inspect

from octarbiter.api import fields
from octarbiter.api.facts import FACTS, NONE, Facts
from octarbiter.api.meta import Object


class Node(msgspec.Struct, frozen=True, kw_only=True):
    """One field, or the items of a list, or the values of a map."""

    type: str
    """object, array, string, integer, boolean, time or int-or-string"""
    key: str = ""
    """Under which FACTS, fields.MEANING and the CEL rules know it, e.g. `Role.replicas`, `Role.dependsOn[]`."""
    struct: str = ""
    """Of an object: the name of its type, e.g. `Role`."""
    required: bool = False
    fields: dict[str, Node] = {}
    is_open: bool = False
    """Fields that are not listed pass through."""
    items: Node | None = None
    values: Node | None = None

    @property
    def facts(self) -> Facts:
        return FACTS.get(self.key, NONE)

    @property
    def meaning(self) -> str:
        return fields.MEANING.get(self.key, "")

    @property
    def is_always_there(self) -> bool:
        return self.required or self.facts.default is not msgspec.UNSET


_SCALARS: dict[type[inspect.Type], str] = {
    inspect.IntType: "integer",
    inspect.StrType: "string",
    inspect.BoolType: "boolean",
    inspect.DateTimeType: "time",
}


def tree(kind: type[Object]) -> Node:
    """The root, with spec and status."""
    root = _node(inspect.type_info(kind), kind.__name__, required=True)
    return msgspec.structs.replace(root, key="", fields={name: root.fields[name] for name in ("spec", "status")})


def _node(type_: inspect.Type, key: str, required: bool) -> Node:
    if isinstance(type_, inspect.UnionType):
        options = [option for option in type_.types if not isinstance(option, inspect.NoneType)]
        if len(options) > 1:
            return Node(type="int-or-string", key=key, required=required)
        (type_,) = options
    extra: dict[str, str] = {}
    if isinstance(type_, inspect.Metadata):
        extra = type_.extra or {}
        type_ = type_.type
    if isinstance(type_, inspect.StructType):
        name = extra.get("struct", type_.cls.__name__)
        children = {
            field.encode_name: _node(field.type, f"{name}.{field.encode_name}", field.required)
            for field in type_.fields
        }
        return Node(type="object", key=key, struct=name, required=required, fields=children)
    if isinstance(type_, inspect.ListType):
        return Node(type="array", key=key, required=required, items=_node(type_.item_type, f"{key}[]", required=False))
    if key in _WRITTEN_OUT:
        return _WRITTEN_OUT[key](key, required)
    if isinstance(type_, inspect.DictType):
        values = _node(type_.value_type, f"{key}{{}}", required=False)
        return Node(type="object", key=key, required=required, values=values)
    return Node(type=_SCALARS[type(type_)], key=key, required=required)


def _template(key: str, required: bool) -> Node:
    """Of a pod template only what we look at; the rest is the business of the API server that makes the pods."""
    container = Node(
        type="object",
        is_open=True,
        fields={"name": Node(type="string", key="template.spec.containers.name", required=True)},
    )
    strings = Node(type="string")
    metadata = {
        "labels": Node(type="object", key="template.metadata.labels", values=strings),
        "annotations": Node(type="object", key="template.metadata.annotations", values=strings),
    }
    spec = {
        "containers": Node(type="array", key="template.spec.containers", required=True, items=container),
        "restartPolicy": Node(type="string", key="template.spec.restartPolicy"),
    }
    return Node(
        type="object",
        key=key,
        required=required,
        is_open=True,
        fields={
            "metadata": Node(type="object", key="template.metadata", is_open=True, fields=metadata),
            "spec": Node(type="object", key="template.spec", required=True, is_open=True, fields=spec),
        },
    )


def _unit(key: str, required: bool) -> Node:
    """A schema cannot say "either resources or names of resources"; of the second way it knows the usual names."""
    values = Node(type="int-or-string", key="resourceunit.resources{}")
    return Node(
        type="object",
        key=key,
        required=required,
        is_open=True,
        fields={
            "resources": Node(type="object", key="resourceunit.resources", values=values),
            "cpu": Node(type="int-or-string", key="resourceunit.cpu"),
            "memory": Node(type="int-or-string", key="resourceunit.memory"),
        },
    )


_WRITTEN_OUT = {"Role.template": _template, "QueueJobSpec.resourceunit": _unit}
