"""What happens to one replica next? Looks at its pods and nothing else of the TaskSet than the `Situation`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum

import msgspec

from octarbiter.api import taskset as api
from octarbiter.api.pod import Pod
from octarbiter.core.lifecycle import actions, completion, names, observe, retries
from octarbiter.core.lifecycle.observe import Bucket
from octarbiter.core.lifecycle.phases import ReplicaPhase, moved_replica

REJECTED_DELAY_S = 5
"""A kubelet that refused a pod would refuse the next one as well if it came at once."""


class Stop(StrEnum):
    NONE = ""
    VERDICT = "verdict"
    """For good: the role or the TaskSet has its verdict."""
    SUSPEND = "suspend"


class Situation(msgspec.Struct, frozen=True):
    role: api.Role
    main_container: str
    stop: Stop
    hold: str
    """Why no new pod may be made now; empty: it may."""
    ready_nodes: Mapping[str, bool]
    refusals: Mapping[tuple[str, int], observe.Refusal]
    now: datetime


class Followed(msgspec.Struct, frozen=True):
    replica: api.ReplicaStatus
    actions: tuple[actions.Action, ...] = ()
    again_at: datetime | None = None
    preempted: int = 0


_BY_BUCKET = {
    Bucket.UNSCHEDULED: ReplicaPhase.PREPARING,
    Bucket.ASSIGNED: ReplicaPhase.ASSIGNED,
    Bucket.RUNNING: ReplicaPhase.RUNNING,
}


def fresh(role: str, index: int, now: datetime, attempt: int = 0) -> api.ReplicaStatus:
    return api.ReplicaStatus(
        index=index,
        name=names.hostname(role, index),
        phase=ReplicaPhase.PENDING,
        transition_time=now,
        attempt=attempt,
    )


def follow(replica: api.ReplicaStatus, pods: Sequence[Pod], sit: Situation) -> Followed:
    """`pods`: all of this index in this attempt of the TaskSet."""
    if replica.outcome:
        # One that was on its way when the verdict fell.
        return Followed(replica, tuple(_delete(p) for p in pods if _may_be_told_to_go(p)))
    current, others = _sorted(replica, pods)
    cleaning = tuple(_delete(p) for p in others if p.metadata.deletion_timestamp is None)
    followed = _without_pod(replica, others, sit) if current is None else _with_pod(replica, current, others, sit)
    if cleaning:
        followed = msgspec.structs.replace(followed, actions=cleaning + followed.actions)
    return followed


def _sorted(replica: api.ReplicaStatus, pods: Sequence[Pod]) -> tuple[Pod | None, list[Pod]]:
    current, others = None, []
    for pod in pods:
        attempts = names.attempts_of_pod(pod.metadata.name)
        if attempts is not None and attempts[1] == replica.attempt:
            current = pod
        else:
            others.append(pod)
    return current, others


def _may_be_told_to_go(pod: Pod) -> bool:
    return observe.bucket(pod) in observe.ALIVE and pod.metadata.deletion_timestamp is None


def _delete(pod: Pod) -> actions.DeletePod:
    return actions.DeletePod(pod.metadata.name, pod.metadata.uid)


# --- no pod of the current attempt is seen


def _without_pod(replica: api.ReplicaStatus, others: Sequence[Pod], sit: Situation) -> Followed:
    if replica.phase == ReplicaPhase.RETRY_PENDING:
        return _retry_pending(replica, others, sit)
    if replica.pod_uid:
        if sit.stop is Stop.VERDICT:
            return Followed(_finish(replica, completion.STOPPED, "stopped", sit.now))
        if replica.stopped:
            return _without_pod(_next_attempt(replica, "suspended", sit.now), others, sit)
        # Its end was announced (an eviction says why), or it vanished between two looks.
        reason = replica.pod_reason if replica.phase == ReplicaPhase.DELETION_REQUESTED else "Deleted"
        lost = _lost(replica, reason, f"pod {replica.pod_name} was lost: {reason}", sit.now)
        followed = _without_pod(lost, others, sit)
        return msgspec.structs.replace(followed, preempted=1 if reason in observe.PREEMPTION_REASONS else 0)
    if sit.stop is Stop.VERDICT:
        return Followed(_finish(replica, completion.STOPPED, "stopped before it had a pod", sit.now))
    if sit.stop is Stop.SUSPEND:
        return Followed(_moved(replica, ReplicaPhase.PENDING, "suspended", sit.now))
    if sit.hold:
        return Followed(_moved(replica, ReplicaPhase.PENDING, sit.hold, sit.now))
    alive = next((pod for pod in others if observe.bucket(pod) in observe.ALIVE), None)
    if alive is not None:
        return Followed(_moved(replica, ReplicaPhase.PENDING, _departure(alive, sit), sit.now))
    refusal = sit.refusals.get((sit.role.name, replica.index))
    if refusal is not None and sit.now < refusal.again_at:
        refused = _moved(replica, ReplicaPhase.PENDING, observe.short(refusal.message), sit.now)
        return Followed(refused, (), refusal.again_at)
    create = actions.CreatePod(sit.role.name, replica.index, replica.attempt)
    return Followed(_moved(replica, ReplicaPhase.CREATION_REQUESTED, "", sit.now), (create,))


def _retry_pending(replica: api.ReplicaStatus, others: Sequence[Pod], sit: Situation) -> Followed:
    if sit.stop is Stop.VERDICT:
        return Followed(_finish(replica, completion.STOPPED, "stopped before its retry", sit.now))
    if sit.stop is Stop.SUSPEND:
        return Followed(replica)
    if replica.retry_at is not None and sit.now < replica.retry_at:
        return Followed(replica, (), replica.retry_at)
    charge = 1 if replica.retry_charged else 0
    counted = msgspec.structs.replace(replica, total_retried_count=replica.total_retried_count + charge)
    return _without_pod(_next_attempt(counted, replica.phase_message, sit.now), others, sit)


# --- its pod is there


def _with_pod(replica: api.ReplicaStatus, pod: Pod, others: Sequence[Pod], sit: Situation) -> Followed:
    if replica.phase == ReplicaPhase.RETRY_PENDING:
        return _after(_retry_pending(replica, [*others, pod], sit), pod, replica)
    kind = observe.bucket(pod)
    replica = _with_facts(replica, pod, sit)
    if kind in observe.ALIVE:
        return _alive(replica, pod, kind, sit)
    return _ended(replica, pod, kind, others, sit)


def _with_facts(replica: api.ReplicaStatus, pod: Pod, sit: Situation) -> api.ReplicaStatus:
    main = observe.container(pod, sit.main_container)
    facts = (
        pod.metadata.name,
        pod.metadata.uid,
        pod.status.pod_ip,
        pod.status.host_ip,
        main.container_id if main else "",
    )
    known = (replica.pod_name, replica.pod_uid, replica.pod_ip, replica.pod_host_ip, replica.container_id)
    started = replica.start_at or observe.started_at(pod)
    if facts == known and started == replica.start_at:
        return replica
    return msgspec.structs.replace(
        replica,
        pod_name=facts[0],
        pod_uid=facts[1],
        pod_ip=facts[2],
        pod_host_ip=facts[3],
        container_id=facts[4],
        container_name=sit.main_container,
        start_at=started,
    )


def _alive(replica: api.ReplicaStatus, pod: Pod, kind: Bucket, sit: Situation) -> Followed:
    if kind is Bucket.LEAVING:
        leaving = _moved(replica, ReplicaPhase.DELETION_REQUESTED, _departure(pod, sit), sit.now)
        if not replica.stopped:
            leaving = msgspec.structs.replace(leaving, pod_reason=observe.taken_reason(pod) or "Deleted")
        return Followed(leaving)
    # Once recorded as stopped it is stopped, even if the suspension has ended meanwhile.
    if sit.stop is not Stop.NONE or replica.stopped:
        marked = msgspec.structs.replace(replica, stopped=True)
        return Followed(_moved(marked, ReplicaPhase.DELETION_PENDING, "is being stopped", sit.now), (_delete(pod),))
    if kind is Bucket.UNKNOWN:
        told = f"node {pod.spec.node_name} does not answer for pod {pod.metadata.name}: waits"
        return Followed(msgspec.structs.replace(replica, phase_message=told))
    phase = _BY_BUCKET[kind]
    message = "" if kind is Bucket.RUNNING else observe.why_not_running(pod)
    if _order(replica.phase) > _order(phase):
        # A later phase was seen already (the status may be newer than this view): phases do not run backwards.
        return Followed(replica)
    return Followed(_moved(replica, phase, message, sit.now))


def _departure(pod: Pod, sit: Situation) -> str:
    """What is waited for while a pod is to go."""
    name, node = pod.metadata.name, pod.spec.node_name
    if not node or sit.ready_nodes.get(node, False):
        return f"waits until pod {name} has stopped"
    state = "not Ready" if node in sit.ready_nodes else "gone"
    message = f"waits until pod {name} has stopped on node {node}, which is {state}"
    due = observe.force_due(pod, sit.role.deletion_timeout_seconds, sit.ready_nodes)
    return message if due is None else f"{message}; it is removed by force at {due:%H:%M:%SZ}"


def _ended(replica: api.ReplicaStatus, pod: Pod, kind: Bucket, others: Sequence[Pod], sit: Situation) -> Followed:
    ended = msgspec.structs.replace(
        _moved(replica, ReplicaPhase.ATTEMPT_COMPLETED, "", sit.now),
        finish_at=observe.ended_at(pod) or sit.now,
        # What was announced need not have been what ended it.
        pod_reason=replica.pod_reason if replica.lost_count else "",
        terminated_info=observe.terminated_info(pod, sit.main_container),
    )
    by_itself = observe.ended_before_deletion(pod)
    if kind is Bucket.SUCCEEDED and (by_itself or not replica.stopped):
        return Followed(_finish(ended, completion.SUCCEEDED, "", sit.now))
    if sit.stop is Stop.VERDICT:
        return Followed(_finish(ended, completion.STOPPED, "stopped", sit.now))
    if replica.stopped and not by_itself:
        return _after(_without_pod(_next_attempt(ended, "suspended", sit.now), [*others, pod], sit), pod, replica)
    taken = observe.taken_reason(pod)
    preempted = 1 if taken in observe.PREEMPTION_REASONS else 0
    if kind is Bucket.LOST:
        if not taken or retries.matching_rule(sit.role, pod) is None:
            return _after(_lost_pod(ended, pod, others, sit), pod, replica)
        # A loss that the user's rules speak of is theirs to judge, and is counted all the same.
        ended = msgspec.structs.replace(ended, lost_count=ended.lost_count + 1, pod_reason=taken)
    answer = retries.after_failure(sit.role, replica.total_retried_count, pod)
    if answer.next is retries.Next.FINAL:
        return Followed(_finish(ended, completion.FAILED, answer.because, sit.now), preempted=preempted)
    due = (ended.finish_at or sit.now) + timedelta(seconds=sit.role.retry_policy.delay)
    pending = msgspec.structs.replace(
        _moved(ended, ReplicaPhase.RETRY_PENDING, answer.because, sit.now),
        retry_at=due,
        retry_charged=answer.next is retries.Next.CHARGED,
    )
    followed = _after(_retry_pending(pending, [*others, pod], sit), pod, pending)
    return msgspec.structs.replace(followed, preempted=preempted)


def _lost_pod(ended: api.ReplicaStatus, pod: Pod, others: Sequence[Pod], sit: Situation) -> Followed:
    reason = observe.taken_reason(pod) or "Deleted"
    message = f"pod {pod.metadata.name} was lost: {reason} {pod.status.message}".strip()
    if observe.was_rejected(pod):
        pending = msgspec.structs.replace(
            _moved(ended, ReplicaPhase.RETRY_PENDING, observe.short(message), sit.now),
            lost_count=ended.lost_count + 1,
            pod_reason=reason,
            retry_at=(ended.finish_at or sit.now) + timedelta(seconds=REJECTED_DELAY_S),
        )
        return _retry_pending(pending, [*others, pod], sit)
    followed = _without_pod(_lost(ended, reason, message, sit.now), [*others, pod], sit)
    return msgspec.structs.replace(followed, preempted=1 if reason in observe.PREEMPTION_REASONS else 0)


def _after(followed: Followed, pod: Pod, before: api.ReplicaStatus) -> Followed:
    """When the next attempt begins, the ended pod of this one goes."""
    if followed.replica.attempt == before.attempt or pod.metadata.deletion_timestamp is not None:
        return followed
    return msgspec.structs.replace(followed, actions=(_delete(pod), *followed.actions))


# --- moves


def _lost(replica: api.ReplicaStatus, reason: str, message: str, now: datetime) -> api.ReplicaStatus:
    counted = msgspec.structs.replace(replica, lost_count=replica.lost_count + 1, pod_reason=reason)
    return _next_attempt(counted, observe.short(message), now)


def _next_attempt(replica: api.ReplicaStatus, message: str, now: datetime) -> api.ReplicaStatus:
    over = replica
    if over.phase not in (ReplicaPhase.ATTEMPT_COMPLETED, ReplicaPhase.RETRY_PENDING):
        over = _moved(over, ReplicaPhase.ATTEMPT_COMPLETED, message, now)
    again = _moved(over, ReplicaPhase.PENDING, message, now)
    return msgspec.structs.replace(
        again,
        attempt=replica.attempt + 1,
        stopped=False,
        pod_name="",
        pod_uid="",
        pod_ip="",
        pod_host_ip="",
        container_id="",
        start_at=None,
        finish_at=None,
        retry_at=None,
        retry_charged=False,
    )


def _finish(replica: api.ReplicaStatus, outcome: str, message: str, now: datetime) -> api.ReplicaStatus:
    over = replica
    if over.phase not in (ReplicaPhase.ATTEMPT_COMPLETED, ReplicaPhase.RETRY_PENDING):
        over = _moved(over, ReplicaPhase.ATTEMPT_COMPLETED, message, now)
    return msgspec.structs.replace(
        _moved(over, ReplicaPhase.COMPLETED, message, now),
        outcome=outcome,
        stopped=outcome == completion.STOPPED,
        finish_at=replica.finish_at or now,
        retry_at=None,
        retry_charged=False,
    )


def _moved(replica: api.ReplicaStatus, phase: ReplicaPhase, message: str, now: datetime) -> api.ReplicaStatus:
    if replica.phase == phase:
        if replica.phase_message == message:
            return replica
        return msgspec.structs.replace(replica, phase_message=message)
    return msgspec.structs.replace(
        replica, phase=moved_replica(replica.phase, phase), phase_message=message, transition_time=now
    )


_ORDER = {phase: number for number, phase in enumerate(ReplicaPhase)}


def _order(phase: str) -> int:
    return _ORDER[ReplicaPhase(phase)]
