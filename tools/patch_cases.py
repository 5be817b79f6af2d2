"""Of what are the questions to a real kube-apiserver made? See tools/record_patches.py.

A scenario makes an object (or lets the first apply make it) and does one thing after the other to it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from octarbiter.api import crd, kinds, scheme, taskset

Json = dict[str, Any]

METHODS = {
    "json": ("PATCH", "application/json-patch+json"),
    "merge": ("PATCH", "application/merge-patch+json"),
    "strategic": ("PATCH", "application/strategic-merge-patch+json"),
    "apply": ("PATCH", "application/apply-patch+yaml"),
    "update": ("PUT", "application/json"),
}

PATHS = {
    "ConfigMap": "/api/v1/namespaces/default/configmaps",
    "Pod": "/api/v1/namespaces/default/pods",
    "Service": "/api/v1/namespaces/default/services",
    "Deployment": "/apis/apps/v1/namespaces/default/deployments",
    "Gadget": "/apis/example.com/v1/namespaces/default/gadgets",
    "TaskSet": f"/apis/{taskset.API_VERSION}/namespaces/default/{scheme.TASKSETS.plural}",
}


@dataclass
class Step:
    how: str
    body: Any
    """The patch; for an update, what changes the object that is there."""
    manager: str = "tester"
    subresource: str = ""
    force: bool = False


@dataclass
class Scenario:
    name: str
    kind: str
    start: Json | None
    steps: list[Step] = field(default_factory=list)


def path_of(scenario: Scenario) -> str:
    return f"{PATHS[scenario.kind]}/probe"


def custom_collections() -> list[str]:
    return [PATHS["Gadget"], PATHS["TaskSet"]]


def definitions() -> list[Json]:
    return [crd.render(kinds.TASKSET), GADGETS]


def configmap(**data: str) -> Json:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "probe"}, "data": data}


def gadget(**spec: Any) -> Json:
    return {"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": {"name": "probe"}, "spec": spec}


def container(name: str, **more: Any) -> Json:
    """With everything the server would add."""
    return {
        "name": name,
        "image": "busybox:1",
        "imagePullPolicy": "IfNotPresent",
        "resources": {},
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        **more,
    }


def deployment(*containers: Json, **template: Any) -> Json:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "probe", "labels": {"app": "probe"}},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": "probe"}},
            "template": {
                "metadata": {"labels": {"app": "probe"}},
                "spec": {"containers": list(containers or [container("main")]), **template},
            },
        },
    }


_NUMBER = {"type": "integer"}
_TEXT = {"type": "string"}
GADGETS: Json = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "gadgets.example.com"},
    "spec": {
        "group": "example.com",
        "names": {"kind": "Gadget", "plural": "gadgets", "singular": "gadget", "listKind": "GadgetList"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {
                                    "size": _NUMBER,
                                    "flag": {"type": "boolean"},
                                    "either": {"x-kubernetes-int-or-string": True},
                                    "tags": {"type": "array", "items": _TEXT, "x-kubernetes-list-type": "set"},
                                    "steps": {"type": "array", "items": _TEXT},
                                    "parts": {
                                        "type": "array",
                                        "x-kubernetes-list-type": "map",
                                        "x-kubernetes-list-map-keys": ["name", "kind"],
                                        "items": {
                                            "type": "object",
                                            "required": ["name"],
                                            "properties": {
                                                "name": _TEXT,
                                                "kind": {"type": "string", "default": "x"},
                                                "color": _TEXT,
                                                "count": _NUMBER,
                                            },
                                        },
                                    },
                                    "settings": {"type": "object", "additionalProperties": _TEXT},
                                    "limits": {
                                        "type": "object",
                                        "additionalProperties": {
                                            "type": "object",
                                            "properties": {"least": _NUMBER, "most": _NUMBER},
                                        },
                                    },
                                    "frozen": {
                                        "type": "object",
                                        "additionalProperties": _NUMBER,
                                        "x-kubernetes-map-type": "atomic",
                                    },
                                    "blob": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                                },
                            },
                            "status": {"type": "object", "properties": {"phase": _TEXT, "seen": _NUMBER}},
                        },
                    }
                },
            }
        ],
    },
}
