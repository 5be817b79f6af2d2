"""What all cases find on both servers, and the objects they are fond of making."""

from __future__ import annotations

import copy
from typing import Any

from harness import Api, Server

Json = dict[str, Any]

GROUP = "contract.example.com"
GADGETS = f"{GROUP}/v1/gadgets"
GIZMOS = f"{GROUP}/v1/gizmos"

_TEXT: Json = {"type": "string"}
_SPEC: Json = {
    "type": "object",
    "required": ["size"],
    "properties": {
        "size": {"type": "integer", "minimum": 1, "maximum": 10},
        "colour": {"type": "string", "enum": ["red", "green"], "default": "red"},
        "name": {"type": "string", "minLength": 2, "maxLength": 8, "pattern": "^[a-z]+$"},
        "ratio": {"type": "number", "exclusiveMinimum": True, "minimum": 0},
        "when": {"type": "string", "format": "date-time"},
        "many": {"type": "array", "minItems": 1, "maxItems": 3, "items": _TEXT},
        "unique": {"type": "array", "x-kubernetes-list-type": "set", "items": _TEXT},
        "parts": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "items": {
                "type": "object",
                "required": ["name"],
                "properties": {"name": _TEXT, "weight": {"type": "integer", "default": 7}, "note": _TEXT},
            },
        },
        "port": {"x-kubernetes-int-or-string": True},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "table": {"type": "object", "additionalProperties": {"type": "integer"}, "maxProperties": 2},
        "maybe": {"type": "string", "nullable": True},
        "nested": {"type": "object", "properties": {"deep": {"type": "string", "default": "sea"}}},
        "either": {"type": "object", "properties": {"a": _TEXT, "b": _TEXT}, "maxProperties": 1},
        "embedded": {
            "type": "object",
            "x-kubernetes-embedded-resource": True,
            "x-kubernetes-preserve-unknown-fields": True,
        },
        "low": {"type": "integer"},
        "high": {"type": "integer"},
        "fixed": {
            "type": "string",
            "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "fixed is for ever"}],
        },
        "replicas": {"type": "integer"},
    },
    "x-kubernetes-validations": [
        {"rule": "!has(self.low) || !has(self.high) || self.low <= self.high", "message": "low must not exceed high"},
        {
            "rule": "!has(self.low) || self.low >= 0",
            "messageExpression": "self.low < -5 ? 'low is far too low' : 'low is too low'",
            "fieldPath": ".low",
            "reason": "FieldValueForbidden",
        },
    ],
}
_STATUS: Json = {
    "type": "object",
    "properties": {
        "phase": _TEXT,
        "replicas": {"type": "integer"},
        "selector": _TEXT,
        "conditions": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["type"],
            "items": {"type": "object", "required": ["type"], "properties": {"type": _TEXT, "status": _TEXT}},
        },
    },
}
_COLUMNS = [
    {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
    {"name": "Colour", "type": "string", "jsonPath": ".spec.colour", "description": "what it looks like"},
    {"name": "Phase", "type": "string", "jsonPath": ".status.phase"},
    {"name": "Note", "type": "string", "jsonPath": ".spec.parts[0].note", "priority": 1},
    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
]


def definition(group: str, plural: str, kind: str, schema: Json, *, scope: str = "Namespaced", **version: Any) -> Json:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": scope,
            "names": {"plural": plural, "singular": kind.lower(), "kind": kind},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema},
                    **version,
                }
            ],
        },
    }


def _gadgets() -> Json:
    schema = {"type": "object", "required": ["spec"], "properties": {"spec": _SPEC, "status": _STATUS}}
    found = definition(
        GROUP,
        "gadgets",
        "Gadget",
        schema,
        subresources={
            "status": {},
            "scale": {
                "specReplicasPath": ".spec.replicas",
                "statusReplicasPath": ".status.replicas",
                "labelSelectorPath": ".status.selector",
            },
        },
        additionalPrinterColumns=_COLUMNS,
        selectableFields=[{"jsonPath": ".spec.colour"}],
    )
    found["spec"]["names"] |= {"shortNames": ["gd"], "categories": ["all", "contract"]}
    older = copy.deepcopy(found["spec"]["versions"][0])
    older |= {"name": "v1beta1", "storage": False, "deprecated": True, "deprecationWarning": "use v1"}
    found["spec"]["versions"].append(older)
    return found


def _gizmos() -> Json:
    """Without status, of the cluster, and with everything allowed."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return definition(GROUP, "gizmos", "Gizmo", schema, scope="Cluster")


def furnish(server: Server) -> None:
    """Definitions take a moment on a real server: they are made once."""
    api = Api(server, "default")
    for made, where in ((_gadgets(), GADGETS), (_gizmos(), f"/apis/{GIZMOS}")):
        api.made("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", made)
        assert api.until("GET", where, None, 200).code == 200, f"{where} is not served"
    api.made("/api/v1/nodes", {"metadata": {"name": "contract-node"}})


def config_map(name: str, /, **more: Any) -> Json:
    labels = more.pop("labels", None)
    metadata = {"name": name, **({"labels": labels} if labels else {})}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"key": "value"}, **more}


def secret(name: str, /, **more: Any) -> Json:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": {"key": "value"}, **more}


def pod(name: str, /, **spec: Any) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "main", "image": "busybox"}], **spec},
    }


def job(name: str, /, **spec: Any) -> Json:
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox"}]}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"template": template, **spec},
    }


def deployment(name: str, /, **spec: Any) -> Json:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "busybox:1"}]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": labels}, "template": template, **spec},
    }


def gadget(name: str, /, **spec: Any) -> Json:
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "Gadget",
        "metadata": {"name": name},
        "spec": {"size": 1, **spec},
    }


def lease(name: str, /, **spec: Any) -> Json:
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name}, "spec": spec}
