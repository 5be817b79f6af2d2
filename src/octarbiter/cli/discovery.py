"""Does this cluster serve the kinds of these documents? It is asked, so that every kind it has can be sent."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from octarbiter.api import kinds
from octarbiter.api.meta import Object
from octarbiter.api.scheme import Resource
from octarbiter.cli import exits
from octarbiter.cli.sources import Document
from octarbiter.runtime import served
from octarbiter.runtime.client import Client


async def resources_of(client: Client, documents: Sequence[Document]) -> list[Resource[Object]]:
    """One for each document. A kind that is not served fails the command, before anything was sent."""
    versions = list(dict.fromkeys(document.api_version for document in documents))
    answers = await asyncio.gather(*(served.of_version(client, version) for version in versions))
    there = dict(zip(versions, answers, strict=True))
    found: list[Resource[Object]] = []
    missing: dict[str, None] = {}
    for document in documents:
        resource = served.named(there[document.api_version], document.api_version, document.kind, Object)
        if resource is not None:
            found.append(resource)
        else:
            missing[f"  {document.shown} ({document.where}): {document.kind} of {document.api_version}"] = None
    if missing:
        ours = ", ".join(kind.kind for kind in kinds.INSTALLED)
        hint = f"{ours} come with `octo install --apply`; another kind with the CRDs of its own project."
        told = "\n".join(["the cluster does not serve these kinds; nothing was sent:", *missing, hint])
        raise exits.Failure(exits.Exit.REFUSED, told)
    return found
