"""Whole decisions: the beginning, verdicts, retries, the end, the record."""

from __future__ import annotations

from datetime import timedelta

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
    replace,
    role,
    running,
    seen,
    taskset,
    under_way,
)

from octarbiter.api import taskset as api
from octarbiter.core.lifecycle import completion
from octarbiter.core.lifecycle.actions import (
    CreateControlUnit,
    CreatePod,
    CreateService,
    DeleteControlUnit,
    DeletePod,
    DeleteTaskSet,
)
from octarbiter.core.lifecycle.decide import Record, decide
from octarbiter.core.lifecycle.phases import ReplicaPhase, RolePhase, TaskSetPhase

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
