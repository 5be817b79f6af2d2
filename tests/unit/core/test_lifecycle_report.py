"""How a status is kept small, and made whole again."""

from __future__ import annotations

import random
from typing import Any

import pytest
from lifecycle_builders import NOW, at, look, over, replace, replica, role, running, seen, taskset, under_way

from octarbiter.api import codec
from octarbiter.api import taskset as api
from octarbiter.core.lifecycle import completion, objects, observe, report
from octarbiter.core.lifecycle.decide import decide
from octarbiter.core.lifecycle.phases import ReplicaPhase, RolePhase, TaskSetPhase

MIB = 1024 * 1024
NASTY = '"\\' * 2048
WORDS = observe.short(NASTY)


def status_of(*roles: list[api.ReplicaStatus], **fields: Any) -> api.TaskSetStatus:
    told = [api.RoleStatus(name=f"role{n}", phase=RolePhase.RUNNING, replica_status=rs) for n, rs in enumerate(roles)]
    return api.TaskSetStatus(phase=TaskSetPhase.RUNNING, state="Running", role_status=told, **fields)


def facts(told: api.ReplicaStatus) -> tuple[Any, ...]:
    """What nobody could see again."""
    return (
        told.index,
        told.attempt,
        told.total_retried_count,
        told.lost_count,
        told.outcome,
        told.stopped,
        told.retry_at,
        told.retry_charged,
        bool(told.pod_uid) or bool(told.outcome),
    )


def random_replica(index: int, dice: random.Random) -> api.ReplicaStatus:
    outcome = dice.choice(["", "", completion.SUCCEEDED, completion.FAILED, completion.STOPPED])
    due = at(dice.randrange(3600)) if not outcome and dice.random() < 0.2 else None
    stopping = not outcome and due is None and dice.random() < 0.2
    return replica(
        index,
        outcome,
        at(dice.randrange(3600)) if outcome else None,
        phase=ReplicaPhase.RETRY_PENDING if due else ReplicaPhase.RUNNING,
        attempt=dice.randrange(12),
        total_retried_count=dice.randrange(4),
        lost_count=dice.randrange(4),
        retry_at=due,
        retry_charged=due is not None and dice.random() < 0.5,
        stopped=stopping or outcome == completion.STOPPED,
        pod_name=f"job-worker-0-0-{index}",
        pod_uid=f"12345678-1234-1234-1234-{index:012}",
        pod_ip="10.244.123.234",
        pod_host_ip="192.168.123.234",
        container_name="main",
        container_id="containerd://" + "f" * 64,
        start_at=NOW,
        transition_time=NOW,
        phase_message=WORDS,
        terminated_info=api.TerminatedInfo(exit_code=dice.randrange(256), exit_message=WORDS, reason="Error"),
    )


# --- small ones


def test_up_to_500_replicas_the_status_is_complete() -> None:
    told = status_of([replica(i) for i in range(200)], [replica(i) for i in range(300)])

    compact = report.compact(told)

    assert compact.role_status == told.role_status
    assert report.expand(compact) == compact


# --- the ledger


def test_a_ledger_tells_runs_of_equal_replicas() -> None:
    many = [replica(i, completion.SUCCEEDED) for i in range(600)]
    many[7] = replica(7, completion.FAILED, attempt=2, total_retried_count=1, lost_count=1)

    (told,) = report.compact(status_of(many)).role_status

    assert told.ledger == "7x0S;1x2r1l1F;592x0S"
    assert [listed.index for listed in told.replica_status] == [7]


@pytest.mark.parametrize("seed", range(10))
def test_what_nobody_could_see_again_survives_the_ledger(seed: int) -> None:
    dice = random.Random(seed)
    told = status_of(*([random_replica(i, dice) for i in range(dice.randrange(300, 900))] for _ in range(2)))

    stored = codec.decode(codec.encode(report.compact(told)), api.TaskSetStatus)
    whole = report.expand(stored)

    for before, after in zip(told.role_status, whole.role_status, strict=True):
        assert after.ledger == ""
        assert [facts(r) for r in after.replica_status] == [facts(r) for r in before.replica_status]
        assert all(r.name == f"{after.name}-{r.index}" or r in before.replica_status for r in after.replica_status)


@pytest.mark.parametrize("seed", range(5))
def test_a_second_time_says_the_same(seed: int) -> None:
    dice = random.Random(seed)
    compact = report.compact(status_of([random_replica(i, dice) for i in range(700)]))

    assert report.compact(report.expand(compact)) == compact


def test_a_ledger_that_nobody_wrote_is_refused() -> None:
    told = api.RoleStatus(name="worker", ledger="3x0S;nonsense")

    with pytest.raises(ValueError, match=r"worker.*nonsense"):
        report.expand(api.TaskSetStatus(role_status=[told]))


def test_the_phases_of_an_expanded_ledger_lead_on() -> None:
    told = [
        replica(0, completion.STOPPED),
        replica(1, phase=ReplicaPhase.RETRY_PENDING, retry_at=NOW),
        replica(2, phase=ReplicaPhase.DELETION_PENDING, stopped=True, pod_uid="x"),
        replica(3, pod_uid="x"),
        replica(4, phase=ReplicaPhase.PENDING),
        *(replica(i, completion.SUCCEEDED) for i in range(5, 600)),
    ]

    (whole,) = report.expand(report.compact(status_of(told))).role_status

    assert [r.phase for r in whole.replica_status[:6]] == [
        ReplicaPhase.COMPLETED,
        ReplicaPhase.RETRY_PENDING,
        ReplicaPhase.DELETION_PENDING,
        ReplicaPhase.PREPARING,
        ReplicaPhase.PENDING,
        ReplicaPhase.COMPLETED,
    ]


# --- the notable ones


def test_the_failed_come_first_then_the_retried_then_the_lost() -> None:
    many = [replica(i) for i in range(600)]
    for index in range(90):
        many[index] = replica(index, lost_count=1)
    for index in range(100, 150):
        many[index] = replica(index, total_retried_count=1)
    for index in range(200, 260):
        many[index] = replica(index, completion.FAILED)

    (told,) = report.compact(status_of(many)).role_status

    listed = [r.index for r in told.replica_status]
    assert len(listed) == api.NOTABLE_REPLICAS
    assert set(range(200, 260)) <= set(listed)
    assert len(set(listed) & set(range(100, 150))) == 40
    assert listed == sorted(listed)


def test_a_replica_of_which_there_is_nothing_to_tell_is_not_listed() -> None:
    (told,) = report.compact(status_of([replica(i, completion.SUCCEEDED) for i in range(600)])).role_status

    assert told.replica_status == []


def test_many_roles_share_the_places() -> None:
    roles = [[replica(i, completion.FAILED) for i in range(20)] for _ in range(64)]

    told = report.compact(status_of(*roles)).role_status

    assert sum(len(r.replica_status) for r in told) <= api.FULL_STATUS_REPLICAS
    assert all(r.replica_status for r in told)


# --- 1 MiB


@pytest.mark.parametrize("seed", range(3))
def test_ten_thousand_replicas_stay_below_one_mebibyte_whatever_they_print(seed: int) -> None:
    dice = random.Random(seed)
    told = status_of([random_replica(i, dice) for i in range(10_000)])

    assert len(codec.encode(report.compact(told))) < MIB


def test_five_hundred_replicas_that_print_a_lot_stay_below_one_mebibyte() -> None:
    dice = random.Random(1)
    told = status_of([random_replica(i, dice) for i in range(500)])
    assert len(codec.encode(told)) > report.MAX_BYTES

    compact = report.compact(told)

    assert len(codec.encode(compact)) <= report.MAX_BYTES
    assert [facts(r) for r in compact.role_status[0].replica_status] == [
        facts(r) for r in told.role_status[0].replica_status
    ]


def test_a_refusal_of_many_words_for_many_roles_stays_below_one_mebibyte() -> None:
    roles = [role(f"r{n}", replicas=7) for n in range(64)]
    refusal = observe.Refusal("invalid", NASTY * 100, at(1))

    decision = decide(under_way(*roles), seen(refusals={("r0", 0): refusal}), NOW)

    assert decision.status.verdict == "Failed"
    assert len(codec.encode(report.compact(decision.status))) < MIB // 2


def test_many_problems_of_many_roles_stay_below_one_mebibyte() -> None:
    roles = [role(f"r{n}", replicas=7) for n in range(64)]
    problems = tuple(f"spec.roles[{n}]: {NASTY}" for n in range(100))

    decision = decide(taskset(*roles), seen(unit=False), NOW, problems)

    assert decision.status.state == "Failed"
    assert len(codec.encode(report.compact(decision.status))) < MIB // 2


# --- a large TaskSet under way, through what is stored


def test_a_restart_in_the_middle_of_a_large_taskset_asks_for_nothing_new() -> None:
    tested = role(replicas=600)
    pods = [running(index) for index in range(600)]
    before = under_way(tested, pods=pods)
    assert len(before.status.role_status[0].replica_status) == 600

    stored = codec.decode(codec.encode(report.compact(before.status)), api.TaskSetStatus)
    decision = decide(replace(before, status=report.expand(stored)), seen(*pods), NOW)

    assert decision.actions == ()
    assert report.compact(decision.status) == stored


def test_a_large_taskset_keeps_the_pods_it_is_asked_to_keep() -> None:
    pods = [over(0, index) for index in range(600)]
    after, _ = look(under_way(role(replicas=600), pod_retention="All"), seen(*pods))
    assert after.status.phase == TaskSetPhase.COMPLETED

    stored = codec.decode(codec.encode(report.compact(after.status)), api.TaskSetStatus)
    decision = decide(replace(after, status=report.expand(stored)), seen(*pods), at(5))

    assert decision.actions == ()


# --- conditions


def conditions(**fields: Any) -> dict[str, tuple[str, str]]:
    made = report.conditions(api.TaskSetStatus(**fields))
    return {condition.type: (condition.status, condition.reason) for condition in made}


def test_a_running_taskset_has_the_condition_running() -> None:
    assert conditions(phase=TaskSetPhase.RUNNING, state="Running") == {"Running": ("True", "Running")}


def test_a_finished_taskset_has_the_conditions_people_wait_for() -> None:
    trigger = api.Trigger(event="RoleFailed", message="1 of 1 failed")
    made = conditions(phase=TaskSetPhase.COMPLETED, state="Failed", verdict="Failed", trigger=trigger)

    assert made["Failed"] == made["Completed"] == ("True", "RoleFailed")
    assert "Succeeded" not in made
    assert "Running" not in made


def test_a_taskset_is_suspended_when_its_last_pod_has_stopped() -> None:
    assert "Suspended" not in conditions(phase=TaskSetPhase.RUNNING, state="Running", suspended_at=NOW)
    assert "Suspended" not in conditions(phase=TaskSetPhase.PREPARING, state="Waiting", suspended_at=NOW)
    assert conditions(phase=TaskSetPhase.PENDING, state="Waiting", suspended_at=NOW)["Suspended"][0] == "True"


def test_a_condition_keeps_the_time_of_its_last_change() -> None:
    first = api.TaskSetStatus(phase=TaskSetPhase.RUNNING, state="Running", transition_time=NOW)
    first = replace(first, conditions=report.conditions(first))
    again = replace(first, transition_time=at(9), state_message="x")
    ended = replace(again, state="Waiting", transition_time=at(20))

    (same,) = report.conditions(again)
    (changed,) = report.conditions(ended)

    assert (same.status, same.last_transition_time, same.message) == ("True", NOW, "x")
    assert (changed.status, changed.last_transition_time, changed.message) == ("False", at(20), "")


# --- the complete list


def test_the_complete_list_has_a_line_for_every_replica() -> None:
    told = taskset(role(replicas=1200), status=status_of([replica(i) for i in range(1200)]))

    lists = objects.replica_lists(told)

    lines = [line for part in lists for text in part["data"].values() for line in text.splitlines()]
    assert [codec.decode(line.encode(), api.ReplicaStatus).index for line in lines] == list(range(1200))
    assert all(len(codec.encode(part)) < MIB for part in lists)
