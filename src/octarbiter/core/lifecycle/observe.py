"""What does a pod tell? Sorts each pod into one bucket by an ordered list of rules, and reads its end."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

import msgspec

from octarbiter.api import taskset as api
from octarbiter.api.core_kinds import ConfigMap, Service
from octarbiter.api.pod import ContainerStatus, Pod, Terminated

DEFAULT_CONTAINER = "kubectl.kubernetes.io/default-container"
MESSAGE_BYTES = 256
"""Texts of replicas are cut to this, so that a status stays small whatever they print."""
VERDICT_BYTES = 4096
"""The words of a verdict may be longer: there is one, and it is what people come to read."""

# The words the kubelet, the scheduler and the controllers of Kubernetes use for a pod that was taken, not failed.
_TAKEN_REASONS = frozenset({"Evicted", "Preempting", "Preempted", "NodeLost", "NodeShutdown", "Shutdown", "Terminated"})
PREEMPTION_REASONS = frozenset({"Preempting", "Preempted", "PreemptionByScheduler"})
# The kubelet refused the pod before any container ran: a placing mistake, not the program's.
_REJECTED_PREFIXES = ("OutOf", "Outof")
_REJECTED_REASONS = frozenset({"UnexpectedAdmissionError", "NodeAffinity", "TopologyAffinityError", "InvalidNodeInfo"})


class Bucket(StrEnum):
    UNSCHEDULED = "unscheduled"
    ASSIGNED = "assigned"
    RUNNING = "running"
    UNKNOWN = "unknown"
    LEAVING = "leaving"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    LOST = "lost"


ALIVE = frozenset({Bucket.UNSCHEDULED, Bucket.ASSIGNED, Bucket.RUNNING, Bucket.UNKNOWN, Bucket.LEAVING})


class Refusal(msgspec.Struct, frozen=True):
    """Why the API server would not take an object, and when to try again."""

    kind: str
    """quota | denied | invalid | foreign | busy"""
    message: str
    again_at: datetime


class Seen(msgspec.Struct, frozen=True):
    """What the world shows of one TaskSet (found by its UID)."""

    pods: tuple[Pod, ...] = ()
    control_units: tuple[ConfigMap, ...] = ()
    service: Service | None = None
    ready_nodes: Mapping[str, bool] = {}
    """Node name -> is it Ready; a node that is not in here is gone."""
    refusals: Mapping[tuple[str, int], Refusal] = {}
    """(role, index) -> refusal; ("", 0) the control unit's, ("", 1) the Service's."""


CONTROL_UNIT = ("", 0)
SERVICE = ("", 1)


def bucket(pod: Pod) -> Bucket:
    phase = pod.status.phase
    # 1. Exit 0 is success, whoever deleted the pod meanwhile.
    if phase == "Succeeded":
        return Bucket.SUCCEEDED
    if phase == "Failed":
        # 2. Taken from us: by preemption, eviction, a lost node, or a kubelet that would not have it.
        if taken_reason(pod):
            return Bucket.LOST
        # 3. Killed because somebody deleted it; a pod that had failed before that has failed.
        if pod.metadata.deletion_timestamp is not None and not ended_before_deletion(pod):
            return Bucket.LOST
        return Bucket.FAILED
    # 4. Somebody (or we) asked for its end and it is not over yet.
    if pod.metadata.deletion_timestamp is not None:
        return Bucket.LEAVING
    if phase == "Running":
        return Bucket.RUNNING
    # 5. The node does not answer: wait, the pod may be alive.
    if phase == "Unknown":
        return Bucket.UNKNOWN
    return Bucket.ASSIGNED if pod.spec.node_name else Bucket.UNSCHEDULED


def taken_reason(pod: Pod) -> str:
    """Why a pod was taken from us; empty if it was not."""
    target = pod.condition("DisruptionTarget")
    if target is not None and target.status == "True":
        return target.reason or "DisruptionTarget"
    reason = pod.status.reason
    if reason in _TAKEN_REASONS:
        return reason
    if was_rejected(pod):
        return reason
    return ""


def was_rejected(pod: Pod) -> bool:
    """The kubelet refused it; a replacement at once would be refused again, so the caller waits a little."""
    reason = pod.status.reason
    return reason in _REJECTED_REASONS or reason.startswith(_REJECTED_PREFIXES)


def deletion_requested_at(pod: Pod) -> datetime | None:
    """deletionTimestamp lies in the future by the grace period: this is when somebody asked."""
    at = pod.metadata.deletion_timestamp
    return None if at is None else at - timedelta(seconds=pod.metadata.deletion_grace_period_seconds or 0)


def ended_before_deletion(pod: Pod) -> bool:
    """Did it end by itself? Times have whole seconds; in the same second the deletion is taken as the cause, and so it
    is where no container tells when it ended: those of a pod that was deleted before it ran have no such time."""
    requested, ends = deletion_requested_at(pod), _container_ends(pod)
    return requested is None or (bool(ends) and max(ends) < requested)


def force_due(pod: Pod, timeout_s: int | None, ready_nodes: Mapping[str, bool]) -> datetime | None:
    """When a pod that is to go, on a node that does not answer, is removed by force; None: never."""
    asked, node = pod.metadata.deletion_timestamp, pod.spec.node_name
    if asked is None or timeout_s is None or not node or ready_nodes.get(node, False):
        return None
    return asked + timedelta(seconds=timeout_s)


def _container_ends(pod: Pod) -> list[datetime]:
    return [t.finished_at for t in _terminations(pod) if t.finished_at is not None]


def ended_at(pod: Pod) -> datetime | None:
    ends = _container_ends(pod)
    if ends:
        return max(ends)
    # No container ever ran (evicted before start, refused by the kubelet): the best the server knows.
    times = [c.last_transition_time for c in pod.status.conditions if c.last_transition_time is not None]
    return max(times) if times else pod.status.start_time or pod.metadata.creation_timestamp


def started_at(pod: Pod) -> datetime | None:
    starts = [
        moment
        for status in pod.status.container_statuses
        for moment in (
            status.state.running.started_at if status.state.running else None,
            status.state.terminated.started_at if status.state.terminated else None,
        )
        if moment is not None
    ]
    return min(starts) if starts else None


def _terminations(pod: Pod) -> list[Terminated]:
    statuses = [*pod.status.container_statuses, *pod.status.init_container_statuses]
    return [s.state.terminated for s in statuses if s.state.terminated is not None]


def main_container(template: dict[str, Any]) -> str:
    """The one the user named, else the first in the spec (not in the status, whose order is another)."""
    named = ((template.get("metadata") or {}).get("annotations") or {}).get(DEFAULT_CONTAINER, "")
    names = [c.get("name", "") for c in (template.get("spec") or {}).get("containers") or []]
    return named if named in names else (names[0] if names else "")


def container(pod: Pod, name: str) -> ContainerStatus | None:
    return next((s for s in pod.status.container_statuses if s.name == name), None)


def terminated_info(pod: Pod, main: str) -> api.TerminatedInfo | None:
    """The main container's exit; where another container is to blame, it is named."""
    status = container(pod, main)
    end = status.state.terminated if status else None
    culprit = None
    if pod.status.phase == "Failed" and (end is None or end.exit_code == 0):
        everyone = [*pod.status.init_container_statuses, *pod.status.container_statuses]
        culprit = next((s for s in everyone if s.state.terminated and s.state.terminated.exit_code != 0), None)
    if culprit is not None and culprit.state.terminated is not None:
        end = culprit.state.terminated
        return api.TerminatedInfo(
            exit_code=end.exit_code,
            exit_message=short(f"container {culprit.name}: {end.message or end.reason}"),
            signal=end.signal,
            reason=end.reason,
        )
    if end is None:
        if not pod.status.reason:
            return None
        return api.TerminatedInfo(exit_message=short(pod.status.message), reason=pod.status.reason)
    return api.TerminatedInfo(
        exit_code=end.exit_code,
        exit_message=short(end.message or pod.status.message),
        signal=end.signal,
        reason=pod.status.reason or end.reason,
    )


def short(text: str, limit: int = MESSAGE_BYTES) -> str:
    """One line of at most `limit` bytes, without control characters (JSON would write each as six bytes)."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    data = line.encode()
    return line if len(data) <= limit else data[: limit - 3].decode(errors="ignore") + "..."


def why_not_running(pod: Pod) -> str:
    """What a pod that is not running yet waits for, in Kubernetes' own words."""
    if not pod.spec.node_name:
        scheduled = pod.condition("PodScheduled")
        if scheduled is not None and scheduled.status == "False":
            return short(scheduled.message or scheduled.reason)
        return f"no word yet from scheduler {pod.spec.scheduler_name or 'default-scheduler'}"
    for status in (*pod.status.init_container_statuses, *pod.status.container_statuses):
        waiting = status.state.waiting
        if waiting is not None and waiting.reason not in ("", "ContainerCreating", "PodInitializing"):
            return short(f"container {status.name}: {waiting.reason}: {waiting.message}".rstrip(": "))
    return f"containers are being started on node {pod.spec.node_name}"
