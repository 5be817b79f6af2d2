"""Sections 2 and 3 of the contract: when a role is done, and what that does to the TaskSet."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations, product

import pytest
from lifecycle_builders import NOW, at, look, over, pod, replica, role, running, seen, under_way

from octarbiter.api import taskset as api
from octarbiter.core.lifecycle import completion
from octarbiter.core.lifecycle.phases import ReplicaPhase

S, F, X, OPEN = completion.SUCCEEDED, completion.FAILED, completion.STOPPED, ""


def policies(largest: int) -> Iterator[api.Role]:
    for replicas in range(1, largest + 1):
        for least in (None, *range(1, replicas + 1)):
            for most in (-1, *range(1, replicas + 1)):
                yield role(replicas=replicas, min_succeeded=least, max_failed=most)


def statuses(outcomes: tuple[str, ...]) -> list[api.ReplicaStatus]:
    return [replica(index, outcome, at(index) if outcome else None) for index, outcome in enumerate(outcomes)]


# --- section 2, rule by rule


def test_success_is_tested_first() -> None:
    tested = role(replicas=2, min_succeeded=1, max_failed=1)

    assert completion.judge(tested, succeeded=1, failed=1, undecided=0) == (
        api.State.SUCCEEDED,
        "1 of 2 succeeded, 1 needed",
    )


def test_as_many_failures_as_max_failed_fail_the_role() -> None:
    tested = role(replicas=3, min_succeeded=1, max_failed=2)

    assert completion.judge(tested, 0, 1, 2) is None
    assert completion.judge(tested, 0, 2, 1) == (api.State.FAILED, "2 of 3 failed, maxFailed is 2")


def test_max_failed_of_minus_one_never_fails_by_count() -> None:
    assert completion.judge(role(replicas=3, min_succeeded=1, max_failed=-1), 0, 2, 1) is None


def test_a_role_fails_when_min_succeeded_can_no_longer_be_reached() -> None:
    judged = completion.judge(role(replicas=3, min_succeeded=3, max_failed=-1), 1, 1, 1)

    assert judged is not None
    assert judged[0] == api.State.FAILED
    assert judged[1].startswith("minSucceeded can no longer be reached")


def test_min_succeeded_follows_replicas_where_it_is_absent() -> None:
    assert completion.judge(role(replicas=3), 2, 0, 1) is None
    assert completion.judge(role(replicas=3), 3, 0, 0) == (api.State.SUCCEEDED, "3 of 3 succeeded, 3 needed")


# --- section 2, every mixture


@pytest.mark.parametrize("tested", list(policies(3)), ids=lambda r: f"{r.replicas}/{r.min_succeeded}/{r.max_failed}")
def test_no_mixture_of_replicas_leaves_a_role_without_a_state(tested: api.Role) -> None:
    """Either it has its verdict, and the right one, or some replica may still change it."""
    for outcomes in product((S, F, OPEN), repeat=tested.replicas):
        verdict = completion.verdict_of(tested, statuses(outcomes), NOW)
        if verdict is None:
            assert OPEN in outcomes
            assert outcomes.count(S) < tested.min_succeeded
            assert tested.max_failed == -1 or outcomes.count(F) < tested.max_failed
            assert outcomes.count(S) + outcomes.count(OPEN) >= tested.min_succeeded
        else:
            assert verdict.trigger.role == "worker"
            assert verdict.trigger.index is not None
            assert verdict.trigger.message
            assert verdict.trigger.event == f"Role{verdict.state}"
            assert verdict.trigger.at == at(verdict.trigger.index)


@pytest.mark.parametrize("tested", list(policies(3)), ids=lambda r: f"{r.replicas}/{r.min_succeeded}/{r.max_failed}")
def test_a_controller_that_was_away_comes_to_the_verdict_of_one_that_watched(tested: api.Role) -> None:
    for ends in product((S, F), repeat=tested.replicas):
        for order in permutations(range(tested.replicas)):
            watched = None
            replicas = [replica(index) for index in range(tested.replicas)]
            for moment, index in enumerate(order):
                replicas[index] = replica(index, ends[index], at(moment))
                watched = watched or completion.verdict_of(tested, replicas, NOW)

            assert completion.verdict_of(tested, replicas, at(99)) == watched
            assert watched is not None


@pytest.mark.parametrize("tested", list(policies(2)), ids=lambda r: f"{r.replicas}/{r.min_succeeded}/{r.max_failed}")
def test_every_combination_of_pods_gives_a_role_a_state_or_something_to_wait_for(tested: api.Role) -> None:
    """Through `decide`: pods in every phase, each beside each."""
    makers = [
        lambda i: None,
        lambda i: pod("Pending", of=("worker", i), node=""),
        lambda i: pod("Pending", of=("worker", i)),
        lambda i: running(i),
        lambda i: pod("Unknown", of=("worker", i)),
        lambda i: running(i, deleted=at(-5)),
        lambda i: over(0, i),
        lambda i: over(1, i),
        lambda i: pod("Failed", of=("worker", i), reason="Evicted"),
    ]
    for made in product(makers, repeat=tested.replicas):
        pods = [p for p in (make(index) for index, make in enumerate(made)) if p is not None]
        after, decision = look(under_way(tested), seen(*pods))
        (status,) = after.status.role_status
        if after.status.verdict:
            assert status.state in ("Succeeded", "Failed")
            assert status.trigger is not None
        else:
            assert status.trigger is None
            waits = [r for r in status.replica_status if not r.outcome and r.phase != ReplicaPhase.RUNNING]
            assert not waits or after.status.state_message
            assert any(not r.outcome for r in status.replica_status)
            assert not decision.because or decision.because == after.status.state_message


def test_in_one_second_success_comes_first() -> None:
    tested = role(replicas=2, min_succeeded=1, max_failed=1)

    verdict = completion.verdict_of(tested, [replica(0, F, NOW), replica(1, S, NOW)], NOW)

    assert verdict is not None
    assert (verdict.state, verdict.trigger.index) == (api.State.SUCCEEDED, 1)


def test_replicas_whose_time_was_forgotten_count_as_earlier() -> None:
    tested = role(replicas=3, min_succeeded=2)

    verdict = completion.verdict_of(tested, [replica(0, S, NOW), replica(1, S, None), replica(2)], at(5))

    assert verdict is not None
    assert (verdict.trigger.index, verdict.trigger.at) == (0, NOW)


def test_the_sentence_names_the_exit_that_decided() -> None:
    info = api.TerminatedInfo(exit_code=7, exit_message="out of luck")

    verdict = completion.verdict_of(role(), [replica(0, F, NOW, terminated_info=info)], NOW)

    assert verdict is not None
    assert verdict.trigger.message == "1 of 1 failed, maxFailed is 1; last: worker-0, exit code 7 (out of luck)"


# --- section 3


DECLARED = [None, *api.Action]


@pytest.mark.parametrize("own", DECLARED)
@pytest.mark.parametrize("completed", DECLARED)
@pytest.mark.parametrize("event", ["RoleFailed", "RoleSucceeded"])
def test_the_declared_action_wins_then_that_of_role_completed_then_the_default(
    event: str, own: api.Action | None, completed: api.Action | None
) -> None:
    other = "RoleSucceeded" if event == "RoleFailed" else "RoleFailed"
    events = {other: "TaskSetFailed", event: own, "RoleCompleted": completed}
    tested = role(events={name: action for name, action in events.items() if action is not None})
    default = api.Action.TASKSET_FAILED if event == "RoleFailed" else api.Action.NO_ACTION

    assert completion.action_for(tested, event) == (own or completed or default)


def judged(name: str, state: str, when: int, **fields: object) -> tuple[api.Role, api.RoleStatus]:
    trigger = api.Trigger(role=name, index=0, event=f"Role{state}", at=at(when), message=f"{name} said so")
    return role(name, **fields), api.RoleStatus(name=name, state=state, trigger=trigger)


def end_of(*judgements: tuple[api.Role, api.RoleStatus]) -> tuple[str, str] | None:
    roles, told = zip(*judgements, strict=True)
    verdict = completion.end_of(roles, told)
    return None if verdict is None else (verdict.state, verdict.trigger.role)


@pytest.mark.parametrize(
    ("state", "action", "end"),
    [
        ("Succeeded", "TaskSetSucceeded", "Succeeded"),
        ("Succeeded", "TaskSetFailed", "Failed"),
        ("Succeeded", "TaskSetCompleted", "Succeeded"),
        ("Failed", "TaskSetSucceeded", "Succeeded"),
        ("Failed", "TaskSetFailed", "Failed"),
        ("Failed", "TaskSetCompleted", "Failed"),
    ],
)
def test_an_action_ends_the_taskset_so(state: str, action: str, end: str) -> None:
    open_role = (role("other"), api.RoleStatus(name="other"))

    assert end_of(judged("worker", state, 0, events={"RoleCompleted": action}), open_role) == (end, "worker")


@pytest.mark.parametrize("state", ["Succeeded", "Failed"])
def test_no_action_lets_the_others_go_on(state: str) -> None:
    open_role = (role("other"), api.RoleStatus(name="other"))

    assert end_of(judged("worker", state, 0, events={f"Role{state}": "NoAction"}), open_role) is None


def test_of_several_roles_the_earliest_finish_decides() -> None:
    late = judged("late", "Succeeded", 5, events={"RoleSucceeded": "TaskSetSucceeded"})
    early = judged("early", "Failed", 3)

    assert end_of(late, early) == ("Failed", "early")


def test_in_one_second_the_order_of_the_spec_decides() -> None:
    first = judged("first", "Succeeded", 3, events={"RoleSucceeded": "TaskSetSucceeded"})
    second = judged("second", "Failed", 3)

    assert end_of(first, second) == ("Succeeded", "first")
    assert end_of(second, first) == ("Failed", "second")


def test_an_earlier_role_without_an_action_does_not_hide_a_later_one() -> None:
    quiet = judged("quiet", "Succeeded", 1)
    loud = judged("loud", "Succeeded", 2, events={"RoleSucceeded": "TaskSetFailed"})

    assert end_of(quiet, loud) == ("Failed", "loud")


def test_all_roles_succeeded_and_no_action_fired_is_success() -> None:
    verdict = completion.end_of(*zip(judged("a", "Succeeded", 1), judged("b", "Succeeded", 2), strict=True))

    assert verdict is not None
    assert (verdict.state, verdict.trigger.at, verdict.trigger.message) == ("Succeeded", at(2), "all roles succeeded")


def test_one_failed_role_and_no_action_fired_is_failure_and_names_it() -> None:
    quiet = {"RoleFailed": "NoAction"}
    verdict = completion.end_of(*zip(judged("a", "Failed", 1, events=quiet), judged("b", "Succeeded", 2), strict=True))

    assert verdict is not None
    assert verdict.state == "Failed"
    assert (verdict.trigger.role, verdict.trigger.event, verdict.trigger.at) == ("a", "RoleFailed", at(2))
    assert verdict.trigger.message == "all roles finished; a: a said so"


def test_a_role_that_failed_for_another_comes_after_it() -> None:
    """Also where it stands before it in the spec."""
    follower, status = judged("follower", "Failed", 3)
    status = api.RoleStatus(
        name="follower", state="Failed", trigger=api.Trigger(role="follower", event="RoleFailed", at=at(3), message="")
    )
    cause = judged("cause", "Failed", 3, events={"RoleFailed": "TaskSetSucceeded"})

    assert end_of((follower, status), cause) == ("Succeeded", "cause")


def test_each_event_is_answered_with_several_roles_in_one_observation() -> None:
    """Through `decide`: both roles end between two looks, the later one first in the spec."""
    worker = role("worker", events={"RoleSucceeded": "TaskSetSucceeded"})
    ps = role("ps")
    pods = (over(0, role="worker", finished=at(-5)), over(1, role="ps", finished=at(-9)))

    after, _ = look(under_way(worker, ps), seen(*pods))

    assert after.status.verdict == "Failed"
    assert after.status.trigger is not None
    assert after.status.trigger.role == "ps"
    assert [told.state for told in after.status.role_status] == ["Succeeded", "Failed"]
