"""What does a cluster need so that TaskSets run in it? The objects, built without a cluster at hand.

The controller's rights are those of its requests and no more: each rule names what it is for, and a test asks a real
API server for every one of them, and for some that must not be there.
"""

from __future__ import annotations

from octarbiter.api import crd, kinds
from octarbiter.api.meta import Json
from octarbiter.runtime import settings
from octarbiter.services import rights

NAME = "octarbiter-controller"
NAMESPACE = "octarbiter-system"
PORT = 8080
USER = 65532
"""Nobody in particular, but not root; also where the image says nothing."""

_LABELS = {"app.kubernetes.io/name": "octarbiter", "app.kubernetes.io/component": "controller"}
_LEASE = settings.Settings().lease_name

ARBITRATOR_TASKSET_WARNING = (
    "Warning: a server lists groups by name, and of two kinds called TaskSet kubectl takes the first: `kubectl get "
    f"taskset` will mean {kinds.OLDER_TASKSET.definition}. Say `ts` or `{kinds.TASKSET.definition}` for the jobs."
)

RULES = rights.TASKSET_CONTROLLER
LEASE_RULES = rights.lease(_LEASE)


def crds(*, arbitrator_taskset: bool = False) -> list[Json]:
    """`arbitrator_taskset`: also the older name of QueueJob."""
    return [crd.render(kind) for kind in (kinds.ALL if arbitrator_taskset else kinds.INSTALLED)]


def objects(
    image: str, namespace: str = NAMESPACE, replicas: int = 2, *, arbitrator_taskset: bool = False
) -> list[Json]:
    """In the order in which they can be created."""
    return [
        *crds(arbitrator_taskset=arbitrator_taskset),
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
