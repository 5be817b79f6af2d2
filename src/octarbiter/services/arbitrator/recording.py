"""Writes down what was decided: the statuses of queues and claims, and whether workloads may run.

A claim's status says what it has before its workload is started, and that it has nothing before the workload is
suspended: whoever takes over after a crash finds in the status what to do.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TypeVar

import msgspec

from octarbiter.api import codec, errors, scheme
from octarbiter.api.core_kinds import ObjectReference
from octarbiter.api.meta import Condition, Object
from octarbiter.api.queue import RECLAIMING, SATISFIED, Queue, QueueStatus
from octarbiter.api.queuejob import ALLOCATED, FINISHED, STARTED, QueueJob, QueueJobStatus
from octarbiter.api.scheme import Resource
from octarbiter.core.arbitration import record
from octarbiter.core.arbitration.record import Fact
from octarbiter.core.arbitration.state import JobResult, QueueResult
from octarbiter.runtime import cache, client, events, fairness
from octarbiter.services.arbitrator.claims import Reason, Standing
from octarbiter.services.arbitrator.workloads import Kind, Workloads

_T = TypeVar("_T", Queue, QueueJob)


class Verdict(msgspec.Struct, frozen=True):
    """What a claim's status is to say."""

    allocated: int = 0
    position: int = 0
    starts: bool = False
    facts: tuple[Fact, ...] = ()


def verdict(standing: Standing, result: JobResult | None, suspended: str) -> Verdict:
    """`result`: of a claim in line. `suspended`: why its workload is to stop; empty: it is not."""
    spec = standing.claim.spec
    has_workload = spec.workload_ref is not None
    if result is None:
        finished = standing.reason is Reason.FINISHED
        facts = [Fact(ALLOCATED, False, standing.reason, standing.sentence)]
        if has_workload:
            facts.append(Fact(STARTED, False, standing.reason, standing.sentence))
        if finished:
            facts.append(Fact(FINISHED, True, "WorkloadEnded", standing.sentence))
        return Verdict(facts=tuple(facts))
    enough = result.allocated >= max(1, min(spec.least, spec.resourceno))
    reason = "AllUnits" if result.allocated >= spec.resourceno else "SomeUnits" if enough else "Waits"
    facts = [Fact(ALLOCATED, enough, reason, result.sentence)]
    if has_workload:
        if enough:
            facts.append(Fact(STARTED, True, "Allocated", "its workload may run"))
        else:
            facts.append(Fact(STARTED, False, "TakenBack" if suspended else "Waits", suspended or result.sentence))
    return Verdict(result.allocated, result.position, enough and has_workload, tuple(facts))


class Records:
    def __init__(
        self,
        client_: client.Client,
        gate: fairness.FairGate,
        recorder: events.Recorder,
        queues: cache.Cache[Queue],
        claims: dict[Resource[QueueJob], cache.Cache[QueueJob]],
        workloads: Workloads,
    ) -> None:
        self._client, self._gate, self._recorder = client_, gate, recorder
        self._queues, self._claims, self._workloads = queues, claims, workloads

    async def queue(self, queue: Queue, result: QueueResult, now: datetime) -> None:
        status = record.queue_status(queue.status, result, queue.metadata.generation, now)
        await self._queue_status(queue, status)

    async def queue_problem(self, queue: Queue, problem: str, now: datetime) -> None:
        """Of a queue that takes no part."""
        facts = [Fact(SATISFIED, False, "Invalid", problem), Fact(RECLAIMING, False, "Invalid", problem)]
        generation = queue.metadata.generation
        conditions = record.conditions(queue.status.conditions, facts, generation, now)
        await self._queue_status(queue, QueueStatus(observed_generation=generation, conditions=conditions))

    async def _queue_status(self, queue: Queue, status: QueueStatus) -> None:
        if status == queue.status:
            return
        written = await self._write(scheme.QUEUES, queue, status)
        if written is None:
            self._queues.remove(queue.metadata.key, queue.metadata.uid)
            return
        self._queues.put(written)
        # Whether a queue has all it asks for changes with every claim: that is for the status alone.
        news = [each for each in _news(queue.status.conditions, status.conditions) if SATISFIED not in each[1]]
        self._tell(scheme.QUEUES, queue, news)

    async def claim(self, standing: Standing, wanted: Verdict, now: datetime) -> None:
        """The status, and then the workload."""
        claim, known = standing.claim, self._claims[standing.resource]
        status = _status(claim, wanted, now)
        if status != claim.status:
            written = await self._write(standing.resource, claim, status)
            if written is None:
                known.remove(claim.metadata.key, claim.metadata.uid)
                return
            known.put(written)
            self._tell(standing.resource, claim, _news(claim.status.conditions, status.conditions))
        if standing.reason not in (Reason.FINISHED, Reason.LEAVING):
            await self._let_run(standing, wanted.starts)

    async def _let_run(self, standing: Standing, runs: bool) -> None:
        workload, ref = standing.workload, standing.claim.spec.workload_ref
        if workload is None or ref is None or workload.is_suspended != runs or workload.is_finished:
            return
        kind: Kind = (ref.api_version, ref.kind)
        meta = workload.metadata
        patch = {"metadata": {"uid": meta.uid}, "spec": {"suspend": not runs}}
        try:
            async with self._gate.slot(meta.namespace):
                written = await self._client.merge_patch(
                    self._workloads.resource(kind), meta.namespace, meta.name, patch
                )
        except errors.NotFound:
            return  # the watch will tell
        self._workloads.put(kind, written)

    async def _write(self, resource: Resource[_T], of: _T, status: QueueStatus | QueueJobStatus) -> _T | None:
        """None: it is gone. Replaced, because that costs the server less than a patch: it takes nothing but the status
        from what is sent, and refuses what rests on another version."""
        meta = of.metadata
        body = {
            "apiVersion": resource.api_version,
            "kind": resource.kind,
            "metadata": {
                "name": meta.name,
                "namespace": meta.namespace,
                "uid": meta.uid,
                "resourceVersion": meta.resource_version,
            },
            "status": codec.to_json(status),
        }
        try:
            async with self._gate.slot(meta.namespace):
                return await self._client.replace(resource, meta.namespace, meta.name, body, subresource="status")
        except errors.NotFound:
            return None

    def _tell(self, resource: Resource[Object], of: Object, news: Sequence[tuple[str, str, str]]) -> None:
        meta = of.metadata
        reference = ObjectReference(
            api_version=resource.api_version,
            kind=resource.kind,
            namespace=meta.namespace,
            name=meta.name,
            uid=meta.uid,
        )
        for type_, reason, message in news:
            self._recorder.record(reference, type_, reason, message)


def is_told(claim: QueueJob, wanted: Verdict, now: datetime) -> bool:
    """Whether its status says all of this already."""
    return _status(claim, wanted, now) == claim.status


def says_enough(claim: QueueJob, wanted: Verdict) -> bool:
    """Whether its status says what matters to others: what it has. Why, and who is ahead, may be told later."""
    said = {condition.type: condition.status == "True" for condition in claim.status.conditions}
    matters = {fact.type: fact.holds for fact in wanted.facts if fact.holds or fact.type in said}
    return claim.status.allocated_no == wanted.allocated and all(
        said.get(type_) == holds for type_, holds in matters.items()
    )


def _status(claim: QueueJob, wanted: Verdict, now: datetime) -> QueueJobStatus:
    return record.job_status(
        claim.status,
        claim.spec.unit,
        wanted.allocated,
        wanted.position,
        wanted.facts,
        claim.metadata.generation,
        now,
    )


def _news(before: Sequence[Condition], after: Sequence[Condition]) -> list[tuple[str, str, str]]:
    """An Event for each condition that has turned. A claim that gets at once all it asks for is no news to anybody."""
    had = {condition.type: condition.status for condition in before}
    return [
        ("Normal", f"{'' if condition.status == 'True' else 'Not'}{condition.type}", condition.message)
        for condition in after
        if had.get(condition.type, "True" if condition.type == ALLOCATED else "False") != condition.status
    ]
