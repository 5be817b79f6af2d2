"""What is a pod of a Job made of, and what does it tell about itself?"""

from __future__ import annotations

import copy
from datetime import datetime

from octarbiter.api.meta import Json
from octarbiter.cluster.controllers.kinds import JOBS, Job, Pod

JOB_NAME = "batch.kubernetes.io/job-name"
CONTROLLER_UID = "batch.kubernetes.io/controller-uid"
LEGACY_JOB_NAME = "job-name"
LEGACY_CONTROLLER_UID = "controller-uid"
INDEX = "batch.kubernetes.io/job-completion-index"
INDEX_VARIABLE = "JOB_COMPLETION_INDEX"
TRACKING = "batch.kubernetes.io/job-tracking"
"""The finalizer of a pod whose outcome is not yet in the Job's status."""

LONGEST_PREFIX = 58
"""Of a generated name: the server adds five characters."""


def body(job: Job, index: int | None) -> Json:
    template = copy.deepcopy(job.spec.template)
    given: Json = template.get("metadata") or {}
    meta = job.metadata
    labels = {
        **(given.get("labels") or {}),
        JOB_NAME: meta.name,
        LEGACY_JOB_NAME: meta.name,
        CONTROLLER_UID: meta.uid,
        LEGACY_CONTROLLER_UID: meta.uid,
    }
    annotations = dict(given.get("annotations") or {})
    spec: Json = template.get("spec") or {}
    ending = "-"
    if index is not None:
        ending = f"-{index}-"
        labels[INDEX] = annotations[INDEX] = str(index)
        spec.setdefault("hostname", f"{meta.name}-{index}"[:63].rstrip("-."))
        for container in [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]:
            _tell_index(container)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "generateName": meta.name[: LONGEST_PREFIX - len(ending)] + ending,
            "namespace": meta.namespace,
            "labels": labels,
            "annotations": annotations,
            "finalizers": [*(given.get("finalizers") or ()), TRACKING],
            "ownerReferences": [
                {
                    "apiVersion": JOBS.api_version,
                    "kind": JOBS.kind,
                    "name": meta.name,
                    "uid": meta.uid,
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "spec": spec,
    }


def _tell_index(container: Json) -> None:
    variables: list[Json] = container.setdefault("env", [])
    if not any(variable.get("name") == INDEX_VARIABLE for variable in variables):
        path = f"metadata.labels['{INDEX}']"
        variables.append({"name": INDEX_VARIABLE, "valueFrom": {"fieldRef": {"fieldPath": path}}})


def is_tracked(pod: Pod) -> bool:
    return TRACKING in pod.metadata.finalizers


def has_succeeded(pod: Pod) -> bool:
    return pod.status.phase == "Succeeded"


def has_failed(pod: Pod) -> bool:
    """A pod that was told to go counts as failed at once, and is replaced at once."""
    if pod.status.phase == "Failed":
        return True
    return pod.metadata.deletion_timestamp is not None and pod.status.phase != "Succeeded"


def is_active(pod: Pod) -> bool:
    return not has_succeeded(pod) and not has_failed(pod)


def is_terminating(pod: Pod) -> bool:
    return pod.metadata.deletion_timestamp is not None and not pod.is_terminal


def index_of(pod: Pod) -> int | None:
    text = pod.metadata.annotations.get(INDEX, "")
    return int(text) if text.isdecimal() and len(text) < 10 else None


def finished_at(pod: Pod) -> datetime | None:
    """When its last container ended; for a pod that was deleted, when that was asked for."""
    ends = [
        status.state.terminated.finished_at
        for status in pod.status.container_statuses
        if status.state.terminated is not None and status.state.terminated.finished_at is not None
    ]
    return max(ends) if ends else pod.metadata.deletion_timestamp or pod.metadata.creation_timestamp


def restarts(pod: Pod) -> int:
    return sum(status.restart_count for status in pod.status.container_statuses)
