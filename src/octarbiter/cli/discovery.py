"""Under which URL does this cluster serve a kind? The cluster is asked, so that every kind it has can be sent."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence

from octarbiter.api import errors, taskset
from octarbiter.api.meta import Noun, Object
from octarbiter.api.scheme import Resource
from octarbiter.cli import exits
from octarbiter.cli.sources import Document
from octarbiter.runtime.client import Client
from octarbiter.runtime.requests import Request

_API_VERSION = re.compile(r"(?:[a-z0-9][-a-z0-9.]*/)?[a-z0-9]+")


class Served(Noun, frozen=True):
    name: str
    kind: str
    namespaced: bool = False


class ServedList(Noun, frozen=True):
    resources: list[Served] = []


async def resources_of(client: Client, documents: Sequence[Document]) -> list[Resource[Object]]:
    """One for each document. A kind that is not served fails the command, before anything was sent."""
    versions = list(dict.fromkeys(document.api_version for document in documents))
    served = dict(zip(versions, await asyncio.gather(*(_served(client, v) for v in versions)), strict=True))
    found: list[Resource[Object]] = []
    missing: dict[str, None] = {}
    for document in documents:
        group, _, version = document.api_version.rpartition("/")
        match = [r for r in served[document.api_version] if r.kind == document.kind]
        if match:
            resource = Resource(group, version, document.kind, match[0].name, match[0].namespaced, Object)
            found.append(resource)
        else:
            missing[f"  {document.shown} ({document.where}): {document.kind} of {document.api_version}"] = None
    if missing:
        hint = f"{taskset.KIND} comes with `octo install --apply`; another kind with the CRDs of its own project."
        told = "\n".join(["the cluster does not serve these kinds; nothing was sent:", *missing, hint])
        raise exits.Failure(exits.Exit.REFUSED, told)
    return found


async def _served(client: Client, api_version: str) -> list[Served]:
    if not _API_VERSION.fullmatch(api_version):
        return []
    path = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
    request = Request(method="GET", path=path, verb="get", resource="discovery")
    try:
        answer = await client.send(request, ServedList)
    except errors.NotFound:
        return []
    return [resource for resource in answer.resources if "/" not in resource.name]
