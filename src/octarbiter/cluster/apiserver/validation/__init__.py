"""Is an object acceptable? All problems at once, in the words of the real server.

Not everything that a real server refuses: what people meet first. An object that passes here and not there is a gap
and worth a case in `tests/unit/cluster/answers/refusals.json`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from octarbiter.cluster.apiserver.validation import (
    cluster,
    contents,
    jobs,
    limits,
    metadata,
    names,
    permissions,
    pod_parts,
    pods,
    services,
    statuses,
    workloads,
)
from octarbiter.cluster.apiserver.validation.problems import Problem

__all__ = ["Problem", "validate"]

Json = dict[str, Any]

_ADMISSION = "admissionregistration.k8s.io"
_RBAC = "rbac.authorization.k8s.io"

_NAME_RULES: dict[tuple[str, str], metadata.NameRule] = {
    ("", "Event"): names.path_segment,
    ("", "Namespace"): names.label,
    ("", "Service"): names.label_1035,
    ("events.k8s.io", "Event"): names.path_segment,
    (_RBAC, "ClusterRole"): names.path_segment,
    (_RBAC, "ClusterRoleBinding"): names.path_segment,
    (_RBAC, "Role"): names.path_segment,
    (_RBAC, "RoleBinding"): names.path_segment,
    ("apiregistration.k8s.io", "APIService"): names.path_segment,
}
_NOT_LOOKED_AT = {("", "Event"), ("events.k8s.io", "Event"), ("policy", "PodDisruptionBudget")}
"""Kinds that leave the metadata of an update to the rules for all kinds."""
_LOOKED_AT_TWICE = {
    *(("", kind) for kind in ("ConfigMap", "Endpoints", "Namespace", "Node", "PersistentVolumeClaim", "Pod", "Secret")),
    ("", "ServiceAccount"),
    ("batch", "Job"),
    ("networking.k8s.io", "NetworkPolicy"),
    *((_RBAC, kind) for kind in ("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")),
}
"""Kinds that check an updated object as if it were new, and then as an update."""
_FREE_FINALIZERS = _NOT_LOOKED_AT | {("coordination.k8s.io", "Lease")}
_WITHOUT_NAME = ("authentication.k8s.io", "authorization.k8s.io")
"""Groups of questions that are answered and not kept."""

_RULES: dict[tuple[str, str], Callable[[Json, Json | None], Iterator[Problem]]] = {
    ("", "ConfigMap"): contents.config_map,
    ("", "Endpoints"): services.endpoints,
    ("", "Event"): cluster.core_event,
    ("", "LimitRange"): limits.limit_range,
    ("", "Namespace"): cluster.namespace,
    ("", "Node"): cluster.node,
    ("", "PersistentVolume"): contents.volume,
    ("", "PersistentVolumeClaim"): contents.volume_claim,
    ("", "Pod"): pods.pod,
    ("", "PodTemplate"): workloads.pod_template,
    ("", "ReplicationController"): workloads.replication_controller,
    ("", "ResourceQuota"): limits.quota,
    ("", "Secret"): contents.secret,
    ("", "Service"): services.service,
    (_ADMISSION, "MutatingWebhookConfiguration"): permissions.webhooks,
    (_ADMISSION, "ValidatingWebhookConfiguration"): permissions.webhooks,
    ("apps", "ControllerRevision"): workloads.controller_revision,
    ("apps", "DaemonSet"): workloads.daemon_set,
    ("apps", "Deployment"): workloads.deployment,
    ("apps", "ReplicaSet"): workloads.replica_set,
    ("apps", "StatefulSet"): workloads.stateful_set,
    ("autoscaling", "HorizontalPodAutoscaler"): workloads.autoscaler,
    ("batch", "CronJob"): jobs.cron_job,
    ("batch", "Job"): jobs.job,
    ("coordination.k8s.io", "Lease"): cluster.lease,
    ("discovery.k8s.io", "EndpointSlice"): services.endpoint_slice,
    ("events.k8s.io", "Event"): cluster.event,
    ("networking.k8s.io", "Ingress"): services.ingress,
    ("networking.k8s.io", "NetworkPolicy"): services.network_policy,
    ("node.k8s.io", "RuntimeClass"): cluster.runtime_class,
    ("policy", "PodDisruptionBudget"): workloads.disruption_budget,
    (_RBAC, "ClusterRole"): permissions.cluster_role,
    (_RBAC, "ClusterRoleBinding"): permissions.cluster_role_binding,
    (_RBAC, "Role"): permissions.role,
    (_RBAC, "RoleBinding"): permissions.role_binding,
    ("scheduling.k8s.io", "PriorityClass"): limits.priority_class,
    ("storage.k8s.io", "StorageClass"): cluster.storage_class,
}


_DOORS: dict[str, Callable[[str, str, Json, Json], Iterable[Problem]]] = {
    "status": statuses.validate,
    "ephemeralcontainers": lambda _group, _kind, obj, old: pod_parts.ephemeral_containers(obj, old),
    "resize": lambda _group, _kind, obj, old: pod_parts.resize(obj, old),
}
"""Subresources through which only a part of an object changes."""


def validate(group: str, kind: str, obj: Json, old: Json | None, subresource: str = "") -> list[Problem]:
    """Of a pruned object with its defaults; `old` is what an update replaces."""
    found = [] if group in _WITHOUT_NAME else metadata_of(group, kind, obj, old, subresource)
    if old is not None and subresource in _DOORS:
        return [*found, *_DOORS[subresource](group, kind, obj, old)]
    rules_of_kind = _RULES.get((group, kind))
    return [*found, *rules_of_kind(obj, old)] if rules_of_kind is not None else found


def metadata_of(group: str, kind: str, obj: Json, old: Json | None, subresource: str = "") -> list[Problem]:
    """The real server looks at the metadata of an update several times, and says so each time."""
    if old is not None and metadata.is_as_before(obj, old):
        return []
    if (group, kind) == ("batch", "Job") and old is None:
        obj = jobs.without_generated_labels(obj)
    found = [*metadata.problems(obj, _NAME_RULES.get((group, kind), names.subdomain))]
    if (group, kind) in _FREE_FINALIZERS:
        found = [each for each in found if not metadata.is_of_finalizers(each)]
    if old is None or not found:
        return found
    looks = 2 if (group, kind) in _LOOKED_AT_TWICE and subresource != "status" else 1
    if (group, kind) in _NOT_LOOKED_AT:
        looks = 0
    return [each for each in found if not metadata.is_of_finalizers(each)] * 2 + found * looks
