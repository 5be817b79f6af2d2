"""Does an object fit its type? Unknown fields, duplicates and wrong types, in the words of a real server."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterable
from typing import Any

import msgspec

from octarbiter.cluster.apiserver.schemas import quantities, times
from octarbiter.cluster.apiserver.types import Shape, Type

_MOST_STRICT_ERRORS = 100
_INT32 = range(-(2**31), 2**31)
_INT64 = range(-(2**63), 2**63)
_ALPHABET = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")


# Plain names: an enumeration's members are looked up slowly, and this is done for every value of every write.
_STRING, _OBJECT, _MAP, _LIST, _ANY = Shape.STRING, Shape.OBJECT, Shape.MAP, Shape.LIST, Shape.ANY


class Checked(msgspec.Struct, frozen=True):
    unknown: list[str]
    """Paths of fields that the type does not declare."""
    duplicates: list[str]
    strict_errors: list[str]
    """Both in words, in the order of the text: what strict validation refuses and lenient validation warns about."""
    problem: str | None
    """The first wrong type; such an object cannot be understood at all."""


def check(value: Any, type: Type, path: str = "", duplicates: Iterable[str] = ()) -> Checked:
    """`duplicates` are what `decode` found twice; those in places that nobody looks at are forgiven."""
    check = _Check(frozenset(duplicates))
    try:
        check.value(value, type, path, "", ())
    except _Unreadable as problem:
        # Types that read themselves stop the decoder at once, also when something was wrong before.
        check.problem = str(problem)
    found = check.strict[:_MOST_STRICT_ERRORS]
    return Checked(
        unknown=[path for word, path in found if word == "unknown"],
        duplicates=[path for word, path in found if word == "duplicate"],
        strict_errors=[f"{word} field {_quoted(path)}" for word, path in found],
        problem=check.problem,
    )


class _Unreadable(Exception):
    pass


class _Check:
    def __init__(self, duplicates: frozenset[str]) -> None:
        self.duplicates = duplicates
        self.strict: list[tuple[str, str]] = []
        self.problem: str | None = None

    def value(self, value: Any, type: Type, path: str, struct: str, fields: tuple[str, ...]) -> None:
        shape, element = type.shape, type.element
        if value is None or shape is _ANY or (shape is _STRING and isinstance(value, str)):
            return
        if shape is _OBJECT and isinstance(value, dict):
            self._object(value, type, path, fields)
        elif shape is _LIST and isinstance(value, list) and element is not None:
            for index, inner in enumerate(value):
                self.value(inner, element, f"{path}[{index}]", struct, fields)
        elif shape is _MAP and isinstance(value, dict) and element is not None:
            for name, inner in value.items():
                where = f"{path}.{name}" if path else name
                self.value(inner, element, where, struct, fields)
                self._twice(where)
        elif not self._fits(value, type, struct, fields):
            self._note(_mismatch(value, type.name, struct, fields))

    def _fits(self, value: Any, type: Type, struct: str, fields: tuple[str, ...]) -> bool:
        match type.shape:
            case Shape.BOOLEAN:
                return isinstance(value, bool)
            case Shape.INTEGER:
                return _is_integer(value, type.name)
            case Shape.NUMBER:
                return isinstance(value, int | float) and not isinstance(value, bool)
            case Shape.BYTES if isinstance(value, str):
                self._bytes(value)
                return True
            case Shape.QUANTITY | Shape.TIME | Shape.MICRO_TIME | Shape.INT_OR_STRING:
                self._special(value, type, struct, fields)
                return True
        return False

    def _object(self, value: dict[str, Any], type: Type, path: str, fields: tuple[str, ...]) -> None:
        struct = type.name.rpartition(".")[2]
        for name, inner in value.items():
            below = type.properties.get(name)
            where = f"{path}.{name}" if path else name
            if below is not None:
                way = (*fields, below.inlined, name) if below.inlined else (*fields, name)
                self.value(inner, below, where, struct, way)
                self._twice(where)
            elif not type.keeps_unknown and len(self.strict) < _MOST_STRICT_ERRORS:
                self.strict.append(("unknown", where))

    def _twice(self, path: str) -> None:
        if self.duplicates and path in self.duplicates:
            self.strict.append(("duplicate", path))

    def _bytes(self, value: str) -> None:
        try:
            base64.b64decode(value, validate=True)
        except (binascii.Error, ValueError):
            if (position := _bad_base64(value)) is not None:
                self._note(f"illegal base64 data at input byte {position}")

    def _special(self, value: Any, type: Type, struct: str, fields: tuple[str, ...]) -> None:
        try:
            if type.shape is Shape.QUANTITY:
                quantities.parse(value)
            elif type.shape is Shape.INT_OR_STRING:
                if not isinstance(value, str) and not _is_integer(value, "int32"):
                    raise _Unreadable(_mismatch(value, "int32", struct, fields))
            elif not isinstance(value, str):
                raise _Unreadable(_mismatch(value, "string", struct, fields))
            else:
                times.parse(value, times.SECONDS if type.shape is Shape.TIME else times.MICROSECONDS)
        except (quantities.BadQuantity, times.BadTime) as problem:
            raise _Unreadable(str(problem)) from None

    def _note(self, problem: str) -> None:
        self.problem = self.problem or problem


def _is_integer(value: Any, name: str) -> bool:
    if not isinstance(value, int) or isinstance(value, bool):
        return False
    return value in (_INT32 if name == "int32" else _INT64)


def _mismatch(value: Any, name: str, struct: str, fields: tuple[str, ...]) -> str:
    is_int = name.startswith(("int", "uint"))
    match value:
        case bool():
            said = "bool"
        case str():
            said = "string"
        case dict():
            said = "object"
        case list():
            said = "array"
        case _:
            said = f"number {value!r}" if is_int else "number"
    place = f"struct field {struct}.{'.'.join(fields)}" if fields else "value"
    return f"json: cannot unmarshal {said} into Go {place} of type {name}"


def _bad_base64(text: str) -> int | None:
    """Where Go's decoder stops; None if it does not: line breaks are allowed."""
    places = [(index, character) for index, character in enumerate(text) if character not in "\r\n"]
    for start in range(0, len(places), 4):
        group = places[start : start + 4]
        for offset, (index, character) in enumerate(group):
            if character == "=" and offset >= 2:
                return _bad_padding(places, start + offset, offset, len(text))
            if character not in _ALPHABET:
                return index
        if len(group) < 4:
            return len(text) - len(group)
    return None


def _bad_padding(places: list[tuple[int, str]], at: int, offset: int, length: int) -> int | None:
    if offset == 2:
        at += 1
        if at >= len(places):
            return length
        if places[at][1] != "=":
            return places[at][0] - 1
    return places[at + 1][0] if at + 1 < len(places) else None


def _quoted(path: str) -> str:
    return json.dumps(path, ensure_ascii=False)
