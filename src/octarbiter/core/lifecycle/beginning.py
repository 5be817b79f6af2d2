"""How does an attempt come to be? Acceptance, suspension, waiting for a retry, the control unit."""

from __future__ import annotations

from octarbiter.api import taskset as api
from octarbiter.core.lifecycle import actions, completion, ending, names, observe, roles
from octarbiter.core.lifecycle.phases import TaskSetPhase
from octarbiter.core.lifecycle.work import LOST, SPEC_INVALID, Work, replace


def accept(work: Work, problems: tuple[str, ...]) -> None:
    work.status = replace(
        work.status,
        phase=TaskSetPhase.VALIDATION,
        state=api.State.WAITING,
        created_at=work.now,
        transition_time=work.now,
    )
    work.fresh_roles()
    if not problems:
        work.move(TaskSetPhase.PENDING)
        return
    trigger = api.Trigger(
        event=SPEC_INVALID, at=work.now, message=observe.short("; ".join(problems), observe.VERDICT_BYTES)
    )
    work.status = replace(work.status, verdict=api.State.FAILED, trigger=trigger)
    roles.follow_all(work)
    roles.close_all(work)
    ending.complete(work)


def suspend_or_resume(work: Work) -> None:
    """While suspended, timers stand still: when it ends they are moved on by as long as it lasted."""
    since = work.status.suspended_at
    if work.spec.suspend and since is None:
        work.status = replace(work.status, suspended_at=work.now)
    elif not work.spec.suspend and since is not None:
        stood = work.now - since
        counted = int(stood.total_seconds()) if work.status.start_at else 0
        work.status = replace(
            work.status,
            suspended_at=None,
            suspended_seconds=work.status.suspended_seconds + counted,
            retry_at=work.status.retry_at and work.status.retry_at + stood,
        )
        for number, role in enumerate(work.roles):
            shifted = [
                replica if replica.retry_at is None else replace(replica, retry_at=replica.retry_at + stood)
                for replica in role.replica_status
            ]
            work.roles[number] = replace(role, replica_status=shifted)


def wait_for_retry(work: Work) -> None:
    if work.is_past_deadline():
        work.status = replace(work.status, verdict=api.State.FAILED, trigger=work.deadline_trigger())
        ending.complete(work)
        return
    due = work.status.retry_at
    if work.is_suspended:
        work.say("suspended")
        return
    if due is not None and work.now < due:
        work.look_again(due)
        work.look_again(work.deadline())
        work.say(f"retry {work.status.total_retried_count + 1} of {work.spec.retry_policy.budget} at {due:%H:%M:%SZ}")
        return
    charge = 0 if work.status.verdict == LOST else 1
    work.status = replace(
        work.status,
        total_retried_count=work.status.total_retried_count + charge,
        attempt=work.status.attempt + 1,
        attempt_started_at=None,
        retry_at=None,
        verdict="",
        trigger=None,
        control_unit_uid="",
    )
    work.sort_pods()
    work.fresh_roles()
    work.move(TaskSetPhase.PENDING)


def begin(work: Work) -> None:
    """Make the control unit, or find it made; everything of earlier attempts must be gone before."""
    if work.is_suspended:
        if work.status.phase == TaskSetPhase.CREATION_REQUESTED:
            work.move(TaskSetPhase.PENDING)
        work.say("suspended")
        return
    if work.is_past_deadline():
        ending.take(work, completion.Verdict(api.State.FAILED, work.deadline_trigger()))
        return
    unit = work.control_unit()
    if unit is not None and unit.metadata.deletion_timestamp is None:
        work.move(TaskSetPhase.CREATION_REQUESTED)
        work.move(TaskSetPhase.PREPARING)
        work.status = replace(
            work.status,
            control_unit_uid=unit.metadata.uid,
            attempt_started_at=work.status.attempt_started_at or work.now,
        )
    elif unit is not None or work.status.control_unit_uid:
        ending.lose(work)
    else:
        _request(work)


def _request(work: Work) -> None:
    work.remove(work.stale)
    alive = [pod.metadata.name for pod in work.stale if observe.bucket(pod) in observe.ALIVE]
    if alive:
        work.say(f"waits for pods of the last attempt to stop, {len(alive)} left: {alive[0]}")
        return
    work.move(TaskSetPhase.CREATION_REQUESTED)
    name = names.control_unit(work.taskset.metadata.name, work.status.attempt)
    refusal = work.seen.refusals.get(observe.CONTROL_UNIT)
    work.say(observe.short(refusal.message) if refusal is not None else f"control unit {name} is being made")
    if refusal is not None and work.now < refusal.again_at:
        work.look_again(refusal.again_at)
        return
    work.ask(actions.CreateControlUnit(work.status.attempt))
