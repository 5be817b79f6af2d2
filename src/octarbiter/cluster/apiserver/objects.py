"""What does the store hold of an object, and what do clients get to see of it?

Stored are the bytes of the object's JSON without `kind` and `apiVersion`: they are the same for every object of a
resource, and one stored object may be shown under several versions. So the way out is a splice, not an encoding, and a
selector reads only the few fields it needs.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from typing import Any, Final, TypeVar

import msgspec

from octarbiter.api.meta import Json
from octarbiter.cluster.apiserver import events
from octarbiter.cluster.apiserver.kinds import Resource

_SUFFIX_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
"""Of generated names: no vowels and nothing that looks like another, so no words arise."""
_SUFFIX_LENGTH: Final = 5
_LONGEST_BASE: Final = 63 - _SUFFIX_LENGTH

T = TypeVar("T")

_encoder: Final = msgspec.json.Encoder()
_decoder: Final = msgspec.json.Decoder(dict[str, Any])


def encode(value: object) -> bytes:
    return _encoder.encode(value)


def copied(value: T) -> T:
    """Deeply; what is JSON is copied fastest through its text."""
    copy: T = msgspec.json.decode(_encoder.encode(value))
    return copy


def stored(obj: Json, resource: Resource) -> bytes:
    """What is kept of it."""
    kept = {key: value for key, value in obj.items() if key not in ("kind", "apiVersion")}
    return _encoder.encode(events.core(kept) if resource.stored_as else kept)


def stamped(obj: Json, resource: Resource, revision: int) -> bytes:
    """What is kept of it, as written at this revision. The object gets its resourceVersion, too."""
    obj["metadata"]["resourceVersion"] = str(revision)
    return stored(obj, resource)


def loaded(value: bytes, resource: Resource) -> Json:
    """The whole object."""
    obj: Json = {"kind": resource.kind, "apiVersion": resource.api_version}
    kept = _decoder.decode(value)
    obj.update(events.newer(kept) if resource.stored_as else kept)
    return obj


@cache
def _head(kind: str, api_version: str) -> bytes:
    return _encoder.encode({"kind": kind, "apiVersion": api_version})[:-1] + b","


def head(resource: Resource) -> bytes:
    """What stands before the stored bytes (without their brace) when an object leaves."""
    return _head(resource.kind, resource.api_version)


def bare(value: bytes, resource: Resource) -> bytes:
    """As an item of a list of built-in objects: without kind and apiVersion."""
    return _encoder.encode(events.newer(_decoder.decode(value))) if resource.stored_as else value


def shown(value: bytes, resource: Resource) -> bytes:
    return head(resource) + bare(value, resource)[1:]


def timestamp(now: datetime) -> str:
    return now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def read_time(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except ValueError:
        return None


def new_uid() -> str:
    return str(uuid.UUID(bytes=os.urandom(16), version=4))


def generated_name(base: str) -> str:
    suffix = "".join(_SUFFIX_ALPHABET[byte % len(_SUFFIX_ALPHABET)] for byte in os.urandom(_SUFFIX_LENGTH))
    return base[:_LONGEST_BASE] + suffix


class Meta(msgspec.Struct, rename="camel", gc=False):
    """The few parts of the metadata that are asked for all the time."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = "0"
    labels: dict[str, str] | None = None
    deletion_timestamp: str | None = None


class _OnlyMeta(msgspec.Struct, gc=False):
    metadata: Meta


_meta_decoder: Final = msgspec.json.Decoder(_OnlyMeta)


def meta(value: bytes) -> Meta:
    """Far cheaper than the whole object."""
    return _meta_decoder.decode(value).metadata


class Glimpse(msgspec.Struct, gc=False):
    """What selectors see of an object."""

    labels: dict[str, str]
    fields: dict[str, str]

    def field(self, name: str) -> str:
        return self.fields.get(name, "")


# Fields whose place or whose value of absence is not what their name says.
_PLACES: Final = {
    "status.successful": "status.succeeded",
    "source": "source.component",
    "reportingController": "reportingComponent",
}
_WHEN_ABSENT: Final = {
    "spec.hostNetwork": "false",
    "spec.unschedulable": "false",
    "status.successful": "0",
    "status.replicas": "0",
}


@cache
def glimpser(selectable: tuple[str, ...]) -> Callable[[bytes], Glimpse]:
    """A reader of labels, names and the given fields that skips everything else."""
    places = {
        name: tuple(_PLACES.get(name, name).replace("regarding.", "involvedObject.").split(".")) for name in selectable
    }
    tree: dict[str, Any] = {}
    for path in places.values():
        branch = tree
        for part in path[:-1]:
            branch = branch.setdefault(part, {})
        branch.setdefault(path[-1], None)
    decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(_struct("Seen", {**tree, "metadata": Meta}))

    def glimpse(value: bytes) -> Glimpse:
        seen: Any = decoder.decode(value)
        metadata: Meta = seen.metadata
        fields = {"metadata.name": metadata.name, "metadata.namespace": metadata.namespace}
        for name, path in places.items():
            fields[name] = _text(seen, path, _WHEN_ABSENT.get(name, ""))
        return Glimpse(metadata.labels or {}, fields)

    return glimpse


def _struct(name: str, tree: dict[str, Any]) -> type:
    fields: list[tuple[str, Any, Any]] = []
    rename: dict[str, str] = {}
    for position, (part, below) in enumerate(tree.items()):
        # Field names of custom resources need not be names of Python's.
        attribute = part if part.isidentifier() and part != "metadata" else f"field_{position}"
        if part == "metadata":
            fields.append(("metadata", Meta, msgspec.field(default_factory=Meta)))
            continue
        rename[attribute] = part
        inner: Any = Any if below is None else _struct(part, below) | None
        fields.append((attribute, inner, None))
    built = msgspec.defstruct(name.title(), fields, rename=rename, gc=False)
    built.__names__ = {part: attribute for attribute, part in rename.items()}  # type: ignore[attr-defined]
    return built


def _text(seen: Any, path: tuple[str, ...], absent: str) -> str:
    for part in path:
        if seen is None:
            return absent
        seen = getattr(seen, type(seen).__names__[part])
    # No selector can name a list, so every list is as good as none.
    if seen is None or isinstance(seen, list):
        return absent
    if isinstance(seen, bool):
        return "true" if seen else "false"
    return seen if isinstance(seen, str) else str(seen)
