"""A TaskSet that names a queue gets a claim that asks for exactly what its pods will ask for."""

from __future__ import annotations

from typing import Any

from octarbiter.api import codec
from octarbiter.api.taskset import TaskSet
from octarbiter.core.arbitration import made_claims


def role(name: str, replicas: int, cpu: str, **spec: Any) -> dict[str, Any]:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}}
    return {"name": name, "replicas": replicas, "template": {"spec": {"containers": [container], **spec}}}


def taskset(*roles: dict[str, Any], **spec: Any) -> TaskSet:
    metadata = {"name": "train", "namespace": "team", "uid": "u1"}
    return codec.from_json({"metadata": metadata, "spec": {"queue": "q", "roles": list(roles), **spec}}, TaskSet)


def test_equal_pods_are_the_units_and_all_of_them_are_needed() -> None:
    claim = made_claims.claim(taskset(role("worker", 3, "500m")), priority=7)

    assert claim["spec"] == {
        "queue": "q",
        "priority": 7,
        "resourceunit": {"resources": {"cpu": "500m", "memory": "1Gi"}},
        "resourceno": 3,
        "minResourceno": 3,
        "workloadRef": {"apiVersion": "octopus.openi.pcl.cn/v1alpha1", "kind": "TaskSet", "name": "train"},
    }


def test_a_gang_needs_only_its_minimum() -> None:
    claim = made_claims.claim(taskset(role("a", 2, "1"), role("b", 3, "1"), minAvailable=4), priority=0)

    assert (claim["spec"]["resourceno"], claim["spec"]["minResourceno"]) == (5, 4)


def test_unequal_roles_are_one_unit() -> None:
    claim = made_claims.claim(taskset(role("ps", 1, "2"), role("worker", 3, "500m")), priority=0)

    assert claim["spec"]["resourceunit"] == {"resources": {"cpu": "3500m", "memory": "4Gi"}}
    assert (claim["spec"]["resourceno"], claim["spec"]["minResourceno"]) == (1, 1)


def test_the_claim_goes_with_its_taskset() -> None:
    metadata = made_claims.claim(taskset(role("worker", 1, "1")), priority=0)["metadata"]

    assert (metadata["name"], metadata["namespace"]) == ("train", "team")
    assert [owner["uid"] for owner in metadata["ownerReferences"]] == ["u1"]


def test_no_claim_is_due_without_a_queue_or_for_pods_of_the_batch_scheduler_or_after_the_end() -> None:
    worker = role("worker", 1, "1")
    ended = {"status": {"state": "Failed"}}
    finished = codec.from_json({**codec.to_json(taskset(worker)), **ended}, TaskSet)

    assert made_claims.is_due(taskset(worker))
    assert not made_claims.is_due(taskset(worker, queue=""))
    assert not made_claims.is_due(taskset(role("worker", 1, "1", schedulerName="kube-batch")))
    assert not made_claims.is_due(finished)
