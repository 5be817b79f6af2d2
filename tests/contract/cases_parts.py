"""What passes through the doors to parts of an object: its status, the size of a pod, containers beside its own."""

from __future__ import annotations

from typing import Any

from furniture import GADGETS, Json, deployment, gadget, job, pod
from harness import STRATEGIC_PATCH, Api, case, each

_CONTAINER: Json = {
    "name": "main",
    "image": "busybox",
    "resources": {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "2"}},
}


@case
def containers_are_put_beside_those_of_a_pod(api: Api) -> None:
    api.made("pods", pod("a"))
    door = "pods/a/ephemeralcontainers"
    api.get(door)
    api.patch(door, {"spec": {"ephemeralContainers": [{"name": "one", "image": "busybox"}]}}, type=STRATEGIC_PATCH)
    two = {"name": "two", "image": "busybox", "targetContainerName": "main", "stdin": True, "tty": True}
    api.patch(door, {"spec": {"ephemeralContainers": [two]}}, type=STRATEGIC_PATCH)
    api.patch(door, {"spec": {"ephemeralContainers": []}})
    api.patch("pods/a", {"spec": {"ephemeralContainers": [{"name": "x", "image": "x"}]}}, type=STRATEGIC_PATCH)
    present = api.ask("GET", "pods/a").body
    present["spec"]["ephemeralContainers"].append({"name": "three", "image": "busybox"})
    api.put(door, present)
    api.put(door, present)
    api.post(door, present)
    api.delete(door)


@each(
    {
        "nowhere": {"name": "x", "image": "busybox", "targetContainerName": "nobody"},
        "called as another": {"name": "main", "image": "busybox"},
        "changed": {"name": "one", "image": "other"},
        "without an image": {"name": "x"},
        "with ports": {"name": "x", "image": "busybox", "ports": [{"containerPort": 80}]},
        "with resources": {"name": "x", "image": "busybox", "resources": {"requests": {"cpu": "1"}}},
        "with a probe": {"name": "x", "image": "busybox", "livenessProbe": {"exec": {"command": ["a"]}}},
        "with a hook": {"name": "x", "image": "busybox", "lifecycle": {"preStop": {"sleep": {"seconds": 1}}}},
        "with a part of a volume": {
            "name": "x",
            "image": "busybox",
            "volumeMounts": [{"name": "v", "mountPath": "/v", "subPath": "p"}],
        },
    }
)
def a_container_beside_others(api: Api, container: Json) -> None:
    api.made("pods", pod("a", volumes=[{"name": "v", "emptyDir": {}}]))
    door = "pods/a/ephemeralcontainers"
    first = {"name": "one", "image": "busybox"}
    api.given("PATCH", door, {"spec": {"ephemeralContainers": [first]}}, type=STRATEGIC_PATCH)
    api.patch(door, {"spec": {"ephemeralContainers": [container]}}, type=STRATEGIC_PATCH)


@case
def a_pod_is_resized(api: Api) -> None:
    api.made("pods", pod("a", containers=[_CONTAINER]))
    api.get("pods/a/resize")
    smaller = {"name": "main", "resources": {"requests": {"cpu": "500m"}}}
    api.patch("pods/a/resize", {"spec": {"containers": [smaller]}}, type=STRATEGIC_PATCH)
    api.patch("pods/a/resize?dryRun=All", {"spec": {"containers": [_CONTAINER]}}, type=STRATEGIC_PATCH)
    present = api.ask("GET", "pods/a").body
    present["spec"]["containers"][0]["resources"]["limits"]["memory"] = "2Gi"
    api.put("pods/a/resize", present)
    api.put("pods/a/resize", {**present, "metadata": {"name": "a"}})
    api.patch("pods/a", {"spec": {"containers": [{"name": "main", "resources": {}}]}}, type=STRATEGIC_PATCH)
    api.post("pods/a/resize", present)
    api.delete("pods/a/resize")
    api.get("pods/absent/resize")


@each(
    {
        "beyond its limit": [{"name": "main", "resources": {"requests": {"cpu": "3"}}}],
        "to nonsense": [{"name": "main", "resources": {"requests": {"cpu": "x"}}}],
        "in its disk": [{"name": "main", "resources": {"requests": {"ephemeral-storage": "1Gi"}}}],
        "by a container": [{"name": "more", "image": "busybox"}],
        "in another policy": [
            {"name": "main", "resizePolicy": [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]}
        ],
        "to another class": [
            {"name": "main", "resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "2", "memory": "1Gi"}}}
        ],
        "by taking away": [{"name": "main", "resources": {"limits": None}}],
    }
)
def a_pod_resized(api: Api, containers: Any) -> None:
    api.made("pods", pod("a", containers=[_CONTAINER]))
    api.patch("pods/a/resize", {"spec": {"containers": containers}}, type=STRATEGIC_PATCH)


@case
def a_pod_with_helpers_is_resized(api: Api) -> None:
    helpers = [{**_CONTAINER, "name": "first"}, {**_CONTAINER, "name": "side", "restartPolicy": "Always"}]
    api.made("pods", pod("a", containers=[_CONTAINER], initContainers=helpers, nodeName="contract-node"))
    for name in ("first", "side"):
        smaller = {"name": name, "resources": {"requests": {"cpu": "500m"}}}
        api.patch("pods/a/resize", {"spec": {"initContainers": [smaller]}}, type=STRATEGIC_PATCH)
    running: Json = {"name": "main", "image": "b", "imageID": "", "ready": True, "restartCount": 0}
    running["state"] = {"running": {"startedAt": "2020-01-01T00:00:00Z"}}
    smaller = {"name": "main", "resources": {"requests": {"cpu": "700m"}}}
    for state in (running, {**running, "resources": _CONTAINER["resources"]}):
        status = {"phase": "Running", "containerStatuses": [state]}
        api.given("PATCH", "pods/a/status", {"status": status}, type="application/merge-patch+json")
        api.patch("pods/a/resize", {"spec": {"containers": [smaller]}}, type=STRATEGIC_PATCH)


_BEGUN = {"startTime": "2020-01-01T00:00:00Z", "active": 1, "succeeded": 2, "failed": 1}
_COMPLETE = {"type": "Complete", "status": "True"}
_FAILED = {"type": "Failed", "status": "True"}
_MET = {"type": "SuccessCriteriaMet", "status": "True"}
_DOOMED = {"type": "FailureTarget", "status": "True"}


@each(
    {
        "less than none": {"active": -1, "ready": -1, "terminating": -1},
        "fewer than before": {"succeeded": 1, "failed": 0},
        "more ready than active": {"ready": 2},
        "complete at once": {"conditions": [_COMPLETE]},
        "complete": {"conditions": [_MET, _COMPLETE], "completionTime": "2020-01-02T00:00:00Z", "active": 0},
        "complete before it began": {
            "conditions": [_MET, _COMPLETE],
            "completionTime": "2019-01-02T00:00:00Z",
            "active": 0,
        },
        "complete and active": {"conditions": [_MET, _COMPLETE], "completionTime": "2020-01-02T00:00:00Z"},
        "complete and failed": {
            "conditions": [_MET, _COMPLETE, _DOOMED, _FAILED],
            "completionTime": "2020-01-02T00:00:00Z",
            "active": 0,
        },
        "failed at once": {"conditions": [_FAILED], "active": 0},
        "failed": {"conditions": [_DOOMED, _FAILED], "active": 0},
        "an end without a verdict": {"completionTime": "2020-01-02T00:00:00Z"},
        "another beginning": {"startTime": "2021-01-01T00:00:00Z"},
        "no beginning": {"startTime": None},
        "indexes": {"completedIndexes": "0"},
        "failed indexes": {"failedIndexes": "0"},
        "uncounted twice": {"uncountedTerminatedPods": {"succeeded": ["a", "a", ""], "failed": ["a"]}},
    }
)
def a_job_says_of_itself(api: Api, status: Json) -> None:
    api.made("batch/v1/jobs", job("a", completions=5, parallelism=2))
    for body in (_BEGUN, status):
        answer = api.ask("PATCH", "batch/v1/jobs/a/status", {"status": body}, type="application/merge-patch+json")
    shown = answer.body.get("status") if answer.code == 200 else [answer["message"], answer["details"]]
    api.note("answer", [answer.code, shown])


@each({"0,2-4": "0,2-4", "4-2": "4-2", "1,1": "1,1", "9": "9", "x": "x", "1-2-3": "1-2-3"})
def an_indexed_job_says_what_is_done(api: Api, indexes: str) -> None:
    api.made("batch/v1/jobs", job("a", completions=5, completionMode="Indexed", backoffLimitPerIndex=1))
    for name in ("completedIndexes", "failedIndexes"):
        api.patch("batch/v1/jobs/a/status", {"status": {name: indexes}})


@case
def what_has_ended_does_not_begin_again(api: Api) -> None:
    def status(name: str, **state: Json) -> Json:
        return {"name": name, "image": "b", "imageID": "", "ready": False, "restartCount": 0, "state": state}

    ended: Json = {"exitCode": 1, "startedAt": "2020-01-01T00:00:00Z", "finishedAt": "2020-01-02T00:00:00Z"}
    running: Json = {"startedAt": "2020-01-03T00:00:00Z"}
    for policy, code in (("Never", 1), ("OnFailure", 1), ("OnFailure", 0), ("Always", 0)):
        name = f"{policy.lower()}-{code}"
        api.made("pods", pod(name, restartPolicy=policy, nodeName="contract-node"))
        for state in (status("main", terminated={**ended, "exitCode": code}), status("main", running=running)):
            body = {"status": {"containerStatuses": [state]}}
            answer = api.ask("PATCH", f"pods/{name}/status", body, type="application/merge-patch+json")
            api.note(name, [answer.code, answer.body.get("message"), answer.body.get("details")])


@each(
    {
        "another class": {"qosClass": "Guaranteed"},
        "no class": {"qosClass": None},
        "a nominated node": {"nominatedNodeName": "n"},
        "a node that is none": {"nominatedNodeName": "-"},
        "addresses": {"podIPs": [{"ip": "10.0.0.1"}], "hostIP": "10.0.0.2", "hostIPs": [{"ip": "10.0.0.2"}]},
        "an address": {"podIP": "10.0.0.1", "hostIP": "10.0.0.2"},
        "two of a kind": {"podIPs": [{"ip": "10.0.0.1"}, {"ip": "10.0.0.2"}]},
        "addresses that are none": {"podIPs": [{"ip": "x"}], "hostIPs": [{"ip": "y"}]},
        "a condition of its own": {"conditions": [{"type": "example.com/x", "status": "True"}]},
        "a condition that is none": {"conditions": [{"type": "a b", "status": "True"}]},
    }
)
def a_pod_says_of_itself(api: Api, status: Json) -> None:
    for name, spec in (("free", {}), ("bound", {"nodeName": "contract-node"})):
        api.made("pods", pod(name, **spec))
        answer = api.ask("PATCH", f"pods/{name}/status", {"status": status}, type="application/merge-patch+json")
        shown = answer.body.get("status") if answer.code == 200 else [answer["message"], answer["details"]]
        api.note(name, [answer.code, shown])


@each(
    {
        "counts": {"replicas": 2, "readyReplicas": 1, "availableReplicas": 1, "updatedReplicas": 2},
        "negative ones": {"replicas": -1, "observedGeneration": -1},
        "more than there are": {"replicas": 1, "readyReplicas": 2, "availableReplicas": 3},
    }
)
def a_workload_says_of_itself(api: Api, status: Json) -> None:
    made = deployment("a")
    for kind, plural in (("Deployment", "deployments"), ("ReplicaSet", "replicasets"), ("StatefulSet", "statefulsets")):
        api.made(f"apps/v1/{plural}", {**made, "kind": kind})
        body = {"metadata": {"labels": {"x": "y"}}, "status": status}
        answer = api.ask("PATCH", f"apps/v1/{plural}/a/status", body, type="application/merge-patch+json")
        shown = answer.body.get("status") if answer.code == 200 else [answer["message"], answer["details"]]
        api.note(kind, [answer.code, answer.body["metadata"].get("labels"), shown])


@each({"text": "x", "negative": -1, "large": 2**40, "float": 1.5, "null": None})
def custom_replicas(api: Api, replicas: Any) -> None:
    api.post(GADGETS, gadget("a", replicas=replicas))
    api.made(GADGETS, gadget("b"))
    api.patch(f"{GADGETS}/b/status", {"status": {"replicas": replicas}})
    api.patch(f"{GADGETS}/b/status", {"status": {"selector": replicas}})
    api.patch(f"{GADGETS}/b/scale", {"spec": {"replicas": replicas}})
