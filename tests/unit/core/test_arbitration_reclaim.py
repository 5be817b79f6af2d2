"""Who is asked to go, and who never is?"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from arbitration_builders import at, job, pod, queue, state

from octarbiter.core.arbitration.decide import arbitrate
from octarbiter.core.arbitration.state import Job, Outcome, Phase, Pod, Queue, Settings

SETTINGS = Settings(hold_s=5)


def decided(
    total: Any,
    queues: Iterable[Queue],
    jobs: Iterable[Job] = (),
    pods: Iterable[Pod] = (),
    seconds: float = 0,
    **more: Any,
) -> Outcome:
    return arbitrate(state(total, queues, jobs, pods, **more), SETTINGS, at(seconds))


def asked(outcome: Outcome) -> list[str]:
    return [eviction.pod.partition("/")[2] for eviction in outcome.evictions]


def taker(count: int = 1, size: Any = 1) -> list[Job]:
    """Of queue b, which waits with one all-or-nothing job."""
    return [job("b", "wants", size, count, least=count)]


A_AND_B = (queue("a"), queue("b"))


# --- the order


def test_pending_pods_go_before_running_ones() -> None:
    pods = [pod("a", "running", 2, created=-1), pod("a", "pending", 2, phase=Phase.PENDING, priority=9, created=-9)]

    assert asked(decided(4, A_AND_B, taker(2), pods)) == ["pending"]


def test_lower_priority_goes_first_then_lower_rank_then_the_newest_then_by_name() -> None:
    pods = [
        pod("a", "e-high", 1, priority=1, created=0),
        pod("a", "d-ranked", 1, rank=1, created=0),
        pod("a", "c-old", 1, created=-9),
        pod("a", "b-new", 1, created=-1),
        pod("a", "a-new", 1, created=-1),
        pod("a", "negative", 1, rank=-1, created=-90),
    ]

    outcome = decided(6, [queue("a"), queue("b", weight=5)], taker(5), pods)

    assert asked(outcome) == ["negative", "a-new", "b-new", "c-old", "d-ranked"]


def test_pods_outside_gangs_and_surplus_of_gangs_go_before_any_gang() -> None:
    pods = [
        *(pod("a", f"gang{i}", 1, gang="a/gang", created=i) for i in range(3)),
        pod("a", "alone", 1, priority=9),
    ]

    assert asked(decided(4, A_AND_B, taker(2), pods, gangs={"a/gang": 2})) == ["gang2", "alone"]


def test_a_gang_goes_whole_and_only_if_nothing_else_is_enough() -> None:
    pods = [
        *(pod("a", f"gang{i}", 1, gang="a/gang", created=i) for i in range(3)),
        pod("a", "alone", 1, priority=9),
    ]

    assert sorted(asked(decided(4, A_AND_B, taker(2), pods, gangs={"a/gang": 3}))) == ["gang0", "gang1", "gang2"]


def test_as_few_gangs_as_possible_go() -> None:
    small = [pod("a", f"small{g}{i}", 1, gang=f"a/small{g}") for g in "ab" for i in range(2)]
    large = [pod("a", f"large{i}", 1, gang="a/large", priority=5) for i in range(4)]
    gangs = {"a/smalla": 2, "a/smallb": 2, "a/large": 4}

    outcome = decided(8, A_AND_B, taker(4), [*small, *large], gangs=gangs)

    assert asked(outcome) == ["large0", "large1", "large2", "large3"]


def test_among_as_few_gangs_the_lowest_goes() -> None:
    pods = [pod("a", f"{g}{i}", 1, gang=f"a/{g}", priority=p) for g, p in (("high", 5), ("low", 0)) for i in range(4)]

    outcome = decided(8, A_AND_B, taker(4), pods, gangs={"a/high": 4, "a/low": 4})

    assert asked(outcome) == ["low0", "low1", "low2", "low3"]


def test_pods_of_a_group_that_nobody_knows_are_no_gang() -> None:
    pods = [pod("a", f"p{i}", 1, gang="a/unknown", created=i) for i in range(4)]

    assert asked(decided(4, A_AND_B, taker(2), pods)) == ["p3", "p2"]


# --- whom nobody asks


def test_a_queue_that_is_not_reclaimable_keeps_what_it_has_and_it_is_told() -> None:
    pods = [pod("a", f"p{i}", 1) for i in range(4)]

    outcome = decided(4, [queue("a", reclaimable=False), queue("b")], taker(2), pods)

    assert asked(outcome) == []
    assert outcome.queues["b/b"].satisfied == (
        "b waits: it deserves 2 CPU, has 0; a holds 2 CPU too much, but it is not reclaimable"
    )


def test_protected_pods_stay_and_others_go_instead() -> None:
    pods = [pod("a", "system", 1, is_protected=True, created=0), pod("a", "plain", 1, priority=9)]

    assert asked(decided(2, A_AND_B, taker(1), pods)) == ["plain"]
    assert asked(decided(2, A_AND_B, taker(1), [pods[0], pod("a", "other", 1, is_protected=True)])) == []


def test_a_gang_with_a_protected_member_stays() -> None:
    pods = [pod("a", f"p{i}", 1, gang="a/gang", is_protected=i == 0) for i in range(2)]

    assert asked(decided(2, A_AND_B, taker(1), pods, gangs={"a/gang": 2})) == []


def test_a_pod_whose_budget_refused_stays_and_another_goes() -> None:
    pods = [pod("a", "blocked", 1, is_blocked=True, created=0), pod("a", "other", 1, created=-9)]

    assert asked(decided(2, A_AND_B, taker(1), pods)) == ["other"]


def test_nobody_goes_below_its_guarantee() -> None:
    # What is guaranteed is more than there is, so not all of it is deserved.
    pods = [pod("a", f"p{i}", 1) for i in range(4)]

    outcome = decided(4, [queue("a", guarantee=4), queue("b", guarantee=4)], taker(4), pods)

    assert outcome.queues["a/a"].deserved == {"cpu": 2000}
    assert asked(outcome) == []


def test_a_queue_within_its_right_is_not_asked() -> None:
    queues = [queue("a"), queue("b"), queue("c")]
    pods = [pod("c", "right", 2, created=0), *(pod("a", f"p{i}", 1) for i in range(4))]

    assert asked(decided(6, queues, taker(2), pods)) == ["p0", "p1"]


# --- nothing in vain


def test_if_the_claimant_could_not_run_nobody_goes() -> None:
    pods = [pod("a", "loose", 1), *(pod("a", f"p{i}", 1, is_protected=True) for i in range(3))]

    outcome = decided(4, A_AND_B, taker(2), pods)

    assert asked(outcome) == []
    assert outcome.taken_from == ()
    assert "nobody who waits could run if its pods went" in outcome.queues["b/b"].satisfied


def test_a_claimant_that_can_use_less_takes_less() -> None:
    pods = [pod("a", "loose", 1), *(pod("a", f"p{i}", 1, is_protected=True) for i in range(3))]

    assert asked(decided(4, A_AND_B, [job("b", "wants", 1, 2)], pods)) == ["loose"]
    assert asked(decided(4, [queue("a"), queue("b", 4)], (), pods)) == ["loose"]


def test_a_pod_that_uses_nothing_of_what_is_short_stays() -> None:
    queues = [queue("a"), queue("b")]
    pods = [pod("a", "memory", "0/4Gi", created=0), pod("a", "cpu", "2/0")]

    assert asked(decided("2/8Gi", queues, taker(1, "2/1Gi"), pods)) == ["cpu"]


def test_a_small_pod_is_not_asked_when_a_large_one_must_go_anyway() -> None:
    pods = [pod("a", "small", 1, created=0), pod("a", "large", 3, created=-9)]

    assert asked(decided(4, A_AND_B, taker(3), pods)) == ["large"]


def test_what_is_ending_already_is_counted_and_nobody_is_asked_twice() -> None:
    ending = pod("a", "ending", 2, phase=Phase.TERMINATING)
    pods = [ending, pod("a", "other", 2)]

    outcome = decided(4, A_AND_B, taker(2), pods, taken_from={"a/a": at(-12)})

    assert asked(outcome) == []
    assert outcome.queues["b/b"].satisfied == (
        "b waits: it deserves 2 CPU, has 0; 2 CPU come back when 1 pod of a ends (asked 12 s ago)"
    )


def test_what_is_used_beyond_the_total_has_to_come_back_first() -> None:
    pods = [pod("a", f"p{i}", 1, created=-i) for i in range(6)]

    assert asked(decided(2, A_AND_B, taker(1), pods)) == ["p0", "p1", "p2", "p3", "p4"]


# --- hold and budget


def test_a_queue_that_was_just_asked_is_left_alone_for_a_while() -> None:
    pods = [pod("a", f"p{i}", 1) for i in range(4)]

    early = decided(4, A_AND_B, taker(2), pods, taken_from={"a/a": at(-4)})
    later = decided(4, A_AND_B, taker(2), pods, seconds=1, taken_from={"a/a": at(-4)})

    assert asked(early) == []
    assert early.look_again_at == at(1)
    assert "it was asked a moment ago" in early.queues["b/b"].satisfied
    assert asked(later) == ["p0", "p1"]


def test_the_budget_bounds_how_many_go_now_and_the_rest_is_looked_at_again() -> None:
    pods = [pod("a", f"p{i}", 1) for i in range(4)]

    outcome = decided(4, A_AND_B, taker(2), pods, evictions_left=1)

    assert asked(outcome) == ["p0"]
    assert outcome.look_again_at == at(5)
    assert asked(decided(4, A_AND_B, taker(2), pods, evictions_left=0)) == []


def test_a_gang_larger_than_the_budget_still_goes_whole() -> None:
    pods = [pod("a", f"p{i}", 1, gang="a/gang") for i in range(4)]

    assert len(asked(decided(4, A_AND_B, taker(2), pods, gangs={"a/gang": 4}, evictions_left=3))) == 4


def test_a_suspension_costs_no_evictions() -> None:
    jobs = [job("a", "j", 1, 4, least=4, had=4, started=True), *taker(2)]
    pods = [pod("a", f"p{i}", 1, job="j") for i in range(4)]
    queues = [queue("a", capability=3), queue("b")]

    outcome = decided(4, queues, jobs, pods, evictions_left=0)

    assert list(outcome.suspend) == ["a/j"]


# --- jobs and gangs together


def test_a_job_whose_pods_are_a_gang_is_suspended_if_the_gang_cannot_shrink() -> None:
    jobs = [job("a", "j", 1, 4, had=4, started=True), *taker(2)]
    pods = [pod("a", f"p{i}", 1, job="j", gang="a/gang") for i in range(4)]

    outcome = decided(4, A_AND_B, jobs, pods, gangs={"a/gang": 4})

    assert list(outcome.suspend) == ["a/j"]
    assert asked(outcome) == []


def test_a_job_that_uses_more_than_its_units_loses_what_is_beyond_them() -> None:
    jobs = [job("a", "j", 1, 2, had=2, started=True), *taker(2)]
    pods = [pod("a", f"p{i}", 1, job="j", created=i) for i in range(4)]

    outcome = decided(4, A_AND_B, jobs, pods)

    assert asked(outcome) == ["p3", "p2"]
    assert outcome.units["a/j"] == 2


def test_a_job_that_shrinks_keeps_its_worthiest_pods() -> None:
    jobs = [job("a", "j", 1, 4, had=4, started=True), *taker(2)]
    pods = [
        pod("a", "new", 1, job="j", created=0),
        pod("a", "high", 1, job="j", created=0, priority=1),
        pod("a", "old", 1, job="j", created=-9),
        pod("a", "pending", 1, job="j", created=-9, phase=Phase.PENDING, priority=9),
    ]

    assert asked(decided(4, A_AND_B, jobs, pods)) == ["pending", "new"]


def test_those_who_are_asked_are_told_for_whom_and_why() -> None:
    outcome = decided(2, A_AND_B, taker(1), [pod("a", "p", 1), pod("a", "q", 1)])

    assert outcome.evictions[0].sentence == "evicted, makes room for b: a deserves 1 CPU, holds 2"
    assert outcome.evictions[0].queue == "a/a"
