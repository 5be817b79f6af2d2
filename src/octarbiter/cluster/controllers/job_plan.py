"""What should happen to a Job next? Values in, values out.

Not known here: podFailurePolicy, successPolicy, podReplacementPolicy and limits per index. A Job that has them runs as
if it had not.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

import msgspec
from msgspec import Struct

from octarbiter.api.meta import Condition, Json
from octarbiter.cluster.controllers import job_counting, job_indexes, job_pods
from octarbiter.cluster.controllers.job_counting import Counts
from octarbiter.cluster.controllers.kinds import Job, JobStatus, Pod

FIRST_BACKOFF_S = 10
LONGEST_BACKOFF_S = 600
CREATED_AT_ONCE = 500


class Told(Struct, frozen=True):
    type: str
    reason: str
    message: str


class Plan(Struct, frozen=True):
    """Record the status, then do the rest in any order."""

    status: JobStatus
    release: tuple[Pod, ...] = ()
    """Remove the tracking finalizer."""
    create: tuple[int | None, ...] = ()
    """One pod each; the number is its index."""
    delete: tuple[Pod, ...] = ()
    """They count as failed."""
    dismiss: tuple[Pod, ...] = ()
    """Delete, but do not count: they did nothing wrong. The finalizer goes first."""
    delete_job: bool = False
    look_again_at: datetime | None = None
    told: tuple[Told, ...] = ()


def plan(job: Job, pods: Sequence[Pod], now: datetime) -> Plan:
    """`pods` are those the Job controls, not older than its status."""
    now = now.replace(microsecond=0)  # as the server keeps times: a status that was written compares equal
    if (finished := _true(job.status, "Complete") or _true(job.status, "Failed")) is not None:
        return _after(job, finished, pods, now)
    spec = job.spec
    is_indexed = spec.completion_mode == "Indexed"
    counts = job_counting.count(job.status, pods, (spec.completions or 0) if is_indexed else None)
    active = [pod for pod in pods if job_pods.is_active(pod)]
    verdict = _true(job.status, "SuccessCriteriaMet") or _true(job.status, "FailureTarget")
    verdict = verdict or _verdict(job, counts, active, now)
    if verdict is not None:
        return _end(job, counts, pods, active, verdict, now)
    if spec.suspend:
        return _suspended(job, counts, pods, active, now)
    return _going(job, counts, pods, active, now)


def _after(job: Job, finished: Condition, pods: Sequence[Pod], now: datetime) -> Plan:
    """It has ended: pods that turn up late are let go, and the Job itself after a while, if it says so."""
    late = tuple(pod for pod in pods if job_pods.is_tracked(pod))
    ttl = job.spec.ttl_seconds_after_finished
    if ttl is None or finished.last_transition_time is None or job.metadata.deletion_timestamp is not None:
        return Plan(job.status, release=late)
    expires = finished.last_transition_time + timedelta(seconds=ttl)
    if expires <= now:
        return Plan(job.status, release=late, delete_job=True)
    return Plan(job.status, release=late, look_again_at=expires)


# --- verdicts


def _verdict(job: Job, counts: Counts, active: Sequence[Pod], now: datetime) -> Condition | None:
    spec = job.spec
    limit = spec.backoff_limit if spec.backoff_limit is not None else 6
    if counts.total_failed > limit or _restarted_too_often(job, active, limit):
        return _condition("FailureTarget", "BackoffLimitExceeded", "Job has reached the specified backoff limit", now)
    if (deadline := _deadline(job)) is not None and deadline <= now:
        return _condition("FailureTarget", "DeadlineExceeded", "Job was active longer than specified deadline", now)
    wanted = spec.completions
    succeeded = counts.total_succeeded
    if succeeded >= wanted if wanted is not None else succeeded > 0 and not active:
        return _condition("SuccessCriteriaMet", "CompletionsReached", "Reached expected number of succeeded pods", now)
    return None


def _restarted_too_often(job: Job, active: Sequence[Pod], limit: int) -> bool:
    if (job.spec.template.get("spec") or {}).get("restartPolicy") != "OnFailure":
        return False
    return sum(map(job_pods.restarts, active)) >= max(1, limit)


def _deadline(job: Job) -> datetime | None:
    seconds, since = job.spec.active_deadline_seconds, job.status.start_time
    if seconds is None or since is None or job.spec.suspend:
        return None
    return since + timedelta(seconds=seconds)


def _end(
    job: Job, counts: Counts, pods: Sequence[Pod], active: Sequence[Pod], verdict: Condition, now: datetime
) -> Plan:
    """The verdict first; that it has ended only when nothing runs any more and everybody is counted."""
    conditions = _with(job.status.conditions, verdict)
    has_succeeded = verdict.type == "SuccessCriteriaMet"
    told: tuple[Told, ...] = ()
    terminating = sum(map(job_pods.is_terminating, pods))
    completion_time = None
    if counts.is_complete and not active and not terminating:
        end = _condition("Complete" if has_succeeded else "Failed", verdict.reason, verdict.message, now)
        conditions = _with(conditions, end)
        completion_time = now if has_succeeded else None
        told = (
            Told("Normal", "Completed", "Job completed")
            if has_succeeded
            else Told("Warning", verdict.reason, verdict.message),
        )
    status = _status(job, counts, pods, active, conditions, job.status.start_time or now)
    status = msgspec.structs.replace(status, completion_time=completion_time)
    return Plan(status, release=counts.release, delete=tuple(active), told=told)


# --- on its way


def _suspended(job: Job, counts: Counts, pods: Sequence[Pod], active: Sequence[Pod], now: datetime) -> Plan:
    old = _known(job.status, "Suspended")
    conditions = job.status.conditions
    told: tuple[Told, ...] = ()
    if old is None or old.status != "True":
        conditions = _with(conditions, _condition("Suspended", "JobSuspended", "Job suspended", now))
        told = (Told("Normal", "Suspended", "Job suspended"),)
    # The time that is allowed is the time it runs: it begins anew.
    status = _status(job, counts, pods, (), conditions, None)
    return Plan(status, release=counts.release, dismiss=tuple(active), told=told)


def _going(job: Job, counts: Counts, pods: Sequence[Pod], active: Sequence[Pod], now: datetime) -> Plan:
    old = _known(job.status, "Suspended")
    conditions = job.status.conditions
    told: tuple[Told, ...] = ()
    if old is not None and old.status == "True":
        resumed = _condition("Suspended", "JobResumed", "Job resumed", now, status="False")
        conditions, told = _with(conditions, resumed), (Told("Normal", "Resumed", "Job resumed"),)
    look_at = _deadline(msgspec.structs.replace(job, status=_started(job.status, now)))
    missing, surplus = _difference(job, counts, active)
    create: tuple[int | None, ...] = ()
    if missing and job.metadata.deletion_timestamp is None:
        again_at = _backoff_until(pods)
        if again_at is None or again_at <= now:
            create = tuple(missing[:CREATED_AT_ONCE])
        else:
            look_at = min(look_at or again_at, again_at)
    staying = [pod for pod in active if pod not in surplus] if surplus else active
    status = _status(job, counts, pods, staying, conditions, job.status.start_time or now)
    status = msgspec.structs.replace(status, active=status.active + len(create))
    return Plan(
        status,
        release=counts.release,
        create=create,
        dismiss=tuple(surplus),
        look_again_at=now if len(missing) > CREATED_AT_ONCE and create else look_at,
        told=told,
    )


def _difference(job: Job, counts: Counts, active: Sequence[Pod]) -> tuple[list[int | None], list[Pod]]:
    """Which pods are missing, and which are too many?"""
    spec = job.spec
    parallelism = spec.parallelism if spec.parallelism is not None else 1
    done = counts.total_succeeded
    if spec.completions is None:
        # As soon as one has succeeded there is nothing to begin any more.
        wanted = min(parallelism, len(active)) if done else parallelism
    else:
        wanted = min(parallelism, spec.completions - done)
    best = sorted(active, key=_worth)
    if spec.completion_mode != "Indexed":
        return [None] * (wanted - len(best)), best[max(0, wanted) :]
    stay: dict[int, Pod] = {}
    surplus: list[Pod] = []
    for pod in best:
        index = job_pods.index_of(pod)
        if index is None or index in stay or index in counts.completed or index >= (spec.completions or 0):
            surplus.append(pod)
        else:
            stay[index] = pod
    kept = list(stay.values())
    surplus += kept[max(0, wanted) :]
    free = (i for i in range(spec.completions or 0) if i not in counts.completed and i not in stay)
    return [index for index, _ in zip(free, range(wanted - len(kept)), strict=False)], surplus


def _worth(pod: Pod) -> tuple[bool, bool, bool, str, str]:
    """Who has come furthest stays."""
    created = pod.metadata.creation_timestamp
    running = pod.status.phase == "Running"
    return not pod.is_ready, not running, not pod.spec.node_name, str(created or ""), pod.metadata.name


def _backoff_until(pods: Sequence[Pod]) -> datetime | None:
    """Twice as long after every failure since the last success."""
    ends = [(end, pod) for pod in pods if not job_pods.is_active(pod) and (end := job_pods.finished_at(pod))]
    good = max((end for end, pod in ends if job_pods.has_succeeded(pod)), default=None)
    bad = [end for end, pod in ends if not job_pods.has_succeeded(pod) and (good is None or end > good)]
    if not bad:
        return None
    return max(bad) + timedelta(seconds=min(LONGEST_BACKOFF_S, FIRST_BACKOFF_S * 2 ** min(len(bad) - 1, 10)))


# --- status


def _status(
    job: Job,
    counts: Counts,
    pods: Sequence[Pod],
    active: Sequence[Pod],
    conditions: list[Condition],
    start_time: datetime | None,
) -> JobStatus:
    uncounted: Json = {}
    if counts.uncounted_succeeded:
        uncounted["succeeded"] = list(counts.uncounted_succeeded)
    if counts.uncounted_failed:
        uncounted["failed"] = list(counts.uncounted_failed)
    return msgspec.structs.replace(
        job.status,
        active=len(active),
        ready=sum(pod.is_ready for pod in active),
        terminating=sum(map(job_pods.is_terminating, pods)),
        succeeded=counts.succeeded,
        failed=counts.failed,
        completed_indexes=job_indexes.write(counts.completed),
        uncounted_terminated_pods=uncounted,
        conditions=conditions,
        start_time=start_time,
    )


def _started(status: JobStatus, now: datetime) -> JobStatus:
    return msgspec.structs.replace(status, start_time=status.start_time or now)


def _condition(type_: str, reason: str, message: str, now: datetime, status: str = "True") -> Condition:
    return Condition(type=type_, status=status, reason=reason, message=message, last_transition_time=now)


def _with(conditions: list[Condition], new: Condition) -> list[Condition]:
    if any(old.type == new.type and old.status == new.status for old in conditions):
        return conditions
    return [*(old for old in conditions if old.type != new.type), new]


def _known(status: JobStatus, type_: str) -> Condition | None:
    return next((condition for condition in status.conditions if condition.type == type_), None)


def _true(status: JobStatus, type_: str) -> Condition | None:
    known = _known(status, type_)
    return known if known is not None and known.status == "True" else None
