"""Which columns does a list of TaskSets, Queues or QueueJobs have?

Read from plain JSON: whatever stands there is shown, and what is not of the expected form is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from octarbiter.api import queue, queuejob, scheme
from octarbiter.api.meta import Json
from octarbiter.cli import text
from octarbiter.cli.listing import Listed

FIGURES = ("demand", "deserved", "allocated", "used", "preempting")
"""Of a Queue's status."""


def _taskset(body: Json, now: datetime, wide: bool) -> list[Any]:
    metadata, spec, status = parts(body)
    cells = [
        metadata.get("name"),
        "Terminating" if metadata.get("deletionTimestamp") else status.get("state"),
        status.get("phase"),
        status.get("totalRetriedCount", 0),
        age(metadata, now),
    ]
    if wide:
        cells += [spec.get("queue"), _roles(spec, status), text.line(str(status.get("stateMessage") or ""))]
    return cells


def _queue(body: Json, now: datetime, wide: bool) -> list[Any]:
    metadata, spec, status = parts(body)
    names = resources_of([status.get(figure) for figure in FIGURES])
    cells = [
        metadata.get("name"),
        spec.get("weight", 1),
        status.get("share"),
        ",".join(names),
        *(_figures(status.get(figure), names) for figure in FIGURES),
        age(metadata, now),
    ]
    if wide:
        cells += [spec.get("parent"), spec.get("policy"), explanation(status)]
    return cells


def _queuejob(body: Json, now: datetime, wide: bool) -> list[Any]:
    metadata, spec, status = parts(body)
    cells = [
        metadata.get("name"),
        spec.get("queue"),
        claim_state(body),
        f"{status.get('allocatedNo', 0)}/{spec.get('resourceno', 1)}",
        status.get("position") or None,
        spec.get("priority", 0),
        age(metadata, now),
    ]
    if wide:
        unit = as_object(spec.get("resourceunit"))
        amounts = unit["resources"] if isinstance(unit.get("resources"), dict) else unit
        ref = as_object(spec.get("workloadRef"))
        workload = f"{ref.get('kind')}/{ref.get('name')}" if ref else None
        cells += [",".join(f"{name}={amounts[name]}" for name in sorted(amounts)), workload, told_of_claim(status)]
    return cells


TASKSETS = Listed(
    resource=scheme.TASKSETS,
    header=["NAME", "STATE", "PHASE", "RETRIES", "AGE"],
    wide=["QUEUE", "ROLES", "MESSAGE"],
    cells=_taskset,
)
QUEUES = Listed(
    resource=scheme.QUEUES,
    header=["NAME", "WEIGHT", "SHARE", "RESOURCES", *(figure.upper() for figure in FIGURES), "AGE"],
    wide=["PARENT", "POLICY", "MESSAGE"],
    cells=_queue,
)
"""The figures stand in the order of RESOURCES (`cpu,memory`: `4,8Gi`), so that one queue is one line."""
QUEUEJOBS = Listed(
    resource=scheme.QUEUEJOBS,
    header=["NAME", "QUEUE", "STATE", "UNITS", "POSITION", "PRIORITY", "AGE"],
    wide=["UNIT", "WORKLOAD", "MESSAGE"],
    cells=_queuejob,
)


def claim_state(body: Json) -> str:
    """One word: what has become of a claim."""
    metadata, spec, status = parts(body)
    if metadata.get("deletionTimestamp"):
        return "Terminating"
    if _holds(status, queuejob.FINISHED):
        return "Finished"
    if _holds(status, queuejob.ALLOCATED):
        return "Started" if spec.get("workloadRef") else "Allocated"
    return "Waiting"


def explanation(status: Json) -> str:
    """The sentence that explains a Queue's figures: what is taken back, if anything is."""
    moving = condition(status, queue.RECLAIMING)
    found = moving if moving.get("status") == "True" else condition(status, queue.SATISFIED)
    return text.line(str(found.get("message") or ""))


def told_of_claim(status: Json) -> str:
    """The sentence that explains what a QueueJob has."""
    return text.line(str(condition(status, queuejob.ALLOCATED).get("message") or ""))


def resources_of(lists: Sequence[Any]) -> list[str]:
    """The names in lists of resources, cpu and memory first."""
    names = {name for each in lists for name in as_object(as_object(each).get("resources"))}
    return sorted(names, key=lambda name: (name not in ("cpu", "memory"), name))


def condition(status: Json, type_: str) -> Json:
    listed = status.get("conditions")
    found = map(as_object, listed if isinstance(listed, list) else [])
    return next((each for each in found if each.get("type") == type_), {})


def parts(body: Json) -> tuple[Json, Json, Json]:
    """metadata, spec and status."""
    return as_object(body.get("metadata")), as_object(body.get("spec")), as_object(body.get("status"))


def as_object(value: Any) -> Json:
    return value if isinstance(value, dict) else {}


def age(metadata: Json, now: datetime) -> str:
    try:
        then = datetime.fromisoformat(metadata.get("creationTimestamp") or "").astimezone(UTC)
    except (TypeError, ValueError):
        return text.NOTHING
    return text.age(then, now)


def _figures(listed: Any, names: Sequence[str]) -> str:
    amounts = as_object(as_object(listed).get("resources"))
    return ",".join(str(amounts.get(name, 0)) for name in names)


def _holds(status: Json, type_: str) -> bool:
    return condition(status, type_).get("status") == "True"


def _roles(spec: Json, status: Json) -> str:
    succeeded = {role.get("name"): role.get("succeeded", 0) for role in map(as_object, status.get("roleStatus") or [])}
    roles = map(as_object, spec.get("roles") or [])
    return ",".join(f"{r.get('name')}:{succeeded.get(r.get('name'), 0)}/{r.get('replicas', 1)}" for r in roles)
