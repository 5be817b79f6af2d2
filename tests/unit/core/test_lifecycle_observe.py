"""What pods tell, held against pods as real clusters show them."""

from __future__ import annotations

import pytest
from lifecycle_builders import NOW, at, ended, over, pod, running, runs, waits

from octarbiter.api.meta import Condition
from octarbiter.api.pod import Pod
from octarbiter.core.lifecycle import observe
from octarbiter.core.lifecycle.observe import Bucket

READY = Condition(type="Ready", status="False", reason="ContainersNotReady", last_transition_time=at(-60))

BUCKETS: dict[str, tuple[Pod, Bucket]] = {
    "pending, no node yet": (pod("Pending", node=""), Bucket.UNSCHEDULED),
    "pending on a node": (pod("Pending", waits("ContainerCreating")), Bucket.ASSIGNED),
    "running": (running(), Bucket.RUNNING),
    "restarted after a failure (OnFailure)": (pod("Running", waits("CrashLoopBackOff")), Bucket.RUNNING),
    "unknown": (pod("Unknown"), Bucket.UNKNOWN),
    "exit 0": (over(0), Bucket.SUCCEEDED),
    "exit 1": (over(1), Bucket.FAILED),
    "killed for memory": (pod("Failed", ended(137, reason="OOMKilled")), Bucket.FAILED),
    "its own deadline": (pod("Failed", ended(137), reason="DeadlineExceeded"), Bucket.FAILED),
    "init container failed": (pod("Failed", waits("PodInitializing"), init=[ended(2, name="fetch")]), Bucket.FAILED),
    "sidecar failed": (pod("Failed", ended(0), ended(3, name="side")), Bucket.FAILED),
    "evicted by the kubelet": (
        pod("Failed", ended(137), reason="Evicted", message="The node was low on resource: memory."),
        Bucket.LOST,
    ),
    "evicted before it ran": (pod("Failed", reason="Evicted"), Bucket.LOST),
    "evicted through the API": (pod("Failed", ended(143), disrupted="EvictionByEvictionAPI", deleted=NOW), Bucket.LOST),
    "preempted by the scheduler": (
        pod("Failed", ended(143), disrupted="PreemptionByScheduler", deleted=NOW),
        Bucket.LOST,
    ),
    "preempted by the kubelet": (pod("Failed", ended(137), reason="Preempting"), Bucket.LOST),
    "node shut down": (pod("Failed", ended(143), reason="Terminated"), Bucket.LOST),
    "node lost": (pod("Failed", reason="NodeLost"), Bucket.LOST),
    "node gone, collected": (pod("Failed", disrupted="DeletionByPodGC"), Bucket.LOST),
    "tainted away": (pod("Failed", ended(143), disrupted="DeletionByTaintManager", deleted=NOW), Bucket.LOST),
    "refused by the kubelet for cpu": (pod("Failed", reason="OutOfcpu"), Bucket.LOST),
    "refused by the kubelet for GPUs": (pod("Failed", reason="OutOfnvidia.com/gpu"), Bucket.LOST),
    "refused by a device plugin": (pod("Failed", reason="UnexpectedAdmissionError"), Bucket.LOST),
    "refused for its affinity": (pod("Failed", reason="NodeAffinity"), Bucket.LOST),
    "deleted while it waits for a node": (pod("Pending", node="", deleted=NOW), Bucket.LEAVING),
    "deleted while it starts": (pod("Pending", waits("ContainerCreating"), deleted=NOW), Bucket.LEAVING),
    "deleted while it runs": (running(deleted=NOW), Bucket.LEAVING),
    "deleted while its node is silent": (pod("Unknown", deleted=NOW), Bucket.LEAVING),
    "deleted and preempted, still there": (running(deleted=NOW, disrupted="PreemptionByScheduler"), Bucket.LEAVING),
    "deleted, exit 0 all the same": (over(0, deleted=at(-9)), Bucket.SUCCEEDED),
    "deleted, killed": (over(137, deleted=at(-9)), Bucket.LOST),
    "deleted, ended in the same second": (over(1, deleted=NOW), Bucket.LOST),
    "failed, then deleted": (over(1, deleted=at(9)), Bucket.FAILED),
    "deleted before its containers ran": (
        pod("Failed", ended(137, None, reason="ContainerStatusUnknown"), deleted=NOW, conditions=[READY]),
        Bucket.LOST,
    ),
    "evicted before it was deleted": (pod("Failed", ended(137), reason="Evicted", deleted=at(9)), Bucket.LOST),
    "a condition that is not true": (
        pod("Failed", ended(1), conditions=[Condition(type="DisruptionTarget", status="False", reason="x")]),
        Bucket.FAILED,
    ),
}


@pytest.mark.parametrize("what", BUCKETS)
def test_a_pod_falls_into_its_bucket(what: str) -> None:
    shown, bucket = BUCKETS[what]

    assert observe.bucket(shown) == bucket


def test_the_reason_of_a_loss_is_that_of_the_disruption_else_that_of_the_pod() -> None:
    assert observe.taken_reason(pod("Failed", disrupted="PreemptionByScheduler")) == "PreemptionByScheduler"
    assert observe.taken_reason(pod("Failed", reason="Evicted")) == "Evicted"
    assert observe.taken_reason(pod("Failed", reason="OutOfmemory")) == "OutOfmemory"
    assert observe.taken_reason(over(1)) == ""


def test_the_time_of_a_deletion_is_when_it_was_asked_for() -> None:
    assert observe.deletion_requested_at(running(deleted=NOW, grace=30)) == NOW
    assert observe.deletion_requested_at(running()) is None


# --- times


def test_a_pod_ended_with_its_last_container() -> None:
    assert observe.ended_at(pod("Failed", ended(1, at(-9)), ended(0, at(-3), name="side"))) == at(-3)


def test_the_end_of_a_pod_that_never_ran_is_its_last_condition() -> None:
    assert observe.ended_at(pod("Failed", reason="Evicted", conditions=[READY])) == at(-60)
    assert observe.ended_at(pod("Failed", reason="OutOfcpu")) == at(-100)


def test_a_pod_started_with_its_first_container() -> None:
    assert observe.started_at(pod("Running", runs(at(-5)), runs(at(-7), name="side"))) == at(-7)
    assert observe.started_at(over(0, finished=at(-5))) == at(-5)
    assert observe.started_at(pod("Pending", waits("ContainerCreating"))) is None


# --- the main container and its exit


def test_the_main_container_is_the_first_in_the_spec_not_in_the_alphabet() -> None:
    template = {"spec": {"containers": [{"name": "zeta"}, {"name": "alpha"}]}}

    assert observe.main_container(template) == "zeta"


def test_the_annotation_names_the_main_container() -> None:
    template = {
        "metadata": {"annotations": {"kubectl.kubernetes.io/default-container": "alpha"}},
        "spec": {"containers": [{"name": "zeta"}, {"name": "alpha"}]},
    }

    assert observe.main_container(template) == "alpha"


def test_an_annotation_that_names_no_container_is_ignored() -> None:
    template = {
        "metadata": {"annotations": {"kubectl.kubernetes.io/default-container": "gone"}},
        "spec": {"containers": [{"name": "zeta"}]},
    }

    assert observe.main_container(template) == "zeta"
    assert observe.main_container({}) == ""


def test_the_exit_is_that_of_the_main_container() -> None:
    shown = pod("Failed", ended(2, name="alpha"), ended(7, name="zeta", message="boom"))

    info = observe.terminated_info(shown, "zeta")

    assert info is not None
    assert (info.exit_code, info.exit_message, info.reason) == (7, "boom", "Error")


def test_a_failing_init_container_is_named() -> None:
    shown = pod("Failed", waits("PodInitializing"), init=[ended(0, name="ok"), ended(4, name="fetch", message="404")])

    info = observe.terminated_info(shown, "main")

    assert info is not None
    assert (info.exit_code, info.exit_message) == (4, "container fetch: 404")


def test_a_failing_sidecar_is_named() -> None:
    info = observe.terminated_info(pod("Failed", ended(0), ended(3, name="side")), "main")

    assert info is not None
    assert (info.exit_code, info.exit_message) == (3, "container side: Error")


def test_an_eviction_tells_its_reason_and_words() -> None:
    info = observe.terminated_info(pod("Failed", reason="Evicted", message="low on memory"), "main")

    assert info is not None
    assert (info.exit_code, info.exit_message, info.reason) == (0, "low on memory", "Evicted")


def test_memory_kills_keep_their_reason() -> None:
    info = observe.terminated_info(pod("Failed", ended(137, reason="OOMKilled")), "main")

    assert info is not None
    assert (info.exit_code, info.reason) == (137, "OOMKilled")


def test_a_pod_that_tells_nothing_has_no_exit() -> None:
    assert observe.terminated_info(pod("Failed"), "main") is None


# --- words


def test_texts_become_one_short_line_without_control_characters() -> None:
    assert observe.short("a\n\tb\x00c") == "a b c"
    assert observe.short("x" * 300) == "x" * 253 + "..."


def test_texts_are_cut_between_characters() -> None:
    cut = observe.short("ж" * 300)

    assert cut.endswith("...")
    assert len(cut.encode()) <= observe.MESSAGE_BYTES
    assert set(cut[:-3]) == {"ж"}


def test_a_pod_without_a_node_says_what_the_scheduler_says() -> None:
    refused = Condition(type="PodScheduled", status="False", reason="Unschedulable", message="0/5 nodes: no gpu")

    assert observe.why_not_running(pod("Pending", node="", conditions=[refused])) == "0/5 nodes: no gpu"
    assert observe.why_not_running(pod("Pending", node="")) == "no word yet from scheduler default-scheduler"


def test_a_pod_on_a_node_says_what_its_containers_wait_for() -> None:
    pulls = pod("Pending", waits("ImagePullBackOff", "no such image"))

    assert observe.why_not_running(pulls) == "container main: ImagePullBackOff: no such image"
    assert observe.why_not_running(pod("Pending", waits("ContainerCreating"))) == (
        "containers are being started on node n0"
    )


# --- force


@pytest.mark.parametrize(
    ("nodes", "timeout_s", "due"),
    [
        ({"n0": False}, 60, at(90)),
        ({}, 60, at(90)),
        ({"n0": True}, 60, None),
        ({"n0": False}, None, None),
    ],
)
def test_force_is_due_so_long_after_the_deletion_timestamp_on_a_node_that_does_not_answer(
    nodes: dict[str, bool], timeout_s: int | None, due: object
) -> None:
    assert observe.force_due(running(deleted=NOW, grace=30), timeout_s, nodes) == due
    assert observe.force_due(running(), 60, {}) is None
