"""A namespace that goes is emptied first: pods, with the time they need to end, then all else; then it is let go.

Everything is asked of the server itself and not of a cache: a namespace is given up only when each resource that can be
in it was listed and there was nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from octarbiter.api import codec, errors
from octarbiter.api.core_kinds import Namespace
from octarbiter.api.meta import Json
from octarbiter.cluster.controllers import discovery, emptying, kinds, outlines, writing
from octarbiter.cluster.controllers.emptying import Left
from octarbiter.runtime import backoff, cache, client, clock, fairness, requests

FINALIZER: Final = "kubernetes"
PODS: Final = ("", "pods")
AT_ONCE: Final = 8
PAGE: Final = 500
FIRST_PAUSE_S: Final = 0.5
LONGEST_PAUSE_S: Final = 15.0
COLLECTION_TIMEOUT_S: Final = 120.0

log = logging.getLogger(__name__)


class NamespaceController:
    def __init__(
        self,
        client_: client.Client,
        gate: fairness.FairGate,
        namespaces: cache.Cache[Namespace],
        catalogue: discovery.Catalogue,
        clock_: clock.Clock = clock.SYSTEM,
    ) -> None:
        self._client, self._gate, self._clock = client_, gate, clock_
        self._namespaces, self._catalogue = namespaces, catalogue
        self._pauses: dict[str, backoff.Backoff] = {}

    def is_going(self, name: str) -> bool:
        namespace = self._namespaces.get(name)
        return namespace is not None and namespace.metadata.deletion_timestamp is not None

    async def reconcile(self, name: str) -> float | None:
        namespace = self._namespaces.get(name)
        if namespace is None or not self.is_going(name) or FINALIZER not in namespace.spec.finalizers:
            self._pauses.pop(name, None)
            return None
        await self._catalogue.refresh()
        left = await self._empty(name)
        if emptying.is_empty(left, self._catalogue.stale):
            await self._let_go(namespace)
            return None
        await self._say(namespace, left)
        pauses = self._pauses.setdefault(name, backoff.Backoff(FIRST_PAUSE_S, LONGEST_PAUSE_S))
        return pauses.next_pause()

    async def _empty(self, name: str) -> list[Left]:
        deletable = {
            (served.resource.group, served.resource.plural): served
            for served in self._catalogue.having("list", "delete")
            if served.resource.namespaced
        }
        left = []
        if (pods := deletable.pop(PODS, None)) is not None:
            # First: what they use must not be taken from under them.
            left = await self._empty_all(name, [pods])
        return (
            left
            if any(each.count or each.problem for each in left)
            else await self._empty_all(name, deletable.values())
        )

    async def _empty_all(self, name: str, resources: Iterable[discovery.Served]) -> list[Left]:
        slots = asyncio.Semaphore(AT_ONCE)

        async def one(served: discovery.Served) -> Left:
            async with slots:
                try:
                    return await self._empty_one(name, served)
                except errors.ApiError as problem:
                    return Left(served.resource.plural, served.resource.group, problem=str(problem))

        return list(await asyncio.gather(*(one(served) for served in resources)))

    async def _empty_one(self, name: str, served: discovery.Served) -> Left:
        left, staying = await self._look(name, served)
        if staying:
            if "deletecollection" in served.verbs:
                async with self._gate.slot(name):
                    request = writing.delete_all(served.resource, name)
                    await self._client.send(request, bytes, timeout_s=COLLECTION_TIMEOUT_S)
            else:
                for each in staying:
                    await self._delete(served, each)
            left, _ = await self._look(name, served)
        return left

    async def _look(self, name: str, served: discovery.Served) -> tuple[Left, list[outlines.Outline]]:
        """What is there; and those, of the first page, that nobody has asked to go yet."""
        resource = served.resource
        request = requests.list_(resource, name, limit=PAGE)
        page = await self._client.send(msgspec.structs.replace(request, accept=outlines.MANY), outlines.Page)
        found = [codec.decode(item, outlines.Outline) for item in page.items or ()]
        finalizers = Counter(finalizer for each in found for finalizer in each.metadata.finalizers)
        count = len(found) + page.metadata.remaining_item_count
        left = Left(resource.plural, resource.group, count, dict(finalizers))
        return left, [each for each in found if each.metadata.deletion_timestamp is None]

    async def _delete(self, served: discovery.Served, each: outlines.Outline) -> None:
        meta = each.metadata
        try:
            async with self._gate.slot(meta.namespace):
                await self._client.delete(
                    served.resource, meta.namespace, meta.name, propagation="Background", uid=meta.uid
                )
        except (errors.NotFound, errors.Conflict):
            pass  # gone, or another by now: the next look tells

    async def _let_go(self, namespace: Namespace) -> None:
        name = namespace.metadata.name
        request = requests.get(kinds.NAMESPACES, "", name)
        try:
            whole = await self._client.send(request, dict[str, Any])
            if whole["metadata"]["uid"] != namespace.metadata.uid:
                return
            spec = whole.get("spec", {})
            whole["spec"] = {**spec, "finalizers": [f for f in spec.get("finalizers", ()) if f != FINALIZER]}
            async with self._gate.slot(name):
                await self._client.send(
                    requests.replace(kinds.NAMESPACES, "", name, whole, subresource="finalize"), bytes
                )
        except errors.NotFound:
            return
        self._pauses.pop(name, None)
        log.info("a namespace is empty and is let go", extra={"namespace": name})

    async def _say(self, namespace: Namespace, left: list[Left]) -> None:
        before = namespace.status.conditions
        after = emptying.conditions(before, left, self._catalogue.stale, self._clock.now())
        if after == before:
            return
        patch: Json = {"status": {"conditions": [_written(condition) for condition in after]}}
        async with self._gate.slot(namespace.metadata.name):
            request = writing.strategic_patch(kinds.NAMESPACES, namespace, patch, subresource="status")
            self._namespaces.put(await self._client.send(request, Namespace))


def _written(condition: Any) -> Json:
    at = condition.last_transition_time
    told: Json = codec.to_json(condition)
    return told | ({"lastTransitionTime": writing.timestamp(at)} if at is not None else {})
