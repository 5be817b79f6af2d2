"""What happened to queues, quotas, claims, Jobs and pods? The API server's own watches, put in the order of revisions.

Small values, not the API's objects: a long sweep has many of them.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from sweep_observer import ENDED, Watch

from octarbiter.api import resources
from octarbiter.api.resources import Amounts
from octarbiter.testing.kubernetes import controlplane

Json = dict[str, Any]

GROUP = "/apis/arbitrator.incubator.k8s.io/v1"
QUEUES, CLAIMS, JOBS = f"{GROUP}/queues", f"{GROUP}/queuejobs", "/apis/batch/v1/jobs"
PODS, QUOTAS = "/api/v1/pods", "/api/v1/resourcequotas"


@dataclass(frozen=True, slots=True)
class Pod:
    requests: Amounts
    is_living: bool
    """Unfinished, and not asked to go."""
    is_unfinished: bool
    is_leaving: bool
    is_marked: bool
    """For eviction. Whoever asks for it may die before the server has come to the deletion itself; then it stays."""
    job: str
    """Name of the Job that it is of; empty: none."""
    is_protected: bool


@dataclass(frozen=True, slots=True)
class Queue:
    spec: Json
    demand: Amounts
    deserved: Amounts
    allocated: Amounts
    used: Amounts
    preempting: Amounts
    conditions: dict[str, Json]


@dataclass(frozen=True, slots=True)
class Quota:
    owner: str
    """UID of the Queue."""
    may_use: Amounts
    """The part that limits requests."""


@dataclass(frozen=True, slots=True)
class Claim:
    queue: str
    unit: Amounts
    asked: int
    least: int
    workload: str
    """Name of its Job; empty: none."""
    has: int
    conditions: dict[str, Json]

    def holds(self, type_: str) -> bool:
        return self.conditions.get(type_, {}).get("status") == "True"


@dataclass(frozen=True, slots=True)
class Job:
    is_suspended: bool
    is_finished: bool


Thing = Pod | Queue | Quota | Claim | Job
T = TypeVar("T", Pod, Queue, Quota, Claim, Job)


@dataclass(frozen=True, slots=True)
class Change(Generic[T]):
    revision: int
    seen_s: float
    """On our clock."""
    namespace: str
    name: str
    uid: str
    now: T
    is_gone: bool

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"


class Observer:
    """One thread for each watch."""

    def __init__(self, control_plane: controlplane.ControlPlane) -> None:
        self._lock = threading.Lock()
        self._changes: list[Change[Any]] = []
        self._now: dict[type[Thing], dict[str, Change[Any]]] = {kind: {} for kind in (Pod, Queue, Quota, Claim, Job)}
        self._changed_s = time.monotonic()
        self.problems: list[str] = []
        """Of the watching itself."""
        self._watches = [
            Watch(control_plane, path, self._taker(read), self.problems.append)
            for path, read in ((PODS, _pod), (QUEUES, _queue), (QUOTAS, _quota), (CLAIMS, _claim), (JOBS, _job))
        ]

    def start(self) -> None:
        for watch in self._watches:
            watch.start()

    def stop(self) -> None:
        for watch in self._watches:
            watch.stop()

    @property
    def quiet_s(self) -> float:
        """For how long nothing has been heard."""
        return time.monotonic() - self._changed_s

    def taken(self) -> list[Change[Any]]:
        """What was heard since the last time, in order. To be called when it is quiet: watches are not in step."""
        with self._lock:
            changes, self._changes = self._changes, []
        return sorted(changes, key=lambda change: change.revision)

    def there(self, kind: type[T], namespace: str = "") -> list[Change[T]]:
        """What is there now."""
        with self._lock:
            return [each for each in self._now[kind].values() if namespace in ("", each.namespace)]

    def _taker(self, read: Callable[[Json], Thing]) -> Callable[[str, int, Json], None]:
        def take(kind: str, revision: int, item: Json) -> None:
            meta, thing = item["metadata"], read(item)
            is_gone = kind == "DELETED"
            where = meta["namespace"], meta["name"], meta["uid"]
            change: Change[Any] = Change(revision, time.monotonic(), *where, thing, is_gone)
            with self._lock:
                known = self._now[type(thing)]
                before = known.get(change.uid)
                if is_gone:
                    known.pop(change.uid, None)
                else:
                    known[change.uid] = change
                if before is None or is_gone or before.now != thing:
                    self._changes.append(change)
                    self._changed_s = change.seen_s

        return take


# --- reading


def _pod(item: Json) -> Pod:
    spec, status = item["spec"], item.get("status", {})
    conditions = {each["type"]: each for each in status.get("conditions", ())}
    leaves, ended = "deletionTimestamp" in item["metadata"], status.get("phase") in ENDED
    owners = item["metadata"].get("ownerReferences") or [{}]
    return Pod(
        requests=_amounts(spec["containers"][0]["resources"]["requests"]),
        is_living=not (leaves or ended),
        is_unfinished=not ended,
        is_leaving=leaves,
        is_marked=conditions.get("DisruptionTarget", {}).get("reason") == "EvictionByEvictionAPI",
        job=owners[0].get("name", ""),
        is_protected=spec.get("priorityClassName", "").startswith("system-"),
    )


def _queue(item: Json) -> Queue:
    status = item.get("status", {})
    figures = {
        figure: _amounts(status.get(figure, {}).get("resources", {}))
        for figure in ("demand", "deserved", "allocated", "used", "preempting")
    }
    return Queue(spec=item["spec"], conditions=_conditions(status), **figures)


def _quota(item: Json) -> Quota:
    owners = [each["uid"] for each in item["metadata"].get("ownerReferences", ()) if each["kind"] == "Queue"]
    hard = item["spec"].get("hard", {})
    may_use = {key.removeprefix("requests."): value for key, value in hard.items() if key.startswith("requests.")}
    return Quota(owners[0] if owners else "", _amounts(may_use))


def _claim(item: Json) -> Claim:
    spec, status = item["spec"], item.get("status", {})
    return Claim(
        queue=spec["queue"],
        unit=_amounts(spec["resourceunit"]["resources"]),
        asked=spec["resourceno"],
        least=spec.get("minResourceno") or 1,
        workload=spec.get("workloadRef", {}).get("name", ""),
        has=status.get("allocatedNo", 0),
        conditions=_conditions(status),
    )


def _job(item: Json) -> Job:
    ended = {each["type"] for each in item.get("status", {}).get("conditions", ()) if each["status"] == "True"}
    return Job(item["spec"].get("suspend", False), bool(ended & {"Complete", "Failed"}))


def _conditions(status: Json) -> dict[str, Json]:
    return {each["type"]: each for each in status.get("conditions", ())}


def _amounts(quantities: Json) -> Amounts:
    return resources.offered(quantities)


def used(pods: Iterable[Pod]) -> Amounts:
    return resources.plus(*(pod.requests for pod in pods))
