"""What has become of the workloads that claims refer to?

A kind is watched from the first claim that names it: TaskSets, batch Jobs, or whatever else has `spec.suspend`. Under
which URL it is served the cluster says; one that is not served (yet), or that we may not watch, is asked for again.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable

import msgspec

from octarbiter.api import errors
from octarbiter.api.scheme import Resource
from octarbiter.api.workload import Workload
from octarbiter.runtime import client as clients
from octarbiter.runtime import informer, requests, served

ASK_AGAIN_S = 10.0
SYNC_S = 10.0
"""The first list may take so long; the others' claims do not wait longer for it."""

Kind = tuple[str, str]
"""apiVersion and kind."""

log = logging.getLogger(__name__)


class Found(msgspec.Struct, frozen=True):
    workload: Workload | None = None
    problem: str = ""
    """Why it cannot be seen, though it may be there; empty: what is not seen is not there."""


class _Watched:
    def __init__(self) -> None:
        self.resource: Resource[Workload] | None = None
        self.informer: informer.Informer[Workload] | None = None
        self.problem = ""
        self.asked_at = float("-inf")


class Workloads:
    """`follow` runs an informer for as long as the process runs; `changed` is told the kind and the key, `known` a kind
    of which it is known from now on what is there and what is not."""

    def __init__(
        self,
        client: clients.Client,
        follow: Callable[[informer.Informer[Workload]], None],
        changed: Callable[[Kind, str], None],
        known: Callable[[Kind], None],
    ) -> None:
        self._client, self._follow, self._changed, self._known = client, follow, changed, known
        self._kinds: dict[Kind, _Watched] = {}

    def find(self, kind: Kind, namespace: str, name: str) -> Found:
        watched = self._kinds.get(kind)
        if watched is None:
            watched = self._kinds[kind] = _Watched()
        if watched.informer is not None and watched.informer.synced.is_set():
            return Found(workload=watched.informer.cache.get(f"{namespace}/{name}"))
        return Found(problem=watched.problem or f"{kind[1]}s of {kind[0]} are not watched yet")

    def resource(self, kind: Kind) -> Resource[Workload]:
        """Of a kind of which something was found."""
        resource = self._kinds[kind].resource
        assert resource is not None
        return resource

    def put(self, kind: Kind, written: Workload) -> None:
        """The answer to a write of ours."""
        watched = self._kinds[kind].informer
        if watched is not None:
            watched.cache.put(written)

    async def settle(self) -> float | None:
        """Asks the cluster for the kinds that are not watched yet; in how many seconds to ask again, if at all."""
        now = asyncio.get_running_loop().time()
        for kind, watched in self._kinds.items():
            if watched.informer is None and now >= watched.asked_at + ASK_AGAIN_S:
                watched.asked_at = now
                await self._begin(kind, watched)
        return ASK_AGAIN_S if any(watched.informer is None for watched in self._kinds.values()) else None

    async def _begin(self, kind: Kind, watched: _Watched) -> None:
        api_version, name = kind
        try:
            resource = served.named(await served.of_version(self._client, api_version), api_version, name, Workload)
            if resource is not None:
                # One that may not be listed would be tried again in silence for ever.
                await self._client.send(requests.list_(resource, limit=1), bytes)
        except errors.ApiError as error:
            watched.problem = f"{name}s of {api_version} cannot be watched: {error}"
            log.warning("a kind of workload cannot be watched", extra={"kind": name, "error": str(error)})
            return
        if resource is None or not resource.namespaced:
            watched.problem = f"the cluster serves no {name} of {api_version} in namespaces"
            return
        watched.resource = resource
        watched.informer = informer.Informer(
            self._client, resource, on_change=lambda key, _old, _new: self._changed(kind, key)
        )
        self._follow(watched.informer)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(SYNC_S):
                await watched.informer.synced.wait()
        self._known(kind)
