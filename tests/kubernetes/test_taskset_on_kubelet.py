"""What only a real kubelet can show: environment and names inside the containers, how programs end."""

import pytest
from taskset_bench import Bench, Json, counts, replicas_of, retries

pytestmark = pytest.mark.xdist_group("real-node")


def test_a_program_sees_its_environment_and_its_name(real_tasksets: Bench) -> None:
    say = "hostname; echo $(TASKSET_NAME)/$(TASKROLE_NAME)/$(TASKROLE_REPLICA_INDEX) of $TASKROLE_REPLICAS, $MINE"
    worker = _role("worker", say, replicas=2)
    worker["template"]["spec"]["containers"][0]["env"] = [{"name": "MINE", "value": "peer-$(TASKROLE_REPLICA_INDEX)"}]
    real_tasksets.submit(worker, podRetention="All")
    status = real_tasksets.when_ended("Succeeded")

    for index, replica in replicas_of(status).items():
        said = real_tasksets.kubectl("logs", replica["podName"]).splitlines()
        assert said == [f"worker-{index}", f"job/worker/{index} of 2, peer-{index}"]
        assert replica["containerID"].startswith("containerd://")
        assert replica["startAt"] <= replica["finishAt"]


def test_the_last_words_of_a_failed_program_are_in_the_status(real_tasksets: Bench) -> None:
    broken = _role("broken", "exit 0")
    setup = {"name": "setup", "image": "busybox", "command": ["sh", "-c", "echo no disk; exit 4"]}
    broken["template"]["spec"]["initContainers"] = [setup]
    quiet = [{"event": "RoleFailed", "action": "NoAction"}]
    real_tasksets.submit(_role("worker", "echo boom; exit 3", eventPolicy=quiet), broken | {"eventPolicy": quiet})
    status = real_tasksets.when_ended("Failed")

    info = replicas_of(status, "worker")[0]["terminatedInfo"]
    assert (info["exitCode"], info["exitMessage"].strip(), info["reason"]) == (3, "boom", "Error")
    info = replicas_of(status, "broken")[0]["terminatedInfo"]
    assert (info["exitCode"], info["exitMessage"].strip()) == (4, "container setup: no disk")


def test_a_deleted_pod_that_still_ends_with_success_has_succeeded_and_one_that_is_killed_is_replaced(
    real_tasksets: Bench,
) -> None:
    obeys = _role("obeys", "trap 'exit 0' TERM; while :; do sleep 0.1; done")
    killed = _role("killed", "case $POD in *-0-0-0) sleep 100;; esac", retryPolicy=retries(1, delay=600))
    killed["template"]["spec"]["terminationGracePeriodSeconds"] = 1
    own_name = {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}
    killed["template"]["spec"]["containers"][0]["env"] = [own_name]
    real_tasksets.submit(obeys, killed)
    pods = {name: real_tasksets.when_pod(name) for name in ("obeys", "killed")}
    for pod in pods.values():
        real_tasksets.delete_pod(pod)
    status = real_tasksets.when_ended("Succeeded")

    assert counts(replicas_of(status, "obeys")[0]) == (0, 0)
    assert counts(replicas_of(status, "killed")[0]) == (0, 1)
    assert sorted(real_tasksets.made()) == ["job-killed-0-0-0", "job-killed-0-1-0", "job-obeys-0-0-0"]


def _role(name: str, script: str, replicas: int = 1, **fields: Json | list[Json]) -> Json:
    container = {"name": "main", "image": "busybox", "command": ["sh", "-c", script]}
    return {"name": name, "replicas": replicas, "template": {"spec": {"containers": [container]}}, **fields}
