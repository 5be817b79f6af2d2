"""What is asked of a real kube-apiserver about JSON patches, merge patches and strategic merge patches?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tools.patch_cases import Json, Scenario, Step, configmap, container, deployment, gadget


def json_patches() -> Iterator[Scenario]:
    def one(*operations: Json) -> Step:
        return Step("json", list(operations))

    def op(name: str, path: str, **more: Any) -> Json:
        return {"op": name, "path": path, **more}

    yield Scenario(
        "operations of a JSON patch",
        "ConfigMap",
        configmap(a="1", b="2"),
        [
            one(op("add", "/data/c", value="3")),
            one(op("add", "/metadata/annotations", value={"example.com/x": "1"})),
            one(op("replace", "/metadata/annotations/example.com~1x", value="2")),
            one(op("test", "/data/a", value="1"), op("remove", "/data/a")),
            one(op("move", "/data/d", **{"from": "/data/c"})),
            one(op("copy", "/data/e", **{"from": "/data/d"})),
            one(op("replace", "/data/b", value="22"), op("add", "/data/f", value="6")),
            one(op("replace", "/data/new", value="replaced")),
            one(op("add", "/metadata/finalizers", value=["example.com/a", "example.com/b"])),
            one(op("add", "/metadata/finalizers/1", value="example.com/c")),
            one(op("add", "/metadata/finalizers/-", value="example.com/d")),
            one(op("remove", "/metadata/finalizers/0")),
            one(op("remove", "/metadata/finalizers/-1")),
            one(op("move", "/metadata/finalizers/0", **{"from": "/metadata/finalizers/1"})),
            one(),
        ],
    )
    yield Scenario(
        "JSON patches that are refused",
        "ConfigMap",
        configmap(a="1"),
        [
            one(op("test", "/data/a", value="2")),
            one(op("test", "/data/missing", value="2")),
            one(op("test", "/nowhere/a", value="2")),
            one(op("test", "/data/a")),
            one(op("remove", "/data/missing")),
            one(op("remove", "/nowhere/at/all")),
            one(op("add", "/nowhere/at", value="x")),
            one(op("add", "", value={})),
            one(op("add", "no-slash", value="x")),
            one(op("replace", "/nowhere/at", value="x")),
            one(op("move", "/data/x", **{"from": "/data/missing"})),
            one(op("move", "/nowhere/x", **{"from": "/data/a"})),
            one(op("copy", "/data/x", **{"from": "/nowhere/a"})),
            one(op("copy", "/nowhere/x", **{"from": "/data/a"})),
            one({"op": "copy", "path": "/data/x"}),
            one({"op": "move", "path": "/data/x"}),
            one({"op": "add", "value": "x"}),
            one({"op": "remove"}),
            one({"op": "replace", "value": 1}),
            one({"op": "test", "value": 1}),
            one({"path": "/data/a"}),
            one(op("increment", "/data/a")),
            one(op("replace", "", value="x")),
            Step("json", {"op": "add"}),
            Step("json", ["add"]),
            Step("json", [{"op": 1, "path": "/data/a"}]),
            Step("json", [{"op": "add", "path": ["data"]}]),
        ],
    )
    yield Scenario(
        "indices of a JSON patch that are refused",
        "ConfigMap",
        {**configmap(), "metadata": {"name": "probe", "finalizers": ["example.com/a"]}},
        [
            one(op("add", "/metadata/finalizers/3", value="example.com/b")),
            one(op("add", "/metadata/finalizers/x", value="example.com/b")),
            one(op("replace", "/metadata/finalizers/1", value="example.com/b")),
            one(op("replace", "/metadata/finalizers/x", value="example.com/b")),
            one(op("remove", "/metadata/finalizers/1")),
            one(op("remove", "/metadata/finalizers/-")),
            one(op("test", "/metadata/finalizers/1", value="example.com/b")),
            one(op("copy", "/data/x", **{"from": "/metadata/finalizers/9"})),
            one(op("move", "/data/x", **{"from": "/metadata/finalizers/9"})),
        ],
    )


def merge_patches() -> Iterator[Scenario]:
    yield Scenario(
        "merge patches",
        "ConfigMap",
        configmap(a="1", b="2"),
        [
            Step("merge", {"data": {"a": "11", "c": "3"}}),
            Step("merge", {"data": {"b": None, "missing": None}}),
            Step("merge", {"metadata": {"labels": {"x": "1", "y": None}}}),
            Step("merge", {"metadata": {"finalizers": ["example.com/a"]}}),
            Step("merge", {"metadata": {"finalizers": ["example.com/b", "example.com/a"]}}),
            Step("merge", {"data": None}),
            Step("merge", {}),
            Step("merge", [1]),
            Step("merge", "x"),
        ],
    )
    yield Scenario(
        "merge patches of a custom object",
        "Gadget",
        gadget(size=1, blob={"a": {"b": 1}}),
        [
            Step("merge", {"spec": {"blob": {"a": {"b": None, "c": [{"d": None, "e": 1}]}}}}),
            Step("merge", {"spec": {"blob": {"a": 5}}}),
            Step("merge", {"spec": {"blob": {"a": {"x": None, "y": 1}}}}),
            Step("merge", {"spec": {"blob": {"a": [1, 2]}}}),
            Step("merge", {"spec": {"parts": [{"name": "p", "count": 1}], "tags": ["t"]}}),
            Step("merge", {"status": {"phase": "Ready"}}, subresource="status"),
        ],
    )


def strategic_patches() -> Iterator[Scenario]:
    def containers(*items: Any, **more: Any) -> Step:
        return Step("strategic", {"spec": {"template": {"spec": {"containers": list(items), **more}}}})

    port = {"containerPort": 80, "protocol": "TCP"}
    yield Scenario(
        "lists of a strategic merge patch",
        "Deployment",
        deployment(container("a", env=[{"name": "X", "value": "1"}], ports=[port]), container("b"), container("c")),
        [
            containers({"name": "b", "image": "busybox:2"}),
            containers(container("d"), {"name": "a", "image": "busybox:3"}),
            containers({"name": "a", "env": [{"name": "Y", "value": "2"}, {"name": "X", "value": "11"}]}),
            containers({"name": "a", "env": [{"name": "X", "$patch": "delete"}]}),
            containers({"name": "a", "ports": [{"containerPort": 81, "protocol": "TCP", "name": "new"}]}),
            containers({"name": "a", "ports": [{"containerPort": 80, "name": "old"}]}),
            containers({"name": "c", "$patch": "delete"}, {"name": "a", "command": ["sh"]}),
            containers({"name": "a", "command": ["sh", "-c"]}),
            containers({"name": "a", "command": None, "env": None}),
            containers(**{"$setElementOrder/containers": [{"name": "b"}, {"name": "d"}, {"name": "a"}]}),
            containers(
                container("e"), **{"$setElementOrder/containers": [{"name": "e"}, {"name": "a"}, {"name": "b"}]}
            ),
            containers(
                {"name": "d", "$patch": "delete"},
                {"name": "b", "image": "busybox:9"},
                **{"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}]},
            ),
            containers(container("z"), {"$patch": "replace"}),
            containers(
                volumes=[{"name": "v", "emptyDir": {}}, {"name": "w", "configMap": {"name": "x", "defaultMode": 420}}]
            ),
            containers(volumes=[{"name": "v", "$retainKeys": ["name", "emptyDir"], "emptyDir": {"medium": "Memory"}}]),
            containers(
                volumes=[
                    {
                        "name": "v",
                        "$retainKeys": ["name", "configMap"],
                        "configMap": {"name": "y", "defaultMode": 420},
                    }
                ]
            ),
            containers(volumes=[{"name": "w", "$patch": "delete"}]),
        ],
    )
    yield Scenario(
        "maps and scalars of a strategic merge patch",
        "Deployment",
        deployment(nodeSelector={"a": "1", "b": "2"}),
        [
            Step("strategic", {"metadata": {"labels": {"x": "1", "app": None}}}),
            containers(nodeSelector={"c": "3", "$patch": "replace"}),
            containers(nodeSelector={"$patch": "delete"}),
            Step("strategic", {"metadata": {"finalizers": ["example.com/a", "example.com/b"]}}),
            Step("strategic", {"metadata": {"finalizers": ["example.com/c", "example.com/a"]}}),
            Step("strategic", {"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.com/a"]}}),
            Step(
                "strategic",
                {
                    "metadata": {
                        "$deleteFromPrimitiveList/finalizers": ["example.com/b"],
                        "$setElementOrder/finalizers": ["example.com/d", "example.com/c"],
                        "finalizers": ["example.com/d"],
                    }
                },
            ),
            Step("strategic", {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}),
            Step("strategic", {"spec": {"replicas": 3, "paused": True}}),
            containers(tolerations=[{"key": "k", "operator": "Exists"}]),
            containers(tolerations=[{"key": "l", "operator": "Exists"}]),
            Step("strategic", {"spec": {"template": {"metadata": {"annotations": {"a": None, "b": "1"}}}}}),
            Step("strategic", {}),
        ],
    )
    yield Scenario(
        "strategic merge patches that are refused",
        "Deployment",
        deployment(container("a", env=[{"name": "X", "value": "1"}])),
        [
            containers({"image": "busybox:2"}),
            containers({"name": "a", "$patch": "merge"}),
            containers({"name": "a", "$patch": "explode"}),
            containers({"$patch": "delete"}),
            containers("a"),
            containers(["a"]),
            Step("strategic", {"metadata": {"$patch": "explode"}}),
            Step("strategic", {"metadata": {"$patch": 1}}),
            Step("strategic", {"spec": {"strategy": {"$retainKeys": "type"}}}),
            Step("strategic", {"spec": {"strategy": {"$retainKeys": ["type"], "rollingUpdate": {"maxSurge": 1}}}}),
            containers({"name": "b"}, {"name": "a"}, **{"$setElementOrder/containers": [{"name": "a"}, {"name": "b"}]}),
            containers({"name": "a"}, **{"$setElementOrder/containers": ["a"]}),
            containers({"name": "a"}, **{"$setElementOrder/containers": [{}]}),
            containers({"name": "a"}, **{"$setElementOrder/containers": "a"}),
            containers({"name": "a"}, **{"$setElementOrder": [{"name": "a"}]}),
            containers(**{"$deleteFromPrimitiveList": ["x"]}),
            containers(**{"$setElementOrder/nothing": [{"name": "a"}]}),
            containers(**{"$setElementOrder/nodeName": [{"name": "a"}]}),
            Step("strategic", ["x"]),
        ],
    )
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "probe"},
        "spec": {"selector": {"a": "b"}, "ports": [{"name": "web", "port": 80, "protocol": "TCP", "targetPort": 80}]},
    }
    yield Scenario(
        "ports of a service",
        "Service",
        service,
        [
            Step(
                "strategic",
                {"spec": {"ports": [{"name": "dns", "port": 53, "protocol": "UDP", "targetPort": 53}]}},
            ),
            Step("strategic", {"spec": {"ports": [{"port": 80, "targetPort": 8080}]}}),
            Step("strategic", {"spec": {"ports": [{"port": 53, "$patch": "delete"}]}}),
            Step("strategic", {"spec": {"externalIPs": ["1.2.3.4"], "externalTrafficPolicy": "Cluster"}}),
            Step("strategic", {"spec": {"externalIPs": ["1.2.3.5"], "selector": {"c": "d"}}}),
            Step("strategic", {"spec": {"ports": [{"name": "x", "port": 81, "protocol": "TCP", "targetPort": 81}]}}),
        ],
    )
    condition = {"type": "Ready", "status": "True", "lastProbeTime": None, "lastTransitionTime": "2026-01-01T00:00:00Z"}
    yield Scenario(
        "conditions of a pod",
        "Pod",
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "probe"},
            "spec": {"automountServiceAccountToken": False, "containers": [container("main")]},
        },
        [
            Step("strategic", {"status": {"conditions": [condition]}}, subresource="status"),
            Step(
                "strategic",
                {"status": {"conditions": [{"type": "Ready", "status": "False"}, {**condition, "type": "Other"}]}},
                subresource="status",
                manager="other",
            ),
            Step(
                "strategic",
                {
                    "status": {
                        "$setElementOrder/conditions": [{"type": "Other"}, {"type": "Ready"}],
                        "conditions": [{"type": "Ready", "status": "True"}],
                        "podIPs": [{"ip": "10.0.0.1"}],
                        "podIP": "10.0.0.1",
                    }
                },
                subresource="status",
            ),
            Step("strategic", {"metadata": {"labels": {"a": "b"}}, "spec": {"activeDeadlineSeconds": 9}}),
            Step("strategic", {"spec": {"containers": [{"name": "main", "image": "busybox:7"}]}}, manager="other"),
        ],
    )
