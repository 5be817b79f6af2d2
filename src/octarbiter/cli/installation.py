"""What does a cluster need so that TaskSets run in it? The objects, built without a cluster at hand.

The controller's rights are those of its requests and no more: each rule names what it is for, and a test asks a real
API server for every one of them, and for some that must not be there.
"""

from __future__ import annotations

from octarbiter.api import crd, scheme, taskset
from octarbiter.api.meta import Json
from octarbiter.runtime import settings

NAME = "octarbiter-controller"
NAMESPACE = "octarbiter-system"
PORT = 8080
USER = 65532
"""Nobody in particular, but not root; also where the image says nothing."""

_LABELS = {"app.kubernetes.io/name": "octarbiter", "app.kubernetes.io/component": "controller"}
_LEASE = settings.Settings().lease_name

RULES: list[Json] = [
    # What it works on. Deletion: ttlSecondsAfterFinished.
    {"apiGroups": [taskset.GROUP], "resources": ["tasksets"], "verbs": ["get", "list", "watch", "delete"]},
    {"apiGroups": [taskset.GROUP], "resources": ["tasksets/status"], "verbs": ["patch"]},
    # Owner references that block the owner's deletion are a right of their own where
    # OwnerReferencesPermissionEnforcement is on: a TaskSet owns control units, these own pods and Services.
    {"apiGroups": [taskset.GROUP], "resources": ["tasksets/finalizers"], "verbs": ["update"]},
    {"apiGroups": [""], "resources": ["configmaps/finalizers"], "verbs": ["update"]},
    # What it makes and removes; `get` to see whether something of the same name is its own.
    {
        "apiGroups": [""],
        "resources": ["pods"],
        "verbs": ["get", "list", "watch", "create", "delete", "deletecollection"],
    },
    # Control units, which are never changed, and the lists of replicas of large TaskSets, which are (patch).
    {
        "apiGroups": [""],
        "resources": ["configmaps"],
        "verbs": ["get", "list", "watch", "create", "patch", "delete"],
    },
    # A Service goes with the control unit that owns it.
    {"apiGroups": [""], "resources": ["services"], "verbs": ["get", "list", "watch", "create"]},
    # Is the node of a pod that should go still Ready?
    {"apiGroups": [""], "resources": ["nodes"], "verbs": ["list", "watch"]},
    {"apiGroups": [""], "resources": ["events"], "verbs": ["create", "patch"]},
]

LEASE_RULES: list[Json] = [
    {"apiGroups": [scheme.LEASES.group], "resources": ["leases"], "verbs": ["create"]},
    {
        "apiGroups": [scheme.LEASES.group],
        "resources": ["leases"],
        "resourceNames": [_LEASE],
        "verbs": ["get", "update"],
    },
]


def crds() -> list[Json]:
    return [crd.render()]


def objects(image: str, namespace: str = NAMESPACE, replicas: int = 2) -> list[Json]:
    """In the order in which they can be created."""
    return [
        *crds(),
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}},
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": _metadata(namespace)},
        _role("ClusterRole", "", RULES),
        _binding("ClusterRole", "", namespace),
        _role("Role", namespace, LEASE_RULES),
        _binding("Role", namespace, namespace),
        _deployment(image, namespace, replicas),
    ]


def _metadata(namespace: str) -> Json:
    metadata: Json = {"name": NAME, "labels": _LABELS}
    return {**metadata, "namespace": namespace} if namespace else metadata


def _role(kind: str, namespace: str, rules: list[Json]) -> Json:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": kind,
        "metadata": _metadata(namespace),
        "rules": rules,
    }


def _binding(kind: str, namespace: str, account_namespace: str) -> Json:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": f"{kind}Binding",
        "metadata": _metadata(namespace),
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": NAME},
        "subjects": [{"kind": "ServiceAccount", "name": NAME, "namespace": account_namespace}],
    }


def _deployment(image: str, namespace: str, replicas: int) -> Json:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": _metadata(namespace),
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": _LABELS},
            "template": {"metadata": {"labels": _LABELS}, "spec": _pod(image, namespace)},
        },
    }


def _pod(image: str, namespace: str) -> Json:
    return {
        "serviceAccountName": NAME,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": USER,
            "runAsGroup": USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        # One leads, the others stand by: on another node, where there is one.
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "kubernetes.io/hostname",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": _LABELS},
            }
        ],
        "containers": [_container(image, namespace)],
    }


def _container(image: str, namespace: str) -> Json:
    return {
        "name": "controller",
        "image": image,
        "command": ["octo", "controller"],
        "args": ["--leader-elect", f"--lease-namespace={namespace}", f"--health-address=:{PORT}", "--log-format=json"],
        "ports": [{"name": "health", "containerPort": PORT}],
        "livenessProbe": {
            "httpGet": {"path": "/healthz", "port": "health"},
            "initialDelaySeconds": 10,
            "periodSeconds": 10,
            "timeoutSeconds": 5,
            "failureThreshold": 6,
        },
        "readinessProbe": {"httpGet": {"path": "/readyz", "port": "health"}, "periodSeconds": 5, "timeoutSeconds": 5},
        "resources": {"requests": {"cpu": "100m", "memory": "256Mi"}, "limits": {"memory": "2Gi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
    }
