"""What should happen to a TaskSet next?

`decide(taskset, seen, now)` recomputes everything from the recorded status and what is seen, never from which event
woke it, so it may be called at any time and any number of times. It returns the status to record, the actions to take,
when to look again, and why. It expects an expanded status (`report.expand`): every replica listed.

The promise behind crash safety: whatever cannot be seen again later (an outcome, a count, the number of an attempt) is
in the recorded status before an action makes it unseeable. `record = NOW` asks that of the shell.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum

import msgspec

from octarbiter.api import taskset as api
from octarbiter.core.lifecycle import actions, beginning, ending, observe, running
from octarbiter.core.lifecycle.observe import Seen
from octarbiter.core.lifecycle.phases import TaskSetPhase
from octarbiter.core.lifecycle.work import Work, replace


class Record(StrEnum):
    NO = "no"
    SOON = "soon"
    """Nothing depends on it: may be joined with later changes."""
    NOW = "now"
    """Before the actions."""


class Decision(msgspec.Struct, frozen=True):
    status: api.TaskSetStatus
    actions: tuple[actions.Action, ...]
    record: Record
    look_again_at: datetime | None
    because: str


def decide(taskset: api.TaskSet, seen: Seen, now: datetime, problems: tuple[str, ...] = ()) -> Decision:
    """`problems`: what the validator says of the spec; looked at once, when the TaskSet is new."""
    work = Work(taskset, seen, now)
    if taskset.metadata.deletion_timestamp is not None:
        _leave(work)
    elif taskset.status.phase == TaskSetPhase.COMPLETED:
        _rest(work)
    else:
        _go(work, problems)
    work.remove_stuck()
    return _decision(work)


def _leave(work: Work) -> None:
    """It is being deleted: nothing is made any more, all that runs is stopped, the garbage collector does the rest."""
    work.because = "the TaskSet is being deleted"
    work.remove(pod for pod in work.seen.pods if observe.bucket(pod) in observe.ALIVE)


def _rest(work: Work) -> None:
    """It is over: inert, but for what is left to clear away, and for its time to live."""
    work.because = "finished"
    kept = ending.retained(work)
    work.remove(pod for pod in work.seen.pods if pod.metadata.uid not in kept)
    if not work.seen.pods:
        work.remove_control_units()
    ttl = work.spec.ttl_seconds_after_finished
    if ttl is not None and work.status.finish_at is not None:
        due = work.status.finish_at + timedelta(seconds=ttl)
        if work.now >= due:
            work.ask(actions.DeleteTaskSet())
        else:
            work.look_again(due)


def _go(work: Work, problems: tuple[str, ...]) -> None:
    if not work.status.phase:
        beginning.accept(work, problems)
    if work.status.phase == TaskSetPhase.COMPLETED:
        return
    beginning.suspend_or_resume(work)
    # An attempt that ends may be followed by the next one at once; that one cannot end before it is seen.
    for _ in range(2):
        if work.status.phase == TaskSetPhase.RETRY_PENDING:
            beginning.wait_for_retry(work)
        if work.status.phase in (TaskSetPhase.PENDING, TaskSetPhase.CREATION_REQUESTED):
            beginning.begin(work)
        if running.is_under_way(work):
            running.run(work)
        if work.status.phase in (TaskSetPhase.DELETION_PENDING, TaskSetPhase.DELETION_REQUESTED):
            ending.clear(work)
        if work.status.phase != TaskSetPhase.RETRY_PENDING:
            break
    if not work.status.verdict:
        work.look_again(work.deadline())


def _decision(work: Work) -> Decision:
    old = work.taskset.status
    generation = old.observed_generation
    if work.taskset.metadata.deletion_timestamp is None and old.phase != TaskSetPhase.COMPLETED:
        generation = max(generation, work.taskset.metadata.generation)
    status = replace(work.status, role_status=work.roles, observed_generation=generation)
    record = Record.NO
    if status != old:
        record = Record.NOW if _must_record(old, status, work.actions) else Record.SOON
    return Decision(
        status=status,
        actions=tuple(work.actions),
        record=record,
        look_again_at=min(work.again, default=None),
        because=work.because or status.state_message,
    )


def _must_record(old: api.TaskSetStatus, new: api.TaskSetStatus, asked: dict[actions.Action, None]) -> bool:
    if new.verdict != old.verdict or new.attempt != old.attempt or new.phase == TaskSetPhase.COMPLETED:
        return True
    judged = {role.name for role in old.role_status if role.trigger is not None}
    if any(role.trigger is not None and role.name not in judged for role in new.role_status):
        return True
    sizes = zip(old.role_status, new.role_status, strict=False)
    if any(len(was.replica_status) != len(now.replica_status) for was, now in sizes):
        # Or the pods of new indices would be taken for what an earlier lowering has left.
        return True
    for action in asked:
        match action:
            # The names of first attempts say all there is to record.
            case actions.CreatePod(attempt=0) | actions.CreateControlUnit() | actions.CreateService():
                continue
            case _:
                return True
    return False
