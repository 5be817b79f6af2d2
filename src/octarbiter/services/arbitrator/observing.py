"""What does the core get to see? The caches, as values of arbitration."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime

import msgspec

from octarbiter.api import arbitrator
from octarbiter.api.core_kinds import Namespace, Node, PriorityClass, ResourceQuota
from octarbiter.api.meta import ObjectMeta
from octarbiter.api.queue import Queue
from octarbiter.api.taskset import TaskSet
from octarbiter.api.workpod import WorkPod
from octarbiter.core.arbitration.state import Phase, Pod
from octarbiter.core.lifecycle import names
from octarbiter.runtime.cache import Cache
from octarbiter.services.arbitrator.books import Entry, PodBook
from octarbiter.services.arbitrator.claims import Claims

GROUP_NAME = "scheduling.k8s.io/group-name"
KUBE_SYSTEM = "kube-system"
SYSTEM_CLASSES = "system-"
BY_NAMESPACE = "namespace"


class Caches(msgspec.Struct, frozen=True):
    queues: Cache[Queue]
    namespaces: Cache[Namespace]
    nodes: Cache[Node]
    pods: Cache[WorkPod]
    quotas: Cache[ResourceQuota]
    tasksets: Cache[TaskSet]
    priorities: Cache[PriorityClass]


class Pods(Mapping[str, Iterable[Pod]]):
    """By queue. Made when somebody looks: only those are looked at who have to give back."""

    def __init__(
        self,
        book: PodBook,
        claims: Claims,
        namespaces: Mapping[str, Iterable[str]],
        leaving: set[str],
        blocked: set[str],
    ) -> None:
        """`namespaces`: by queue. `leaving`, `blocked`: UIDs of pods that were asked to go, or may not be asked now."""
        self._book, self._claims, self._namespaces = book, claims, namespaces
        self._leaving, self._blocked = leaving, blocked

    def __getitem__(self, queue: str) -> list[Pod]:
        return [
            self._pod(queue, key, entry)
            for namespace in self._namespaces[queue]
            for key, entry in self._book.entries(namespace).items()
        ]

    def __iter__(self) -> Iterator[str]:
        return iter(self._namespaces)

    def __len__(self) -> int:
        return len(self._namespaces)

    def _pod(self, queue: str, key: str, entry: Entry) -> Pod:
        pod, meta = entry.pod, entry.pod.metadata
        created = meta.creation_timestamp
        assert created is not None
        if pod.is_terminating or meta.uid in self._leaving:
            phase = Phase.TERMINATING
        else:
            phase = Phase.PENDING if pod.status.phase == "Pending" else Phase.RUNNING
        return Pod(
            key=key,
            uid=meta.uid,
            queue=queue,
            requests=entry.requests,
            phase=phase,
            priority=pod.spec.priority or 0,
            rank=_rank(meta.labels.get(arbitrator.RANK, "")),
            created=created,
            node=pod.spec.node_name,
            gang=gang_of(meta),
            job=self._claims.job_of_workload(workload_uid(meta)),
            is_protected=meta.namespace == KUBE_SYSTEM or pod.spec.priority_class_name.startswith(SYSTEM_CLASSES),
            is_blocked=meta.uid in self._blocked,
        )


def workload_uid(meta: ObjectMeta) -> str:
    """Of the TaskSet or the Job that a pod is of."""
    owner = meta.controller
    return meta.labels.get(names.UID_LABEL, owner.uid if owner is not None else "")


def gang_of(meta: ObjectMeta) -> str:
    """By its group, or by the TaskSet that it belongs to."""
    group = meta.annotations.get(GROUP_NAME) or meta.labels.get(names.TASKSET_LABEL, "")
    return f"{meta.namespace}/{group}" if group else ""


class Gangs(Mapping[str, int]):
    """The least members of each gang. A TaskSet that says nothing of a minimum is none."""

    def __init__(self, tasksets: Cache[TaskSet]) -> None:
        self._tasksets = tasksets

    def __getitem__(self, key: str) -> int:
        taskset = self._tasksets.get(key)
        if taskset is None or taskset.spec.min_available is None:
            raise KeyError(key)
        return taskset.spec.min_available

    def __iter__(self) -> Iterator[str]:
        return (each.metadata.key for each in self._tasksets if each.spec.min_available is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _rank(text: str) -> int:
    """Nothing and nonsense are 0."""
    try:
        return int(text) if len(text) <= 12 else 0
    except ValueError:
        return 0


def second(now: datetime) -> datetime:
    """As precise as times in statuses are."""
    return now.replace(microsecond=0)
