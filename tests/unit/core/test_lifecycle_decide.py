"""Whole decisions: retries, losses, suspension, deadlines, scaling, the end. Sections 1, 4 and 7 of the contract."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from lifecycle_builders import (
    NOW,
    at,
    ended,
    look,
    over,
    pod,
    replace,
    role,
    running,
    seen,
    taskset,
    under_way,
)

from octarbiter.api import taskset as api
from octarbiter.core.lifecycle import completion, observe
from octarbiter.core.lifecycle.actions import (
    CreateControlUnit,
    CreatePod,
    CreateService,
    DeleteControlUnit,
    DeletePod,
    DeletePods,
    DeleteTaskSet,
)
from octarbiter.core.lifecycle.decide import Record, decide
from octarbiter.core.lifecycle.phases import ReplicaPhase, RolePhase, TaskSetPhase


def first(told: api.TaskSet, number: int = 0, of: int = 0) -> api.ReplicaStatus:
    return told.status.role_status[of].replica_status[number]


def deletes(decision: Any) -> list[str]:
    return [action.name for action in decision.actions if isinstance(action, DeletePod)]


def creates(decision: Any) -> list[tuple[str, int, int]]:
    return [(a.role, a.index, a.attempt) for a in decision.actions if isinstance(a, CreatePod)]


def edited(told: api.TaskSet, **changes: Any) -> api.TaskSet:
    meta = replace(told.metadata, generation=told.metadata.generation + 1)
    return replace(told, metadata=meta, spec=replace(told.spec, **changes))


def cleared(told: api.TaskSet, now: Any = NOW) -> tuple[api.TaskSet, Any]:
    """Everything of the attempt is gone."""
    return look(told, seen(unit=False, service=False), now)


# --- the beginning


def test_a_new_taskset_asks_for_its_control_unit_first() -> None:
    after, decision = look(taskset(role(replicas=2)), seen(unit=False))

    assert decision.actions == (CreateControlUnit(0),)
    assert (after.status.phase, after.status.state) == (TaskSetPhase.CREATION_REQUESTED, "Waiting")
    assert after.status.created_at == NOW
    assert after.status.observed_generation == 1


def test_when_the_control_unit_is_seen_service_and_pods_are_asked_for() -> None:
    before, _ = look(taskset(role(replicas=2)), seen(unit=False))
    after, decision = look(before, seen(service=False))

    assert decision.actions == (CreateService(), CreatePod("worker", 0, 0), CreatePod("worker", 1, 0))
    assert after.status.control_unit_uid == "unit-uid"
    assert after.status.phase == TaskSetPhase.PREPARING


def test_problems_of_the_spec_end_it_at_once_and_whole() -> None:
    decision = decide(taskset(role(replicas=2)), seen(unit=False), NOW, ("spec.x: wrong", "spec.y: wrong"))

    status = decision.status
    assert (status.phase, status.state) == (TaskSetPhase.COMPLETED, "Failed")
    assert status.state_message == "spec.x: wrong; spec.y: wrong"
    assert decision.actions == ()
    assert status.role_status[0].phase == RolePhase.COMPLETED
    assert {r.outcome for r in status.role_status[0].replica_status} == {completion.STOPPED}


def test_running_lasts_from_the_first_running_pod() -> None:
    before = under_way(role(replicas=2))
    after, _ = look(before, seen(pod("Pending", of=("worker", 0)), running(1, since=at(-7))))

    assert (after.status.phase, after.status.state) == (TaskSetPhase.RUNNING, "Running")
    assert after.status.start_at == at(-7)
    assert after.status.role_status[0].phase == RolePhase.RUNNING


# --- a role's verdict


def test_a_verdict_stops_the_rest_of_the_role_and_counts_it_neither_way() -> None:
    before = under_way(role(replicas=3, min_succeeded=1), pods=[running(i) for i in range(3)])
    after, decision = look(before, seen(running(0), over(0, 1), running(2)))

    assert sorted(deletes(decision)) == ["job-worker-0-0-0", "job-worker-0-0-2"]
    assert decision.record is Record.NOW
    assert after.status.verdict == "Succeeded"
    after, _ = look(after, seen(over(0, 1)))
    told = after.status.role_status[0]
    assert (told.succeeded, told.failed, told.stopped) == (1, 0, 2)
    assert [r.stopped for r in told.replica_status] == [True, False, True]


def test_the_rest_of_a_role_is_stopped_though_its_event_has_no_action() -> None:
    worker = role("worker", replicas=2, min_succeeded=1, events={"RoleSucceeded": "NoAction"})
    before = under_way(worker, role("ps"), pods=[running(0), running(1), running(role="ps")])
    after, decision = look(before, seen(over(0, 0), running(1), running(role="ps")))

    assert deletes(decision) == ["job-worker-0-0-1"]
    assert after.status.verdict == ""
    assert after.status.state == "Running"
    assert decision.record is Record.NOW


def test_one_that_exits_0_by_itself_before_it_is_killed_has_succeeded() -> None:
    before = under_way(role(replicas=2, min_succeeded=1), pods=[running(0), running(1)])
    after, _ = look(before, seen(over(0, 0), running(1)))
    by_itself, _ = look(after, seen(over(0, 0), over(0, 1, finished=at(1), deleted=at(2))))
    when_killed, _ = look(after, seen(over(0, 0), over(0, 1, finished=at(3), deleted=at(2))))

    assert first(by_itself, 1).outcome == completion.SUCCEEDED
    assert first(when_killed, 1).outcome == completion.STOPPED


def test_a_role_without_a_verdict_takes_that_of_the_taskset() -> None:
    worker = role("worker", events={"RoleSucceeded": "TaskSetSucceeded"})
    before = under_way(role("ps"), worker, pods=[running(role="ps"), running()])
    after, _ = look(before, seen(running(role="ps"), over(0)))
    after, _ = look(after, seen(over(0)))

    ps = after.status.role_status[0]
    assert (ps.phase, ps.state) == (RolePhase.COMPLETED, "Succeeded")
    assert ps.state_message == "stopped: 1 of 1 succeeded, 1 needed"
    assert first(after).stopped


def test_a_verdict_never_flips() -> None:
    before = under_way(role(replicas=2, min_succeeded=1, max_failed=1), pods=[running(0), running(1)])
    after, _ = look(before, seen(over(1, 0), running(1)))
    later, _ = look(after, seen(over(1, 0), over(0, 1, finished=at(-60))))

    assert (after.status.verdict, later.status.verdict) == ("Failed", "Failed")
    assert later.status.trigger == after.status.trigger


# --- retries of a replica


def test_a_failed_pod_is_replaced_after_the_delay_counted_from_its_end() -> None:
    before = under_way(role(replicas=2, retries=2, delay=10), pods=[running(0), running(1)])
    failed = over(1, 0, finished=at(-4))
    waits, decision = look(before, seen(failed, running(1)))
    assert (decision.actions, decision.look_again_at) == ((), at(6))
    assert first(waits).phase == ReplicaPhase.RETRY_PENDING

    waits, decision = look(waits, seen(failed, running(1)), at(5))
    assert decision.actions == ()

    after, decision = look(waits, seen(failed, running(1)), at(6))
    assert decision.actions == (
        DeletePod("job-worker-0-0-0", "uid-of-job-worker-0-0-0"),
        CreatePod("worker", 0, 1),
    )
    assert decision.record is Record.NOW
    assert first(after).total_retried_count == 1
    assert first(after, 1) == first(before, 1)


def test_a_restarted_controller_waits_only_what_is_left() -> None:
    before = under_way(role(retries=1, delay=10), pods=[running()])
    _, decision = look(before, seen(over(1, finished=at(-30))))

    assert creates(decision) == [("worker", 0, 1)]


def test_exit_0_is_never_retried() -> None:
    after, decision = look(under_way(role(retries=5), pods=[running()]), seen(over(0)))

    assert creates(decision) == []
    assert first(after).outcome == completion.SUCCEEDED


def test_a_replica_is_final_when_its_retries_are_used_up() -> None:
    before = under_way(role(retries=1), pods=[running()])
    again, _ = look(before, seen(over(1)))
    after, decision = look(again, seen(over(1, attempts=(0, 1))))

    assert creates(decision) == []
    assert (first(after).outcome, first(after).total_retried_count) == (completion.FAILED, 1)


def test_a_retry_that_a_verdict_forestalls_is_not_charged() -> None:
    before = under_way(role(replicas=2, retries=1), pods=[running(0), running(1)])
    again, _ = look(before, seen(over(1, 0), running(1)))
    after, decision = look(again, seen(over(1, 0, attempts=(0, 1)), over(1, 1)))

    assert after.status.verdict == "Failed"
    assert creates(decision) == []
    stopped = first(after, 1)
    assert (stopped.outcome, stopped.total_retried_count, stopped.attempt) == (completion.STOPPED, 0, 0)
    assert stopped.pod_name == "job-worker-0-0-1"


def test_a_retry_in_another_role_that_the_end_forestalls_is_not_charged() -> None:
    before = under_way(role("ps", retries=1), role("worker"), pods=[running(role="ps"), running()])
    after, decision = look(before, seen(over(1, role="ps"), over(1)))

    assert after.status.verdict == "Failed"
    assert creates(decision) == []
    assert (first(after).outcome, first(after).total_retried_count) == (completion.STOPPED, 0)


def test_a_failure_that_a_rule_ignores_is_retried_after_the_delay_without_charge() -> None:
    policy = api.FailurePolicy(rules=[api.FailureRule(action="Ignore", exit_codes=[9])])
    before = under_way(role(failure_policy=policy, delay=10), pods=[running()])
    waits, decision = look(before, seen(over(9)))
    assert decision.look_again_at == at(10)

    after, decision = look(waits, seen(over(9)), at(10))
    assert creates(decision) == [("worker", 0, 1)]
    assert (first(after).total_retried_count, first(after).lost_count) == (0, 0)


def test_a_failure_that_a_rule_calls_final_is_final() -> None:
    policy = api.FailurePolicy(rules=[api.FailureRule(action="Fail", exit_codes=[9])])
    after, _ = look(under_way(role(failure_policy=policy, retries=5), pods=[running()]), seen(over(9)))

    assert (first(after).outcome, after.status.verdict) == (completion.FAILED, "Failed")


# --- losses


LOSSES = {
    "evicted": (pod("Failed", ended(137), reason="Evicted"), "Evicted", 0),
    "preempted": (pod("Failed", ended(143), disrupted="PreemptionByScheduler"), "PreemptionByScheduler", 1),
    "node gone": (pod("Failed", disrupted="DeletionByPodGC"), "DeletionByPodGC", 0),
    "deleted": (over(137, deleted=at(-5)), "Deleted", 0),
}


@pytest.mark.parametrize("what", LOSSES)
def test_a_lost_pod_is_replaced_at_once_without_charge(what: str) -> None:
    shown, reason, preempted = LOSSES[what]
    after, decision = look(under_way(role(delay=60), pods=[running()]), seen(shown))

    assert creates(decision) == [("worker", 0, 1)]
    assert decision.record is Record.NOW
    told = first(after)
    assert (told.lost_count, told.total_retried_count, told.pod_reason) == (1, 0, reason)
    assert after.status.preempt_count == preempted


@pytest.mark.parametrize("phase", ["Pending", "Running", "Unknown"])
def test_a_pod_that_somebody_deletes_is_waited_for_and_then_replaced(phase: str) -> None:
    before = under_way(pods=[pod(phase)])
    leaving, decision = look(before, seen(pod(phase, deleted=at(-1))))
    assert decision.actions == ()

    after, decision = look(leaving, seen())
    assert creates(decision) == [("worker", 0, 1)]
    assert (first(after).lost_count, first(after).pod_reason) == (1, "Deleted")


def test_a_pod_that_vanishes_between_two_looks_was_lost() -> None:
    after, decision = look(under_way(pods=[running()]), seen())

    assert creates(decision) == [("worker", 0, 1)]
    assert first(after).lost_count == 1


def test_a_preemption_that_was_announced_is_counted_when_the_pod_is_gone() -> None:
    before = under_way(pods=[running()])
    leaving, _ = look(before, seen(running(deleted=at(-1), disrupted="PreemptionByScheduler")))
    assert leaving.status.preempt_count == 0

    after, _ = look(leaving, seen())
    again, _ = look(after, seen())

    assert (after.status.preempt_count, again.status.preempt_count) == (1, 1)
    assert first(after).pod_reason == "PreemptionByScheduler"


def test_a_pod_that_somebody_deletes_but_that_succeeds_has_succeeded() -> None:
    after, _ = look(under_way(pods=[running()]), seen(over(0, deleted=at(-9))))

    assert first(after).outcome == completion.SUCCEEDED


def test_a_pod_that_the_kubelet_refuses_is_replaced_a_little_later() -> None:
    refused = pod("Failed", reason="OutOfcpu", conditions=[])
    before = under_way(pods=[pod("Pending")])
    refused = replace(refused, metadata=replace(refused.metadata, creation_timestamp=at(-1)))
    waits, decision = look(before, seen(refused))
    assert (decision.actions, decision.look_again_at) == ((), at(4))
    assert first(waits).lost_count == 1

    after, decision = look(waits, seen(refused), at(4))
    assert creates(decision) == [("worker", 0, 1)]
    assert (first(after).lost_count, first(after).total_retried_count) == (1, 0)


def test_a_rule_may_make_a_loss_final_and_it_is_counted_all_the_same() -> None:
    policy = api.FailurePolicy(rules=[api.FailureRule(action="Fail", pod_reasons=["PreemptionByScheduler"])])
    shown = pod("Failed", ended(143), disrupted="PreemptionByScheduler")
    after, _ = look(under_way(role(failure_policy=policy), pods=[running()]), seen(shown))

    assert first(after).outcome == completion.FAILED
    assert (first(after).lost_count, after.status.preempt_count) == (1, 1)


def test_no_second_pod_of_an_index_is_made_while_one_is_alive() -> None:
    before = under_way(pods=[running()])
    lost, _ = look(before, seen())
    after, decision = look(lost, seen(running()))

    assert creates(decision) == []
    assert deletes(decision) == ["job-worker-0-0-0"]
    assert first(after).phase_message == "waits until pod job-worker-0-0-0 has stopped"


def test_a_view_that_is_older_than_the_record_turns_nothing_back() -> None:
    before = under_way(pods=[running()])
    before, _ = look(before, seen(running()))
    for shown in (pod("Pending", node=""), pod("Pending")):
        after, decision = look(before, seen(shown))
        assert first(after).phase == ReplicaPhase.RUNNING
        assert decision.actions == ()
        assert after.status.state == "Running"


# --- nodes that do not answer


def test_a_pod_on_a_lost_node_is_waited_for_and_then_removed_by_force() -> None:
    before = under_way(role(deletion_timeout_seconds=60), pods=[running()])
    stuck = running(deleted=at(-30), grace=30)
    waits, decision = look(before, seen(stuck, nodes={"n0": False}))
    assert (decision.actions, decision.look_again_at) == ((), at(60))

    _, decision = look(waits, seen(stuck, nodes={"n0": False}), at(60))
    assert decision.actions == (DeletePod(stuck.metadata.name, stuck.metadata.uid, force=True),)
    assert decision.look_again_at is None


def test_without_a_timeout_a_pod_on_a_lost_node_is_waited_for() -> None:
    _, decision = look(under_way(pods=[running()]), seen(running(deleted=at(-9999)), nodes={}))

    assert (decision.actions, decision.look_again_at) == ((), None)


def test_force_is_used_as_well_while_the_taskset_is_deleted_or_scaled_down_or_retried() -> None:
    tested = role(replicas=2, deletion_timeout_seconds=60)
    stuck = running(1, deleted=at(-100))
    forced = DeletePod(stuck.metadata.name, stuck.metadata.uid, force=True)
    before = under_way(tested, pods=[running(0), running(1)])
    going = replace(before, metadata=replace(before.metadata, deletion_timestamp=NOW))
    smaller = edited(before, roles=[replace(tested, replicas=1)])

    for told in (before, going, smaller):
        _, decision = look(told, seen(running(0), stuck, nodes={}))
        assert forced in decision.actions


def test_an_unknown_pod_is_waited_for() -> None:
    before = under_way(pods=[running()])
    after, decision = look(before, seen(pod("Unknown"), nodes={"n0": False}))

    assert decision.actions == ()
    assert first(after).phase == ReplicaPhase.RUNNING
    assert after.status.state == "Running"


# --- refusals


def test_refused_pods_are_tried_again_later_and_the_others_run() -> None:
    refusal = observe.Refusal("quota", "exceeded quota: pods", at(5))
    before = under_way(role(replicas=2), pods=[running(0)])
    waits, decision = look(before, seen(running(0), refusals={("worker", 1): refusal}))
    assert (creates(decision), decision.look_again_at) == ([], at(5))
    assert waits.status.state_message == "quota: 1 of 2 pods refused: exceeded quota: pods"

    _, decision = look(waits, seen(running(0), refusals={("worker", 1): refusal}), at(5))
    assert creates(decision) == [("worker", 1, 0)]


def test_an_invalid_template_fails_the_taskset_with_the_servers_words_and_is_not_retried() -> None:
    words = 'Pod "job-worker-0-0-0" is invalid: spec.containers[0].image: Required value'
    refusal = observe.Refusal("invalid", words, at(5))
    after, decision = look(under_way(retries=3), seen(refusals={("worker", 0): refusal}))
    assert creates(decision) == []

    after, _ = cleared(after)
    assert (after.status.phase, after.status.state) == (TaskSetPhase.COMPLETED, "Failed")
    assert after.status.state_message == words


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

    _, decision = look(after, seen(running(0)))
    assert creates(decision) == [("worker", 1, 1)]


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


# --- the end


def test_at_the_end_nothing_is_in_a_running_phase_and_the_times_agree() -> None:
    before = under_way(role(replicas=2, min_succeeded=1), pods=[running(0), running(1)])
    after, _ = look(before, seen(over(0, 0, finished=at(2)), running(1)))
    after, _ = look(after, seen(over(0, 0, finished=at(2)), over(137, 1, finished=at(99), deleted=at(3))), at(4))
    after, _ = cleared(after, at(5))

    assert after.status.finish_at == at(99)
    assert [r.phase for r in after.status.role_status[0].replica_status] == [ReplicaPhase.COMPLETED] * 2
    assert after.status.role_status[0].active == 0


def test_a_finished_taskset_is_inert() -> None:
    after, _ = look(under_way(pods=[running()]), seen(over(0)))
    after, _ = cleared(after)
    changed = edited(after, suspend=True, roles=[role(replicas=9)], active_deadline_seconds=1)
    _, decision = cleared(changed, at(9999))

    assert (decision.record, decision.actions, decision.look_again_at) == (Record.NO, (), None)


@pytest.mark.parametrize(("retention", "kept"), [("All", {0, 1}), ("Failed", {1}), ("None", set())])
def test_the_last_pods_stay_as_pod_retention_says(retention: str, kept: set[int]) -> None:
    pods = [over(0, 0), over(1, 1)]
    tested = role(replicas=2, max_failed=-1)
    before = under_way(tested, pods=[running(0), running(1)], pod_retention=retention)
    after, decision = look(before, seen(*pods))
    if retention == "None":
        assert decision.actions == (DeleteControlUnit("c-job-0", "unit-uid"),)
        return
    left = [pods[index] for index in sorted(kept)]
    if len(kept) < 2:
        assert deletes(decision) == ["job-worker-0-0-0"]
        after, decision = look(after, seen(*left))
    assert after.status.phase == TaskSetPhase.COMPLETED

    _, decision = look(after, seen(*left), at(5))
    assert decision.actions == ()
    _, decision = look(after, seen(), at(9))
    assert decision.actions == (DeleteControlUnit("c-job-0", "unit-uid"),)


def test_a_pod_that_was_on_its_way_when_it_ended_is_removed() -> None:
    after, _ = look(under_way(pods=[running()]), seen(over(0)))
    after, _ = cleared(after)
    _, decision = look(after, seen(running(3), unit=False))

    assert deletes(decision) == ["job-worker-0-0-3"]


def test_the_time_to_live_counts_from_the_end() -> None:
    after, _ = look(under_way(pods=[running()], ttl_seconds_after_finished=60), seen(over(0)))
    after, _ = cleared(after)
    _, decision = cleared(after, at(59))
    assert (decision.actions, decision.look_again_at) == ((), at(60))

    _, decision = cleared(after, at(60))
    assert decision.actions == (DeleteTaskSet(),)


def test_a_taskset_that_is_deleted_makes_nothing_more_and_stops_what_runs() -> None:
    before = under_way(role(replicas=3), pods=[running(0)])
    going = replace(before, metadata=replace(before.metadata, deletion_timestamp=NOW))
    _, decision = look(going, seen(running(0), running(1, deleted=at(-1)), over(1, 2), service=False))

    assert decision.actions == (DeletePod("job-worker-0-0-0", "uid-of-job-worker-0-0-0"),)
    assert decision.record is Record.NO


# --- the record


def test_first_pods_need_no_record_before_they_are_made() -> None:
    before, _ = look(taskset(), seen(unit=False))
    _, decision = look(before, seen())

    assert creates(decision) == [("worker", 0, 0)]
    assert decision.record is Record.SOON


def test_nothing_new_needs_no_record() -> None:
    before = under_way(pods=[running()])
    after, _ = look(before, seen(running()))
    _, decision = look(after, seen(running()), at(60))

    assert decision.record is Record.NO
    assert decision.actions == ()


def test_parts_of_seconds_do_not_matter() -> None:
    odd = NOW + timedelta(microseconds=123456)
    after, _ = look(taskset(), seen(unit=False), odd)

    assert after.status.created_at == NOW
