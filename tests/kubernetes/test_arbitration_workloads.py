"""Claims start workloads when they are allocated, and are released when these end."""

from typing import Any

from arbitration_stage import GROUP, Stage
from eventual import eventually

from octarbiter.testing.kubernetes import fakepods

JOB = {"apiVersion": "batch/v1", "kind": "Job"}


def job(stage: Stage, namespace: str, name: str, cpu: str, duration: str = "forever") -> None:
    wanted = {"cpu": cpu, "memory": "1Gi"}
    container = {"name": "main", "image": "busybox", "resources": {"requests": wanted, "limits": wanted}}
    template = {
        "metadata": {"annotations": {fakepods.DURATION: duration}},
        "spec": {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "containers": [container]},
    }
    body = {**JOB, "metadata": {"name": name}, "spec": {"suspend": True, "backoffLimit": 0, "template": template}}
    stage.plane.request("POST", f"/apis/batch/v1/namespaces/{namespace}/jobs", body)


def is_suspended(stage: Stage, namespace: str, name: str) -> bool:
    found: bool = stage.plane.request("GET", f"/apis/batch/v1/namespaces/{namespace}/jobs/{name}")["spec"]["suspend"]
    return found


def claim(stage: Stage, namespace: str, name: str, queue: str, cpu: str, **spec: Any) -> None:
    stage.job(namespace, name, queue, 1, {"cpu": cpu, "memory": "1Gi"}, workloadRef={**JOB, "name": name}, **spec)


def test_a_job_runs_when_its_claim_is_allocated_and_the_next_one_when_it_has_ended(stage: Stage) -> None:
    namespace = stage.namespace()
    limit = {"resources": {"cpu": "2", "memory": "4Gi"}}
    stage.queue(namespace, "team", capability=limit)
    for name, duration in (("first", "2s"), ("second", "1s")):
        job(stage, namespace, name, "2", duration)
    claim(stage, namespace, "first", "team", "2")
    stage.until(lambda: is_suspended(stage, namespace, "first"), False, "the first to be started")
    claim(stage, namespace, "second", "team", "2")

    waits = eventually(
        lambda: stage.condition(stage.job_status(namespace, "second"), "Allocated").get("message"), "why it waits"
    )
    assert waits.startswith("it waits, number 1 in team")
    for name in ("first", "second"):
        stage.until(
            lambda n=name: stage.condition(stage.job_status(namespace, n), "Finished").get("status"), "True", name
        )
    assert stage.units(namespace, "first") == stage.units(namespace, "second") == 0


def test_a_claim_waits_for_its_queue_and_its_workload_in_any_order(stage: Stage) -> None:
    namespace = stage.namespace()
    claim(stage, namespace, "early", "team", "1")
    allocated = lambda: stage.condition(stage.job_status(namespace, "early"), "Allocated")  # noqa: E731

    stage.until(lambda: allocated().get("reason"), "NoWorkload", "that the Job is not there")
    job(stage, namespace, "early", "1")
    stage.until(lambda: allocated().get("reason"), "NoQueue", "that the queue is not there")
    assert "queue team does not exist" in allocated()["message"]
    stage.queue(namespace, "team")

    stage.until(lambda: is_suspended(stage, namespace, "early"), False, "the Job to be started")


def test_a_started_workload_is_kept_from_its_own_queue_but_given_back_to_another(stage: Stage) -> None:
    stage.outside("1", "0")  # leaves 8 CPU
    one, two = stage.namespace(), stage.namespace()
    stage.queue(one, "one")
    for name in ("a", "b"):
        job(stage, one, name, "4")
        claim(stage, one, name, "one", "4")
    for name in ("a", "b"):
        stage.until(lambda n=name: is_suspended(stage, one, n), False, f"{name} to be started")

    job(stage, one, "urgent", "4")
    claim(stage, one, "urgent", "one", "4", priority=100)
    stage.until(lambda: stage.job_status(one, "urgent").get("position"), 1, "urgent to wait")
    assert not is_suspended(stage, one, "a")
    assert not is_suspended(stage, one, "b")

    stage.queue(two, "two")
    job(stage, two, "other", "4")
    claim(stage, two, "other", "two", "4")

    stage.until(lambda: is_suspended(stage, two, "other"), False, "the other queue's to be started")
    assert sorted(name for name in ("a", "b") if is_suspended(stage, one, name)) in (["a"], ["b"])


def test_a_taskset_with_a_queue_gets_a_claim_and_waits_for_it(stage: Stage) -> None:
    namespace = stage.namespace()
    limit = {"resources": {"cpu": "2", "memory": "4Gi"}}
    stage.queue(namespace, "team", capability=limit)
    wanted = {"cpu": "1", "memory": "1Gi"}
    container = {"name": "main", "image": "busybox", "resources": {"requests": wanted, "limits": wanted}}
    template = {"spec": {"containers": [container]}}
    path = f"/apis/octopus.openi.pcl.cn/v1alpha1/namespaces/{namespace}/tasksets"
    for name in ("first", "second"):
        roles = [{"name": "worker", "replicas": 2, "template": template}]
        made = stage.plane.request(
            "POST",
            path,
            {
                "apiVersion": "octopus.openi.pcl.cn/v1alpha1",
                "kind": "TaskSet",
                "metadata": {"name": name},
                "spec": {"queue": "team", "roles": roles},
            },
        )
        assert made["spec"]["suspend"] is True
        if name == "first":
            stage.until(lambda: stage.plane.request("GET", f"{path}/first")["spec"]["suspend"], False, "it to start")

    stage.until(lambda: stage.job_status(namespace, "second").get("position"), 1, "the second to wait")
    assert stage.plane.request("GET", f"{path}/second")["spec"]["suspend"] is True
    stage.plane.request("DELETE", f"{path}/first")

    stage.until(lambda: stage.plane.request("GET", f"{path}/second")["spec"]["suspend"], False, "the second to start")
    claims = f"{GROUP}/namespaces/{namespace}/queuejobs"
    stage.until(
        lambda: [each["metadata"]["name"] for each in stage.plane.request("GET", claims)["items"]],
        ["second"],
        "the claims: the first one's is gone with it",
    )


def test_a_claim_that_cannot_be_made_stops_nobody_else(stage: Stage) -> None:
    barred, other = stage.namespace(), stage.namespace()
    none = {"count/queuejobs.arbitrator.incubator.k8s.io": "0"}
    stage.user_quota(barred, "no-claims", none)
    stage.until(lambda: stage.quotas(barred), {"no-claims": none}, "the quota")
    template = {"spec": {"containers": [{"name": "main", "image": "busybox"}]}}
    stage.plane.request(
        "POST",
        f"/apis/octopus.openi.pcl.cn/v1alpha1/namespaces/{barred}/tasksets",
        {
            "apiVersion": "octopus.openi.pcl.cn/v1alpha1",
            "kind": "TaskSet",
            "metadata": {"name": "barred"},
            "spec": {"queue": "team", "roles": [{"name": "worker", "template": template}]},
        },
    )

    stage.queue(other, "team")
    stage.job(other, "job", "team", 2)

    stage.until(lambda: stage.units(other, "job"), 2, "the other's units")
    assert stage.job_status(barred, "barred") == {}
