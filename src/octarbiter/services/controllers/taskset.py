"""The TaskSet controller: looks at what is there, asks the core, records, acts, looks again.

Every decision is in `core.lifecycle`; here is only the order of deeds that makes it safe: the status that a decision
rests on is recorded before its actions, with the resourceVersion it was decided on, so a controller that has fallen
behind can neither record nor act.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime

import msgspec

from octarbiter.api import codec, errors, scheme, validation
from octarbiter.api import taskset as api
from octarbiter.api.core_kinds import Node, ObjectReference
from octarbiter.api.meta import Json, Object, ObjectMeta
from octarbiter.api.pod import Pod
from octarbiter.core.lifecycle import names, objects, report, story
from octarbiter.core.lifecycle.actions import CreateControlUnit, Told
from octarbiter.core.lifecycle.decide import Decision, Record, decide
from octarbiter.core.lifecycle.observe import Seen
from octarbiter.core.lifecycle.phases import TaskSetPhase
from octarbiter.runtime import cache, client, clock, events, fairness
from octarbiter.services.controllers.taskset_actions import Caches, Hands
from octarbiter.services.controllers.taskset_memory import Memory

BY_UID = "uid"
BY_TASKSET = "taskset"
BY_NODE = "node"
OWNED_SELECTOR = names.UID_LABEL

SECONDS_PER_REPLICA = 0.0002
LONGEST_COOLDOWN_S = 1.0
"""A look costs in proportion to the replicas: big TaskSets are looked at less often, but every second if need be."""

BUSY_FACTOR = 30
BUSY_LOOK = 5
"""While work is queueing up, a status that nothing depends on may wait so many status intervals to be written, and is
asked for again after so many: the rush may be over."""
LIST_INTERVAL_S = 60.0
LISTS_KEPT = 2
"""Complete lists of so many attempts are kept; what matters of the others is in the history."""
FIELD_MANAGER = "octarbiter"

log = logging.getLogger(__name__)


def indexes() -> dict[str, Callable[[Object], Iterable[str]]]:
    """How pods, control units and Services are found."""
    return {BY_UID: _uid_of, BY_TASKSET: _taskset_of}


def pod_indexes() -> dict[str, Callable[[Pod], Iterable[str]]]:
    return {BY_UID: _uid_of, BY_TASKSET: _taskset_of, BY_NODE: lambda pod: [pod.spec.node_name]}


def _uid_of(owned: Object) -> list[str]:
    return [owned.metadata.labels.get(names.UID_LABEL, "")]


def _taskset_of(owned: Object) -> list[str]:
    return [taskset_key(owned)]


def taskset_key(owned: Object) -> str:
    return f"{owned.metadata.namespace}/{owned.metadata.labels.get(names.TASKSET_LABEL, '')}"


class _ReadyNodes(Mapping[str, bool]):
    """The nodes' cache as the core wants to see it, without copying it for every look."""

    def __init__(self, nodes: cache.Cache[Node]) -> None:
        self._nodes = nodes

    def __getitem__(self, name: str) -> bool:
        node = self._nodes.get(name)
        if node is None:
            raise KeyError(name)
        return node.is_ready

    def __iter__(self) -> Iterator[str]:
        return (node.metadata.name for node in self._nodes)

    def __len__(self) -> int:
        return len(self._nodes)


class TaskSetController:
    def __init__(
        self,
        client_: client.Client,
        caches: Caches,
        gate: fairness.FairGate,
        recorder: events.Recorder,
        *,
        cool_down: Callable[[str, float], None],
        is_busy: Callable[[], bool],
        status_interval_s: float,
        clock_: clock.Clock = clock.SYSTEM,
    ) -> None:
        self._client, self._caches, self._gate, self._recorder, self._clock = client_, caches, gate, recorder, clock_
        self._cool_down, self._is_busy = cool_down, is_busy
        self._status_interval_s = status_interval_s
        self._hands = Hands(client_, gate, caches, clock_)
        self._nodes = _ReadyNodes(caches.nodes)
        self._memories: dict[str, Memory] = {}

    async def reconcile(self, key: str) -> float | None:
        taskset: api.TaskSet | None = self._caches.tasksets.get(key)
        await self._sweep(key, taskset)
        if taskset is None:
            self._memories.pop(key, None)
            return None
        memory = self._memory(key, taskset)
        now = self._clock.now()
        taskset = msgspec.structs.replace(taskset, status=memory.status)
        decision = decide(taskset, self._seen(taskset, memory), now, _problems(taskset))
        replicas = sum(len(role.replica_status) for role in decision.status.role_status)
        if replicas > api.FULL_STATUS_REPLICAS and memory.status.phase != TaskSetPhase.COMPLETED:
            # First: what it tells is nowhere else once the pods are gone, and nobody looks at what is completed.
            await self._list_replicas(msgspec.structs.replace(taskset, status=decision.status), memory)
        if decision.record is Record.NOW:
            await self._record(taskset, memory, decision.status)
        self._tell(taskset, story.between(memory.status, decision.status))
        memory.status = decision.status
        if memory.ahead_since is None and decision.record is Record.SOON:
            memory.ahead_since = self._clock.monotonic()
        acting = msgspec.structs.replace(taskset, status=decision.status)
        refusals = memory.refusal_count
        unfinished = await self._hands.carry_out(acting, memory, decision.actions)
        self._cool_down(key, min(LONGEST_COOLDOWN_S, replicas * SECONDS_PER_REPLICA))
        made_unit = any(isinstance(action, CreateControlUnit) for action in decision.actions)
        if unfinished or made_unit or memory.refusal_count != refusals:
            # There is more to decide on right now: the rest of the pods, the unit's UID, what was refused.
            return 0.0
        return await self._next_look(acting, memory, decision, now)

    def _memory(self, key: str, taskset: api.TaskSet) -> Memory:
        memory = self._memories.get(key)
        if memory is None or memory.uid != taskset.metadata.uid:
            memory = self._memories[key] = Memory(taskset)
        elif memory.version != taskset.metadata.resource_version:
            memory.look_at(taskset)
        return memory

    def _seen(self, taskset: api.TaskSet, memory: Memory) -> Seen:
        uid = taskset.metadata.uid
        services = self._caches.services.by_index(BY_UID, uid)
        pods = self._caches.pods.by_index(BY_UID, uid)
        return Seen(
            pods=tuple(pods),
            control_units=tuple(self._caches.control_units.by_index(BY_UID, uid)),
            service=services[0] if services else None,
            ready_nodes=self._nodes,
            refusals=memory.refusals,
        )

    # --- the record

    async def _next_look(self, taskset: api.TaskSet, memory: Memory, decision: Decision, now: datetime) -> float | None:
        """Writes what may be written late, when it is late enough; says when to look again."""
        again = (decision.look_again_at - now).total_seconds() if decision.look_again_at is not None else None
        if memory.ahead_since is not None:
            busy = self._is_busy()
            patience = self._status_interval_s * (BUSY_FACTOR if busy else 1)
            left = memory.ahead_since + patience - self._clock.monotonic()
            if left <= 0:
                await self._record(taskset, memory, memory.status)
            else:
                left = min(left, self._status_interval_s * BUSY_LOOK)
                again = left if again is None else min(again, left)
        return None if again is None else max(0.0, again)

    async def _record(self, taskset: api.TaskSet, memory: Memory, status: api.TaskSetStatus) -> None:
        compact = report.compact(status)
        if compact == memory.recorded:
            memory.ahead_since = None
            return
        meta = taskset.metadata
        operations: list[Json] = [
            {"op": "test", "path": "/metadata/uid", "value": meta.uid},
            # Decided on this version: if it is another by now, the server answers Conflict.
            {"op": "replace", "path": "/metadata/resourceVersion", "value": meta.resource_version},
            # The printer column wants a number also where there is none to tell of.
            {"op": "add", "path": "/status", "value": {"totalRetriedCount": 0, **codec.to_json(compact)}},
        ]
        try:
            async with self._gate.slot(meta.key):
                written = await self._client.json_patch(
                    scheme.TASKSETS, meta.namespace, meta.name, operations, subresource="status"
                )
        except (errors.Conflict, errors.NotFound, errors.Invalid):
            await self._read_again(meta.key, memory)
            raise
        self._tell(taskset, story.waiting(memory.recorded, compact))
        memory.recorded_as(msgspec.structs.replace(written, status=compact))
        self._caches.tasksets.put(written)

    async def _list_replicas(self, taskset: api.TaskSet, memory: Memory) -> None:
        """Now and then, and once when all replicas of an attempt are final."""
        status, meta = taskset.status, taskset.metadata
        ended = all(replica.outcome for role in status.role_status for replica in role.replica_status)
        now = self._clock.monotonic()
        if meta.deletion_timestamp is not None:
            return
        if memory.listed_at is None:
            memory.listed_at = now  # at the beginning there is nothing to tell
        if memory.listed_to_the_end >= status.attempt or (not ended and now < memory.listed_at + LIST_INTERVAL_S):
            return
        memory.listed_at = now
        try:
            for part, body in enumerate(objects.replica_lists(taskset)):
                await self._write_list(meta, body)
                if ended and status.attempt >= LISTS_KEPT:
                    await self._forget_list(meta, names.replica_list(meta.name, status.attempt - LISTS_KEPT, part))
        except errors.Retry:
            raise
        except errors.ApiError as error:
            # A quota, somebody's rule: the TaskSet itself goes on without.
            self._tell(taskset, [Told("ReplicasNotListed", str(error), warning=True)])
        if ended:
            memory.listed_to_the_end = status.attempt

    async def _write_list(self, meta: ObjectMeta, body: Json) -> None:
        name = body["metadata"]["name"]
        async with self._gate.slot(meta.key):
            await self._client.apply(
                scheme.CONFIGMAPS, meta.namespace, name, body, field_manager=FIELD_MANAGER, force=True
            )

    async def _forget_list(self, meta: ObjectMeta, name: str) -> None:
        with contextlib.suppress(errors.NotFound):
            async with self._gate.slot(meta.key):
                await self._client.delete(scheme.CONFIGMAPS, meta.namespace, name)

    async def _read_again(self, key: str, memory: Memory) -> None:
        namespace, _, name = key.partition("/")
        try:
            current = await self._client.get(scheme.TASKSETS, namespace, name)
        except errors.NotFound:
            known = self._caches.tasksets.get(key)
            if known is not None:
                self._caches.tasksets.remove(key, known.metadata.uid)
            return
        self._caches.tasksets.put(current)
        if current.metadata.uid == memory.uid and current.status != memory.recorded:
            memory.start_over(current)

    def _tell(self, taskset: api.TaskSet, lines: Iterable[Told]) -> None:
        meta = taskset.metadata
        reference = ObjectReference(
            api_version=api.API_VERSION,
            kind=api.KIND,
            namespace=meta.namespace,
            name=meta.name,
            uid=meta.uid,
            resource_version=meta.resource_version,
        )
        for told in lines:
            log.info(told.message, extra={"taskset": meta.key, "reason": told.reason})
            self._recorder.record(reference, "Warning" if told.warning else "Normal", told.reason, told.message)

    # --- what is left of TaskSets that are no more

    async def _sweep(self, key: str, taskset: api.TaskSet | None) -> None:
        """The garbage collector removes what a deleted TaskSet owned; what was on its way then is removed here."""
        uid = taskset.metadata.uid if taskset is not None else ""
        strays = [
            (resource, known, owned)
            for resource, known in (
                (scheme.PODS, self._caches.pods),
                (scheme.CONFIGMAPS, self._caches.control_units),
            )
            for owned in known.by_index(BY_TASKSET, key)
            if _uid_of(owned)[0] != uid and owned.metadata.deletion_timestamp is None
        ]
        if not strays:
            return
        namespace, _, name = key.partition("/")
        try:
            # Our view of TaskSets may be older than that of pods: ask before anything is removed.
            uid = (await self._client.get(scheme.TASKSETS, namespace, name)).metadata.uid
        except errors.NotFound:
            uid = ""
        for resource, known, owned in strays:
            if _uid_of(owned)[0] == uid or self._is_orphaned(owned):
                continue
            meta = owned.metadata
            try:
                async with self._gate.slot(key):
                    await self._client.delete(
                        resource, meta.namespace, meta.name, uid=meta.uid, propagation="Background"
                    )
            except (errors.NotFound, errors.Conflict):
                known.remove(meta.key, meta.uid)

    def _is_orphaned(self, owned: Object) -> bool:
        """Deleted with --cascade=orphan: somebody wants to keep it. A pod is kept with its control unit."""
        owner = owned.metadata.controller
        if owner is None:
            return True
        unit = self._caches.control_units.get(f"{owned.metadata.namespace}/{owner.name}")
        return owner.kind == "ConfigMap" and unit is not None and unit.metadata.controller is None


def _problems(taskset: api.TaskSet) -> tuple[str, ...]:
    if taskset.status.phase:
        return ()
    return tuple(str(problem) for problem in validation.validate(codec.to_json(taskset)))
