"""What absent means in what makes pods: jobs, deployments and their kin, and what scales them."""

from __future__ import annotations

import copy

from octarbiter.cluster.apiserver.defaults import pods
from octarbiter.cluster.apiserver.defaults.filling import Json, absent, empty, items, part

_WITHOUT_LIMIT = 2**31 - 1


def job(obj: Json) -> None:
    spec = part(obj, "spec")
    job_spec(spec)
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = spec["parallelism"] = 1
    absent(spec, "parallelism", 1)
    absent(spec, "backoffLimit", 6 if spec.get("backoffLimitPerIndex") is None else _WITHOUT_LIMIT)
    _labels_of_template(obj, spec)
    absent(spec, "completionMode", "NonIndexed")
    absent(spec, "suspend", False)
    absent(spec, "podReplacementPolicy", "TerminatingOrFailed" if spec.get("podFailurePolicy") is None else "Failed")
    absent(spec, "manualSelector", False)


def job_spec(spec: Json) -> None:
    """What jobs and the templates of cron jobs share."""
    pods.template(part(spec, "template"))
    for rule in items(spec, "podFailurePolicy", "rules"):
        for pattern in items(rule, "onPodConditions"):
            empty(pattern, "status", "True")


def cron_job(obj: Json) -> None:
    spec = part(obj, "spec")
    empty(spec, "concurrencyPolicy", "Allow")
    absent(spec, "suspend", False)
    absent(spec, "successfulJobsHistoryLimit", 3)
    absent(spec, "failedJobsHistoryLimit", 1)
    job_spec(part(part(spec, "jobTemplate"), "spec"))


def deployment(obj: Json) -> None:
    spec = part(obj, "spec")
    absent(spec, "replicas", 1)
    strategy = part(spec, "strategy")
    empty(strategy, "type", "RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        rolling = part(strategy, "rollingUpdate")
        absent(rolling, "maxUnavailable", "25%")
        absent(rolling, "maxSurge", "25%")
    absent(spec, "revisionHistoryLimit", 10)
    absent(spec, "progressDeadlineSeconds", 600)
    pods.template(part(spec, "template"))


def replica_set(obj: Json) -> None:
    spec = part(obj, "spec")
    absent(spec, "replicas", 1)
    pods.template(part(spec, "template"))


TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"


def daemon_set(obj: Json) -> None:
    spec = part(obj, "spec")
    strategy = part(spec, "updateStrategy")
    empty(strategy, "type", "RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        rolling = part(strategy, "rollingUpdate")
        absent(rolling, "maxUnavailable", 1)
        absent(rolling, "maxSurge", 0)
    absent(spec, "revisionHistoryLimit", 10)
    pods.template(part(spec, "template"))
    absent(part(part(obj, "metadata"), "annotations"), TEMPLATE_GENERATION, "1")


def stateful_set(obj: Json) -> None:
    spec = part(obj, "spec")
    empty(spec, "podManagementPolicy", "OrderedReady")
    strategy = part(spec, "updateStrategy")
    if not strategy.get("type"):
        strategy["type"] = "RollingUpdate"
        part(strategy, "rollingUpdate")
    if strategy["type"] == "RollingUpdate" and isinstance(rolling := strategy.get("rollingUpdate"), dict):
        absent(rolling, "partition", 0)
    retention = part(spec, "persistentVolumeClaimRetentionPolicy")
    empty(retention, "whenDeleted", "Retain")
    empty(retention, "whenScaled", "Retain")
    absent(spec, "replicas", 1)
    absent(spec, "revisionHistoryLimit", 10)
    for claim in items(spec, "volumeClaimTemplates"):
        claim |= {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}
        empty(part(claim, "status"), "phase", "Pending")
        absent(part(claim, "spec"), "volumeMode", "Filesystem")
    pods.template(part(spec, "template"))


def replication_controller(obj: Json) -> None:
    spec = part(obj, "spec")
    absent(spec, "replicas", 1)
    if isinstance(template := spec.get("template"), dict):
        labels = (template.get("metadata") or {}).get("labels")
        if labels:
            empty(spec, "selector", dict(labels))
        _labels_of_template(obj, spec)
        pods.template(template)


def pod_template(obj: Json) -> None:
    pods.template(part(obj, "template"))


def _labels_of_template(obj: Json, spec: Json) -> None:
    labels = (part(spec, "template").get("metadata") or {}).get("labels")
    if labels:
        empty(part(obj, "metadata"), "labels", dict(labels))


_CPU = {
    "type": "Resource",
    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}},
}
_SCALE_UP: Json = {
    "stabilizationWindowSeconds": 0,
    "selectPolicy": "Max",
    "policies": [
        {"type": "Pods", "value": 4, "periodSeconds": 15},
        {"type": "Percent", "value": 100, "periodSeconds": 15},
    ],
}
_SCALE_DOWN: Json = {
    "selectPolicy": "Max",
    "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}],
}


def autoscaler(obj: Json) -> None:
    spec = part(obj, "spec")
    absent(spec, "minReplicas", 1)
    empty(spec, "metrics", [copy.deepcopy(_CPU)])
    if isinstance(behavior := spec.get("behavior"), dict):
        for name, rules in (("scaleUp", _SCALE_UP), ("scaleDown", _SCALE_DOWN)):
            for key, value in rules.items():
                absent(part(behavior, name), key, copy.deepcopy(value))
