"""Whole decisions: section 7, what happens to pods that is not their fault."""

from __future__ import annotations

import pytest
from lifecycle_builders import (
    NOW,
    at,
    cleared,
    creates,
    deletes,
    edited,
    ended,
    first,
    look,
    over,
    pod,
    replace,
    role,
    running,
    seen,
    under_way,
)

from octarbiter.api import taskset as api
from octarbiter.core.lifecycle import completion, observe
from octarbiter.core.lifecycle.actions import DeletePod
from octarbiter.core.lifecycle.decide import Record
from octarbiter.core.lifecycle.phases import ReplicaPhase, TaskSetPhase

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
