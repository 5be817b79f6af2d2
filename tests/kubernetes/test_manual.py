"""The user manual's own files, unchanged, on a real kubelet: they do what the manual says."""

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest
import yaml
from taskset_bench import Bench, Json, replicas_of, role_of
from taskset_fixture import Controller, bench
from taskset_observer import Observer

from octarbiter.testing.kubernetes.bed import Testbed
from octarbiter.testing.kubernetes.node import RealNode

pytestmark = pytest.mark.xdist_group("real-node")

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
MANUAL = EXAMPLES / "manual-1-tensorflowdemo.yaml"
README = EXAMPLES / "readme-tensorflowdemo.yaml"
KUBE_BATCH = EXAMPLES / "manual-2-kube-batch.yaml"
GPU = "nvidia.com/gpu"
NAME = "tensorflowdemo"
PS_S = 100
"""So long `ps` would run, if nobody stopped it."""
WORKER_S = 30


@pytest.fixture
def elsewhere(real_bed: Testbed, real_controller: Controller, real_observer: Observer) -> Iterator[Bench]:
    """Another namespace on the same node."""
    with bench(real_bed, real_controller, real_observer) as made:
        yield made


@pytest.fixture
def node(real_bed: Testbed) -> Iterator[RealNode]:
    """The real node, without a GPU."""
    assert real_bed.real_node is not None
    real_bed.real_node.set_resource(GPU, 0)
    yield real_bed.real_node
    real_bed.real_node.set_resource(GPU, 0)


def test_without_a_gpu_the_demo_waits_and_says_for_what(real_tasksets: Bench, node: RealNode) -> None:
    real_tasksets.kubectl("create", "-f", str(MANUAL))
    status = real_tasksets.when_told("worker-0, worker-1, worker-2: 0/1 nodes are available: ", GPU, name=NAME)

    assert role_of(status, "worker")["state"] == "Waiting"
    assert GPU in role_of(status, "worker")["stateMessage"]
    assert "Insufficient nvidia.com/gpu" in real_tasksets.kubectl("describe", "taskset", NAME)


def test_under_a_scheduler_that_is_not_there_the_demo_waits_and_says_so(real_tasksets: Bench) -> None:
    refused = real_tasksets.kubectl("create", "-f", str(KUBE_BATCH), check=False)
    assert 'no matches for kind "PodGroup"' in refused
    group, taskset = yaml.safe_load_all(KUBE_BATCH.read_text())
    assert (group["kind"], taskset["kind"]) == ("PodGroup", "TaskSet")
    if real_tasksets.find(NAME) is None:
        real_tasksets.kubectl("create", "-f", "-", input=yaml.safe_dump(taskset))

    status = real_tasksets.when_told("no word yet from scheduler kube-batch", name=NAME)
    assert status["state"] == "Waiting"
    assert len(real_tasksets.pods()) == 4
    for pod in real_tasksets.pods():
        assert pod["metadata"]["annotations"]["scheduling.k8s.io/group-name"] == "pg-1"


def test_with_three_gpus_each_the_demos_of_manual_and_readme_succeed_long_before_ps_would(
    real_tasksets: Bench, elsewhere: Bench, node: RealNode
) -> None:
    node.set_resource(GPU, 6)
    real_tasksets.kubectl("create", "-f", str(MANUAL))
    elsewhere.kubectl("create", "-f", str(README))

    for tasksets in (real_tasksets, elsewhere):
        status = tasksets.when_ended("Succeeded", NAME, timeout_s=90)
        assert WORKER_S <= _seconds_to(status["finishAt"], status) < PS_S
        workers = replicas_of(status, "worker").values()
        assert role_of(status, "worker")["succeeded"] >= 2
        # All three were at it at the same time.
        assert max(each["startAt"] for each in workers) < min(each["finishAt"] for each in workers)
        _check_that_it_is_over(tasksets, status)


def test_with_one_gpu_the_workers_of_the_demo_take_turns(real_tasksets: Bench, node: RealNode) -> None:
    node.set_resource(GPU, 1)
    real_tasksets.kubectl("create", "-f", str(MANUAL))
    status = real_tasksets.when_ended("Succeeded", NAME, timeout_s=120)

    assert 2 * WORKER_S <= _seconds_to(status["trigger"]["at"], status) < PS_S
    workers = replicas_of(status, "worker").values()
    first, second = sorted((each for each in workers if not each.get("stopped")), key=lambda each: str(each["startAt"]))
    assert first["finishAt"] <= second["startAt"]
    assert (role_of(status, "worker")["succeeded"], role_of(status, "worker")["stopped"]) == (2, 1)
    _check_that_it_is_over(real_tasksets, status)


def _check_that_it_is_over(tasksets: Bench, status: Json) -> None:
    ps = replicas_of(status, "ps")[0]
    assert (role_of(status, "ps")["state"], ps["stopped"]) == ("Succeeded", True)
    assert (status["trigger"]["role"], status["trigger"]["event"]) == ("worker", "RoleSucceeded")
    tasksets.check_that_all_is_gone()
    (line,) = tasksets.kubectl("get", "ts", "--no-headers").splitlines()
    assert line.split()[:4] == [NAME, "Succeeded", "TaskSetCompleted", "0"]


def _seconds_to(moment: str, status: Json) -> float:
    """Since the first pod ran, as the status itself tells."""
    return (datetime.fromisoformat(moment) - datetime.fromisoformat(status["startAt"])).total_seconds()
