"""Pods and what acts on them: defaults, validation, binding, eviction, priorities, limits, quotas."""

from __future__ import annotations

from typing import Any

from furniture import config_map, pod
from harness import MERGE_PATCH, Api, case, each

_MAIN = {"name": "main", "image": "busybox"}


def _container(**more: Any) -> dict[str, Any]:
    return {"containers": [{**_MAIN, **more}]}


@each(
    {
        "a full container": _container(
            command=["sh"],
            env=[{"name": "A", "value": "1"}, {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
            ports=[{"containerPort": 80}],
            readinessProbe={"httpGet": {"path": "/", "port": 80}},
            livenessProbe={"exec": {"command": ["true"]}},
            resources={"limits": {"cpu": "1", "memory": "1Gi"}},
            volumeMounts=[{"name": "v", "mountPath": "/v"}],
        )
        | {"volumes": [{"name": "v", "configMap": {"name": "c"}}]},
        "volumes": {
            "containers": [_MAIN],
            "volumes": [
                {"name": "a", "emptyDir": {}},
                {"name": "b", "secret": {"secretName": "s"}},
                {"name": "c", "hostPath": {"path": "/x"}},
                {"name": "d"},
                {"name": "e", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}},
                {"name": "f", "downwardAPI": {"items": [{"path": "p", "fieldRef": {"fieldPath": "metadata.name"}}]}},
            ],
        },
        "init containers": {
            "containers": [_MAIN],
            "initContainers": [{"name": "i", "image": "x"}, {"name": "s", "image": "x", "restartPolicy": "Always"}],
        },
        "an image with a tag": _container(image="x:1"),
        "an image by digest": _container(image="x@sha256:" + "a" * 64),
        "a host network": {"containers": [{**_MAIN, "ports": [{"containerPort": 80}]}], "hostNetwork": True},
        "affinity": {
            "containers": [_MAIN],
            "affinity": {
                "podAntiAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": [
                        {"topologyKey": "k", "labelSelector": {"matchLabels": {"a": "b"}}}
                    ]
                }
            },
            "topologySpreadConstraints": [
                {"maxSkew": 1, "topologyKey": "k", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}
            ],
        },
        "guaranteed": _container(resources={"limits": {"cpu": "1", "memory": "1Gi"}}),
        "burstable": _container(resources={"requests": {"cpu": "1"}}),
        "gates": {"containers": [_MAIN], "schedulingGates": [{"name": "example.com/x"}]},
        "own tolerations": {
            "containers": [_MAIN],
            "tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}],
        },
        "a service account": {"containers": [_MAIN], "serviceAccountName": "x"},
        "a lifecycle": _container(
            lifecycle={"preStop": {"httpGet": {"port": 1}}, "postStart": {"sleep": {"seconds": 1}}}
        ),
    }
)
def a_pod_gets_its_defaults(api: Api, spec: dict[str, Any]) -> None:
    api.post("pods", pod("a", **spec))


@each(
    {
        "no image": {"containers": [{"name": "main"}]},
        "a bad container name": {"containers": [{"name": "A_b", "image": "x"}]},
        "two of one name": {"containers": [_MAIN, _MAIN]},
        "init of the same name": {"containers": [_MAIN], "initContainers": [_MAIN]},
        "a bad restart policy": {"restartPolicy": "Sometimes"},
        "a bad pull policy": _container(imagePullPolicy="Sometimes"),
        "a bad dns policy": {"dnsPolicy": "Nonsense"},
        "a negative grace": {"terminationGracePeriodSeconds": -1},
        "a bad deadline": {"activeDeadlineSeconds": 0},
        "a bad port": _container(ports=[{"containerPort": 0}]),
        "a large port": _container(ports=[{"containerPort": 70000, "protocol": "X"}]),
        "two ports of one name": _container(
            ports=[{"containerPort": 1, "name": "a"}, {"containerPort": 2, "name": "a"}]
        ),
        "a bad port name": _container(ports=[{"containerPort": 1, "name": "-"}]),
        "an unknown volume": _container(volumeMounts=[{"name": "v", "mountPath": "/v"}]),
        "no mount path": _container(volumeMounts=[{"name": "v"}]) | {"volumes": [{"name": "v", "emptyDir": {}}]},
        "two volumes of one name": {"volumes": [{"name": "v", "emptyDir": {}}, {"name": "v", "emptyDir": {}}]},
        "a volume of two kinds": {"volumes": [{"name": "v", "emptyDir": {}, "hostPath": {"path": "/"}}]},
        "a host path without path": {"volumes": [{"name": "v", "hostPath": {}}]},
        "a request above the limit": _container(resources={"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}),
        "a negative request": _container(resources={"requests": {"cpu": "-1"}}),
        "a fraction of a device": _container(resources={"limits": {"example.com/x": "500m"}}),
        "a device only requested": _container(resources={"requests": {"example.com/x": "1"}}),
        "an unknown resource": _container(resources={"requests": {"nonsense": "1"}}),
        "a bad variable": _container(env=[{"name": ""}]),
        "a variable with two sources": _container(
            env=[{"name": "A", "value": "x", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]
        ),
        "a bad field": _container(env=[{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "spec.nonsense"}}}]),
        "a probe of nothing": _container(livenessProbe={}),
        "a probe of two kinds": _container(livenessProbe={"exec": {"command": ["x"]}, "tcpSocket": {"port": 1}}),
        "a bad probe": _container(
            livenessProbe={"httpGet": {"port": "x!"}, "periodSeconds": -1, "successThreshold": 2}
        ),
        "a bad toleration": {
            "tolerations": [{"key": "a", "operator": "Nonsense"}, {"operator": "Equal", "value": "x"}]
        },
        "a bad node name": {"nodeName": "A!"},
        "a bad selector": {"nodeSelector": {"a b": "-"}},
        "a bad host name": {"hostname": "A_b"},
        "a gate on a bound pod": {"nodeName": "contract-node", "schedulingGates": [{"name": "x/y"}]},
        "a bad gate": {"schedulingGates": [{"name": "-"}, {"name": "-"}]},
        "an unknown priority class": {"priorityClassName": "nonsense"},
        "a priority of one's own": {"priority": 5},
        "a bad pull secret": {"imagePullSecrets": [{}]},
        "a sidecar policy": {"initContainers": [{"name": "i", "image": "x", "restartPolicy": "Never"}]},
        "a restart policy on a container": _container(restartPolicy="Always"),
        "a bad term": {
            "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}}
        },
        "a bad spread": {"topologySpreadConstraints": [{"maxSkew": 0, "whenUnsatisfiable": "X"}]},
        "a bad security context": _container(securityContext={"runAsUser": -1, "privileged": "x"}),
        "a bad security id": _container(securityContext={"runAsUser": -1}),
        "a bad termination policy": _container(terminationMessagePolicy="X"),
        "ephemeral containers": {"ephemeralContainers": [{"name": "e", "image": "x"}]},
        "a bad image": _container(image=" x "),
        "an operating system": {"os": {"name": "plan9"}},
    }
)
def a_pod_with_something_odd(api: Api, spec: dict[str, Any]) -> None:
    api.post("pods?dryRun=All", pod("a", **spec))


def _binding(name: str, node: str, **more: Any) -> dict[str, Any]:
    target = {"kind": "Node", "name": node}
    return {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name, **more}, "target": target}


@case
def a_pod_is_bound_once(api: Api) -> None:
    api.made("pods", pod("a"))
    api.post("pods/a/binding", _binding("a", "contract-node", annotations={"x": "y"}))
    api.get("pods/a")
    api.post("pods/a/binding", _binding("a", "other"))
    api.post("pods/a/binding", _binding("a", "contract-node"))


@case
def a_pod_is_bound_by_the_old_path(api: Api) -> None:
    api.made("pods", pod("a"))
    api.post("bindings", _binding("a", "contract-node"))
    api.note("node", api.ask("GET", "pods/a")["spec"].get("nodeName"))


@each(
    {
        "another name": ("a", _binding("b", "n")),
        "no name": ("a", {"target": {"name": "n"}}),
        "no pod": ("absent", _binding("absent", "n")),
        "no target": ("a", {"metadata": {"name": "a"}}),
        "another kind of target": ("a", {"metadata": {"name": "a"}, "target": {"kind": "Pod", "name": "n"}}),
        "another uid": ("a", _binding("a", "n", uid="00000000-0000-0000-0000-000000000000")),
        "another kind": ("a", {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}),
        "dry": ("a?dryRun=All", _binding("a", "n")),
    }
)
def a_binding_with_something_odd(api: Api, given: tuple[str, dict[str, Any]]) -> None:
    api.made("pods", pod("a"))
    name, body = given
    name, _, query = name.partition("?")
    api.post(f"pods/{name}/binding?{query}", body)
    api.note("node", api.ask("GET", "pods/a")["spec"].get("nodeName"))


@case
def a_gated_or_going_pod_is_not_bound(api: Api) -> None:
    api.made("pods", pod("a", schedulingGates=[{"name": "example.com/x"}]))
    api.post("pods/a/binding", _binding("a", "n"))
    body = pod("b")
    body["metadata"]["finalizers"] = ["example.com/x"]
    api.made("pods", body)
    api.given("DELETE", "pods/b")
    api.post("pods/b/binding", _binding("b", "n"))


def _eviction(name: str, **options: Any) -> dict[str, Any]:
    body: dict[str, Any] = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
    return {**body, "deleteOptions": options} if options else body


@case
def a_pod_is_evicted(api: Api) -> None:
    api.made("pods", pod("a", nodeName="contract-node"))
    api.post("pods/a/eviction", _eviction("a"))
    going = api.ask("GET", "pods/a")
    api.note("going", [going["metadata"].get("deletionGracePeriodSeconds"), going["status"].get("conditions")])
    api.post("pods/absent/eviction", _eviction("absent"))
    api.made("pods", pod("b"))
    api.post("pods/b/eviction", _eviction("other"))
    api.post("pods/b/eviction?dryRun=All", _eviction("b"))
    api.post("pods/b/eviction", {"metadata": {"name": "b"}})
    api.get("pods/b")


def _budget(api: Api, **status: Any) -> None:
    budget = {"metadata": {"name": "b"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}}}
    api.made("policy/v1/poddisruptionbudgets", budget)
    counts = {"currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1, "disruptionsAllowed": 0, **status}
    api.given(
        "PATCH",
        "policy/v1/poddisruptionbudgets/b/status",
        {"status": {"observedGeneration": 1, **counts}},
        type=MERGE_PATCH,
    )


def _ready(api: Api, name: str) -> None:
    body = pod(name, nodeName="contract-node")
    body["metadata"]["labels"] = {"app": "x"}
    api.made("pods", body)
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    api.given("PATCH", f"pods/{name}/status", {"status": status}, type=MERGE_PATCH)


@each(
    {"none": {}, "one": {"disruptionsAllowed": 1}, "an old count": {"observedGeneration": 0, "disruptionsAllowed": 1}}
)
def a_budget_guards_pods(api: Api, status: dict[str, Any]) -> None:
    _ready(api, "a")
    _ready(api, "c")
    _budget(api, **status)
    api.post("pods/a/eviction", _eviction("a"))
    api.post("pods/c/eviction", _eviction("c"))
    budget = api.ask("GET", "policy/v1/poddisruptionbudgets/b")["status"]
    api.note("budget", {**budget, "disruptedPods": sorted(budget.get("disruptedPods", {}))})


@case
def two_budgets_for_one_pod_are_too_many(api: Api) -> None:
    _ready(api, "a")
    _budget(api, disruptionsAllowed=1)
    second = {"metadata": {"name": "c"}, "spec": {"minAvailable": 0, "selector": {"matchLabels": {"app": "x"}}}}
    api.made("policy/v1/poddisruptionbudgets", second)
    api.post("pods/a/eviction", _eviction("a"))


@case
def a_pods_priority_is_that_of_its_class(api: Api) -> None:
    classes = "/apis/scheduling.k8s.io/v1/priorityclasses"
    name = f"p-{api.namespace}"
    api.made(classes, {"metadata": {"name": name}, "value": 77, "preemptionPolicy": "Never"})
    api.until("POST", "pods?dryRun=All", pod("probe", priorityClassName=name), 201)
    answer = api.ask("POST", "pods", pod("a", priorityClassName=name))
    api.note("priority", [answer.code, answer["spec"].get("priority"), answer["spec"].get("preemptionPolicy")])
    api.post("pods", pod("b", priorityClassName=name, priority=5))
    answer = api.ask("POST", "pods", pod("c", priorityClassName="system-node-critical"))
    api.note("system", [answer.code, answer.body.get("message"), answer.body.get("spec", {}).get("priority")])


@case
def a_new_node_is_not_ready(api: Api) -> None:
    name = f"n-{api.namespace}"
    api.post("/api/v1/nodes", {"metadata": {"name": name}})
    api.post("/api/v1/nodes", {"metadata": {"name": f"{name}-2"}, "spec": {"taints": [{"key": "a", "effect": "X"}]}})
    api.post(
        "/api/v1/nodes",
        {
            "metadata": {"name": f"{name}-3"},
            "spec": {"podCIDR": "10.1.0.0/24", "providerID": "x"},
            "status": {"capacity": {"cpu": "4", "pods": "10"}, "allocatable": {"cpu": 3.5}},
        },
    )
    api.patch(f"/api/v1/nodes/{name}-3", {"spec": {"podCIDR": "10.2.0.0/24"}})
    api.patch(f"/api/v1/nodes/{name}-3", {"spec": {"unschedulable": True}})


@case
def config_maps_and_secrets_have_their_rules(api: Api) -> None:
    api.post("configmaps", config_map("a", binaryData={"key": "AA=="}))
    for key in ("a/b", ".", "..", ""):
        api.post("configmaps", config_map("b", data={key: "x"}))
    api.post("secrets", {"metadata": {"name": "a"}, "type": "kubernetes.io/tls", "data": {"tls.crt": "AA=="}})
    api.post("secrets", {"metadata": {"name": "b"}, "type": "kubernetes.io/dockerconfigjson"})
    api.post("secrets", {"metadata": {"name": "c"}, "type": "kubernetes.io/basic-auth"})
    api.post("secrets", {"metadata": {"name": "d"}, "type": "kubernetes.io/ssh-auth"})
    api.post("secrets", {"metadata": {"name": "e"}, "type": "kubernetes.io/service-account-token"})
    api.post("secrets", {"metadata": {"name": "f"}, "stringData": {"a/b": "x"}})


@case
def the_log_of_a_pod_that_does_not_run(api: Api) -> None:
    api.get("pods/absent/log")
    api.made("pods", pod("a"))
    api.get("pods/a/log")
    api.get("pods/a/log?container=nonsense")
    api.made("pods", pod("b", containers=[_MAIN, {"name": "other", "image": "x"}]))
    api.get("pods/b/log")
    api.get("pods/b/log?tailLines=-1&container=main")
    api.get("pods/b/log?sinceSeconds=0&container=main")
    api.get("pods/b/log?limitBytes=0&container=main")
    api.get("pods/b/log?sinceSeconds=5&sinceTime=2020-01-01T00:00:00Z&container=main")
