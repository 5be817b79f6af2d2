"""Brings a cluster to hold these objects, whatever it held before (server-side apply)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import aclosing

import click

from octarbiter.api.meta import Condition, Json, Noun, Object
from octarbiter.api.scheme import CRDS, Resource
from octarbiter.cli import discovery, exits, following, sending
from octarbiter.cli.sources import Document
from octarbiter.runtime import requests
from octarbiter.runtime.client import Client

FIELD_MANAGER = "octarbiter-install"
ESTABLISHED_S = 60.0


class DefinitionStatus(Noun, frozen=True):
    conditions: list[Condition] | None = None
    """The server writes null until it has looked at a new definition."""


class Definition(Object, frozen=True):
    status: DefinitionStatus = DefinitionStatus()

    @property
    def is_served(self) -> bool:
        return any(c.type == "Established" and c.status == "True" for c in self.status.conditions or ())


DEFINITIONS = Resource(CRDS.group, CRDS.version, CRDS.kind, CRDS.plural, CRDS.namespaced, Definition)


async def apply(client: Client, objects: Sequence[Json]) -> None:
    documents = [Document("octo install", body) for body in objects]
    resources = await discovery.resources_of(client, documents)
    for document, resource in zip(documents, resources, strict=True):
        place = document.metadata.get("namespace", "")
        # By force: what an earlier version or `kubectl apply` set in these fields is what this is to replace.
        request = requests.apply(resource, place, document.name, document.body, field_manager=FIELD_MANAGER, force=True)
        click.echo(f"{sending.short(await sending.answer_of(client, request))} applied")
    for document in documents:
        if document.kind == CRDS.kind:
            await _until_served(client, document.name)


async def _until_served(client: Client, name: str) -> None:
    """An API server serves a new kind a moment after it has accepted it; the next command may be `octo submit`."""
    try:
        async with asyncio.timeout(ESTABLISHED_S), aclosing(following.states(client, DEFINITIONS, "", name)) as states:
            async for seen in states:
                if seen is not None and seen.is_served:
                    return
    except TimeoutError:
        message = f"the API server accepted {name} but does not serve it after {ESTABLISHED_S:.0f} s"
        raise exits.Failure(exits.Exit.TIMEOUT, message) from None
