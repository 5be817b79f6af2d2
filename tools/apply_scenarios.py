"""What is asked of a real kube-apiserver about server-side apply and the owners of fields?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tools.patch_cases import Json, Scenario, Step, configmap, container, deployment, gadget

from octarbiter.api import taskset


def applies() -> Iterator[Scenario]:
    def by(manager: str, body: Json, **more: Any) -> Step:
        return Step("apply", body, manager=manager, **more)

    yield Scenario(
        "applied config maps",
        "ConfigMap",
        None,
        [
            by("one", configmap(a="1", b="2")),
            by("one", configmap(a="1", b="2")),
            by("one", configmap(a="1", b="22", c="3")),
            by("two", configmap(c="3")),
            by("two", configmap(c="4")),
            by("two", configmap(a="9", c="4", d="5")),
            by("two", configmap(c="4"), force=True),
            by("one", configmap(a="1")),
            by("one", configmap(a="1", c="5")),
            Step("merge", {"data": {"a": "edited", "m": "x"}}, manager="kubectl-edit"),
            by("one", configmap(a="1")),
            by("one", configmap(a="1", m="y")),
            by("one", configmap(a="1", m="y"), force=True),
            by("one", configmap()),
            by("two", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "probe", "labels": {"x": "y"}}}),
        ],
    )
    yield Scenario(
        "applies that are refused",
        "ConfigMap",
        configmap(a="1"),
        [
            by("one", {**configmap(), "spec": {}}),
            by("one", {**configmap(), "metadata": {"name": "probe", "label": {}}}),
            by("one", {**configmap(), "data": {"a": 1}}),
            by("one", {**configmap(), "data": [1]}),
            by("one", {**configmap(), "data": "x"}),
            by("one", {**configmap(), "immutable": "x"}),
            by("one", {**configmap(), "metadata": {"name": "probe", "generation": "x"}}),
            by("one", {**configmap(), "metadata": {"name": "probe", "managedFields": []}}),
            by("one", {**configmap(), "metadata": {"name": "probe", "finalizers": "x"}}),
            by("one", {**configmap(), "metadata": {"name": "probe", "finalizers": ["a.b/c", "a.b/c"]}}),
            by("one", {**configmap(), "metadata": {"name": "probe", "finalizers": [None]}}),
            by("one", {**configmap(), "metadata": {"name": "probe", "finalizers": [{}]}}),
            by("one", {**configmap(), "metadata": {"name": "probe", "ownerReferences": ["x"]}}),
            by("", configmap(a="1")),
        ],
    )

    def applied_deployment(*containers: Json, **spec: Any) -> Json:
        made = deployment()
        made["spec"] = {**made["spec"], **spec}
        made["spec"]["template"]["spec"]["containers"] = list(containers)
        return made

    yield Scenario(
        "applied deployments",
        "Deployment",
        None,
        [
            by("one", applied_deployment({"name": "main", "image": "a:1", "ports": [{"containerPort": 80}]})),
            by("one", applied_deployment({"name": "main", "image": "a:2", "ports": [{"containerPort": 80}]})),
            by("scaler", {"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"replicas": 5}}),
            by("scaler", {"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"replicas": 5}}, force=True),
            by("one", applied_deployment({"name": "main", "image": "a:2", "ports": [{"containerPort": 80}]})),
            Step(
                "strategic",
                {"spec": {"template": {"spec": {"containers": [container("side")]}}}},
                manager="injector",
            ),
            by(
                "one",
                applied_deployment(
                    {
                        "name": "main",
                        "image": "a:3",
                        "ports": [{"containerPort": 80, "protocol": "TCP"}, {"containerPort": 80, "protocol": "UDP"}],
                    },
                    replicas=5,
                ),
            ),
            by(
                "one",
                applied_deployment({"name": "other", "image": "a:3"}, {"name": "main", "image": "a:3"}, replicas=5),
            ),
            by("one", applied_deployment({"name": "main", "image": "a:3"}, replicas=5)),
            by(
                "three",
                applied_deployment({"name": "side", "image": "x:1"}, {"name": "main", "image": "x:1"}, replicas=1),
            ),
            by("one", applied_deployment({"name": "main", "image": "a:3", "imagge": "x"}, replicas=5)),
            by(
                "one",
                applied_deployment(
                    {"name": "main", "image": "a:3", "resources": {"limits": {"cpu": 1, "memory": "1Gi"}}}, replicas=5
                ),
            ),
        ],
    )
    annotated = configmap(a="1", b="2")
    last = '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"probe"},"data":{"a":"1","b":"2"}}'
    annotated["metadata"]["annotations"] = {"kubectl.kubernetes.io/last-applied-configuration": last}
    yield Scenario(
        "from client-side to server-side apply",
        "ConfigMap",
        annotated,
        [
            by("kubectl", configmap(a="5")),
            by("kubectl", configmap(a="6", b="<2>")),
            Step("merge", {"data": {"a": "edited", "z": "1"}}, manager="editor"),
            by("kubectl", configmap(a="7", z="2")),
        ],
    )
    yield Scenario(
        "the first apply to an object without owners",
        "ConfigMap",
        configmap(a="1", b="2"),
        [
            Step("json", [{"op": "replace", "path": "/metadata/managedFields", "value": [{}]}]),
            Step("merge", {"data": {"c": "3"}}, manager="ignored"),
            by("one", configmap(a="1")),
            by("two", configmap(b="3")),
            by("two", configmap(b="3"), force=True),
        ],
    )


def custom_applies() -> Iterator[Scenario]:
    def by(manager: str, *, force: bool = False, **spec: Any) -> Step:
        return Step("apply", gadget(**spec), manager=manager, force=force)

    yield Scenario(
        "applied sets, maps and atomic values",
        "Gadget",
        None,
        [
            by("one", size=1, tags=["a", "b"], steps=["x", "y"], settings={"k": "1"}, frozen={"a": 1}),
            by("two", tags=["c", "b"], settings={"l": "2"}),
            by("one", size=1, tags=["b"], steps=["x"], settings={}, frozen={"a": 1, "b": 2}),
            by("two", steps=["y"], frozen={"a": 1}),
            by("two", tags=["d", "b", "e"], steps=["y"], frozen={"a": 1}, force=True),
            by("one", parts=[{"name": "p", "count": 1}, {"name": "q", "kind": "z", "count": 2}]),
            by("two", parts=[{"name": "p", "kind": "x", "color": "red"}, {"name": "r", "count": 3}]),
            by("one", parts=[{"name": "q", "kind": "z"}]),
            by("two", parts=[{"name": "r", "count": 4}, {"name": "q", "kind": "z", "count": 9}]),
            by("one", limits={"cpu": {"least": 1, "most": 2}, "gpu": {"least": 1}}),
            by("two", limits={"cpu": {"most": 2}}),
            by("one", limits={"gpu": {}}),
            by("one", blob={"a": {"b": [1, 2], "c": None}, "d": {}}, either=5),
            by("one", blob={"a": {"b": [1]}}, either="5"),
            by("two", blob={"a": {"b": [2]}}),
            by("two", blob={"a": "x"}, force=True),
            by("two"),
            by("one"),
        ],
    )
    yield Scenario(
        "the order of applied lists",
        "Gadget",
        None,
        [
            by("one", tags=["a", "b", "c", "d", "e"]),
            by("two", tags=["e", "x", "a"]),
            by("two", tags=["c", "y", "e", "x"]),
            by("two", tags=["z", "b", "d", "y"]),
            by("three", tags=["d", "b"]),
            by("one", tags=["e", "d", "c", "b", "a"]),
            by("three", tags=["n", "a", "m", "e"]),
            by("one", tags=["e", "a"]),
            by("three", tags=["a", "e", "p"]),
            by("one", parts=[{"name": name, "count": 1} for name in "abcd"]),
            by("two", parts=[{"name": name, "color": "red"} for name in "daxb"]),
            by("two", parts=[{"name": name, "color": "blue"} for name in "cyd"]),
            by("one", parts=[{"name": name, "count": 2} for name in "ydac"]),
        ],
    )

    def disown(obj: Json) -> None:
        record = obj["metadata"]["managedFields"]
        obj["metadata"]["managedFields"] = [entry for entry in record if entry["manager"] != "setter"]

    yield Scenario(
        "fields that nobody owns",
        "Gadget",
        None,
        [
            by("one", size=1, settings={"a": "1"}, limits={"cpu": {"least": 1}}),
            Step(
                "merge",
                {"spec": {"flag": True, "settings": {"b": "2"}, "limits": {"cpu": {"most": 2}, "gpu": {"most": 3}}}},
                manager="setter",
            ),
            Step("update", disown, manager="disowner"),
            by("one", tags=["a"], settings={"c": "3"}),
            by("one", steps=["x"]),
        ],
    )
    yield Scenario(
        "applied custom objects that are refused",
        "Gadget",
        gadget(size=1),
        [
            by("one", unknown=1),
            by("one", tags=["a", "a"]),
            by("one", tags=["a", None]),
            by("one", tags=[{"a": 1}]),
            by("one", tags=[["a"]]),
            by("one", parts=[{"name": "a"}, {"name": "a"}]),
            by("one", parts=[{"name": "a", "other": 1}]),
            by("one", parts=[None]),
            by("one", steps=["x", 1]),
            by("one", flag="yes"),
            by("one", size="1", flag=1),
        ],
    )
    status = {"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": {"name": "probe"}}
    yield Scenario(
        "applied status",
        "Gadget",
        {**gadget(size=1), "status": {"phase": "ignored"}},
        [
            Step("apply", {**status, "status": {"phase": "A"}}, manager="one", subresource="status"),
            Step("apply", {**status, "status": {"phase": "B"}}, manager="two", subresource="status"),
            Step("merge", {"status": {"phase": "C", "seen": 1}}, manager="three", subresource="status"),
            Step("apply", {**status, "status": {"phase": "D"}}, manager="one", subresource="status"),
            Step("apply", {**status, "spec": {"size": 2}, "status": {"phase": "E"}}, manager="one", force=True),
        ],
    )
    template = {"spec": {"containers": [{"name": "main", "image": "busybox"}]}}
    applied: Json = {
        "apiVersion": taskset.API_VERSION,
        "kind": "TaskSet",
        "metadata": {"name": "probe"},
        "spec": {"roles": [{"name": "worker", "replicas": 2, "template": template}]},
    }
    yield Scenario(
        "an applied TaskSet",
        "TaskSet",
        None,
        [
            Step("apply", applied, manager="one"),
            Step("apply", {**applied, "metadata": {"name": "probe", "labels": {"a": "b"}}}, manager="one"),
            Step("merge", {"metadata": {"annotations": {"x": "y"}}}),
        ],
    )


def owners() -> Iterator[Scenario]:
    yield Scenario(
        "many managers",
        "ConfigMap",
        configmap(a="1"),
        [Step("merge", {"data": {f"k{number}": "x"}}, manager=f"m{number:02}") for number in range(13)],
    )

    def changing(change: Callable[[Json], Any]) -> Callable[[Json], Any]:
        return change

    def forget(obj: Json) -> None:
        del obj["metadata"]["managedFields"]
        obj["data"]["b"] = "3"

    def rename(obj: Json) -> None:
        obj["metadata"]["managedFields"][0]["manager"] = "renamed"
        obj["data"]["c"] = "4"

    def spoil(obj: Json) -> None:
        obj["metadata"]["managedFields"][0]["operation"] = "Guess"
        obj["data"]["c"] = "5"

    yield Scenario(
        "updates",
        "ConfigMap",
        configmap(a="1"),
        [
            Step("update", changing(lambda obj: obj["data"].update(a="2", b="2")), manager="one"),
            Step("update", changing(forget), manager="two"),
            Step("update", changing(lambda obj: obj["data"].pop("a")), manager="two"),
            Step("update", changing(rename), manager="two"),
            Step("update", changing(spoil), manager="two"),
            Step("update", changing(lambda obj: obj), manager="three"),
            Step("update", changing(lambda obj: obj["metadata"].update(labels={"x": "y"})), manager="one"),
            Step("update", changing(lambda obj: obj["metadata"].update(managedFields=[])), manager="one"),
            Step("update", changing(lambda obj: obj["data"].update(n="1")), manager="one"),
        ],
    )
