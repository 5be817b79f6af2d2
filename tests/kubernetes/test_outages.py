"""Controllers that are killed, that are two, and an API server that is away: nothing is lost, nothing is doubled."""

import random
import time
from datetime import datetime

import pytest
from taskset_bench import Bench, Json, counts, needs, replicas_of, retries, role, role_of
from taskset_fixture import Controller
from taskset_observer import Observer

from octarbiter.api import scheme
from octarbiter.core.lifecycle import names
from octarbiter.testing.kubernetes import fakepods
from octarbiter.testing.kubernetes.bed import Testbed

pytestmark = [
    pytest.mark.xdist_group("bed"),
    pytest.mark.parametrize("any_bed", ["kubernetes", "interruptible"], indirect=True),
]

# Replica 0 succeeds, replica 1 fails with exit code 1, and so on.
BY_INDEX = {fakepods.EXIT_CODE: "$(TASKROLE_REPLICA_INDEX)"}


def test_the_observer_sees_two_pods_of_one_replica(any_bed: Testbed, observer: Observer) -> None:
    """Else the other tests would prove little."""
    plane = any_bed.control_plane
    namespace = plane.create_namespace()
    replica = {"TaskSet": "job", "PodTaskRole": "worker", "PodTaskIndex": "0", names.UID_LABEL: "uid"}
    for name in ("one", "two"):
        container = {"name": "main", "image": "busybox"}
        pod = {"metadata": {"name": name, "labels": replica}, "spec": {"containers": [container]}}
        plane.request("POST", scheme.PODS.path(namespace), pod)

    assert observer.doubles(namespace)[0].endswith(": one, two")
    plane.request("DELETE", scheme.NAMESPACES.path(name=namespace))


def test_when_the_leader_is_killed_the_stand_by_goes_on_where_it_was(tasksets: Bench, controller: Controller) -> None:
    stand_by = controller.another("stand-by")
    stand_by.start()
    try:
        stand_by.when_it_says("standing by")
        tasksets.submit(role(replicas=4, retryPolicy=retries(2)))
        pods = tasksets.when_running("worker", 4)
        controller.kill()
        before = controller.lease()
        # Meanwhile one ends, one fails, one is deleted; and there is one more TaskSet.
        tasksets.end(index=0)
        tasksets.end(index=1, exit_code=1)
        tasksets.delete_pod(tasksets.when_pod(index=2))
        tasksets.submit(role(duration="0s"), name="another")
        stand_by.when_it_says("leading")
        tasksets.when_ended("Succeeded", "another")
        after = controller.lease()
    finally:
        # Who was killed comes back, and leads again when the other has gone.
        since = controller.log_size
        controller.start()
        controller.when_it_says("standing by", since)
        stand_by.stop()
    controller.when_it_says("leading", since)
    for index in (1, 2, 3):
        tasksets.end(index=index)

    assert after["leaseTransitions"] == before["leaseTransitions"] + 1
    last_sign_of_life = datetime.fromisoformat(before["renewTime"])
    assert (datetime.fromisoformat(after["acquireTime"]) - last_sign_of_life).total_seconds() < 15
    replicas = replicas_of(tasksets.when_ended("Succeeded"))
    assert [counts(replicas[index]) for index in range(4)] == [(0, 0), (1, 0), (0, 1), (0, 0)]
    assert [replicas[index]["podUID"] == pods[index] for index in range(4)] == [True, False, False, True]
    assert len(tasksets.made()) == 7


def test_a_controller_killed_at_any_instant_makes_no_difference(tasksets: Bench, controller: Controller) -> None:
    """Without election: the next one begins at once."""
    controller.stop()
    mortal = controller.another("mortal", "--no-leader-elect")
    dice = random.Random(7)
    try:
        for number in range(3):
            tasksets.submit(
                role("worker", 4, duration="1s", annotations=BY_INDEX, **_two_of_four_after_retries()),
                role("ps", 2),
                name=f"job-{number}",
                retryPolicy=retries(1),
            )
        for _ in range(8):
            mortal.start()
            since = mortal.log_size
            mortal.when_it_says("all caches are filled", since)
            # The instant is what is tried out.
            time.sleep(dice.uniform(0.0, 0.8))
            mortal.kill()
        mortal.start()
        ended = [tasksets.when_ended("Failed", f"job-{number}", timeout_s=120) for number in range(3)]
    finally:
        mortal.stop()
        controller.start()

    for status in ended:
        replicas, worker = replicas_of(status), role_of(status, "worker")
        assert (worker["succeeded"], worker["failed"]) == (1, 3)
        assert [counts(replicas[index]) for index in range(4)] == [(0, 0), (1, 0), (1, 0), (1, 0)]
        assert (status["totalRetriedCount"], len(status["history"])) == (1, 2)
    # Each attempt: one pod a replica, and one more for each that failed. Not one was lost, or made twice.
    assert len(tasksets.made()) == 3 * 2 * (4 + 3 + 2)
    tasksets.check_that_all_is_gone()


def test_a_second_controller_that_ignores_the_lease_does_no_harm(tasksets: Bench, controller: Controller) -> None:
    rogue = controller.another("rogue", "--no-leader-elect")
    rogue.start()
    try:
        rogue.when_it_says("all caches are filled")
        for number in range(3):
            tasksets.submit(
                role("worker", 4, duration="500ms", annotations=BY_INDEX, **_two_of_four_after_retries()),
                role("ps", 2),
                name=f"job-{number}",
                retryPolicy=retries(1),
            )
        ended = [tasksets.when_ended("Failed", f"job-{number}") for number in range(3)]
    finally:
        rogue.stop()

    for status in ended:
        assert [counts(each) for each in replicas_of(status).values()] == [(0, 0), (1, 0), (1, 0), (1, 0)]
        assert (status["totalRetriedCount"], len(status["history"])) == (1, 2)
    assert len(tasksets.made()) == 3 * 2 * (4 + 3 + 2)
    assert [line for line in rogue.lines() if line.get("exception")] == []


def test_while_the_api_server_is_away_nothing_is_lost_or_doubled(tasksets: Bench, controller: Controller) -> None:
    plane = tasksets.bed.control_plane
    node = tasksets.bed.fake_nodes.names[0]
    ending = {"completionPolicy": needs(2, max_failed=-1), "retryPolicy": retries(1, delay=2)}
    # Scheduler and garbage collector of the cluster take half a minute to notice that the server is back: we do the
    # work of one, and leave none to the other.
    ours = {"pod": {"schedulerName": "nobody"}, "annotations": BY_INDEX}
    tasksets.submit(role("steady", 2), role("worker", 3, duration="5s", **ours, **ending), podRetention="All")
    for index in range(3):
        tasksets.bind(tasksets.when_pod(index=index, phase="Pending"), node)
    steady = tasksets.when_running("steady", 2)
    tasksets.when_running("worker", 3)
    plane.stop_apiserver()
    # Longer than the lease lasts, and than the workers run.
    time.sleep(20)
    plane.start_apiserver()
    for index in (1, 2):
        tasksets.bind(tasksets.when_pod(index=index, phase="Pending"), node)

    status = tasksets.when_ended("Failed")
    assert [counts(each) for each in replicas_of(status).values()] == [(0, 0), (1, 0), (1, 0)]
    assert [counts(each) for each in replicas_of(status, "steady").values()] == [(0, 0), (0, 0)]
    assert {index: each["podUID"] for index, each in replicas_of(status, "steady").items()} == steady
    assert len(tasksets.made()) == 7


def _two_of_four_after_retries() -> Json:
    """One of four succeeds, the others fail twice each: the role fails when the last one does."""
    return {"completionPolicy": needs(2, max_failed=3), "retryPolicy": retries(1)}
