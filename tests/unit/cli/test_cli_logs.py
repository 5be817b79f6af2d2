"""Whose logs `octo logs` means, and what it says where there are none."""

from typing import Any

import pytest

from octarbiter.api import taskset as api
from octarbiter.api.meta import ObjectMeta
from octarbiter.api.pod import ContainerState, ContainerStatus, Pod, PodStatus, Running
from octarbiter.cli import exits, replica_logs
from octarbiter.cli.replica_logs import Choice


def taskset(
    *, retention: str = "None", replicas: int = 3, status: list[api.ReplicaStatus] | None = None
) -> api.TaskSet:
    roles = [
        api.Role(name="ps", template={}),
        api.Role(name="worker", template={"spec": {"containers": [{"name": "main"}]}}, replicas=replicas),
    ]
    seen = api.TaskSetStatus(role_status=[api.RoleStatus(name="worker", replica_status=status or [])])
    return api.TaskSet(spec=api.TaskSetSpec(roles=roles, pod_retention=retention), status=seen)


def pod(name: str, index: int, **status: Any) -> Pod:
    labels = {"PodTaskRole": "worker", "PodTaskIndex": str(index)}
    return Pod(metadata=ObjectMeta(name=name, labels=labels), status=PodStatus(**status))


def test_without_a_choice_all_replicas_are_meant_in_the_order_of_the_spec() -> None:
    assert replica_logs.chosen(taskset(), Choice()) == [("ps", 0), ("worker", 0), ("worker", 1), ("worker", 2)]


def test_role_and_index_narrow_the_choice() -> None:
    assert replica_logs.chosen(taskset(), Choice(role="worker", index=2)) == [("worker", 2)]
    assert replica_logs.chosen(taskset(), Choice(index=0)) == [("ps", 0), ("worker", 0)]


@pytest.mark.parametrize(
    ("choice", "message", "code"),
    [
        (Choice(role="wroker"), "there is no role wroker; there are: ps, worker", exits.Exit.NOT_FOUND),
        (Choice(role="worker", index=3), "there is no replica 3, they count from 0", exits.Exit.NOT_FOUND),
        (Choice(), "101 replicas match", exits.Exit.INVALID),
    ],
)
def test_a_choice_that_cannot_be_meant_is_refused(choice: Choice, message: str, code: exits.Exit) -> None:
    with pytest.raises(exits.Failure, match=message) as caught:
        replica_logs.chosen(taskset(replicas=100 if choice == Choice() else 3), choice)

    assert caught.value.exit_code == code


def test_many_are_printed_when_somebody_insists() -> None:
    assert len(replica_logs.chosen(taskset(replicas=100), Choice(everyone=True))) == 101


def test_the_last_attempt_of_a_replica_speaks_for_it() -> None:
    pods = [pod("x-worker-0-10-1", 1), pod("x-worker-0-9-1", 1), pod("x-worker-1-0-1", 1), pod("x-worker-0-0-0", 0)]
    found = replica_logs.newest(pods)

    assert {replica: pod.metadata.name for replica, pod in found.items()} == {
        ("worker", 1): "x-worker-1-0-1",
        ("worker", 0): "x-worker-0-0-0",
    }


def test_a_pod_has_something_to_say_once_its_container_runs() -> None:
    running = ContainerStatus(name="main", state=ContainerState(running=Running()))

    assert replica_logs.has_spoken(pod("p", 0, container_statuses=[running]), "main")
    assert not replica_logs.has_spoken(pod("p", 0, container_statuses=[running]), "other")
    assert not replica_logs.has_spoken(pod("p", 0, container_statuses=[ContainerStatus(name="main")]), "main")


def test_a_removed_pod_is_explained_with_its_last_words_and_how_to_keep_the_next() -> None:
    end = api.TerminatedInfo(exit_code=3, exit_message="no such file")
    status = api.ReplicaStatus(index=1, name="worker-1", pod_name="p", outcome="Failed", terminated_info=end)

    assert replica_logs.absence(taskset(status=[status]), ("worker", 1)) == (
        "the pod of worker-1 is removed (spec.podRetention is None; All or Failed would keep it); "
        "it ended with exit code 3: no such file"
    )


def test_a_replica_without_a_pod_says_what_it_waits_for() -> None:
    status = api.ReplicaStatus(index=0, name="worker-0", phase_message="depends on ps")

    assert replica_logs.absence(taskset(status=[status]), ("worker", 0)) == "worker-0 has no pod yet: depends on ps"
    assert replica_logs.absence(taskset(), ("ps", 0)) == "ps-0 has no pod yet"
