"""What does a built-in object mean where it says nothing?

Written by hand, kind by kind, because the published schemas name almost none of it. `apply` belongs to every write, on
an object in the form of `decoding.prune`; doing it twice changes nothing more. `complete` comes after admission.
"""

from __future__ import annotations

from collections.abc import Callable

from octarbiter.cluster.apiserver.defaults import completion, furniture, pods, workloads
from octarbiter.cluster.apiserver.defaults.filling import Json

_BY_KIND: dict[tuple[str, str], Callable[[Json], None]] = {
    ("", "Endpoints"): furniture.endpoints,
    ("", "LimitRange"): furniture.limit_range,
    ("", "Namespace"): furniture.namespace,
    ("", "Node"): furniture.node,
    ("", "PersistentVolume"): furniture.volume,
    ("", "PersistentVolumeClaim"): furniture.volume_claim,
    ("", "Pod"): pods.pod,
    ("", "PodTemplate"): workloads.pod_template,
    ("", "ReplicationController"): workloads.replication_controller,
    ("", "Secret"): furniture.secret,
    ("", "Service"): furniture.service,
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"): furniture.webhooks,
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"): furniture.admission_policy,
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding"): furniture.admission_policy_binding,
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"): furniture.webhooks,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): furniture.custom_resource_definition,
    ("apiregistration.k8s.io", "APIService"): furniture.api_service,
    ("apps", "DaemonSet"): workloads.daemon_set,
    ("apps", "Deployment"): workloads.deployment,
    ("apps", "ReplicaSet"): workloads.replica_set,
    ("apps", "StatefulSet"): workloads.stateful_set,
    ("authentication.k8s.io", "TokenRequest"): furniture.token_request,
    ("autoscaling", "HorizontalPodAutoscaler"): workloads.autoscaler,
    ("batch", "CronJob"): workloads.cron_job,
    ("batch", "Job"): workloads.job,
    ("discovery.k8s.io", "EndpointSlice"): furniture.endpoint_slice,
    ("networking.k8s.io", "IngressClass"): furniture.ingress_class,
    ("networking.k8s.io", "NetworkPolicy"): furniture.network_policy,
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): furniture.role_binding,
    ("rbac.authorization.k8s.io", "RoleBinding"): furniture.role_binding,
    ("resource.k8s.io", "ResourceClaim"): furniture.device_requests,
    ("resource.k8s.io", "ResourceClaimTemplate"): furniture.device_requests_of_template,
    ("scheduling.k8s.io", "PriorityClass"): furniture.priority_class,
    ("storage.k8s.io", "CSIDriver"): furniture.csi_driver,
    ("storage.k8s.io", "StorageClass"): furniture.storage_class,
}


def apply(group: str, kind: str, obj: Json) -> None:
    """In place; kinds of which nothing is known stay as they are."""
    fill = _BY_KIND.get((group, kind))
    if fill is not None:
        fill(obj)


_COMPLETED: dict[tuple[str, str], Callable[[Json, Json | None], None]] = {
    # Once more: a generated name is known only now, and the label tells it.
    ("", "Namespace"): lambda obj, _: furniture.namespace(obj),
    ("", "Pod"): completion.pod,
    ("", "Service"): completion.service,
    ("apps", "DaemonSet"): completion.daemon_set,
    ("batch", "Job"): completion.job,
    ("coordination.k8s.io", "Lease"): completion.lease,
    ("rbac.authorization.k8s.io", "ClusterRole"): completion.role,
    ("rbac.authorization.k8s.io", "Role"): completion.role,
}


def complete(group: str, kind: str, obj: Json, old: Json | None) -> None:
    """In place; `old` is None for a new object, which has its name and its UID by now."""
    finish = _COMPLETED.get((group, kind))
    if finish is not None:
        finish(obj, old)
