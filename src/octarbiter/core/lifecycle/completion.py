"""When is a role done, how, and what does that do to the TaskSet? Sections 2 and 3 of the contract, as pure rules."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

import msgspec

from octarbiter.api import taskset as api

SUCCEEDED, FAILED, STOPPED = "Succeeded", "Failed", "Stopped"


class Verdict(msgspec.Struct, frozen=True):
    state: api.State
    trigger: api.Trigger


def judge(role: api.Role, succeeded: int, failed: int, undecided: int) -> tuple[api.State, str] | None:
    """`undecided` replicas may still succeed. Success is tested first."""
    if succeeded >= role.min_succeeded:
        return api.State.SUCCEEDED, f"{succeeded} of {role.replicas} succeeded, {role.min_succeeded} needed"
    if role.max_failed != -1 and failed >= role.max_failed:
        return api.State.FAILED, f"{failed} of {role.replicas} failed, maxFailed is {role.max_failed}"
    if succeeded + undecided < role.min_succeeded:
        return api.State.FAILED, (
            f"minSucceeded can no longer be reached: {succeeded} succeeded, {undecided} may still succeed, "
            f"{role.min_succeeded} needed"
        )
    return None


def verdict_of(role: api.Role, replicas: Sequence[api.ReplicaStatus], now: datetime) -> Verdict | None:
    """The verdict at the moment its condition first holds.

    The final replicas are counted one by one in the order they ended, so that a controller that was away comes to the
    verdict it would have reached had it watched. In one and the same second success comes first.
    """
    final = sorted(
        (r for r in replicas if r.outcome in (SUCCEEDED, FAILED)),
        # Without a time (forgotten to keep a large status small): counted before, when it decided nothing.
        key=lambda r: (r.finish_at is not None, r.finish_at, r.outcome != SUCCEEDED, r.index),
    )
    succeeded = failed = 0
    undecided = sum(1 for r in replicas if r.outcome != STOPPED)
    for replica in final:
        undecided -= 1
        if replica.outcome == SUCCEEDED:
            succeeded += 1
        else:
            failed += 1
        judged = judge(role, succeeded, failed, undecided)
        if judged is not None:
            state, message = judged
            event = api.RoleEvent.ROLE_SUCCEEDED if state == api.State.SUCCEEDED else api.RoleEvent.ROLE_FAILED
            return Verdict(
                state,
                api.Trigger(
                    role=role.name,
                    index=replica.index,
                    event=event,
                    at=replica.finish_at or now,
                    message=_with_exit(message, role, replica),
                ),
            )
    return None


def _with_exit(message: str, role: api.Role, replica: api.ReplicaStatus) -> str:
    if replica.outcome != FAILED:
        return message
    info = replica.terminated_info
    exit_ = (
        f"exit code {info.exit_code}" + (f" ({info.exit_message})" if info.exit_message else "") if info else "failed"
    )
    return f"{message}; last: {role.name}-{replica.index}, {exit_}"


def action_for(role: api.Role, event: str) -> api.Action:
    """The declared answer to an event; RoleCompleted answers what is not declared; then the default."""
    declared = {policy.event: policy.action for policy in role.event_policy}
    answer = declared.get(event) or declared.get(api.RoleEvent.ROLE_COMPLETED)
    if answer is not None:
        return api.Action(answer)
    return api.Action.TASKSET_FAILED if event == api.RoleEvent.ROLE_FAILED else api.Action.NO_ACTION


def end_of(roles: Sequence[api.Role], statuses: Iterable[api.RoleStatus]) -> Verdict | None:
    """Does what the roles came to end the TaskSet? Earliest finish first, then the order of the spec."""
    by_name = {status.name: status for status in statuses}
    judged = [(status.trigger, role, status) for role in roles if (status := by_name[role.name]).trigger is not None]
    # A role that failed because another did has no replica to blame, and comes after it.
    in_time = sorted(judged, key=lambda item: (item[0].at is None, item[0].at, item[0].index is None))
    for trigger, role, status in in_time:
        match action_for(role, trigger.event):
            case api.Action.TASKSET_SUCCEEDED:
                return Verdict(api.State.SUCCEEDED, trigger)
            case api.Action.TASKSET_FAILED:
                return Verdict(api.State.FAILED, trigger)
            case api.Action.TASKSET_COMPLETED:
                return Verdict(api.State(status.state), trigger)
    if len(judged) < len(roles):
        return None
    failed = next((item for item in in_time if item[2].state == api.State.FAILED), None)
    last = in_time[-1][0]
    if failed is None:
        return Verdict(api.State.SUCCEEDED, msgspec.structs.replace(last, message="all roles succeeded"))
    cause = failed[0]
    message = f"all roles finished; {cause.role}: {cause.message}"
    return Verdict(api.State.FAILED, msgspec.structs.replace(cause, at=last.at, message=message))
