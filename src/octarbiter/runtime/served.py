"""Under which URL does this cluster serve a kind? The cluster is asked."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeVar

from octarbiter.api import errors
from octarbiter.api.meta import Noun, Object
from octarbiter.api.scheme import Resource
from octarbiter.runtime.client import Client
from octarbiter.runtime.requests import Request

_API_VERSION = re.compile(r"(?:[a-z0-9][-a-z0-9.]*/)?[a-z0-9]+")

T = TypeVar("T", bound=Object)


class Served(Noun, frozen=True):
    name: str
    kind: str
    namespaced: bool = False


class _ServedList(Noun, frozen=True):
    resources: list[Served] = []


async def of_version(client: Client, api_version: str) -> Sequence[Served]:
    """Without subresources; nothing, if the version is not served or no version at all."""
    if not _API_VERSION.fullmatch(api_version):
        return []
    path = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
    request = Request(method="GET", path=path, verb="get", resource="discovery")
    try:
        answer = await client.send(request, _ServedList)
    except errors.NotFound:
        return []
    return [resource for resource in answer.resources if "/" not in resource.name]


def named(served: Sequence[Served], api_version: str, kind: str, type_: type[T]) -> Resource[T] | None:
    group, _, version = api_version.rpartition("/")
    for resource in served:
        if resource.kind == kind:
            return Resource(group, version, kind, resource.name, resource.namespaced, type_)
    return None
