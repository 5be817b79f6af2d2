"""What shape has a value?

One tree describes built-in kinds (from a generated table) and custom ones (from the schemas of their definitions), so
whatever walks over objects (strict decoding, pruning, merging, field ownership) is written once. Trees may have
circles: a JSON schema describes itself.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import msgspec


class Shape(StrEnum):
    OBJECT = "object"
    """Named fields."""
    MAP = "map"
    """Names of the user's choice, values of one type."""
    LIST = "list"
    STRING = "string"
    INTEGER = "integer"
    NUMBER = "number"
    BOOLEAN = "boolean"
    INT_OR_STRING = "int-or-string"
    QUANTITY = "quantity"
    """A string or a number; `1`, `"1"` and `"1000m"` are written in many ways and kept as they were written."""
    TIME = "time"
    MICRO_TIME = "micro-time"
    BYTES = "bytes"
    """Base64 in JSON."""
    ANY = "any"
    """Whatever JSON can say; nothing below it is looked at."""


class ListType(StrEnum):
    """Who may own what of a list."""

    ATOMIC = "atomic"
    """All of it, by one owner."""
    SET = "set"
    """Single scalars."""
    MAP = "map"
    """Single elements, told apart by `list_keys`."""


class Presence(StrEnum):
    """What a built-in field is when it is absent or zero. Custom kinds keep what was written."""

    KEPT = "kept"
    """Absent and zero are different; null is absent."""
    DROPPED = "dropped"
    """Zero is absent."""
    FILLED = "filled"
    """Absent is zero, and written as zero: `""`, `0`, `{}`."""
    NULL = "null"
    """Absent is written as null."""


class Type(msgspec.Struct, kw_only=True):
    shape: Shape
    name: str = ""
    """As error messages call it: `v1.PodSpec`, `string`, `int32`, `[]v1.Container`."""
    presence: Presence = Presence.KEPT
    inlined: str = ""
    """Of a built-in field that JSON has one level higher than Go: the structs between, `VolumeSource`."""
    properties: dict[str, Type] = {}
    required: tuple[str, ...] = ()
    element: Type | None = None
    """Of a list or a map."""
    list_type: ListType = ListType.ATOMIC
    list_keys: tuple[str, ...] = ()
    atomic: bool = False
    """An object or a map that is owned as a whole."""
    merge_key: str = ""
    """Strategic merge patch: the field that tells elements apart. Not the same as `list_keys`: a Service's ports merge
    by `port` and are owned by `port` and `protocol`."""
    patch_strategies: frozenset[str] = frozenset()
    """`merge`, `replace`, `retainKeys`."""
    keeps_unknown: bool = False
    """Fields that are not declared stay."""
    embedded: bool = False
    """A whole object with apiVersion, kind and metadata."""
    nullable: bool = False
    default: Any = msgspec.UNSET
    schema: dict[str, Any] = {}
    """Of custom kinds: the JSON schema it was read from, for what the tree does not say (patterns, limits, rules)."""

    def field(self, name: str) -> Type | None:
        """The type of what is below `name`; None where nothing is declared."""
        return self.properties.get(name) or (self.element if self.shape is Shape.MAP else None)


ANYTHING = Type(shape=Shape.ANY, keeps_unknown=True)
