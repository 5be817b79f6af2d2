"""The garbage collector: everything of every kind, watched in outline; what to do is decided in `ownership`.

Nothing is deleted by mistake: every write carries the UID and the version of the object it was decided on, so an
object that was given another owner in between refuses it.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Any, Final

from msgspec import Struct

from octarbiter.api import codec, errors
from octarbiter.api.meta import Json, OwnerReference
from octarbiter.api.scheme import Resource
from octarbiter.cluster.controllers import census, discovery, outlines, ownership
from octarbiter.cluster.controllers.outlines import Outline
from octarbiter.cluster.controllers.ownership import Delete, LookAt, Owner, RemoveFinalizer, SetOwners, Vertex
from octarbiter.runtime import controller, fairness, informer, telemetry

IGNORED: Final = frozenset({("", "events"), ("events.k8s.io", "events")})
"""Many, short-lived, owned by nobody; and the same objects under two names."""
START_AFTER_S: Final = 1.0
STARTED_AT_ONCE: Final = 4
"""A cluster that starts has better things to do: garbage can wait, and dozens of lists need not come at once."""
LIST_PATIENCE_S: Final = 5.0
SYNC_PATIENCE_S: Final = 30.0
"""A kind that cannot be listed holds up the others so long at the start, and all such kinds the collecting."""
LOOK_AGAIN_S: Final = 30.0
"""At an object whose owner only the server can tell of: no watch of ours would tell of the owner's end."""
ABSENT_REMEMBERED: Final = 10_000

log = logging.getLogger(__name__)


class Monitor(Struct):
    served: discovery.Served
    informer: informer.Informer[Outline]
    task: asyncio.Task[None] | None = None


class GarbageCollector(controller.Controller[str]):
    """Keys are UIDs. Monitors come and go with the catalogue's resources."""

    def __init__(
        self,
        client: outlines.OutlineClient,
        catalogue: discovery.Catalogue,
        gate: fairness.FairGate,
        metrics: telemetry.Metrics,
        counts: census.Census,
        *,
        workers: int,
    ) -> None:
        """Owns `client` and closes it in the end. Keeps the census, since it watches everything."""
        super().__init__("garbage", self.reconcile, workers=workers, metrics=metrics)
        self._client, self._catalogue, self._gate, self._census = client, catalogue, gate, counts
        self._graph = ownership.Graph()
        self._monitors: dict[discovery.Name, Monitor] = {}
        self._absent: OrderedDict[tuple[str, ...], None] = OrderedDict()
        self._undecided: set[str] = set()
        self._running = False
        self._starts = asyncio.Semaphore(STARTED_AT_ONCE)
        catalogue.on_change.append(self._adjust)

    # --- watching

    async def run(self) -> None:
        async with self._client:
            await asyncio.sleep(START_AFTER_S)
            self._running = True
            if not self._catalogue.served:
                await self._first_look()
            self._adjust()
            try:
                await self._wait_for_monitors()
                self._census.is_complete = True
                await super().run()
            finally:
                self._running = False
                tasks = [monitor.task for monitor in self._monitors.values() if monitor.task is not None]
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

    async def _first_look(self) -> None:
        while not self._catalogue.served:
            try:
                await self._catalogue.refresh()
            except errors.ApiError as problem:
                log.warning("the server does not tell its resources", extra={"error": str(problem)})
                await asyncio.sleep(1.0)

    async def _wait_for_monitors(self) -> None:
        """With all owners known, few need to be asked for. Those who cannot be known yet are asked for live."""
        try:
            async with asyncio.timeout(SYNC_PATIENCE_S):
                for monitor in list(self._monitors.values()):
                    await monitor.informer.synced.wait()
        except TimeoutError:
            slow = [name for name, each in self._monitors.items() if not each.informer.synced.is_set()]
            log.warning("some resources cannot be listed; going on without them", extra={"resources": slow})

    def _adjust(self) -> None:
        if not self._running:
            return
        wanted = {
            name: served
            for name, served in self._catalogue.served.items()
            if name not in IGNORED and served.verbs.issuperset(("list", "watch", "delete"))
        }
        for name, monitor in list(self._monitors.items()):
            if wanted.get(name) != monitor.served or monitor.task is None or monitor.task.done():
                self._stop(name)
        for name, served in wanted.items():
            if name not in self._monitors:
                self._start(name, served)
        for uid in self._undecided:
            self.queue.add(uid)
        self._undecided.clear()

    def _start(self, name: discovery.Name, served: discovery.Served) -> None:
        def changed(_key: str, old: Outline | None, new: Outline | None) -> None:
            if (known := new or old) is not None:
                self._census.change(name, known.metadata.namespace, (new is not None) - (old is not None))
            if new is not None:
                look = self._graph.put(_vertex(served.resource, new))
            elif old is not None:
                look = self._graph.drop(old.metadata.uid)
            for uid in look:
                self.queue.add(uid)

        watching = informer.Informer(self._client, outlines.outlined(served), on_change=changed)
        monitor = self._monitors[name] = Monitor(served, watching)
        monitor.task = asyncio.create_task(self._watch(watching), name=f"garbage-{name[1]}")

    async def _watch(self, watching: informer.Informer[Outline]) -> None:
        async with asyncio.TaskGroup() as group, self._starts:
            group.create_task(watching.run())
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LIST_PATIENCE_S):
                    await watching.synced.wait()

    def _stop(self, name: discovery.Name) -> None:
        """What is no longer watched is no longer known: whoever is owned by it asks for it live."""
        monitor = self._monitors.pop(name)
        if monitor.task is not None:
            monitor.task.cancel()
        for known in monitor.informer.cache:
            self._graph.drop(known.metadata.uid)
            self._census.change(name, known.metadata.namespace, -1)

    # --- acting

    async def reconcile(self, uid: str) -> float | None:
        vertex = self._graph.get(uid)
        if vertex is None:
            return None
        owners: list[Owner] = []
        again: float | None = None
        if not vertex.deleting:
            asked = vertex.owners
            for reference in asked:
                state, ask_again = await self._state(reference, vertex)
                owners.append(state)
                again = LOOK_AGAIN_S if ask_again else again
            if Owner.UNKNOWN in owners:
                self._undecided.add(uid)
            vertex = self._graph.get(uid)  # asking took time
            if vertex is None or vertex.owners != asked:
                return 0.0
        actions = ownership.decide(vertex, owners, self._graph.dependents(uid))
        for outcome in await asyncio.gather(*map(self._act, actions), return_exceptions=True):
            if isinstance(outcome, BaseException):
                raise outcome
        # Whose references were changed is not done yet: what was in the way is out of it now.
        return 0.0 if any(isinstance(action, SetOwners) for action in actions) else again

    async def _act(self, action: ownership.Action) -> None:
        match action:
            case LookAt(other):
                self.queue.add(other)
            case Delete():
                await self._write(action.vertex, functools.partial(self._delete, action))
            case SetOwners():
                owners: list[Json] = codec.to_json(action.owners)
                await self._write(action.vertex, functools.partial(self._set, action.vertex, "ownerReferences", owners))
            case RemoveFinalizer():
                left = [name for name in action.vertex.finalizers if name != action.finalizer]
                await self._write(action.vertex, functools.partial(self._set, action.vertex, "finalizers", left))

    async def _state(self, reference: OwnerReference, of: Vertex) -> tuple[Owner, bool]:
        """And whether it has to be asked for again: no watch of ours would tell."""
        known = self._graph.state(reference, of)
        if known is not None:
            return known, False
        served = self._catalogue.of_kind(reference.api_version, reference.kind)
        if served is None or (served.resource.namespaced and not of.namespace):
            return Owner.UNKNOWN, False
        namespace = of.namespace if served.resource.namespaced else ""
        coordinates = (served.resource.group, served.resource.plural, namespace, reference.name, reference.uid)
        if coordinates in self._absent:
            return Owner.ABSENT, False
        try:
            found = await self._client.get(outlines.outlined(served), namespace, reference.name)
        except errors.NotFound as problem:
            if problem.status.details.name != reference.name:
                return Owner.UNKNOWN, True  # it is the whole resource that is not served, perhaps only for now
            found = None
        if found is None or found.metadata.uid != reference.uid:
            # A UID is never given again: absent once is absent for ever.
            self._absent[coordinates] = None
            if len(self._absent) > ABSENT_REMEMBERED:
                self._absent.popitem(last=False)
            return Owner.ABSENT, False
        return (Owner.WAITS if _vertex(served.resource, found).is_in_foreground else Owner.LIVES), True

    async def _write(self, vertex: Vertex, deed: Callable[[], Awaitable[Outline | None]]) -> None:
        monitor = self._monitors.get((vertex.group, vertex.plural))
        if monitor is None:
            return
        held = monitor.informer.cache
        key = f"{vertex.namespace}/{vertex.name}" if vertex.namespace else vertex.name
        try:
            async with self._gate.slot("garbage"):
                written = await deed()
        except errors.NotFound:
            held.remove(key, vertex.uid)
            return
        except errors.Conflict:
            await self._read_again(monitor, vertex, key)
            raise
        if written is None:
            held.remove(key, vertex.uid)
        else:
            held.put(written)

    async def _read_again(self, monitor: Monitor, vertex: Vertex, key: str) -> None:
        """Ours was not the last version: decided again on what is there now."""
        try:
            found = await self._client.get(monitor.informer.resource, vertex.namespace, vertex.name)
        except errors.NotFound:
            monitor.informer.cache.remove(key, vertex.uid)
        else:
            monitor.informer.cache.put(found)

    async def _delete(self, action: Delete) -> Outline | None:
        vertex = action.vertex
        log.info(
            "deleting what nobody owns any more",
            extra={"kind": vertex.kind, "namespace": vertex.namespace, "name_": vertex.name, "policy": action.policy},
        )
        return await self._client.delete(
            self._monitors[(vertex.group, vertex.plural)].informer.resource,
            vertex.namespace,
            vertex.name,
            propagation=action.policy,
            uid=vertex.uid,
            resource_version=vertex.version,
        )

    async def _set(self, vertex: Vertex, field: str, value: list[Any]) -> Outline:
        path = f"/metadata/{field}"
        last: Json = {"op": "replace", "path": path, "value": value} if value else {"op": "remove", "path": path}
        operations: list[Json] = [
            {"op": "test", "path": "/metadata/uid", "value": vertex.uid},
            {"op": "replace", "path": "/metadata/resourceVersion", "value": vertex.version},
            last,
        ]
        resource = self._monitors[(vertex.group, vertex.plural)].informer.resource
        try:
            return await self._client.json_patch(resource, vertex.namespace, vertex.name, operations)
        except errors.Invalid as problem:
            # The test failed: another object has this name. To us that is the same as a conflict.
            raise errors.Conflict(problem.status) from problem


def _vertex(resource: Resource[Any], outline: Outline) -> Vertex:
    meta = outline.metadata
    return Vertex(
        meta.uid,
        resource.group,
        resource.plural,
        resource.kind,
        meta.namespace,
        meta.name,
        meta.resource_version,
        tuple(meta.owner_references),
        tuple(meta.finalizers),
        meta.deletion_timestamp is not None,
    )
