"""Every waiting state says what it waits for."""

from __future__ import annotations

from lifecycle_builders import NOW, at, look, over, pod, replica, role, running, seen, taskset, under_way

from octarbiter.api import taskset as api
from octarbiter.api.meta import Condition
from octarbiter.core.lifecycle import completion, waiting
from octarbiter.core.lifecycle.observe import Refusal
from octarbiter.core.lifecycle.phases import ReplicaPhase


def told(*replicas: api.ReplicaStatus, refusals: dict[tuple[str, int], Refusal] | None = None) -> str:
    return waiting.sentence([api.RoleStatus(name="worker", replica_status=list(replicas))], refusals or {})


def pending(index: int, message: str, phase: ReplicaPhase = ReplicaPhase.PENDING) -> api.ReplicaStatus:
    return replica(index, phase=phase, phase_message=message)


def test_quota_counts_the_refused_and_quotes_the_server() -> None:
    text = 'pods "job-worker-0-0-{}" is forbidden: exceeded quota: gpus, requested: 1, used: 2, limited: 2'
    refusals = {("worker", i): Refusal("quota", text.format(i), at(5)) for i in (2, 3)}

    sentence = told(replica(0), replica(1), pending(2, "x"), pending(3, "x"), refusals=refusals)

    assert sentence == "quota: 2 of 4 pods refused: exceeded quota: gpus, requested: 1, used: 2, limited: 2"


def test_equal_reasons_are_said_once() -> None:
    many = [pending(i, "0/5 nodes: insufficient nvidia.com/gpu", ReplicaPhase.PREPARING) for i in range(5)]

    assert told(*many) == "worker-0, worker-1, worker-2 and 2 more: 0/5 nodes: insufficient nvidia.com/gpu"


def test_many_reasons_are_cut_and_counted() -> None:
    assert told(*(pending(i, f"reason {i}") for i in range(5))) == (
        "worker-0: reason 0; worker-1: reason 1; worker-2: reason 2; and 2 more reasons"
    )


def test_a_retry_says_when() -> None:
    retry = replica(0, phase=ReplicaPhase.RETRY_PENDING, phase_message="retry 1 of 2", retry_at=at(10))

    assert told(retry) == "worker-0: retry 1 of 2, at 07:08:10Z"


def test_a_retry_whose_words_were_forgotten_still_says_when() -> None:
    assert told(replica(0, phase=ReplicaPhase.RETRY_PENDING, retry_at=at(10))) == "worker-0: retry, at 07:08:10Z"


def test_who_runs_or_is_done_says_nothing() -> None:
    assert told(replica(0), replica(1, completion.FAILED, NOW, phase_message="not retried")) == ""


def test_pods_that_were_asked_for_and_are_not_seen_yet_are_told_of() -> None:
    assert told(replica(0), replica(1, phase=ReplicaPhase.CREATION_REQUESTED)) == "pods are being made"


def test_a_refusal_of_a_pod_that_is_there_by_now_does_not_hide_what_it_waits_for() -> None:
    there = replica(0, phase=ReplicaPhase.PREPARING, phase_message="0/5 nodes", pod_uid="x")

    assert told(there, refusals={("worker", 0): Refusal("quota", "no", NOW)}) == "worker-0: 0/5 nodes"


# --- through decide: every kind of waiting


def message(before: api.TaskSet, *pods: object, **more: object) -> str:
    after, _ = look(before, seen(*pods, **more))  # type: ignore[arg-type]
    return after.status.state_message


def test_a_new_taskset_waits_for_its_control_unit() -> None:
    after, _ = look(taskset(), seen(unit=False))

    assert after.status.state_message == "control unit c-job-0 is being made"


def test_a_refused_control_unit_is_quoted() -> None:
    refusal = Refusal("denied", "admission webhook says no", at(5))
    after, decision = look(taskset(), seen(unit=False, refusals={("", 0): refusal}))

    assert after.status.state_message == "admission webhook says no"
    assert decision.look_again_at == at(5)


def test_a_refused_service_is_told_of_and_the_pods_run() -> None:
    refusal = Refusal("denied", "services are forbidden", at(5))
    after, decision = look(under_way(), seen(running(), service=False, refusals={("", 1): refusal}))

    assert after.status.state == "Running"
    assert after.status.state_message == "services are forbidden"
    assert decision.actions == ()
    assert decision.look_again_at == at(5)


def test_a_pod_without_a_node_is_told_of_by_its_name() -> None:
    full = Condition(type="PodScheduled", status="False", message="0/5 nodes: insufficient nvidia.com/gpu")
    shown = pod("Pending", of=("worker", 2), node="", conditions=[full])
    before = under_way(role(replicas=3))

    assert message(before, running(0), running(1), shown) == "worker-2: 0/5 nodes: insufficient nvidia.com/gpu"


def test_a_silent_node_is_named() -> None:
    before = under_way(pods=[running()])

    assert message(before, pod("Unknown"), nodes={"n0": False}) == (
        "worker-0: node n0 does not answer for pod job-worker-0-0-0: waits"
    )


def test_a_pod_that_is_stuck_is_named_with_its_node_and_the_time_of_force() -> None:
    before = under_way(role(deletion_timeout_seconds=60), pods=[running()])

    assert message(before, running(deleted=at(-30)), nodes={"n0": False}) == (
        "worker-0: waits until pod job-worker-0-0-0 has stopped on node n0, which is not Ready; "
        "it is removed by force at 07:09:00Z"
    )


def test_a_taskset_that_is_cleared_away_says_what_it_waits_for() -> None:
    before = under_way(role(replicas=2), pods=[running(0), running(1)])

    assert message(before, over(1, 0), running(1)) == "waits for pods to stop, 1 left: job-worker-0-0-1"
    assert message(before, over(1, 0), over(0, 1)) == "removes finished pods, 2 left"


def test_a_role_that_depends_on_another_says_so() -> None:
    before = under_way(role("ps"), role("worker", depends_on=["ps"]))

    assert message(before, pod("Pending", of=("ps", 0))) == (
        "ps-0: containers are being started on node n0; worker-0: waits until ps runs"
    )
