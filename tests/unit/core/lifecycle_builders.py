"""Pods, roles and TaskSets as they really look, in one line each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from octarbiter.api import taskset as api
from octarbiter.api.core_kinds import ConfigMap, Service
from octarbiter.api.meta import Condition, ObjectMeta, OwnerReference
from octarbiter.api.pod import ContainerState, ContainerStatus, Pod, PodSpec, PodStatus, Running, Terminated, Waiting
from octarbiter.core.lifecycle import names, observe
from octarbiter.core.lifecycle.actions import CreatePod, DeletePod
from octarbiter.core.lifecycle.decide import Decision, decide
from octarbiter.core.lifecycle.phases import ReplicaPhase

NOW = datetime(2024, 5, 6, 7, 8, 0, tzinfo=UTC)
UNIT_UID = "unit-uid"

replace = msgspec.structs.replace


def at(seconds: int) -> datetime:
    return NOW + timedelta(seconds=seconds)


# --- what users write


def role(name: str = "worker", replicas: int = 1, **fields: Any) -> api.Role:
    completion = api.CompletionPolicy(
        min_succeeded=fields.pop("min_succeeded", None), max_failed=fields.pop("max_failed", 1)
    )
    events = [api.EventPolicy(event=event, action=action) for event, action in fields.pop("events", {}).items()]
    retries, delay = fields.pop("retries", 0), fields.pop("delay", 0)
    return api.Role(
        name=name,
        replicas=replicas,
        template=fields.pop("template", {"spec": {"containers": [{"name": "main", "image": "busybox"}]}}),
        completion_policy=completion,
        event_policy=events,
        retry_policy=api.RetryPolicy(retry=retries > 0, max_retry_count=retries, delay=delay),
        **fields,
    )


def taskset(*roles: api.Role, status: api.TaskSetStatus | None = None, name: str = "job", **fields: Any) -> api.TaskSet:
    retries, delay = fields.pop("retries", 0), fields.pop("delay", 0)
    policy = api.RetryPolicy(retry=retries > 0, max_retry_count=retries, delay=delay)
    spec = api.TaskSetSpec(roles=list(roles) or [role()], retry_policy=policy, **fields)
    meta = ObjectMeta(name=name, namespace="ns", uid="ts-uid", generation=1)
    return api.TaskSet(metadata=meta, spec=spec, status=status or api.TaskSetStatus())


# --- what the cluster shows


def ended(
    code: int = 0, finished: datetime | None = NOW, name: str = "main", reason: str = "", message: str = ""
) -> ContainerStatus:
    reason = reason or ("Error" if code else "Completed")
    end = Terminated(exit_code=code, finished_at=finished, started_at=finished, reason=reason, message=message)
    return ContainerStatus(name=name, container_id=f"containerd://{name}", state=ContainerState(terminated=end))


def runs(since: datetime = NOW, name: str = "main") -> ContainerStatus:
    return ContainerStatus(name=name, state=ContainerState(running=Running(started_at=since)))


def waits(reason: str, message: str = "", name: str = "main") -> ContainerStatus:
    return ContainerStatus(name=name, state=ContainerState(waiting=Waiting(reason=reason, message=message)))


def pod(
    phase: str = "Pending",
    *containers: ContainerStatus,
    of: tuple[str, int] = ("worker", 0),
    attempts: tuple[int, int] = (0, 0),
    node: str = "n0",
    reason: str = "",
    message: str = "",
    deleted: datetime | None = None,
    grace: int = 30,
    disrupted: str = "",
    conditions: Iterable[Condition] = (),
    init: Iterable[ContainerStatus] = (),
    taskset: str = "job",
) -> Pod:
    """`deleted`: when somebody asked; the server writes the end of the grace period."""
    target = Condition(type="DisruptionTarget", status="True", reason=disrupted, last_transition_time=NOW)
    name = names.pod(taskset, of[0], *attempts, of[1])
    return Pod(
        metadata=ObjectMeta(
            name=name,
            namespace="ns",
            uid=f"uid-of-{name}",
            creation_timestamp=at(-100),
            labels={names.ROLE_LABEL: of[0], names.INDEX_LABEL: str(of[1]), names.ATTEMPT_LABEL: str(attempts[0])},
            owner_references=[OwnerReference(kind="ConfigMap", uid=UNIT_UID, controller=True)],
            deletion_timestamp=None if deleted is None else deleted + timedelta(seconds=grace),
            deletion_grace_period_seconds=None if deleted is None else grace,
        ),
        spec=PodSpec(node_name=node),
        status=PodStatus(
            phase=phase,
            reason=reason,
            message=message,
            container_statuses=list(containers),
            init_container_statuses=list(init),
            conditions=[*conditions, *([target] if disrupted else [])],
        ),
    )


def running(index: int = 0, *, role: str = "worker", attempts: tuple[int, int] = (0, 0), **more: Any) -> Pod:
    return pod("Running", runs(more.pop("since", at(-50))), of=(role, index), attempts=attempts, **more)


def over(
    code: int,
    index: int = 0,
    *,
    role: str = "worker",
    attempts: tuple[int, int] = (0, 0),
    finished: datetime = NOW,
    **m: Any,
) -> Pod:
    message = m.pop("message", "")
    container = ended(code, finished, message=message)
    return pod("Failed" if code else "Succeeded", container, of=(role, index), attempts=attempts, **m)


def seen(
    *pods: Pod,
    attempt: int = 0,
    nodes: Mapping[str, bool] | None = None,
    refusals: Mapping[tuple[str, int], observe.Refusal] | None = None,
    unit: bool = True,
    unit_deleted: bool = False,
    service: bool = True,
) -> observe.Seen:
    unit_meta = ObjectMeta(
        name=names.control_unit("job", attempt), uid=UNIT_UID, deletion_timestamp=NOW if unit_deleted else None
    )
    return observe.Seen(
        pods=pods,
        control_units=(ConfigMap(metadata=unit_meta),) if unit else (),
        service=Service(metadata=ObjectMeta(name="job")) if service else None,
        ready_nodes={"n0": True} if nodes is None else nodes,
        refusals=refusals or {},
    )


# --- one look, and a TaskSet under way


def look(taskset: api.TaskSet, seen: observe.Seen, now: datetime = NOW) -> tuple[api.TaskSet, Decision]:
    """Also the TaskSet as it is afterwards."""
    decision = decide(taskset, seen, now)
    return replace(taskset, status=decision.status), decision


def under_way(*roles: api.Role, pods: Iterable[Pod] = (), **fields: Any) -> api.TaskSet:
    """Accepted, its control unit made, and these pods seen."""
    made, _ = look(taskset(*roles, **fields), seen(unit=False), at(-90))
    made, _ = look(made, seen(), at(-80))
    made, _ = look(made, seen(*pods), at(-70))
    return made


def replica(index: int = 0, outcome: str = "", finished: datetime | None = None, **fields: Any) -> api.ReplicaStatus:
    stated = fields.pop("phase", ReplicaPhase.RUNNING)
    phase = ReplicaPhase.COMPLETED if outcome else stated
    return api.ReplicaStatus(
        index=index, name=f"worker-{index}", phase=phase, outcome=outcome, finish_at=finished, **fields
    )


# --- what a decision says


def first(told: api.TaskSet, number: int = 0, of: int = 0) -> api.ReplicaStatus:
    return told.status.role_status[of].replica_status[number]


def deletes(decision: Any) -> list[str]:
    return [action.name for action in decision.actions if isinstance(action, DeletePod)]


def creates(decision: Any) -> list[tuple[str, int, int]]:
    return [(a.role, a.index, a.attempt) for a in decision.actions if isinstance(a, CreatePod)]


def edited(told: api.TaskSet, **changes: Any) -> api.TaskSet:
    meta = replace(told.metadata, generation=told.metadata.generation + 1)
    return replace(told, metadata=meta, spec=replace(told.spec, **changes))


def cleared(told: api.TaskSet, now: Any = NOW) -> tuple[api.TaskSet, Any]:
    """Everything of the attempt is gone."""
    return look(told, seen(unit=False, service=False), now)
