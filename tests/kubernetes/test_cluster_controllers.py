"""The cluster's own controllers on a real API server that has no others: nobody else does what is seen here."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from eventual import eventually

from octarbiter.testing.kubernetes import connection
from octarbiter.testing.kubernetes.controlplane import ControlPlane
from octarbiter.testing.kubernetes.fakenodes import FakeNodes

CONTROLLERS = """
import sys
from octarbiter.cluster.controllers import assembly
from octarbiter.runtime import kubeconfig, manager, settings

file, grace = sys.argv[1:]
options = assembly.Options(root_ca="the authority", node_grace_s=float(grace))
chosen = settings.parse({"leader_elect": False, "health_address": "", "log_format": "json"}, {})
sys.exit(manager.main(chosen, kubeconfig.load(file), lambda made: assembly.add_all(made, options)))
"""
GRACE_S = 13.0
"""Healthy nodes give a sign of life every ten seconds."""
SLEEPS = {"name": "main", "image": "none", "command": ["sleep", "infinity"]}

Json = dict[str, Any]


class Cluster:
    def __init__(self, plane: ControlPlane, nodes: FakeNodes, log: Path) -> None:
        self.plane, self.nodes, self.log = plane, nodes, log
        self._start()

    def _start(self) -> None:
        with self.log.open("ab") as stream:
            argv = [sys.executable, "-c", CONTROLLERS, str(self.plane.kubeconfig), str(GRACE_S)]
            self.controllers = subprocess.Popen(argv, stderr=stream)

    def kill_controllers(self) -> None:
        """They are gone in the middle of whatever they do, and others take their place."""
        self.controllers.kill()
        self.controllers.wait()
        self._start()

    def stop_controllers(self) -> int:
        self.controllers.terminate()
        try:
            return self.controllers.wait(30)
        finally:
            self.controllers.kill()

    def create(self, path: str, body: Json) -> Json:
        made: Json = self.plane.request("POST", path, body)
        return made

    def get(self, path: str) -> Json | None:
        try:
            found: Json = self.plane.request("GET", path)
        except connection.ApiError as problem:
            if problem.status in (404, 429):  # 429: the storage of a new kind is being prepared
                return None
            raise
        return found

    def wait_for(self, path: str, accepts: Callable[[Json], object], what: str) -> Json:
        """The object, once it is there and as it should be."""

        def look() -> Json | None:
            found = self.get(path)
            return found if found is not None and accepts(found) else None

        found = eventually(look, lambda: f"{what}; {path} is {json.dumps(self.get(path))[:2000]}")
        assert found is not None
        return found

    def items(self, path: str) -> list[Json]:
        return list(self.plane.request("GET", path)["items"])

    def namespace(self) -> str:
        return self.plane.create_namespace()

    def pod(self, namespace: str, name: str, **spec: Any) -> Json:
        body = {"metadata": {"name": name}, "spec": {"containers": [SLEEPS], **spec}}
        return self.create(f"/api/v1/namespaces/{namespace}/pods", body)

    def delete(self, path: str, policy: str) -> None:
        self.plane.request("DELETE", path, {"propagationPolicy": policy})


@pytest.fixture(scope="module")
def cluster(programs: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    log = tmp_path_factory.mktemp("controllers") / "log"
    with ControlPlane(controller_manager=False, scheduler=False) as plane, FakeNodes(plane, 3, pods=20) as nodes:
        made = Cluster(plane, nodes, log)
        try:
            yield made
        finally:
            code = made.stop_controllers()
        lines = [json.loads(line) for line in log.read_text().splitlines() if line.startswith("{")]
        assert [line for line in lines if "exception" in line] == []
        assert code == 0, log.read_text()[-2000:]


def condition(of: Json | None, type_: str) -> Json:
    found = of["status"].get("conditions", []) if of is not None else []
    return next((each for each in found if each["type"] == type_), {})


# --- scheduler


def test_pods_are_placed_and_spread(cluster: Cluster) -> None:
    namespace = cluster.namespace()
    for number in range(6):
        cluster.pod(namespace, f"pod-{number}")
    path = f"/api/v1/namespaces/{namespace}/pods"

    def placed() -> list[str]:
        names = [pod["spec"].get("nodeName", "") for pod in cluster.items(path)]
        return names if all(names) else []

    names = eventually(placed, "six pods to have a node")

    assert sorted(names.count(name) for name in set(names)) == [2, 2, 2]


def test_a_pod_that_fits_nowhere_says_why_and_is_placed_when_it_can_be(cluster: Cluster) -> None:
    namespace = cluster.namespace()
    asks = {"requests": {"example.com/gpu": "1"}, "limits": {"example.com/gpu": "1"}}
    cluster.pod(namespace, "greedy", containers=[{**SLEEPS, "resources": asks}])
    path = f"/api/v1/namespaces/{namespace}/pods/greedy"

    told = condition(cluster.wait_for(path, lambda pod: condition(pod, "PodScheduled"), "a reason"), "PodScheduled")
    assert (told["status"], told["reason"]) == ("False", "Unschedulable")
    assert told["message"] == "0/3 nodes are available: 3 Insufficient example.com/gpu."
    events = f"/api/v1/namespaces/{namespace}/events"
    eventually(lambda: [e for e in cluster.items(events) if e["reason"] == "FailedScheduling"], "an event")

    (name,) = cluster.nodes.add(1, {"example.com/gpu": "1"})
    pod = cluster.wait_for(path, lambda pod: pod["spec"].get("nodeName"), "the pod to be placed")
    assert pod["spec"]["nodeName"] == name
    assert condition(pod, "PodScheduled")["status"] == "True"
    cluster.plane.request("DELETE", path)
    cluster.nodes.remove_node(name)


def test_a_gated_pod_waits_and_others_schedulers_pods_are_left_alone(cluster: Cluster) -> None:
    namespace = cluster.namespace()
    pods = f"/api/v1/namespaces/{namespace}/pods"
    cluster.pod(namespace, "gated", schedulingGates=[{"name": "example.com/wait"}])
    cluster.pod(namespace, "foreign", schedulerName="somebody-else")
    cluster.pod(namespace, "ordinary")
    cluster.wait_for(f"{pods}/ordinary", lambda pod: pod["spec"].get("nodeName"), "the ordinary pod to be placed")

    left = {pod["metadata"]["name"] for pod in cluster.items(pods) if not pod["spec"].get("nodeName")}
    assert left == {"gated", "foreign"}
    cluster.plane.request("PATCH", f"{pods}/gated", {"spec": {"schedulingGates": None}}, "application/merge-patch+json")
    cluster.wait_for(f"{pods}/gated", lambda pod: pod["spec"].get("nodeName"), "the gate to open")


def test_a_pod_whose_binding_is_refused_is_tried_again(cluster: Cluster) -> None:
    namespace = cluster.namespace()
    pods = f"/api/v1/namespaces/{namespace}/pods"
    policies = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods/binding"]}
    here = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
    spec = {
        "matchConstraints": {"resourceRules": [rule], "namespaceSelector": here},
        "validations": [{"expression": "false", "message": "not today"}],
    }
    cluster.create(policies, {"metadata": {"name": "no-binding"}, "spec": spec})
    enforced = {"metadata": {"name": "no-binding"}, "spec": {"policyName": "no-binding", "validationActions": ["Deny"]}}
    cluster.create("/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings", enforced)
    cluster.pod(namespace, "probe", schedulerName="nobody")

    def is_refused() -> bool:
        body = {"metadata": {"name": "probe"}, "target": {"kind": "Node", "name": cluster.nodes.names[0]}}
        try:
            cluster.create(f"{pods}/probe/binding?dryRun=All", body)
        except connection.ApiError as problem:
            return "not today" in str(problem)
        return False

    eventually(is_refused, "the policy to be obeyed")
    cluster.pod(namespace, "patient")
    eventually(lambda: f"{namespace}/patient" in cluster.log.read_text(), "the refusal to be logged")
    labels = {"metadata": {"labels": {"changed": "meanwhile"}}}
    cluster.plane.request("PATCH", f"{pods}/patient", labels, "application/merge-patch+json")
    cluster.plane.request("DELETE", f"{policies}/no-binding")

    cluster.wait_for(f"{pods}/patient", lambda pod: pod["spec"].get("nodeName"), "the pod to be placed after all")


# --- garbage


def owned_by(owner: Json, api_version: str, kind: str, block: bool = False) -> list[Json]:
    meta = owner["metadata"]
    reference = {"apiVersion": api_version, "kind": kind, "name": meta["name"], "uid": meta["uid"]}
    return [{**reference, "blockOwnerDeletion": block}]


def test_what_an_owner_leaves_behind_is_deleted_in_the_order_that_was_asked_for(cluster: Cluster) -> None:
    namespace = cluster.namespace()
    maps = f"/api/v1/namespaces/{namespace}/configmaps"

    def made(name: str, owner: Json | None = None, **extra: Any) -> Json:
        owners = owned_by(owner, "v1", "ConfigMap", block=True) if owner is not None else []
        return cluster.create(maps, {"metadata": {"name": name, "ownerReferences": owners, **extra}})

    def names() -> set[str]:
        return {each["metadata"]["name"] for each in cluster.items(maps)} - {"kube-root-ca.crt"}

    background, foreground, orphaning = made("background"), made("foreground"), made("orphaning")
    made("b-grandchild", made("b-child", background))
    made("f-child", foreground, finalizers=["example.com/hold"])
    made("o-child", orphaning)
    stays = made("stays")
    two = cluster.create(
        maps,
        {
            "metadata": {
                "name": "of-two",
                "ownerReferences": [
                    *owned_by(background, "v1", "ConfigMap"),
                    *owned_by(stays, "v1", "ConfigMap"),
                ],
            }
        },
    )

    cluster.delete(f"{maps}/background", "Background")
    cluster.delete(f"{maps}/foreground", "Foreground")
    cluster.delete(f"{maps}/orphaning", "Orphan")

    left = {"foreground", "f-child", "o-child", "stays", "of-two"}
    eventually(lambda: names() == left, lambda: f"{left}, have {names()}")
    cluster.wait_for(
        f"{maps}/o-child", lambda child: "ownerReferences" not in child["metadata"], "the child to be free"
    )
    owners = cluster.wait_for(
        f"{maps}/of-two",
        lambda child: len(child["metadata"]["ownerReferences"]) == 1,
        "the absent owner to be struck off",
    )
    assert owners["metadata"]["uid"] == two["metadata"]["uid"]
    cluster.plane.request(
        "PATCH", f"{maps}/f-child", {"metadata": {"finalizers": None}}, "application/merge-patch+json"
    )
    eventually(lambda: names() == left - {"foreground", "f-child"}, lambda: f"the foreground to go, have {names()}")


CRD: Json = {
    "metadata": {"name": "things.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}


def test_kinds_that_come_later_own_and_are_owned_too(cluster: Cluster) -> None:
    namespace = cluster.namespace()
    cluster.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", CRD)
    things = f"/apis/example.com/v1/namespaces/{namespace}/things"
    eventually(lambda: cluster.get(things), "the kind to be served")
    body = {"apiVersion": "example.com/v1", "kind": "Thing"}
    owner = cluster.create(things, {**body, "metadata": {"name": "owner"}})
    owners = owned_by(owner, "example.com/v1", "Thing")
    cluster.create(things, {**body, "metadata": {"name": "owned", "ownerReferences": owners}})
    maps = f"/api/v1/namespaces/{namespace}/configmaps"
    cluster.create(maps, {"metadata": {"name": "owned", "ownerReferences": owners}})

    cluster.delete(f"{things}/owner", "Background")

    eventually(lambda: cluster.items(things) == [], "the thing that was owned to go")
    eventually(lambda: cluster.get(f"{maps}/owned") is None, "the ConfigMap that was owned to go")


# --- namespaces


def test_a_namespace_has_its_furniture_and_goes_with_all_that_is_in_it(cluster: Cluster) -> None:
    namespace = cluster.namespace()
    core = f"/api/v1/namespaces/{namespace}"
    eventually(lambda: cluster.get(f"{core}/serviceaccounts/default"), "the default account")
    certificate = cluster.wait_for(f"{core}/configmaps/kube-root-ca.crt", bool, "the certificate")
    assert certificate["data"] == {"ca.crt": "the authority"}
    cluster.plane.request("DELETE", f"{core}/configmaps/kube-root-ca.crt")
    eventually(lambda: cluster.get(f"{core}/configmaps/kube-root-ca.crt"), "the certificate to be given again")

    cluster.pod(namespace, "pod")
    held = {"metadata": {"name": "held", "finalizers": ["example.com/hold"]}}
    cluster.create(f"{core}/configmaps", held)
    cluster.wait_for(f"{core}/pods/pod", lambda pod: pod["status"]["phase"] == "Running", "the pod to run")
    cluster.plane.request("DELETE", core)

    remaining = "NamespaceFinalizersRemaining"
    told = cluster.wait_for(core, lambda it: condition(it, remaining).get("status") == "True", "what holds it")
    assert condition(told, remaining)["message"] == (
        "Some content in the namespace has finalizers remaining: example.com/hold in 1 resource instances"
    )
    assert cluster.items(f"{core}/pods") == []
    cluster.plane.request(
        "PATCH", f"{core}/configmaps/held", {"metadata": {"finalizers": None}}, "application/merge-patch+json"
    )
    eventually(lambda: cluster.get(core) is None, "the namespace to go")


# --- jobs


def job(name: str, command: list[str], **spec: Any) -> Json:
    container = {**SLEEPS, "command": command}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    return {"metadata": {"name": name}, "spec": {"template": template, **spec}}


def test_a_job_runs_its_pods_and_completes(cluster: Cluster) -> None:
    namespace = cluster.namespace()
    jobs = f"/apis/batch/v1/namespaces/{namespace}/jobs"
    cluster.create(jobs, job("many", ["sleep", "1"], completions=5, parallelism=2, ttlSecondsAfterFinished=3600))

    done = cluster.wait_for(f"{jobs}/many", lambda job: condition(job, "Complete"), "the Job to complete")

    status = done["status"]
    assert (status["succeeded"], status.get("failed", 0), status.get("active", 0)) == (5, 0, 0)
    assert status["uncountedTerminatedPods"] == {}
    assert status["completionTime"] >= status["startTime"]
    assert condition(done, "SuccessCriteriaMet")["reason"] == "CompletionsReached"
    pods = cluster.items(f"/api/v1/namespaces/{namespace}/pods")
    assert len(pods) == 5
    assert all("finalizers" not in pod["metadata"] for pod in pods)


def test_a_job_is_counted_right_though_the_controllers_are_killed_again_and_again(cluster: Cluster) -> None:
    namespace = cluster.namespace()
    jobs = f"/apis/batch/v1/namespaces/{namespace}/jobs"
    pods = f"/api/v1/namespaces/{namespace}/pods"
    cluster.create(jobs, job("survivor", ["sleep", "1"], completions=8, parallelism=2))
    for ended in (1, 3, 5):
        eventually(
            lambda: sum(pod["status"]["phase"] == "Succeeded" for pod in cluster.items(pods)) >= ended,  # noqa: B023
            "some pods to end",
        )
        cluster.kill_controllers()

    done = cluster.wait_for(f"{jobs}/survivor", lambda job: condition(job, "Complete"), "the Job to complete")

    assert (done["status"]["succeeded"], done["status"].get("failed", 0)) == (8, 0)
    assert len(cluster.items(pods)) == 8


def test_an_indexed_job_tells_each_pod_its_number(cluster: Cluster) -> None:
    namespace = cluster.namespace()
    jobs = f"/apis/batch/v1/namespaces/{namespace}/jobs"
    cluster.create(jobs, job("indexed", ["sleep", "1"], completions=3, parallelism=3, completionMode="Indexed"))

    done = cluster.wait_for(f"{jobs}/indexed", lambda job: condition(job, "Complete"), "the Job to complete")

    assert done["status"]["completedIndexes"] == "0-2"
    pods = cluster.items(f"/api/v1/namespaces/{namespace}/pods")
    assert sorted(pod["spec"]["hostname"] for pod in pods) == ["indexed-0", "indexed-1", "indexed-2"]
    environment = pods[0]["spec"]["containers"][0]["env"]
    assert [variable["name"] for variable in environment] == ["JOB_COMPLETION_INDEX"]


def test_a_job_that_fails_too_often_fails_and_is_cleared_away_with_its_pods(cluster: Cluster) -> None:
    namespace = cluster.namespace()
    jobs = f"/apis/batch/v1/namespaces/{namespace}/jobs"
    cluster.create(jobs, job("bad", ["sh", "-c", "exit 3"], backoffLimit=0))

    done = cluster.wait_for(f"{jobs}/bad", lambda job: condition(job, "Failed"), "the Job to fail")
    assert condition(done, "Failed")["reason"] == "BackoffLimitExceeded"
    assert done["status"]["failed"] == 1

    cluster.delete(f"{jobs}/bad", "Background")
    eventually(lambda: cluster.items(f"/api/v1/namespaces/{namespace}/pods") == [], "its pods to go")


def test_a_suspended_job_holds_no_pods_and_starts_over_when_resumed(cluster: Cluster) -> None:
    namespace = cluster.namespace()
    jobs = f"/apis/batch/v1/namespaces/{namespace}/jobs"
    pods = f"/api/v1/namespaces/{namespace}/pods"
    cluster.create(jobs, job("pausing", ["sleep", "infinity"]))
    eventually(lambda: cluster.items(pods), "its pod")

    def suspend(value: bool) -> None:
        cluster.plane.request("PATCH", f"{jobs}/pausing", {"spec": {"suspend": value}}, "application/merge-patch+json")

    suspend(True)
    eventually(lambda: cluster.items(pods) == [], "its pod to go")
    held = cluster.wait_for(
        f"{jobs}/pausing", lambda job: condition(job, "Suspended").get("status") == "True", "it to say so"
    )
    assert held["status"].get("failed", 0) == 0
    suspend(False)
    eventually(lambda: cluster.items(pods), "a pod again")

    cluster.delete(f"{jobs}/pausing", "Background")
    eventually(lambda: cluster.items(pods) == [], "the pod, which nobody can count any more, to go with its Job")


# --- nodes


def test_a_silent_node_is_left_by_its_pods_and_trusted_again_when_it_is_back(cluster: Cluster) -> None:
    namespace = cluster.namespace()
    (name,) = cluster.nodes.add(1)
    node, pods = f"/api/v1/nodes/{name}", f"/api/v1/namespaces/{namespace}/pods"

    def tolerating(seconds: int | None) -> list[Json]:
        limit = {} if seconds is None else {"tolerationSeconds": seconds}
        return [{"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute", **limit}]

    for pod, seconds in (("leaves", 0), ("stays", None)):
        cluster.pod(namespace, pod, nodeName=name, tolerations=tolerating(seconds))
        cluster.wait_for(f"{pods}/{pod}", lambda it: it["status"]["phase"] == "Running", "the pod to run")
    cluster.nodes.lose_node(name)

    def taints(it: Json) -> set[tuple[str, str]]:
        return {(taint["key"].partition("/")[2], taint["effect"]) for taint in it["spec"].get("taints", ())}

    unreachable = {("unreachable", "NoSchedule"), ("unreachable", "NoExecute")}
    cluster.wait_for(node, lambda it: taints(it) == unreachable, "the node to be marked")
    leaving = cluster.wait_for(f"{pods}/leaves", lambda it: it["metadata"].get("deletionTimestamp"), "the pod to leave")
    assert condition(leaving, "DisruptionTarget")["reason"] == "DeletionByTaintManager"
    staying = cluster.get(f"{pods}/stays")
    assert staying is not None
    assert "deletionTimestamp" not in staying["metadata"]

    cluster.nodes.restore_node(name)

    back = cluster.wait_for(node, lambda it: taints(it) == set(), "the node to be trusted")
    assert condition(back, "Ready")["status"] == "True"
    cluster.nodes.remove_node(name)
    eventually(lambda: cluster.items(pods) == [], "the pods of a node that is no more to go")


def test_a_node_whose_lease_runs_out_is_unknown(cluster: Cluster) -> None:
    ready = {"type": "Ready", "status": "True", "reason": "Fine", "message": "", "lastHeartbeatTime": None}
    body = {"metadata": {"name": "dying"}, "status": {"conditions": [ready]}}
    cluster.create("/api/v1/nodes", body)

    node = cluster.wait_for(
        "/api/v1/nodes/dying", lambda it: condition(it, "Ready")["status"] == "Unknown", "the node to be unknown"
    )

    assert condition(node, "Ready")["reason"] == "NodeStatusUnknown"
    assert condition(node, "DiskPressure")["reason"] == "NodeStatusNeverUpdated"
    cluster.plane.request("DELETE", "/api/v1/nodes/dying")


# --- quotas and budgets


def test_a_quota_tells_what_is_used(cluster: Cluster) -> None:
    namespace = cluster.namespace()
    core = f"/api/v1/namespaces/{namespace}"
    hard = {
        "pods": "5",
        "requests.cpu": "4",
        "limits.memory": "1Gi",
        "count/configmaps": "10",
        "count/things.ex.com": "1",
    }
    cluster.create(f"{core}/resourcequotas", {"metadata": {"name": "quota"}, "spec": {"hard": hard}})
    path = f"{core}/resourcequotas/quota"

    def used(quota: Json) -> Json:
        found: Json = quota["status"].get("used", {})
        return found

    nothing = {"pods": "0", "requests.cpu": "0", "limits.memory": "0", "count/things.ex.com": "0"}
    # Where nobody has told a quota's use yet, the server lets nothing in.
    cluster.wait_for(path, lambda it: used(it) == {**nothing, "count/configmaps": "1"}, "an unused quota")
    asks = {"requests": {"cpu": "500m"}, "limits": {"memory": "256Mi"}}
    cluster.pod(namespace, "short", containers=[{**SLEEPS, "command": ["sleep", "1"], "resources": asks}])
    cluster.create(f"{core}/configmaps", {"metadata": {"name": "one"}})
    some = {"pods": "1", "requests.cpu": "500m", "limits.memory": "256Mi", "count/configmaps": "2"}
    cluster.wait_for(path, lambda it: used(it) == {**nothing, **some}, "a quota with a pod")

    cluster.plane.request(
        "PATCH",
        f"{core}/pods/short/status",
        {"status": {"phase": "Succeeded"}},
        "application/merge-patch+json",
    )

    cluster.wait_for(path, lambda it: used(it) == {**nothing, "count/configmaps": "2"}, "what the pod used back")


def test_a_budget_tells_how_many_pods_may_be_evicted(cluster: Cluster) -> None:
    namespace = cluster.namespace()
    core = f"/api/v1/namespaces/{namespace}"
    selector = {"matchLabels": {"app": "x"}}
    budgets = f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets"
    cluster.create(budgets, {"metadata": {"name": "budget"}, "spec": {"minAvailable": 2, "selector": selector}})
    for number in range(3):
        body = {"metadata": {"name": f"pod-{number}", "labels": {"app": "x"}}, "spec": {"containers": [SLEEPS]}}
        cluster.create(f"{core}/pods", body)

    budget = cluster.wait_for(
        f"{budgets}/budget", lambda it: it.get("status", {}).get("disruptionsAllowed") == 1, "one to be allowed"
    )
    status = budget["status"]
    assert (status["currentHealthy"], status["desiredHealthy"], status["expectedPods"]) == (3, 2, 3)
    assert status["observedGeneration"] == budget["metadata"]["generation"]

    cluster.nodes.evict(namespace, "pod-0")
    with pytest.raises(connection.ApiError, match="disruption budget"):
        cluster.nodes.evict(namespace, "pod-1")
    cluster.wait_for(
        f"{budgets}/budget", lambda it: it["status"]["expectedPods"] == 2, "the budget to see that one is gone"
    )
