"""Objects of any kind, known by their metadata only; and of that, only what ownership needs."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Final, TypeVar

import msgspec
from msgspec import field

from octarbiter.api import codec
from octarbiter.api.meta import Noun, Object, ObjectMeta
from octarbiter.api.scheme import Resource
from octarbiter.cluster.controllers.discovery import Served
from octarbiter.runtime import client
from octarbiter.runtime.requests import Request

ONE: Final = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
MANY: Final = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"

T = TypeVar("T")


class Bones(ObjectMeta, frozen=True):
    """Labels and annotations are most of an object's metadata: under names that no server sends, they stay empty."""

    labels: dict[str, str] = field(name="(labels)", default={})
    annotations: dict[str, str] = field(name="(annotations)", default={})


class Outline(Object, frozen=True):
    metadata: Bones = Bones()


class Page(Noun, frozen=True):
    """A list of outlines. A server written in Go has null for an empty one, only here."""

    metadata: codec.ListMeta = codec.ListMeta()
    items: list[msgspec.Raw] | None = None


def outlined(served: Served) -> Resource[Outline]:
    given = served.resource
    return Resource(given.group, given.version, given.kind, given.plural, given.namespaced, Outline)


class OutlineClient(client.Client):
    """What it reads it reads in outline; writes are as usual."""

    async def send(self, request: Request, type_: type[T], *, timeout_s: float | None = None) -> T:
        if type_ is not codec.RawList:
            return await super().send(_in_outline(request), type_, timeout_s=timeout_s)
        page = await super().send(_in_outline(request), Page, timeout_s=timeout_s)
        return codec.RawList(metadata=page.metadata, items=page.items or [])  # type: ignore[return-value]

    def stream_lines(self, request: Request, *, silence_s: float | None = None) -> AsyncGenerator[bytes, None]:
        return super().stream_lines(_in_outline(request), silence_s=silence_s)


def _in_outline(request: Request) -> Request:
    accept = {"get": ONE, "watch": ONE, "list": MANY}.get(request.verb)
    return request if accept is None else msgspec.structs.replace(request, accept=accept)
