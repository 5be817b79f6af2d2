"""Bytes <-> object. The only place that knows JSON; camelCase lives in the structs' rename rule."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from octarbiter.api.meta import Noun, ObjectMeta

T = TypeVar("T")


class ListMeta(Noun, frozen=True):
    resource_version: str = ""
    continue_: str = msgspec.field(name="continue", default="")
    remaining_item_count: int = 0


class ObjectWithMeta(Noun, frozen=True):
    """Only the metadata, for bookmarks and for items whose body does not decode."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()


class WatchEvent(Noun, frozen=True):
    type: str
    object: msgspec.Raw


class RawList(Noun, frozen=True):
    metadata: ListMeta = ListMeta()
    items: list[msgspec.Raw] = []


_decoders: dict[Any, msgspec.json.Decoder[Any]] = {}
_encoder = msgspec.json.Encoder()


def decode(data: bytes | msgspec.Raw, type_: type[T]) -> T:
    decoder = _decoders.get(type_)
    if decoder is None:
        decoder = _decoders[type_] = msgspec.json.Decoder(type_)
    decoded: T = decoder.decode(data)
    return decoded


def encode(value: Any) -> bytes:
    return _encoder.encode(value)


def to_json(value: Any) -> Any:
    """Plain dicts and lists with the API's names, as YAML or a patch wants them."""
    return msgspec.to_builtins(value, str_keys=True)


def from_json(data: Any, type_: type[T]) -> T:
    return msgspec.convert(data, type_)
