"""What runs pods: jobs, deployments and their kin."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from octarbiter.api.meta import Json
from octarbiter.cluster.apiserver.tables import ages
from octarbiter.cluster.apiserver.tables.ages import UNKNOWN
from octarbiter.cluster.apiserver.tables.cluster import age_of, name_of
from octarbiter.cluster.apiserver.tables.layout import Cells, Layout, columns
from octarbiter.cluster.apiserver.tables.reading import (
    NONE,
    UNSET,
    amount,
    containers,
    count,
    dig,
    is_true,
    labels,
    many,
    mapping,
    selector,
    text,
)

_JOB_STATES = (
    ("Suspended", "Suspended"),
    ("FailureTarget", "FailureTarget"),
    ("SuccessCriteriaMet", "SuccessCriteriaMet"),
)


def _job(job: Json, now: datetime) -> Cells:
    return [
        name_of(job),
        _job_status(job),
        _job_completions(job),
        _job_duration(job, now),
        age_of(job, now),
        *containers(dig(job, "spec", "template", "spec")),
        selector(dig(job, "spec", "selector")) or NONE,
    ]


def _job_status(job: Json) -> str:
    if is_true(job, "Complete"):
        return "Complete"
    if is_true(job, "Failed"):
        return "Failed"
    if dig(job, "metadata", "deletionTimestamp") is not None:
        return "Terminating"
    return next((name for name, condition in _JOB_STATES if is_true(job, condition)), "Running")


def _job_completions(job: Json) -> str:
    succeeded = count(job, "status", "succeeded")
    wanted = dig(job, "spec", "completions")
    if wanted is not None:
        return f"{succeeded}/{wanted}"
    parallelism = count(job, "spec", "parallelism")
    return f"{succeeded}/1 of {parallelism}" if parallelism > 1 else f"{succeeded}/1"


def _job_duration(job: Json, now: datetime) -> str:
    started = ages.moment(dig(job, "status", "startTime"))
    if started is None:
        return ""
    ended = ages.moment(dig(job, "status", "completionTime")) or now
    return ages.human((ended - started).total_seconds())


def _cron_job(cron: Json, now: datetime) -> Cells:
    job = mapping(cron, "spec", "jobTemplate", "spec")
    suspend = dig(cron, "spec", "suspend")
    last = dig(cron, "status", "lastScheduleTime")
    return [
        name_of(cron),
        text(cron, "spec", "schedule"),
        text(cron, "spec", "timeZone") or NONE,
        UNSET if suspend is None else "True" if suspend else "False",
        len(many(cron, "status", "active")),
        NONE if last is None else ages.since(last, now),
        age_of(cron, now),
        *containers(dig(job, "template", "spec")),
        selector(dig(job, "selector")) or NONE,
    ]


def _deployment(deployment: Json, now: datetime) -> Cells:
    status = mapping(deployment, "status")
    return [
        name_of(deployment),
        f"{count(status, 'readyReplicas')}/{count(deployment, 'spec', 'replicas')}",
        count(status, "updatedReplicas"),
        count(status, "availableReplicas"),
        age_of(deployment, now),
        *containers(dig(deployment, "spec", "template", "spec")),
        selector(dig(deployment, "spec", "selector")),
    ]


def _replicas(owner: Json, now: datetime) -> Cells:
    return [
        name_of(owner),
        count(owner, "spec", "replicas"),
        count(owner, "status", "replicas"),
        count(owner, "status", "readyReplicas"),
        age_of(owner, now),
        *containers(dig(owner, "spec", "template", "spec")),
    ]


def _replica_set(owner: Json, now: datetime) -> Cells:
    return [*_replicas(owner, now), selector(dig(owner, "spec", "selector")) or NONE]


def _replication_controller(owner: Json, now: datetime) -> Cells:
    return [*_replicas(owner, now), labels(mapping(owner, "spec", "selector"))]


def _stateful_set(owner: Json, now: datetime) -> Cells:
    ready = f"{count(owner, 'status', 'readyReplicas')}/{count(owner, 'spec', 'replicas')}"
    return [name_of(owner), ready, age_of(owner, now), *containers(dig(owner, "spec", "template", "spec"))]


def _daemon_set(owner: Json, now: datetime) -> Cells:
    status = mapping(owner, "status")
    pod_spec = mapping(owner, "spec", "template", "spec")
    return [
        name_of(owner),
        count(status, "desiredNumberScheduled"),
        count(status, "currentNumberScheduled"),
        count(status, "numberReady"),
        count(status, "updatedNumberScheduled"),
        count(status, "numberAvailable"),
        labels(mapping(pod_spec, "nodeSelector")),
        age_of(owner, now),
        *containers(pod_spec),
        selector(dig(owner, "spec", "selector")) or NONE,
    ]


def _controller_revision(revision: Json, now: datetime) -> Cells:
    owners = many(revision, "metadata", "ownerReferences")
    owner = next((each for each in owners if each.get("controller") is True), None)
    controller = NONE
    if owner is not None:
        group = text(owner, "apiVersion").rpartition("/")[0]
        kind = f"{text(owner, 'kind')}.{group}" if group else text(owner, "kind")
        controller = f"{kind.lower()}/{text(owner, 'name')}"
    return [name_of(revision), controller, count(revision, "revision"), age_of(revision, now)]


def _disruption_budget(budget: Json, now: datetime) -> Cells:
    limits = [dig(budget, "spec", "minAvailable"), dig(budget, "spec", "maxUnavailable")]
    return [
        name_of(budget),
        *("N/A" if limit is None else str(limit) for limit in limits),
        count(budget, "status", "disruptionsAllowed"),
        age_of(budget, now),
    ]


def _autoscaler(scaler: Json, now: datetime) -> Cells:
    least = dig(scaler, "spec", "minReplicas")
    target = mapping(scaler, "spec", "scaleTargetRef")
    return [
        name_of(scaler),
        f"{text(target, 'kind')}/{text(target, 'name')}",
        _metrics(scaler),
        UNSET if least is None else str(least),
        count(scaler, "spec", "maxReplicas"),
        count(scaler, "status", "currentReplicas"),
        age_of(scaler, now),
    ]


def _metrics(scaler: Json) -> str:
    specs, statuses = many(scaler, "spec", "metrics"), many(scaler, "status", "currentMetrics")
    if not specs:
        return NONE
    shown = [_metric(spec, statuses[index] if index < len(statuses) else {}) for index, spec in enumerate(specs)]
    more = f" + {len(shown) - 2} more..." if len(shown) > 2 else ""
    return ", ".join(shown[:2]) + more


_SOURCES = {
    "External": "external",
    "Pods": "pods",
    "Object": "object",
    "Resource": "resource",
    "ContainerResource": "containerResource",
}


def _metric(spec: Json, status: Json) -> str:
    source = _SOURCES.get(text(spec, "type"))
    if source is None:
        return "<unknown type>"
    target, current = mapping(spec, source, "target"), mapping(status, source, "current")
    if source in ("resource", "containerResource"):
        return f"{text(spec, source, 'name')}: {_resource_metric(target, current)}"
    if source == "pods":
        return f"{_measured(current.get('averageValue'))}/{amount(target.get('averageValue'))}"
    if "averageValue" in target:
        return f"{_measured(current.get('averageValue'))}/{amount(target['averageValue'])} (avg)"
    return f"{_measured(current.get('value'))}/{amount(target.get('value'))}"


def _resource_metric(target: Json, current: Json) -> str:
    if "averageValue" in target:
        return f"{_measured(current.get('averageValue'))}/{amount(target['averageValue'])}"
    wanted = target.get("averageUtilization")
    used = current.get("averageUtilization")
    return f"{UNKNOWN if used is None else f'{used}%'}/{'<auto>' if wanted is None else f'{wanted}%'}"


def _measured(value: Any) -> str:
    return UNKNOWN if value is None else amount(value)


def _scale(scale: Json, now: datetime) -> Cells:
    return [name_of(scale), count(scale, "spec", "replicas"), count(scale, "status", "replicas"), age_of(scale, now)]


_POD_COLUMNS = ("Containers*", "Images*", "Selector*")
_REPLICA_COLUMNS = columns("Name", "Desired:integer", "Current:integer", "Ready:integer", "Age", *_POD_COLUMNS)

_ANOTHERS_NAME = msgspec.structs.replace(columns("Name")[0], format="")
"""Of what a Scale is a view of."""

LAYOUTS: dict[tuple[str, str], Layout] = {
    ("batch", "Job"): Layout(columns("Name", "Status", "Completions", "Duration", "Age", *_POD_COLUMNS), _job),
    ("batch", "CronJob"): Layout(
        columns(
            "Name", "Schedule", "Timezone", "Suspend:boolean", "Active:integer", "Last Schedule", "Age", *_POD_COLUMNS
        ),
        _cron_job,
    ),
    ("apps", "Deployment"): Layout(
        columns("Name", "Ready", "Up-to-date", "Available", "Age", *_POD_COLUMNS), _deployment
    ),
    ("apps", "ReplicaSet"): Layout(_REPLICA_COLUMNS, _replica_set),
    ("", "ReplicationController"): Layout(_REPLICA_COLUMNS, _replication_controller),
    ("apps", "StatefulSet"): Layout(columns("Name", "Ready", "Age", "Containers*", "Images*"), _stateful_set),
    ("apps", "DaemonSet"): Layout(
        columns(
            "Name",
            "Desired:integer",
            "Current:integer",
            "Ready:integer",
            "Up-to-date:integer",
            "Available:integer",
            "Node Selector",
            "Age",
            *_POD_COLUMNS,
        ),
        _daemon_set,
    ),
    ("apps", "ControllerRevision"): Layout(columns("Name", "Controller", "Revision", "Age"), _controller_revision),
    ("policy", "PodDisruptionBudget"): Layout(
        columns("Name", "Min Available", "Max Unavailable", "Allowed Disruptions:integer", "Age"), _disruption_budget
    ),
    ("autoscaling", "HorizontalPodAutoscaler"): Layout(
        columns("Name", "Reference", "Targets", "MinPods", "MaxPods", "Replicas", "Age"), _autoscaler
    ),
    ("autoscaling", "Scale"): Layout((_ANOTHERS_NAME, *columns("Desired:integer", "Available:integer", "Age")), _scale),
}
