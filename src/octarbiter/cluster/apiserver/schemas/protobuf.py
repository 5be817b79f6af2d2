"""Which object does a protobuf body say?

Go clients send built-in kinds in protobuf: the four bytes `k8s\\0`, then an envelope that names the kind, then the
object. Numbers of fields come from the generated table; what the object would look like in JSON from its type. Read
here, never written: every client understands JSON answers.
"""

from __future__ import annotations

import base64
import functools
import struct
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from octarbiter.cluster.apiserver.schemas import forms, nesting, quantities, table, times, trees
from octarbiter.cluster.apiserver.types import Shape

MAGIC = b"k8s\x00"
_MOST_MESSAGES = 100_000
"""An empty message takes two bytes and becomes an object full of zeros."""

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Malformed(ValueError):
    """The bytes are no such object; the message says what is wrong."""


def decode(body: bytes) -> tuple[str, str, dict[str, Any]]:
    """apiVersion, kind and the object, which has neither, as JSON would show it."""
    if body in (b"", MAGIC):
        raise Malformed("empty body" if body else "empty data")
    if not body.startswith(MAGIC):
        raise Malformed("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")
    reader = _Reader()
    envelope = _last(body[len(MAGIC) :])
    names = _last(_as_bytes(envelope.get(1, b"")))
    api_version, kind = (_text(_as_bytes(names.get(number, b""))) for number in (1, 2))
    if envelope.get(3):
        raise Malformed("an encoding inside the protobuf envelope is not supported: leave contentEncoding empty")
    group, _, version = api_version.rpartition("/")
    component = table.component_of(group, version, kind)
    if component is None:
        raise Malformed(f'no kind "{kind}" is registered for version "{api_version}"')
    found = reader.message(_as_bytes(envelope.get(2, b"")), component, 0)
    try:
        forms.prune(found, trees.type_named(component))
    except (quantities.BadQuantity, times.BadTime) as problem:
        raise Malformed(str(problem)) from None
    return api_version, kind, found


class _Slot(msgspec.Struct, frozen=True):
    """Where the value of a number goes, and how it is read."""

    name: str
    shape: Shape
    small: bool = False
    """An integer of 32 bits."""
    component: str = ""
    element: _Slot | None = None


@functools.cache
def _slots(component: str, owner: str) -> dict[int, _Slot]:
    """By number. `owner` is the component whose schema has the fields: a Go struct may stand nameless in another, and
    is a message of its own here, while JSON has its fields one level higher."""
    properties: dict[str, Any] = table.schema(owner).get("properties", {})
    found: dict[int, _Slot] = {}
    for field in table.own_fields(component):
        if field.number and not field.name:
            found[field.number] = _Slot("", Shape.OBJECT, component=field.go)
        elif field.number and field.name in properties:
            found[field.number] = _slot(field.name, properties[field.name])
    return found


def _slot(name: str, schema: dict[str, Any]) -> _Slot:
    if component := trees.reference_in(schema):
        return _Slot(name, trees.type_named(component).shape, component=component)
    match schema.get("type"):
        case "array":
            return _Slot(name, Shape.LIST, element=_slot("", schema["items"]))
        case "object" if "additionalProperties" in schema:
            return _Slot(name, Shape.MAP, element=_slot("", schema["additionalProperties"]))
    return _Slot(name, trees.value_of(schema).shape, small=schema.get("format") == "int32")


class _Reader:
    def __init__(self) -> None:
        self._messages = 0

    def message(self, data: bytes, component: str, depth: int, owner: str = "") -> dict[str, Any]:
        self._messages += 1
        if self._messages > _MOST_MESSAGES:
            raise Malformed(f"more than {_MOST_MESSAGES} messages in one body")
        if depth > nesting.DEEPEST:
            raise Malformed(nesting.SENTENCE)
        owner = owner or component
        slots = _slots(component, owner)
        found: dict[str, Any] = {}
        for number, value in _wire(data):
            slot = slots.get(number)
            if slot is None:
                continue
            if not slot.name:
                found |= self.message(_as_bytes(value), slot.component, depth + 1, owner)
            elif slot.shape is Shape.LIST and slot.element:
                found.setdefault(slot.name, []).extend(self._elements(value, slot.element, depth))
            elif slot.shape is Shape.MAP and slot.element:
                key, inner = self._entry(_as_bytes(value), slot.element, depth)
                found.setdefault(slot.name, {})[key] = inner
            else:
                found[slot.name] = self._value(value, slot, depth)
        return found

    def _elements(self, value: int | bytes, slot: _Slot, depth: int) -> list[Any]:
        if slot.shape in (Shape.INTEGER, Shape.BOOLEAN) and isinstance(value, bytes):
            return [self._value(number, slot, depth) for number in _packed(value)]
        return [self._value(value, slot, depth)]

    def _entry(self, data: bytes, slot: _Slot, depth: int) -> tuple[str, Any]:
        parts = _last(data)
        key = _text(_as_bytes(parts.get(1, b"")))
        if nesting.has_long_key([key]):
            raise Malformed(nesting.LONG_KEY)
        if slot.shape is Shape.LIST and slot.element:
            # A list cannot be the value of a map; a message holds it.
            items = [inner for number, inner in _wire(_as_bytes(parts.get(2, b""))) if number == 1]
            return key, [self._value(inner, slot.element, depth) for inner in items]
        nothing: int | bytes = 0 if slot.shape in (Shape.INTEGER, Shape.BOOLEAN) else b""
        return key, self._value(parts.get(2, nothing), slot, depth)

    def _value(self, value: int | bytes, slot: _Slot, depth: int) -> Any:
        if slot.shape is Shape.INTEGER:
            return _signed(_as_int(value), 32 if slot.small else 64)
        if slot.shape is Shape.BOOLEAN:
            return _as_int(value) != 0
        data = _as_bytes(value)
        if slot.shape is Shape.OBJECT:
            return self.message(data, slot.component, depth + 1)
        if slot.shape is Shape.ANY:
            return self._any(data, slot.component, depth + 1)
        return _SCALARS[slot.shape](data)

    def _any(self, data: bytes, component: str, depth: int) -> Any:
        name = component.rpartition(".")[2]
        if not name.startswith("JSONSchemaPropsOr"):
            return _embedded(_as_bytes(_last(data).get(1, b"")))
        parts = list(_wire(data))
        schemas = component.rpartition("JSONSchemaPropsOr")[0] + "JSONSchemaProps"
        # Field 1 is a truth value in one of the three; everywhere else a message is a schema.
        single, several = (2, 0) if name.endswith("Bool") else (1, 2)
        found: list[Any] = [self._schema(_as_bytes(part), schemas, depth) for number, part in parts if number == single]
        if name.endswith("Bool"):
            return found[-1] if found else any(part == 1 for number, part in parts if number == 1)
        listed = [_as_bytes(part) for number, part in parts if number == several]
        if name.endswith("StringArray"):
            return [_text(part) for part in listed] if listed else (found or [None])[-1]
        return [self._schema(part, schemas, depth) for part in listed] if listed else (found or [None])[-1]

    def _schema(self, data: bytes, component: str, depth: int) -> dict[str, Any]:
        found = self.message(data, component, depth)
        forms.prune(found, trees.type_named(component))
        return found


def _wire(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Numbers and values as they stand in a message; bytes for everything that is not a varint."""
    position, end = 0, len(data)
    while position < end:
        key, position = _varint(data, position)
        number, wire_type = key >> 3, key & 7
        if number == 0:
            raise Malformed("proto: illegal tag 0: the bytes are not a protobuf message")
        if wire_type == _VARINT:
            value, position = _varint(data, position)
            yield number, value
            continue
        if wire_type == _BYTES:
            size, position = _varint(data, position)
        elif wire_type in (_FIXED64, _FIXED32):
            size = 8 if wire_type == _FIXED64 else 4
        else:
            raise Malformed(f"proto: illegal wireType {wire_type}: the bytes are not a protobuf message")
        if size > end - position:
            raise Malformed("unexpected EOF")
        yield number, data[position : position + size]
        position += size


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if position >= len(data):
            raise Malformed("unexpected EOF")
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFFFFFFFFFFFFFF, position
        shift += 7
        if shift > 63:
            raise Malformed("proto: integer overflow: a number has more than 64 bits")


def _packed(data: bytes) -> Iterator[int]:
    position = 0
    while position < len(data):
        value, position = _varint(data, position)
        yield value


def _last(data: bytes) -> dict[int, int | bytes]:
    return dict(_wire(data))


def _signed(value: int, bits: int) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def _as_int(value: int | bytes) -> int:
    if isinstance(value, bytes):
        raise Malformed("proto: wrong wireType: a number was expected")
    return value


def _as_bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise Malformed("proto: wrong wireType: bytes were expected")
    return value


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _number(data: bytes) -> float:
    if len(data) != 8:
        raise Malformed("proto: wrong wireType: a number of 64 bits was expected")
    value: float = struct.unpack("<d", data)[0]
    if value != value or value in (float("inf"), float("-inf")):
        raise Malformed("a number must be finite")
    return int(value) if value.is_integer() and abs(value) < 2**53 else value


def _quantity(data: bytes) -> str:
    return _text(_as_bytes(_last(data).get(1, b""))) or "0"


def _int_or_string(data: bytes) -> int | str:
    parts = _last(data)
    if _as_int(parts.get(1, 0)):
        return _text(_as_bytes(parts.get(3, b"")))
    return _signed(_as_int(parts.get(2, 0)), 32)


def _time(data: bytes, digits: bool) -> str | None:
    if not data:
        return None
    parts = _last(data)
    seconds, nanos = _signed(_as_int(parts.get(1, 0)), 64), _signed(_as_int(parts.get(2, 0)), 32)
    try:
        moment = _EPOCH + timedelta(seconds=seconds, microseconds=nanos // 1000 if digits else 0)
    except OverflowError:
        raise Malformed("a time lies outside of the years 1 to 9999") from None
    return moment.strftime("%Y-%m-%dT%H:%M:%S").rjust(19, "0") + (f".{moment.microsecond:06d}Z" if digits else "Z")


def _embedded(raw: bytes) -> Any:
    if not raw:
        return None
    try:
        found = msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as problem:
        raise Malformed(f"JSON inside the protobuf message cannot be read: {problem}") from None
    if nesting.is_too_deep(found):
        raise Malformed(nesting.SENTENCE)
    return found


_SCALARS: dict[Shape, Callable[[bytes], Any]] = {
    Shape.STRING: _text,
    Shape.BYTES: lambda data: base64.b64encode(data).decode(),
    Shape.NUMBER: _number,
    Shape.QUANTITY: _quantity,
    Shape.INT_OR_STRING: _int_or_string,
    Shape.TIME: lambda data: _time(data, digits=False),
    Shape.MICRO_TIME: lambda data: _time(data, digits=True),
}
