"""How does one of our processes run in a cluster? Its account, its rights and its Deployment, the same for each."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from octarbiter.api.meta import Json

HEALTH_PORT = 8080
USER = 65532
"""Nobody in particular, but not root; also where the image says nothing."""


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """One command of `octo` that stays."""

    component: str
    rules: list[Json]
    rules_at_home: list[Json]
    """In its own namespace."""
    ports: dict[str, int] = {}
    """Beside the one for health."""

    @property
    def name(self) -> str:
        return f"octarbiter-{self.component}"

    @property
    def labels(self) -> dict[str, str]:
        return {"app.kubernetes.io/name": "octarbiter", "app.kubernetes.io/component": self.component}


def objects(part: Part, image: str, namespace: str, replicas: int, flags: Sequence[str] = ()) -> list[Json]:
    """In the order in which they can be created. `flags`: what the command is told beside what all are told."""
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": _metadata(part, namespace)},
        _role(part, "ClusterRole", "", part.rules),
        _binding(part, "ClusterRole", "", namespace),
        _role(part, "Role", namespace, part.rules_at_home),
        _binding(part, "Role", namespace, namespace),
        _deployment(part, image, namespace, replicas, flags),
    ]


def _metadata(part: Part, namespace: str) -> Json:
    metadata: Json = {"name": part.name, "labels": part.labels}
    return {**metadata, "namespace": namespace} if namespace else metadata


def _role(part: Part, kind: str, namespace: str, rules: list[Json]) -> Json:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": kind,
        "metadata": _metadata(part, namespace),
        "rules": rules,
    }


def _binding(part: Part, kind: str, namespace: str, account_namespace: str) -> Json:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": f"{kind}Binding",
        "metadata": _metadata(part, namespace),
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": part.name},
        "subjects": [{"kind": "ServiceAccount", "name": part.name, "namespace": account_namespace}],
    }


def _deployment(part: Part, image: str, namespace: str, replicas: int, flags: Sequence[str]) -> Json:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": _metadata(part, namespace),
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": part.labels},
            "template": {"metadata": {"labels": part.labels}, "spec": _pod(part, image, namespace, flags)},
        },
    }


def _pod(part: Part, image: str, namespace: str, flags: Sequence[str]) -> Json:
    return {
        "serviceAccountName": part.name,
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
                "labelSelector": {"matchLabels": part.labels},
            }
        ],
        "containers": [_container(part, image, namespace, flags)],
    }


def _container(part: Part, image: str, namespace: str, flags: Sequence[str]) -> Json:
    ports = {"health": HEALTH_PORT, **part.ports}
    return {
        "name": part.component,
        "image": image,
        "command": ["octo", part.component],
        "args": [
            "--leader-elect",
            f"--lease-namespace={namespace}",
            f"--health-address=:{HEALTH_PORT}",
            "--log-format=json",
            *flags,
        ],
        "ports": [{"name": name, "containerPort": port} for name, port in ports.items()],
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
