"""How do the roles of a running attempt get on, and which of them have their verdict?"""

from __future__ import annotations

import graphlib
from collections.abc import Iterable, Sequence
from datetime import datetime

from octarbiter.api import taskset as api
from octarbiter.core.lifecycle import completion, observe, replicas, waiting
from octarbiter.core.lifecycle.phases import ReplicaPhase, RolePhase
from octarbiter.core.lifecycle.replicas import Stop
from octarbiter.core.lifecycle.work import LOST, Work, replace


def advance_all(work: Work) -> None:
    """Those that a role depends on come before it, wherever they stand: what they come to counts at once."""
    for number in _dependencies_first(work.spec.roles):
        _advance(work, number)


def follow_all(work: Work) -> None:
    for number in range(len(work.spec.roles)):
        _follow(work, number)


def _dependencies_first(roles: Sequence[api.Role]) -> list[int]:
    numbers = {role.name: number for number, role in enumerate(roles)}
    needs = {number: [numbers[name] for name in role.depends_on] for number, role in enumerate(roles)}
    depth: dict[int, int] = {}
    for number in graphlib.TopologicalSorter(needs).static_order():
        depth[number] = max((depth[needed] + 1 for needed in needs[number]), default=0)
    return sorted(numbers.values(), key=depth.__getitem__)


def _advance(work: Work, number: int) -> None:
    """Follow a role, take its verdict if it is due, and then stop what remains of it, whatever the eventPolicy."""
    role, before, asked = work.spec.roles[number], work.roles[number], work.asked()
    _follow(work, number)
    status = work.roles[number]
    if status.trigger is None:
        verdict = _failed_dependency(work, role) or completion.verdict_of(role, status.replica_status, work.now)
        if verdict is None:
            work.roles[number] = _told(work, status)
            return
        work.take_back(asked)
        status = replace(undone(before, status), trigger=verdict.trigger)
        work.roles[number] = work.moved_role(status, RolePhase.CLEANING_PENDING, verdict.state, verdict.trigger.message)
        _follow(work, number)
    _close(work, number)


def undone(before: api.RoleStatus, after: api.RoleStatus) -> api.RoleStatus:
    """A verdict was among what this look found: retries that it would have begun are not begun, nor charged."""
    return replace(
        after,
        replica_status=[
            now if now.outcome or now.lost_count > was.lost_count else was
            for was, now in zip(before.replica_status, after.replica_status, strict=True)
        ],
    )


def _follow(work: Work, number: int) -> None:
    role, status = work.spec.roles[number], work.roles[number]
    stop = Stop.NONE
    if work.status.verdict or status.trigger is not None:
        stop = Stop.VERDICT
    elif work.is_suspended:
        stop = Stop.SUSPEND
    situation = replicas.Situation(
        role=role,
        main_container=observe.main_container(role.template),
        stop=stop,
        hold=_hold(work, role, status) if stop is Stop.NONE else "",
        ready_nodes=work.seen.ready_nodes,
        refusals=work.seen.refusals,
        now=work.now,
    )
    changed = list(status.replica_status)
    preempted = 0
    for position, replica in enumerate(changed):
        followed = replicas.follow(replica, work.pods.get((role.name, replica.index), ()), situation)
        changed[position] = followed.replica
        work.ask(*followed.actions)
        work.look_again(followed.again_at)
        preempted += followed.preempted
    if preempted:
        work.status = replace(work.status, preempt_count=work.status.preempt_count + preempted)
    work.roles[number] = _counted(replace(status, replica_status=changed))


def _hold(work: Work, role: api.Role, status: api.RoleStatus) -> str:
    """Why a role may not begin yet: those it depends on must all run, or have succeeded. Asked only until it has
    begun: then it goes on, whatever becomes of the others."""
    if not role.depends_on:
        return ""
    for replica in status.replica_status:
        if replica.pod_uid or replica.attempt or (role.name, replica.index) in work.pods:
            return ""
    missing = [name for name in role.depends_on if not _is_up(work.role_status(name))]
    return f"waits until {', '.join(missing)} runs" if missing else ""


def _is_up(status: api.RoleStatus) -> bool:
    if status.trigger is not None:
        return status.state == api.State.SUCCEEDED
    return all(
        replica.phase == ReplicaPhase.RUNNING or replica.outcome == completion.SUCCEEDED
        for replica in status.replica_status
    )


def _counted(status: api.RoleStatus) -> api.RoleStatus:
    active = succeeded = failed = stopped = 0
    for replica in status.replica_status:
        match replica.outcome:
            case completion.SUCCEEDED:
                succeeded += 1
            case completion.FAILED:
                failed += 1
            case completion.STOPPED:
                stopped += 1
            case _ if replica.pod_uid and replica.phase != ReplicaPhase.RETRY_PENDING:
                active += 1
    return replace(status, active=active, succeeded=succeeded, failed=failed, stopped=stopped)


def _told(work: Work, status: api.RoleStatus) -> api.RoleStatus:
    message = "suspending" if work.is_suspended else waiting.sentence([status], work.seen.refusals)
    started = has_started(status.replica_status, status.transition_time)
    if started and status.phase == RolePhase.WAITING and not work.is_suspended:
        return work.moved_role(status, RolePhase.RUNNING, api.State.RUNNING, message)
    return replace(status, phase_message=message, state_message=message)


def has_started(replicas: Iterable[api.ReplicaStatus], since: datetime | None) -> bool:
    """Has one of them run since then? Those that ended before a suspension do not make what is resumed run."""
    return any(
        since is None
        or replica.start_at >= since
        or not (replica.outcome or replica.phase == ReplicaPhase.RETRY_PENDING)
        for replica in replicas
        if replica.start_at is not None
    )


def _failed_dependency(work: Work, role: api.Role) -> completion.Verdict | None:
    for name in role.depends_on:
        status = work.role_status(name)
        if status.trigger is not None and status.state == api.State.FAILED:
            message = f"depends on {name}, which failed"
            event = api.RoleEvent.ROLE_FAILED
            trigger = api.Trigger(role=role.name, event=event, at=status.trigger.at, message=message)
            return completion.Verdict(api.State.FAILED, trigger)
    return None


def close_all(work: Work) -> None:
    """The TaskSet has its verdict: a role without one of its own takes it."""
    state = api.State.FAILED if work.status.verdict == LOST else api.State(work.status.verdict)
    # Said once in full, by the TaskSet: every role would say it three times.
    trigger = work.status.trigger or api.Trigger()
    trigger = replace(trigger, message=observe.short(trigger.message))
    for number, status in enumerate(work.roles):
        if status.trigger is None:
            message = f"stopped: {trigger.message}"
            stopped = replace(status, trigger=trigger)
            work.roles[number] = work.moved_role(stopped, RolePhase.CLEANING_PENDING, state, message)
        _close(work, number)


def _close(work: Work, number: int) -> None:
    status = work.roles[number]
    if status.phase == RolePhase.CLEANING_PENDING and all(replica.outcome for replica in status.replica_status):
        work.roles[number] = work.moved_role(status, RolePhase.COMPLETED, api.State(status.state), status.state_message)
