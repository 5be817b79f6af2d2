"""What is worth telling of the step from one status to the next? Becomes Kubernetes Events."""

from __future__ import annotations

from octarbiter.api import taskset as api
from octarbiter.core.lifecycle.actions import Told
from octarbiter.core.lifecycle.phases import RolePhase, TaskSetPhase
from octarbiter.core.lifecycle.work import LOST


def between(old: api.TaskSetStatus, new: api.TaskSetStatus) -> list[Told]:
    told = [*_roles(old, new), *_replicas(old, new)]
    if new.state == api.State.RUNNING and old.state != api.State.RUNNING:
        told.append(Told("Started", f"attempt {new.attempt} runs"))
    if new.suspended_at is not None and old.suspended_at is None:
        told.append(Told("Suspended", "all pods are stopped until spec.suspend is false"))
    if new.suspended_at is None and old.suspended_at is not None:
        told.append(Told("Resumed", "goes on in the same attempt"))
    if new.phase == TaskSetPhase.COMPLETED and old.phase != TaskSetPhase.COMPLETED:
        told.append(Told(new.state, new.state_message or new.state, warning=new.state == api.State.FAILED))
    elif not old.verdict:
        told += _end_of_attempt(old, new)
    if new.total_retried_count > old.total_retried_count:
        told.append(Told("Retried", f"attempt {new.attempt} begins (retry {new.total_retried_count})"))
    return told


def waiting(recorded: api.TaskSetStatus, new: api.TaskSetStatus) -> list[Told]:
    """Asked when a status is recorded: what is waited for only for a moment is not worth an event."""
    if new.state == api.State.WAITING and new.state_message and new.state_message != recorded.state_message:
        return [Told("Waiting", new.state_message)]
    return []


def _end_of_attempt(old: api.TaskSetStatus, new: api.TaskSetStatus) -> list[Told]:
    """An attempt that had nothing left to clear away ends and is followed by the next one in the same step: then only
    the history tells of its end."""
    verdict, trigger = new.verdict, new.trigger
    if new.attempt != old.attempt:
        record = next((record for record in new.history if record.attempt == old.attempt), None)
        verdict, trigger = (record.state, record.trigger) if record is not None else ("", None)
    if trigger is None or verdict not in (LOST, api.State.FAILED):
        return []
    reason = "AttemptLost" if verdict == LOST else "AttemptFailed"
    return [Told(reason, f"attempt {old.attempt}: {trigger.message}", warning=True)]


def _roles(old: api.TaskSetStatus, new: api.TaskSetStatus) -> list[Told]:
    """Only where there are several: a single role's verdict is the TaskSet's and told there."""
    if len(new.role_status) < 2 or old.attempt != new.attempt:
        return []
    judged = {role.name for role in old.role_status if role.trigger is not None}
    return [
        Told(f"Role{role.state}", f"role {role.name}: {role.state_message}", warning=role.state == api.State.FAILED)
        for role in new.role_status
        if role.trigger is not None
        and role.trigger.role == role.name
        and role.name not in judged
        and role.phase in (RolePhase.CLEANING_PENDING, RolePhase.COMPLETED)
    ]


def _replicas(old: api.TaskSetStatus, new: api.TaskSetStatus) -> list[Told]:
    """One line for all the replicas that were lost or retried in this step, not one each."""
    if old.attempt != new.attempt:
        return []
    lost: list[str] = []
    retried: list[str] = []
    for before, after in zip(old.role_status, new.role_status, strict=False):
        for was, is_ in zip(before.replica_status, after.replica_status, strict=False):
            if is_ is was:
                continue
            if is_.lost_count > was.lost_count:
                lost.append(f"{is_.name} ({is_.pod_reason})")
            if is_.total_retried_count > was.total_retried_count:
                retried.append(is_.name)
    told = []
    if lost:
        told.append(Told("ReplicaLost", f"replaced without charge: {_some(lost)}", warning=True))
    if retried:
        told.append(Told("ReplicaRetried", f"retried: {_some(retried)}"))
    return told


def _some(names: list[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
