"""What do the objects of a TaskSet look like: its control unit, its Service, its pods? Section 5 of the contract."""

from __future__ import annotations

from typing import Any

from octarbiter.api import codec
from octarbiter.api import taskset as api
from octarbiter.api.meta import Json
from octarbiter.core.lifecycle import names

LIST_LINES = 500
"""Replicas per ConfigMap, which may hold 1 MiB."""


def control_unit(taskset: api.TaskSet, attempt: int) -> Json:
    name = taskset.metadata.name
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": names.control_unit(name, attempt),
            "namespace": taskset.metadata.namespace,
            "labels": _labels(taskset, attempt),
            "ownerReferences": [_owner(api.API_VERSION, api.KIND, name, taskset.metadata.uid)],
        },
    }


def service(taskset: api.TaskSet) -> Json:
    """Headless, and with the addresses of pods that are not ready: peers look for each other while they start."""
    name = taskset.metadata.name
    attempt = taskset.status.attempt
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": names.service(name),
            "namespace": taskset.metadata.namespace,
            "labels": _labels(taskset, attempt),
            "ownerReferences": [_owner_unit(taskset)],
        },
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": {names.TASKSET_LABEL: name, names.UID_LABEL: taskset.metadata.uid},
        },
    }


def replica_lists(taskset: api.TaskSet) -> list[Json]:
    """All replicas of a TaskSet too large to list them in its status: a line each, in as many ConfigMaps as it takes.
    Without the labels of what an attempt owns: they stay when it has ended."""
    lines = [codec.encode(replica).decode() for role in taskset.status.role_status for replica in role.replica_status]
    name, attempt = taskset.metadata.name, taskset.status.attempt
    return [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": names.replica_list(name, attempt, part),
                "namespace": taskset.metadata.namespace,
                "labels": {names.TASKSET_LABEL: name},
                "ownerReferences": [_owner(api.API_VERSION, api.KIND, name, taskset.metadata.uid)],
            },
            "data": {names.REPLICA_LIST_KEY: "\n".join(lines[start : start + LIST_LINES])},
        }
        for part, start in enumerate(range(0, len(lines), LIST_LINES))
    ]


def pod(taskset: api.TaskSet, role: api.Role, index: int, attempt: int) -> Json:
    """The template, unchanged but for what the contract adds. Nothing of the template is copied deeper than it is
    changed: thousands of pods share it."""
    template_meta: dict[str, Any] = role.template.get("metadata") or {}
    name = taskset.metadata.name
    labels = {
        **(template_meta.get("labels") or {}),
        **_labels(taskset, taskset.status.attempt),
        names.ROLE_LABEL: role.name,
        names.INDEX_LABEL: str(index),
    }
    metadata: Json = {
        "name": names.pod(name, role.name, taskset.status.attempt, attempt, index),
        "namespace": taskset.metadata.namespace,
        "labels": labels,
        "ownerReferences": [_owner_unit(taskset)],
    }
    for kept in ("annotations", "finalizers"):
        if template_meta.get(kept):
            metadata[kept] = template_meta[kept]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": _pod_spec(taskset, role, index),
    }


def _pod_spec(taskset: api.TaskSet, role: api.Role, index: int) -> Json:
    env = [
        {"name": "TASKSET_NAMESPACE", "value": taskset.metadata.namespace},
        {"name": "TASKSET_NAME", "value": taskset.metadata.name},
        {"name": "TASKROLE_NAME", "value": role.name},
        {"name": "TASKROLE_REPLICA_INDEX", "value": str(index)},
        {"name": "TASKROLE_REPLICAS", "value": str(role.replicas)},
        {"name": "TASKSET_ATTEMPT", "value": str(taskset.status.attempt)},
    ]
    spec: Json = dict(role.template.get("spec") or {})
    spec["restartPolicy"] = spec.get("restartPolicy") or "Never"
    if taskset.spec.priority_class_name and not spec.get("priorityClassName"):
        spec["priorityClassName"] = taskset.spec.priority_class_name
    spec.setdefault("hostname", names.hostname(role.name, index))
    spec.setdefault("subdomain", names.service(taskset.metadata.name))
    for kind in ("containers", "initContainers"):
        if isinstance(spec.get(kind), list):
            spec[kind] = [_container(container, env) for container in spec[kind]]
    return spec


def _container(container: Any, env: list[dict[str, str]]) -> Any:
    if not isinstance(container, dict):
        # Not a container at all: the API server will say so in its own words.
        return container
    own = container.get("env") or []
    # Ours first, so that the user's may refer to them; a user's variable of the same name comes later and wins.
    return {
        "terminationMessagePolicy": "FallbackToLogsOnError",
        **container,
        "env": [*env, *own] if isinstance(own, list) else own,
    }


def _labels(taskset: api.TaskSet, attempt: int) -> dict[str, str]:
    return {
        names.TASKSET_LABEL: taskset.metadata.name,
        names.UID_LABEL: taskset.metadata.uid,
        names.ATTEMPT_LABEL: str(attempt),
    }


def _owner_unit(taskset: api.TaskSet) -> Json:
    name = names.control_unit(taskset.metadata.name, taskset.status.attempt)
    return _owner("v1", "ConfigMap", name, taskset.status.control_unit_uid)


def _owner(api_version: str, kind: str, name: str, uid: str) -> Json:
    return {
        "apiVersion": api_version,
        "kind": kind,
        "name": name,
        "uid": uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
