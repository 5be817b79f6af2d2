"""Whole decisions: retries of the TaskSet, the deadline, suspension, scaling, dependsOn."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from lifecycle_builders import (
    NOW,
    at,
    cleared,
    creates,
    deletes,
    edited,
    first,
    look,
    over,
    pod,
    role,
    running,
    seen,
    taskset,
    under_way,
)

from octarbiter.api import taskset as api
from octarbiter.api.core_kinds import Service
from octarbiter.api.meta import ObjectMeta, OwnerReference
from octarbiter.core.lifecycle import actions, completion
from octarbiter.core.lifecycle.actions import CreateControlUnit, DeleteControlUnit, DeletePod, DeletePods
from octarbiter.core.lifecycle.decide import Record
from octarbiter.core.lifecycle.phases import ReplicaPhase, TaskSetPhase

# --- retries of the TaskSet


def test_the_next_attempt_begins_when_all_is_gone_and_not_before_the_delay() -> None:
    before = under_way(role(replicas=2), pods=[running(0), running(1)], retries=1, delay=10)
    after, decision = look(before, seen(over(1, 0, finished=at(-4)), running(1)))
    assert deletes(decision) == ["job-worker-0-0-1"]
    assert after.status.state == "Running"

    after, decision = look(after, seen(over(1, 0), over(137, 1, deleted=at(-1))), at(1))
    assert DeleteControlUnit("c-job-0", "unit-uid") in decision.actions
    assert after.status.phase == TaskSetPhase.DELETION_REQUESTED

    after, decision = cleared(after, at(2))
    assert (after.status.phase, after.status.state) == (TaskSetPhase.RETRY_PENDING, "Waiting")
    assert (decision.actions, decision.look_again_at) == ((), at(6))
    assert after.status.state_message == "retry 1 of 1 at 07:08:06Z"

    after, decision = cleared(after, at(6))
    assert decision.actions == (CreateControlUnit(1),)
    assert decision.record is Record.NOW
    assert (after.status.attempt, after.status.total_retried_count, after.status.verdict) == (1, 1, "")
    assert all(r.attempt == r.total_retried_count == 0 for r in after.status.role_status[0].replica_status)
    assert [(h.attempt, h.state, len(h.failed_replicas)) for h in after.status.history] == [(0, "Failed", 1)]


def test_the_last_attempt_ends_it() -> None:
    before = under_way(pods=[running()])
    after, _ = look(before, seen(over(1)))
    after, decision = cleared(after)

    assert (after.status.phase, after.status.state, decision.actions) == (TaskSetPhase.COMPLETED, "Failed", ())
    assert decision.record is Record.NOW


def test_success_is_not_retried() -> None:
    after, _ = look(under_way(pods=[running()], retries=3), seen(over(0)))
    after, _ = cleared(after)

    assert (after.status.state, after.status.attempt) == ("Succeeded", 0)


@pytest.mark.parametrize("deleting", [True, False])
def test_a_lost_control_unit_costs_the_attempt_and_nothing_else(deleting: bool) -> None:
    before = under_way(pods=[running()])
    shown = seen(running(), unit=deleting, unit_deleted=True)
    after, decision = look(before, shown)
    assert deletes(decision) == ["job-worker-0-0-0"]
    assert after.status.trigger is not None
    assert after.status.trigger.message == "control unit c-job-0 was deleted"

    after, decision = cleared(after)
    assert decision.actions == (CreateControlUnit(1),)
    assert (after.status.attempt, after.status.total_retried_count) == (1, 0)
    assert after.status.history[0].attempt == 0


def test_orphans_of_a_lost_control_unit_are_removed() -> None:
    before, _ = look(under_way(pods=[running()]), seen(running(), unit=False))
    after, decision = look(before, seen(over(137, deleted=None), unit=False))

    assert deletes(decision) == ["job-worker-0-0-0"]
    assert after.status.attempt == 0


def test_the_service_of_an_earlier_attempt_is_not_taken_for_this_ones() -> None:
    owner = OwnerReference(kind="ConfigMap", name="c-job-0", uid="another", controller=True)
    theirs = Service(metadata=ObjectMeta(name="job", owner_references=[owner]))
    _, decision = look(under_way(pods=[running()]), msgspec.structs.replace(seen(running()), service=theirs))

    assert actions.CreateService() in decision.actions


def test_an_attempt_has_not_ended_while_its_service_is_there() -> None:
    before, _ = look(under_way(pods=[running()]), seen(over(0)))
    after, _ = look(before, seen(unit=False, service=True))
    gone, _ = look(after, seen(unit=False, service=False))

    assert (after.status.phase, gone.status.phase) == ("TaskSetAttemptDeletionRequested", "TaskSetCompleted")


def test_pods_of_an_earlier_attempt_are_removed_and_waited_for() -> None:
    before = under_way(pods=[running()], retries=1)
    after, _ = look(before, seen(over(1)))
    again, decision = look(after, seen(running(), unit=False, service=False))
    assert deletes(decision) == ["job-worker-0-0-0"]
    assert again.status.attempt == 0


def test_a_pod_of_the_last_attempt_that_was_on_its_way_holds_the_next_one_back() -> None:
    after, _ = look(under_way(pods=[running()], retries=1, delay=5), seen(over(1)))
    after, _ = cleared(after, at(1))
    after, decision = look(after, seen(running(3), unit=False, service=False), at(5))

    assert decision.actions == (DeletePod("job-worker-0-0-3", "uid-of-job-worker-0-0-3"),)
    assert after.status.state_message == "waits for pods of the last attempt to stop, 1 left: job-worker-0-0-3"
    _, decision = cleared(after, at(6))
    assert decision.actions == (CreateControlUnit(1),)


def test_finished_pods_that_nobody_collects_are_removed_after_a_while() -> None:
    after, _ = look(under_way(pods=[running()], retries=1), seen(over(1)))
    waits, decision = look(after, seen(over(1), unit=False), at(29))
    assert (decision.actions, decision.look_again_at) == ((), at(30))

    _, decision = look(waits, seen(over(1), unit=False), at(30))
    assert deletes(decision) == ["job-worker-0-0-0"]


def test_many_finished_pods_are_removed_by_one_request() -> None:
    pods = [over(0, index) for index in range(100)]
    _, decision = look(under_way(role(replicas=100)), seen(*pods))

    assert decision.actions == (DeletePods(0), DeleteControlUnit("c-job-0", "unit-uid"))


# --- the deadline


def test_the_deadline_fails_it_and_is_not_retried() -> None:
    before = under_way(pods=[running(since=at(-50))], retries=3, active_deadline_seconds=60)
    waits, decision = look(before, seen(running()), at(5))
    assert decision.look_again_at == at(10)

    after, decision = look(waits, seen(running()), at(10))
    assert deletes(decision) == ["job-worker-0-0-0"]
    after, _ = cleared(after, at(12))
    assert (after.status.state, after.status.attempt) == ("Failed", 0)
    assert after.status.state_message == "active longer than activeDeadlineSeconds (60 s)"


@pytest.mark.parametrize(("finished", "state"), [(10, "Succeeded"), (11, "Failed")])
def test_what_ended_before_the_deadline_counts_though_it_is_seen_after_it(finished: int, state: str) -> None:
    before = under_way(pods=[running(since=at(-50))], active_deadline_seconds=60)
    after, _ = look(before, seen(over(0, finished=at(finished))), at(15))

    assert after.status.verdict == state
    assert first(after).outcome == completion.SUCCEEDED


def test_a_start_that_is_seen_after_the_deadline_is_one_too_late() -> None:
    after, decision = look(under_way(active_deadline_seconds=60), seen(running(since=at(-60))))

    assert after.status.verdict == "Failed"
    assert deletes(decision) == ["job-worker-0-0-0"]


def test_the_deadline_passes_while_a_retry_is_waited_for() -> None:
    before = under_way(pods=[running(since=at(-50))], retries=1, delay=1000, active_deadline_seconds=60)
    after, _ = look(before, seen(over(1)))
    waits, decision = cleared(after, at(1))
    assert decision.look_again_at == at(10)

    after, _ = cleared(waits, at(10))
    assert (after.status.phase, after.status.state) == (TaskSetPhase.COMPLETED, "Failed")


# --- suspension


def suspended(before: api.TaskSet, *pods: Any, now: Any = NOW) -> tuple[api.TaskSet, Any]:
    return look(edited(before, suspend=True), seen(*pods), now)


def test_suspend_stops_all_pods_and_says_suspended_when_they_are_gone() -> None:
    before = under_way(role(replicas=3, min_succeeded=3), pods=[running(0), running(1), over(0, 2)])
    after, decision = suspended(before, running(0), running(1), over(0, 2))
    assert sorted(deletes(decision)) == ["job-worker-0-0-0", "job-worker-0-0-1"]
    assert after.status.state == "Running"

    after, decision = look(after, seen(over(137, 0, deleted=NOW), over(0, 2)), at(3))
    assert (after.status.state, after.status.state_message) == ("Waiting", "suspended")
    assert creates(decision) == []
    told = [first(after, n) for n in range(3)]
    assert [r.outcome for r in told] == ["", "", completion.SUCCEEDED]
    assert all((r.total_retried_count, r.lost_count) == (0, 0) for r in told)


def test_resume_starts_the_others_again_in_the_same_attempt() -> None:
    before = under_way(role(replicas=2), pods=[running(0), over(0, 1)])
    after, _ = suspended(before, running(0), over(0, 1))
    after, _ = look(after, seen(over(0, 1)), at(3))
    after, decision = look(edited(after, suspend=False), seen(over(0, 1)), at(9))

    assert creates(decision) == [("worker", 0, 1)]
    assert (after.status.attempt, after.status.phase) == (0, TaskSetPhase.PREPARING)
    assert after.status.state == "Waiting"


def test_delays_and_deadlines_stand_still_while_suspended() -> None:
    before = under_way(role(retries=1, delay=20), pods=[running(since=at(-50))], active_deadline_seconds=100)
    waits, _ = look(before, seen(over(1)))
    after, decision = suspended(waits, over(1), now=at(5))
    assert decision.look_again_at is None

    after, decision = look(after, seen(over(1)), at(1000))
    assert (creates(decision), after.status.verdict) == ([], "")

    after, decision = look(edited(after, suspend=False), seen(over(1)), at(1005))
    assert decision.look_again_at == at(1020)
    assert after.status.suspended_seconds == 1000


def test_a_resumed_taskset_does_not_run_before_a_pod_does() -> None:
    before = under_way(role(replicas=2, retries=1, delay=20), pods=[running(0), running(1)])
    waits, _ = look(before, seen(over(1, 0), running(1)))
    after, _ = suspended(waits, over(1, 0), running(1), now=at(1))
    after, _ = look(after, seen(over(1, 0)), at(2))
    after, _ = look(edited(after, suspend=False), seen(over(1, 0)), at(3))

    assert after.status.state == "Waiting"


def test_a_taskset_that_is_suspended_from_the_start_makes_nothing() -> None:
    after, decision = look(taskset(suspend=True), seen(unit=False))

    assert decision.actions == ()
    assert (after.status.state, after.status.state_message) == ("Waiting", "suspended")


def test_a_failure_of_its_own_while_suspending_is_charged() -> None:
    before = under_way(role(retries=1), pods=[running()])
    after, _ = suspended(before, running())
    after, _ = look(after, seen(over(1, finished=at(1), deleted=at(2))), at(3))

    assert first(after).phase == ReplicaPhase.RETRY_PENDING
    assert first(after).retry_charged


# --- scaling


def test_raised_replicas_start_new_indices() -> None:
    before = under_way(role(), pods=[running()])
    after, decision = look(edited(before, roles=[role(replicas=3)]), seen(running()))

    assert creates(decision) == [("worker", 1, 0), ("worker", 2, 0)]
    assert len(after.status.role_status[0].replica_status) == 3
    assert after.status.observed_generation == 2


def test_raised_replicas_are_recorded_before_their_pods_are_made_so_that_a_restarted_controller_knows_them() -> None:
    before = under_way(role(), pods=[running()])
    after, decision = look(edited(before, roles=[role(replicas=2)]), seen(running()))
    assert decision.record is Record.NOW

    after, decision = look(after, seen(running(), over(0, 1)))
    assert creates(decision) == []
    assert first(after, 1).outcome == completion.SUCCEEDED


def test_lowered_replicas_stop_the_highest_indices_which_leave_the_status() -> None:
    before = under_way(role(replicas=3), pods=[running(i) for i in range(3)])
    after, decision = look(edited(before, roles=[role(replicas=1)]), seen(*(running(i) for i in range(3))))

    assert sorted(deletes(decision)) == ["job-worker-0-0-1", "job-worker-0-0-2"]
    told = after.status.role_status[0]
    assert [r.index for r in told.replica_status] == [0]
    assert (told.failed, told.stopped) == (0, 0)


def test_an_index_that_comes_back_waits_for_its_old_pod() -> None:
    before = under_way(role(replicas=2), pods=[running(0), running(1)])
    smaller, _ = look(edited(before, roles=[role(replicas=1)]), seen(running(0), running(1)))
    larger = edited(smaller, roles=[role(replicas=2)])
    after, decision = look(larger, seen(running(0), running(1, deleted=at(-1))))
    assert creates(decision) == []

    after, decision = look(after, seen(running(0)))
    assert creates(decision) == [("worker", 1, 1)]
    assert first(after, 1).lost_count == 0


def test_a_role_is_done_when_those_that_remain_are_done() -> None:
    before = under_way(role(replicas=2), pods=[over(0, 0), running(1)])
    after, _ = look(edited(before, roles=[role(replicas=1)]), seen(over(0, 0), running(1)))

    assert after.status.verdict == "Succeeded"


# --- dependsOn


@pytest.mark.parametrize("backwards", [False, True])
def test_a_role_starts_when_those_it_depends_on_run(backwards: bool) -> None:
    """In one look, wherever it stands in the spec."""
    roles = [role("ps", replicas=2), role("worker", depends_on=["ps"])]
    before = under_way(*(reversed(roles) if backwards else roles))
    _, decision = look(before, seen(running(0, role="ps"), pod("Pending", of=("ps", 1))))
    assert creates(decision) == []

    _, decision = look(before, seen(running(0, role="ps"), running(1, role="ps")))
    assert creates(decision) == [("worker", 0, 0)]


@pytest.mark.parametrize("backwards", [False, True])
def test_a_role_starts_when_those_it_depends_on_have_succeeded(backwards: bool) -> None:
    roles = [role("ps", replicas=2, min_succeeded=1, max_failed=2), role("worker", depends_on=["ps"])]
    before = under_way(*(reversed(roles) if backwards else roles))
    _, decision = look(before, seen(over(0, 0, role="ps"), over(1, 1, role="ps")))

    assert creates(decision) == [("worker", 0, 0)]


@pytest.mark.parametrize("backwards", [False, True])
def test_a_role_fails_with_those_it_depends_on(backwards: bool) -> None:
    quiet = {"RoleFailed": "NoAction"}
    roles = [
        role("ps", events=quiet),
        role("worker", depends_on=["ps"], events=quiet),
        role("last", depends_on=["worker"], events=quiet),
        role("free"),
    ]
    before = under_way(*(reversed(roles) if backwards else roles))
    after, _ = look(before, seen(over(1, role="ps"), running(role="free")))

    told = {status.name: status for status in after.status.role_status}
    assert (told["worker"].state, told["worker"].state_message) == ("Failed", "depends on ps, which failed")
    assert (told["last"].state, told["last"].state_message) == ("Failed", "depends on worker, which failed")
    assert after.status.verdict == ""


def test_a_role_that_has_begun_goes_on_whatever_becomes_of_the_others() -> None:
    before = under_way(role("ps"), role("worker", replicas=2, depends_on=["ps"]), pods=[running(role="ps")])
    begun, _ = look(before, seen(running(role="ps"), running(0)))
    _, decision = look(begun, seen(running(role="ps", deleted=at(-1)), running(0)))

    assert creates(decision) == [("worker", 1, 0)]
