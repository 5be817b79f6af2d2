"""Which claims stand in line, in which queue, and why do the others not?

Looked at again is what has changed: a claim, the workload it refers to, or, when queues or namespaces change, all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import Any

import msgspec

from octarbiter.api import codec, validation
from octarbiter.api.queuejob import FINISHED, OLDER_KIND, STARTED, QueueJob
from octarbiter.api.scheme import Resource
from octarbiter.api.workload import Workload
from octarbiter.core.arbitration.lines import Job, Line
from octarbiter.services.arbitrator.workloads import Kind, Workloads


class Reason(StrEnum):
    IN_LINE = ""
    FINISHED = "Finished"
    LEAVING = "Leaving"
    INVALID = "Invalid"
    NO_QUEUE = "NoQueue"
    NO_WORKLOAD = "NoWorkload"


class Standing(msgspec.Struct, frozen=True):
    claim: QueueJob
    resource: Resource[QueueJob]
    reason: Reason = Reason.IN_LINE
    sentence: str = ""
    """Why it is not in line."""
    queue: str = ""
    workload: Workload | None = None

    @property
    def is_started(self) -> bool:
        return _holds(self.claim, STARTED)


class Placed(msgspec.Struct, frozen=True):
    """Where a claim belongs, or why nowhere."""

    queue: str = ""
    problem: str = ""


Find = Callable[[QueueJob], Placed]


class Claims:
    def __init__(self, workloads: Workloads) -> None:
        self.lines: dict[str, Line] = {}
        self.standings: dict[str, Standing] = {}
        self._workloads = workloads
        self._dirty: dict[str, tuple[Resource[QueueJob], QueueJob | None]] = {}
        self._by_workload: dict[tuple[Kind, str], set[str]] = {}
        self._by_uid: dict[str, str] = {}

    # --- what happened

    def changed(self, resource: Resource[QueueJob], key: str, new: QueueJob | None) -> str:
        """Returns the name under which we know it."""
        key = f"{key} ({OLDER_KIND})" if resource.kind == OLDER_KIND else key
        self._dirty[key] = (resource, new)
        return key

    def workload_changed(self, kind: Kind, key: str) -> bool:
        """True if somebody refers to it."""
        found = self._by_workload.get((kind, key), set())
        self._touch(found)
        return bool(found)

    def kind_known(self, kind: Kind) -> None:
        """What is there of this kind, and what is not, is known from now on."""
        self._touch([key for place, keys in self._by_workload.items() if place[0] == kind for key in keys])

    def everything_changed(self) -> None:
        self._touch(self.standings)

    def _touch(self, keys: Iterable[str]) -> None:
        for key in keys:
            known = self.standings[key]
            self._dirty.setdefault(key, (known.resource, known.claim))

    # --- what is so

    def refresh(self, find: Find) -> list[str]:
        """Looks at what has changed; returns those that are not in line, or whose workload is to be looked after."""
        found = []
        dirty, self._dirty = self._dirty, {}
        for key, (resource, claim) in dirty.items():
            old = self.standings.pop(key, None)
            if old is not None:
                self._forget(key, old)
            if claim is None:
                continue
            standing = self._look(resource, claim, find, old)
            self.standings[key] = standing
            self._remember(key, standing)
            if standing.reason is not Reason.IN_LINE or claim.spec.workload_ref is not None:
                found.append(key)
        return found

    def job_of_workload(self, uid: str) -> str:
        """The claim whose workload has this UID; empty: none."""
        return self._by_uid.get(uid, "")

    def referring_to(self, kind: Kind, key: str) -> set[str]:
        return self._by_workload.get((kind, key), set())

    def _look(self, resource: Resource[QueueJob], claim: QueueJob, find: Find, old: Standing | None) -> Standing:
        meta = claim.metadata
        workload: Workload | None = None

        def out(reason: Reason, sentence: str) -> Standing:
            return Standing(claim, resource, reason, sentence, workload=workload)

        ref = claim.spec.workload_ref
        if ref is not None:
            found = self._workloads.find((ref.api_version, ref.kind), meta.namespace, ref.name)
            workload = found.workload
        finished = claim.condition(FINISHED)
        if finished is not None and finished.status == "True":
            return out(Reason.FINISHED, finished.message)
        if workload is not None and workload.is_finished:
            assert ref is not None
            return out(Reason.FINISHED, f"its {ref.kind} {ref.name} has ended")
        if meta.deletion_timestamp is not None:
            return out(Reason.LEAVING, "it is being deleted")
        if not _was_valid(old, claim) and (problems := validation.validate(_as_json(resource, claim))):
            return out(Reason.INVALID, "; ".join(str(problem) for problem in problems))
        if ref is not None and workload is None:
            started = _holds(claim, STARTED)
            if not found.problem and started:
                return out(Reason.FINISHED, f"its {ref.kind} {ref.name} was deleted")
            if not started:  # one that was keeps what it has, seen or not
                absent = f"waits for its workload: there is no {ref.kind} {ref.name} (yet)"
                return out(Reason.NO_WORKLOAD, found.problem or absent)
        placed = find(claim)
        if placed.problem:
            return out(Reason.NO_QUEUE, placed.problem)
        return Standing(claim, resource, queue=placed.queue, workload=workload)

    def _remember(self, key: str, standing: Standing) -> None:
        claim = standing.claim
        if (ref := claim.spec.workload_ref) is not None:
            place = ((ref.api_version, ref.kind), f"{claim.metadata.namespace}/{ref.name}")
            self._by_workload.setdefault(place, set()).add(key)
        if standing.workload is not None:
            self._by_uid[standing.workload.metadata.uid] = key
        if standing.reason is Reason.IN_LINE:
            self.lines.setdefault(standing.queue, Line()).put(_job(key, standing))

    def _forget(self, key: str, standing: Standing) -> None:
        claim = standing.claim
        if (ref := claim.spec.workload_ref) is not None:
            place = ((ref.api_version, ref.kind), f"{claim.metadata.namespace}/{ref.name}")
            self._by_workload[place].discard(key)
            if not self._by_workload[place]:
                del self._by_workload[place]
        if standing.workload is not None:
            self._by_uid.pop(standing.workload.metadata.uid, None)
        if standing.reason is Reason.IN_LINE:
            line = self.lines[standing.queue]
            line.drop(key)
            if not len(line):
                del self.lines[standing.queue]


def _job(key: str, standing: Standing) -> Job:
    claim = standing.claim
    spec, status, created = claim.spec, claim.status, claim.metadata.creation_timestamp
    assert created is not None
    allocated = claim.condition("Allocated")
    waits_since = None
    if status.allocated_no < spec.least:
        waits_since = allocated.last_transition_time if allocated is not None else created
    return Job(
        key=key,
        queue=standing.queue,
        priority=spec.priority,
        created=created,
        unit=spec.unit,
        count=spec.resourceno,
        least=spec.least,
        had=status.allocated_no,
        started=standing.is_started,
        waits_since=waits_since,
    )


def _was_valid(old: Standing | None, claim: QueueJob) -> bool:
    """The same spec has been looked at before."""
    if old is None or old.reason is Reason.INVALID:
        return False
    before, now = old.claim.metadata, claim.metadata
    return (before.uid, before.generation) == (now.uid, now.generation)


def _holds(claim: QueueJob, type_: str) -> bool:
    condition = claim.condition(type_)
    return condition is not None and condition.status == "True"


def _as_json(resource: Resource[QueueJob], claim: QueueJob) -> Any:
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": claim.metadata.name},
        "spec": codec.to_json(claim.spec),
    }
