"""What values has an expression, and when are two the same?

Plain Python values stand for themselves. What comes from an object is seen through its schema, lazily: only declared
fields exist, numbers are what the schema says they are, and lists that are sets or keyed compare without order.
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from octarbiter.api.quantity import Quantity
from octarbiter.cluster.apiserver.structural import formats
from octarbiter.cluster.apiserver.structural.cel.forms import Form
from octarbiter.cluster.apiserver.structural.correlation import same
from octarbiter.cluster.apiserver.types import ListType

INT_RANGE = range(-(2**63), 2**63)
UINT_RANGE = range(2**64)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class CelError(Exception):
    """The expression has no value here; the message says why."""


class Uint(int):
    pass


class Duration(msgspec.Struct, frozen=True, order=True):
    nanos: int


class Timestamp(msgspec.Struct, frozen=True, order=True):
    nanos: int
    """Since 1970, UTC."""

    @property
    def moment(self) -> datetime:
        return _EPOCH + timedelta(microseconds=self.nanos // 1000)


class TypeValue(msgspec.Struct, frozen=True):
    name: str


class Url(msgspec.Struct, frozen=True):
    text: str


class Semver(msgspec.Struct, frozen=True):
    major: int
    minor: int
    patch: int
    rest: str = ""


class NamedFormat(msgspec.Struct, frozen=True):
    name: str


class Optional(msgspec.Struct, frozen=True):
    value: Any = None
    present: bool = False


NONE = Optional()


class Items:
    """A list of an object."""

    __slots__ = ("form", "raw")

    def __init__(self, raw: list[Any], form: Form) -> None:
        self.raw = raw
        self.form = form

    def __len__(self) -> int:
        return len(self.raw)

    def __iter__(self) -> Iterator[Any]:
        element = self.form.of[0]
        return (seen(item, element) for item in self.raw)

    def __getitem__(self, index: int) -> Any:
        return seen(self.raw[index], self.form.of[0])


class Fields:
    """An object or a map of an object."""

    __slots__ = ("form", "raw")

    def __init__(self, raw: dict[str, Any], form: Form) -> None:
        self.raw = raw
        self.form = form

    def __len__(self) -> int:
        return len(self.raw)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.raw)

    def find(self, key: Any) -> tuple[bool, Any]:
        if self.form.kind == "map":
            element: Form | None = self.form.of[1]
            name = key
        else:
            element = self.form.fields.get(key)
            name = self.form.names.get(key, key)
        # A null in an object is the same as nothing; in a map it is a value.
        if element is None or name not in self.raw or (self.raw[name] is None and self.form.kind != "map"):
            return False, None
        return True, seen(self.raw[name], element)


def seen(raw: Any, form: Form) -> Any:
    """A value of an object as the schema shows it."""
    if raw is None:
        if form.nullable:
            return None
        raise CelError("invalid data, got null for schema with nullable=false")
    kind = form.kind
    if kind in ("object", "map"):
        if not isinstance(raw, dict):
            raise CelError("invalid data, expected a map for the provided schema with type=object")
        return Fields(raw, form)
    if kind == "list":
        if not isinstance(raw, list):
            raise CelError("invalid data, expected an array for the provided schema with type=array")
        return Items(raw, form)
    return _scalar(raw, kind)


def _scalar(raw: Any, kind: str) -> Any:
    if kind == "string" and isinstance(raw, str):
        return raw
    if kind == "bool" and isinstance(raw, bool):
        return raw
    if isinstance(raw, int) and not isinstance(raw, bool):
        if kind in ("int", "dyn"):
            return raw
        if kind == "double":
            return float(raw)
    if kind == "double" and isinstance(raw, float):
        return raw
    if isinstance(raw, str):
        return _written(raw, kind)
    raise CelError(f"invalid data, expected {kind}")


def _written(raw: str, kind: str) -> Any:
    if kind == "dyn":
        return raw
    if kind == "duration" and (nanos := formats.duration_nanos(raw)) is not None:
        return Duration(nanos)
    if kind == "timestamp" and (timestamp := parse_timestamp(raw)) is not None:
        return timestamp
    if kind == "bytes":
        try:
            return base64.b64decode(raw, validate=True)
        except binascii.Error:
            raise CelError(f"Invalid byte formatted string {raw}") from None
    raise CelError(f"invalid data, expected {kind}")


def parse_timestamp(text: str) -> Timestamp | None:
    """RFC 3339, or a day alone."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    delta = moment - _EPOCH
    return Timestamp((delta.days * 86400 + delta.seconds) * 10**9 + delta.microseconds * 1000)


_KINDS: dict[type, str] = {
    type(None): "null",
    bool: "bool",
    int: "int",
    Uint: "uint",
    float: "double",
    str: "string",
    bytes: "bytes",
    list: "list",
    Items: "list",
    dict: "map",
    Fields: "map",
    Duration: "duration",
    Timestamp: "timestamp",
    TypeValue: "type",
    Optional: "optional",
    Quantity: "quantity",
    Url: "url",
    Semver: "semver",
    NamedFormat: "named_format",
    ipaddress.IPv4Address: "ip",
    ipaddress.IPv6Address: "ip",
    ipaddress.IPv4Interface: "cidr",
    ipaddress.IPv6Interface: "cidr",
}
_NUMBERS = frozenset(("int", "uint", "double"))


def kind_of(value: Any) -> str:
    return _KINDS[value.__class__]


def find(container: Any, key: Any) -> tuple[bool, Any]:
    """In a map of either sort."""
    if isinstance(container, Fields):
        return container.find(key)
    # True == 1 == 1.0 for Python's dictionaries; booleans are no numbers here.
    for known, value in container.items():
        if equal(known, key):
            return True, value
    return False, None


def equal(left: Any, right: Any) -> bool:
    kind, other = kind_of(left), kind_of(right)
    if kind != other:
        return kind in _NUMBERS and other in _NUMBERS and bool(left == right)
    if kind == "list":
        return _equal_lists(left, right)
    if kind == "map":
        return _equal_maps(left, right)
    if kind == "quantity":
        return bool(left.nano == right.nano)
    if kind == "optional":
        return left.present == right.present and (not left.present or equal(left.value, right.value))
    return bool(left == right)


def _equal_lists(left: Any, right: Any) -> bool:
    if len(left) != len(right):
        return False
    form = left.form if isinstance(left, Items) else right.form if isinstance(right, Items) else None
    if form is None or form.list_type is ListType.ATOMIC:
        return all(equal(a, b) for a, b in zip(left, right, strict=True))
    if form.list_type is ListType.SET:
        return all(contains(right, item) for item in left)
    keyed = {item_key(item, form): item for item in left}
    return all((key := item_key(item, form)) in keyed and equal(keyed[key], item) for item in right)


def item_key(item: Any, form: Form) -> tuple[Any, ...]:
    """Of an item of a keyed list."""
    found = [find(item, name) for name in form.list_keys]
    return tuple((value.__class__, value) if present else None for present, value in found)


def _equal_maps(left: Any, right: Any) -> bool:
    if len(left) != len(right):
        return False
    if isinstance(left, Fields) and isinstance(right, Fields):
        return all(_equal_fields(name, left, right) for name in left.raw)
    for name in left:
        present, value = find(left, name)
        other_present, other = find(right, name)
        if not present or not other_present or not equal(value, other):
            return False
    return True


def _equal_fields(name: str, left: Fields, right: Fields) -> bool:
    if name not in right.raw:
        return False
    form, other = left.form.below(name), right.form.below(name)
    if form is None or other is None:
        # A field that the schema does not name counts, too, but cannot be seen.
        return same(left.raw[name], right.raw[name])
    return equal(seen(left.raw[name], form), seen(right.raw[name], other))


def contains(items: Any, wanted: Any) -> bool:
    return any(equal(item, wanted) for item in items)


def order(left: Any, right: Any) -> int:
    """Negative, zero or positive."""
    kind, other = kind_of(left), kind_of(right)
    if kind in _NUMBERS and other in _NUMBERS and (left != left or right != right):
        raise CelError("NaN values cannot be ordered")
    if kind != other and not (kind in _NUMBERS and other in _NUMBERS):
        raise CelError("no such overload")
    if kind in ("list", "map", "null", "type", "optional", "url", "ip", "cidr", "quantity", "semver"):
        raise CelError("no such overload")
    return -1 if left < right else 1 if left > right else 0


def hashable(value: Any) -> Any:
    """For memberships: what may be a member of a Python set and means the same there; None if nothing may."""
    kind = kind_of(value)
    if kind in ("string", "bool", "int", "uint", "bytes"):
        return ("number" if kind in ("int", "uint") else kind, value)
    return None
