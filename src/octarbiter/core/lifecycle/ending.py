"""How does an attempt end, and what follows: another attempt, or the end of the TaskSet?"""

from __future__ import annotations

from datetime import datetime, timedelta

from octarbiter.api import taskset as api
from octarbiter.api.pod import Pod
from octarbiter.core.lifecycle import actions, completion, names, observe, roles
from octarbiter.core.lifecycle.phases import TaskSetPhase
from octarbiter.core.lifecycle.work import (
    CONTROL_UNIT_LOST,
    DEADLINE_EXCEEDED,
    LOST,
    POD_INVALID,
    SPEC_INVALID,
    Work,
    replace,
)

_NOT_RETRIED = frozenset({POD_INVALID, DEADLINE_EXCEEDED, SPEC_INVALID})

COLLECT = 8
"""So many finished pods go with their control unit (the garbage collector takes them one by one, two requests each);
more are removed by one request of ours first."""
COLLECTOR_S = 30
"""How long the garbage collector is waited for."""


def take(work: Work, verdict: completion.Verdict) -> None:
    """The verdict on the attempt. Taken once: every later decision finds it in the status."""
    work.status = replace(work.status, verdict=verdict.state, trigger=verdict.trigger)
    work.because = verdict.trigger.message
    work.move(TaskSetPhase.DELETION_PENDING)


def lose(work: Work) -> None:
    """Somebody deleted the control unit: the attempt is lost, and charged to nobody."""
    unit = names.control_unit(work.taskset.metadata.name, work.status.attempt)
    trigger = api.Trigger(event=CONTROL_UNIT_LOST, at=work.now, message=f"control unit {unit} was deleted")
    work.status = replace(work.status, verdict=LOST, trigger=trigger)
    work.because = trigger.message
    work.move(TaskSetPhase.DELETION_PENDING)


def clear(work: Work) -> None:
    """Stop what runs; when nothing runs, remove everything of the attempt, or what need not be kept."""
    roles.follow_all(work)
    roles.close_all(work)
    pods = work.seen.pods
    alive = [pod for pod in pods if observe.bucket(pod) in observe.ALIVE]
    if alive:
        work.remove(alive)
        work.say(_stopping(work, alive))
        return
    kept = frozenset() if will_retry(work) else retained(work)
    leaving = [pod for pod in pods if pod.metadata.uid not in kept]
    if kept and leaving:
        work.remove(leaving)
        work.say(f"removes finished pods, {len(leaving)} left, and keeps {len(kept)}")
        return
    if not kept:
        work.move(TaskSetPhase.DELETION_REQUESTED)
        if len(leaving) > COLLECT:
            work.ask(actions.DeletePods(work.status.attempt))
        work.remove_control_units()
        due = _collector_due(work)
        is_late = work.now >= due
        if not work.seen.control_units and is_late:
            work.remove(pods)
        elif not work.seen.control_units and (pods or work.seen.service is not None):
            work.look_again(due)
        if pods or work.seen.control_units or (work.seen.service is not None and not is_late):
            work.say(f"removes finished pods, {len(pods)} left" if pods else "removes the control unit")
            return
    work.move(TaskSetPhase.ATTEMPT_COMPLETED)
    if will_retry(work):
        _arrange_retry(work)
    else:
        complete(work)


def _collector_due(work: Work) -> datetime:
    """Finished pods and the Service go with their control unit; where nobody collects garbage, they would stay for
    ever. Who deleted the unit himself may have orphaned them: a lost attempt is not waited for."""
    if work.status.verdict == LOST:
        return work.now
    return (work.status.transition_time or work.now) + timedelta(seconds=COLLECTOR_S)


def _stopping(work: Work, alive: list[Pod]) -> str:
    for status in work.roles:
        for replica in status.replica_status:
            if not replica.outcome and ", which is " in replica.phase_message:
                return f"{replica.name}: {replica.phase_message}"
    return f"waits for pods to stop, {len(alive)} left: {alive[0].metadata.name}"


def will_retry(work: Work) -> bool:
    if work.status.verdict == LOST:
        return True
    if work.status.verdict == api.State.SUCCEEDED:
        return False
    event = work.status.trigger.event if work.status.trigger else ""
    return event not in _NOT_RETRIED and work.status.total_retried_count < work.spec.retry_policy.budget


def retained(work: Work) -> frozenset[str]:
    """UIDs of the pods that stay after the end: each replica's last one, as podRetention says. Found by name, because
    a large status does not keep the UID of every pod."""
    if work.spec.pod_retention == api.PodRetention.NONE:
        return frozenset()
    wanted = {
        names.pod(work.taskset.metadata.name, status.name, work.status.attempt, replica.attempt, replica.index)
        for status in work.roles
        for replica in status.replica_status
        if work.spec.pod_retention == api.PodRetention.ALL or replica.outcome == completion.FAILED
    }
    return frozenset(pod.metadata.uid for pod in work.seen.pods if pod.metadata.name in wanted)


def _arrange_retry(work: Work) -> None:
    trigger = work.status.trigger
    verdict_at = trigger.at if trigger is not None and trigger.at is not None else work.now
    _into_history(work)
    due = work.now if work.status.verdict == LOST else verdict_at + timedelta(seconds=work.spec.retry_policy.delay)
    work.move(TaskSetPhase.RETRY_PENDING)
    work.status = replace(work.status, state=api.State.WAITING, retry_at=due)


def complete(work: Work) -> None:
    if work.status.phase != TaskSetPhase.VALIDATION:
        _into_history(work)
    work.move(TaskSetPhase.COMPLETED)
    finishes = [r.finish_at for status in work.roles for r in status.replica_status if r.finish_at is not None]
    message = work.status.trigger.message if work.status.trigger else ""
    work.status = replace(
        work.status,
        state=work.status.verdict,
        state_message=message,
        phase_message=message,
        finish_at=max([work.now, *finishes]),
        retry_at=None,
    )
    work.because = message


def _into_history(work: Work) -> None:
    failed = [
        api.FailedReplica(
            role=status.name,
            index=replica.index,
            exit_code=replica.terminated_info.exit_code if replica.terminated_info else 0,
            message=replica.terminated_info.exit_message if replica.terminated_info else replica.phase_message,
        )
        for status in work.roles
        for replica in status.replica_status
        if replica.outcome == completion.FAILED
    ]
    attempt = api.AttemptRecord(
        attempt=work.status.attempt,
        start_at=work.status.attempt_started_at,
        finish_at=work.now,
        state=work.status.verdict,
        trigger=work.status.trigger,
        failed_replicas=failed[: api.HISTORY],
    )
    earlier = [record for record in work.status.history if record.attempt != work.status.attempt]
    work.status = replace(work.status, history=[*earlier, attempt][-api.HISTORY :])
