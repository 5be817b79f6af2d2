"""What does one arbitration say, for the documented scenarios?"""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from arbitration_builders import amounts, at, job, pod, queue, state

from octarbiter.api import resources
from octarbiter.core.arbitration.decide import arbitrate
from octarbiter.core.arbitration.state import Outcome, Phase, Pod, Settings, State

SETTINGS = Settings()
GI = 1 << 30


def decided(given: State, seconds: float = 0) -> Outcome:
    return arbitrate(given, SETTINGS, at(seconds))


def deserved(outcome: Outcome, name: str) -> dict[str, str]:
    return resources.written(outcome.queues[f"{name}/{name}"].deserved)


def allocated(outcome: Outcome, name: str) -> dict[str, str]:
    return resources.written(outcome.queues[f"{name}/{name}"].allocated)


def preempting(outcome: Outcome, name: str) -> dict[str, str]:
    return resources.written(outcome.queues[f"{name}/{name}"].preempting)


def units(outcome: Outcome) -> dict[str, int]:
    return {key.partition("/")[2]: count for key, count in outcome.units.items() if count}


# --- section 5: three queues, the third one arrives


class TestTheThirdQueueArrives:
    @staticmethod
    def there(*pods: Pod, **more: Any) -> State:
        queues = [queue(name, "9/27Gi", weight=weight) for name, weight in (("q1", 2), ("q2", 4), ("q3", 3))]
        return state("9/27Gi", queues, pods=pods, policy="proportion", **more)

    LARGE = (
        pod("q1", "a", "2/6Gi", created=-90),
        pod("q2", "c", "2/6Gi", created=-80),
        pod("q2", "d", "2/6Gi", created=-70),
    )
    NEWEST = (pod("q1", "b", "1/3Gi", created=-60), pod("q2", "e", "1/3Gi", created=-50))

    def test_everybody_deserves_by_weight(self) -> None:
        outcome = decided(self.there(*self.LARGE, *self.NEWEST))

        assert deserved(outcome, "q1") == {"cpu": "2", "memory": "6Gi"}
        assert deserved(outcome, "q2") == {"cpu": "4", "memory": "12Gi"}
        assert deserved(outcome, "q3") == {"cpu": "3", "memory": "9Gi"}

    def test_one_small_pod_of_each_of_the_others_is_asked_to_go(self) -> None:
        outcome = decided(self.there(*self.LARGE, *self.NEWEST))

        assert [eviction.pod for eviction in outcome.evictions] == ["q2/e", "q1/b"]
        assert [eviction.uid for eviction in outcome.evictions] == ["uid-of-e", "uid-of-b"]
        assert outcome.taken_from == ("q1/q1", "q2/q2")

    def test_at_first_the_third_may_use_what_is_free_and_waits_for_the_rest(self) -> None:
        outcome = decided(self.there(*self.LARGE, *self.NEWEST))

        assert allocated(outcome, "q3") == {"cpu": "1", "memory": "3Gi"}
        assert preempting(outcome, "q3") == {"cpu": "2", "memory": "6Gi"}
        assert (allocated(outcome, "q1"), preempting(outcome, "q1")) == ({"cpu": "2", "memory": "6Gi"}, {})
        assert (allocated(outcome, "q2"), preempting(outcome, "q2")) == ({"cpu": "4", "memory": "12Gi"}, {})

    def test_while_they_end_nobody_else_is_asked_and_nothing_is_given_twice(self) -> None:
        ending = [msgspec.structs.replace(each, phase=Phase.TERMINATING) for each in self.NEWEST]
        asked = {"q1/q1": at(0), "q2/q2": at(0)}

        outcome = decided(self.there(*self.LARGE, *ending, taken_from=asked), seconds=12)

        assert outcome.evictions == ()
        assert allocated(outcome, "q3") == {"cpu": "1", "memory": "3Gi"}
        assert preempting(outcome, "q3") == {"cpu": "2", "memory": "6Gi"}
        assert outcome.queues["q3/q3"].reclaiming == (
            "q3 waits: it deserves 3 CPU and 9Gi memory, has 1 CPU and 3Gi memory; "
            "1 CPU and 3Gi memory come back when 1 pod of q1 ends (asked 12 s ago), "
            "1 CPU and 3Gi memory come back when 1 pod of q2 ends (asked 12 s ago)"
        )

    def test_when_one_has_ended_the_third_may_use_that_much_more(self) -> None:
        one, other = self.NEWEST
        ending = msgspec.structs.replace(one, phase=Phase.TERMINATING)

        outcome = decided(self.there(*self.LARGE, ending))

        assert other not in [ending]
        assert allocated(outcome, "q3") == {"cpu": "2", "memory": "6Gi"}
        assert preempting(outcome, "q3") == {"cpu": "1", "memory": "3Gi"}

    def test_when_both_have_ended_everybody_may_use_what_it_deserves(self) -> None:
        own = [pod("q3", f"n{i}", "1/3Gi") for i in range(3)]
        for pods in (self.LARGE, (*self.LARGE, *own)):
            outcome = decided(self.there(*pods))

            assert outcome.evictions == ()
            for name in ("q1", "q2", "q3"):
                assert deserved(outcome, name) == allocated(outcome, name)
                assert preempting(outcome, name) == {}


def test_the_documented_weights_share_eight_cpus_and_share_again_when_a_third_comes() -> None:
    q01, q02 = queue("q01", 12, weight=3), queue("q02", 4, weight=1)
    two = decided(state(8, [q01, q02], policy="proportion"))
    three = decided(state(8, [q01, q02, queue("q03", 6, weight=4)], policy="proportion"))

    assert [deserved(two, name)["cpu"] for name in ("q01", "q02")] == ["6", "2"]
    assert [deserved(three, name)["cpu"] for name in ("q01", "q02", "q03")] == ["3", "1", "4"]


def test_the_documented_claims_get_whole_units_by_dominant_share() -> None:
    given = state(
        {"cpu": 9, "memory": "18G"},
        [queue("a"), queue("b")],
        [job("a", "ja", {"cpu": 1, "memory": "4G"}, 100), job("b", "jb", {"cpu": 3, "memory": "1G"}, 100)],
    )

    outcome = decided(given)

    assert units(outcome) == {"ja": 3, "jb": 2}
    assert outcome.queues["a/a"].share[0] * 3 == outcome.queues["a/a"].share[1] * 2
    assert outcome.queues["b/b"].share[0] * 3 == outcome.queues["b/b"].share[1] * 2
    assert (outcome.queues["a/a"].dominant, outcome.queues["b/b"].dominant) == ("memory", "cpu")


# --- what queues ask for


def test_a_queue_with_jobs_asks_for_their_units_and_not_for_its_request() -> None:
    outcome = decided(state(100, [queue("a", 50)], [job("a", "j", 2, 3)]))

    assert outcome.queues["a/a"].demand == amounts(6)
    assert outcome.queues["a/a"].allocated == amounts(6)


def test_what_pods_use_already_counts_as_asked_but_never_above_the_capability() -> None:
    outcome = decided(
        state(100, [queue("a", 1), queue("b", 1, capability=3)], pods=[pod("a", "p", 7), pod("b", "p", 7)])
    )

    assert outcome.queues["a/a"].demand == amounts(7)
    assert outcome.queues["b/b"].demand == amounts(3)
    assert outcome.queues["b/b"].used == amounts(7)


def test_nothing_there_is_no_crash() -> None:
    outcome = decided(state(0, [queue("a", 4)], [job("a", "j", 1)]))

    assert outcome.queues["a/a"].allocated == {"cpu": 0}
    assert decided(state(0, ())).queues == {}


def test_a_resource_that_nobody_has_is_never_given_out() -> None:
    outcome = decided(state(8, [queue("a")], [job("a", "gpu", {"cpu": 1, "nvidia.com/gpu": 1}), job("a", "cpu", 1)]))

    assert units(outcome) == {"cpu": 1}
    assert outcome.queues["a/a"].deserved == {"cpu": 1000, "nvidia.com/gpu": 0}


# --- inside a queue


def test_jobs_are_served_by_priority_then_age_then_name() -> None:
    jobs = [
        job("a", "young", 1, created=-1),
        job("a", "b-old", 1, created=-9),
        job("a", "a-old", 1, created=-9),
        job("a", "urgent", 1, created=0, priority=5),
    ]

    served = [units(decided(state(there, [queue("a")], jobs))) for there in range(1, 4)]

    assert served == [{"urgent": 1}, {"urgent": 1, "a-old": 1}, {"urgent": 1, "a-old": 1, "b-old": 1}]


def test_a_younger_bare_claim_of_higher_priority_takes_the_units_at_once() -> None:
    jobs = [job("a", "low", 1, 4, had=4), job("a", "high", 1, 3, priority=1, created=0)]

    outcome = decided(state(4, [queue("a")], jobs, [pod("a", "p", 1)]))

    assert outcome.units == {"a/low": 1, "a/high": 3}


def test_a_started_claim_keeps_what_it_has_against_its_own_queue() -> None:
    jobs = [job("a", "low", 1, 4, had=4, started=True), job("a", "high", 1, 3, priority=1, created=0)]

    outcome = decided(state(4, [queue("a")], jobs))

    assert units(outcome) == {"low": 4}
    assert not outcome.suspend


def test_a_claim_that_loses_its_units_is_in_the_answer_and_one_that_goes_on_waiting_is_not() -> None:
    jobs = [job("a", "had", 1, 2, had=2), job("a", "waits", 1), job("a", "high", 1, 4, priority=1, created=0)]

    outcome = decided(state(4, [queue("a")], jobs))

    assert outcome.units == {"a/high": 4, "a/had": 0}


def test_all_or_nothing_above_the_least() -> None:
    def served(there: int) -> dict[str, int]:
        return units(decided(state(there, [queue("a")], [job("a", "gang", 2, 5, least=3)])))

    assert [served(there) for there in (5, 6, 8, 100)] == [{}, {"gang": 3}, {"gang": 4}, {"gang": 5}]


def test_a_large_job_is_overtaken_until_it_has_waited_long_enough() -> None:
    running = job("a", "running", 1, 5, had=5, started=True)
    small = [job("a", f"small{i}", 1, created=-5) for i in range(9)]

    def served(seconds: float) -> tuple[int, Any]:
        large = job("a", "large", 8, created=-10, waits_since=at(0))
        outcome = decided(state(10, [queue("a")], [running, large, *small]), seconds)
        return sum(count for name, count in units(outcome).items() if name.startswith("small")), outcome.look_again_at

    assert served(59) == (5, at(60))
    assert served(60) == (0, None)


def test_what_becomes_free_is_kept_for_it_until_it_fits() -> None:
    large = job("a", "large", 8, created=-10, waits_since=at(-100))
    small = [job("a", f"small{i}", 1, created=-5) for i in range(9)]

    def served(running: int) -> dict[str, int]:
        kept = job("a", "running", 1, running, had=running, started=True)
        return units(decided(state(10, [queue("a")], [kept, large, *small])))

    assert served(3) == {"running": 3}
    assert served(2)["large"] == 1


def test_a_job_that_can_never_fit_keeps_nobody_waiting() -> None:
    giant = job("a", "giant", 11, created=-10, waits_since=at(-100))

    assert units(decided(state(10, [queue("a")], [giant, job("a", "small", 1)]))) == {"small": 1}


def test_a_gang_that_waits_is_reserved_its_least_and_no_more() -> None:
    gang = job("a", "gang", 1, 100, least=4, created=-10, waits_since=at(-100))

    outcome = decided(state(10, [queue("a")], [gang, job("a", "small", 1, created=-5)]))

    assert units(outcome) == {"gang": 10}


def test_jobs_far_back_in_a_long_line_are_served_as_if_all_were_looked_at() -> None:
    large = [job("a", f"large{i:03}", 8, created=i) for i in range(200)]
    jobs = [*large, job("a", "small", 2, created=900), job("a", "gang", 1, 3, least=3, created=901)]

    assert units(decided(state(10, [queue("a")], jobs))) == {"large000": 1, "small": 1}
    assert units(decided(state(11, [queue("a")], jobs[:-2] + jobs[-1:]))) == {"large000": 1, "gang": 3}
    assert sum(units(decided(state(1600, [queue("a")], jobs))).values()) == 200


# --- what started jobs keep, and taking it back


def test_a_queue_that_holds_too_much_keeps_it_while_nobody_waits() -> None:
    started = [job("a", "j", 1, 6, had=6, started=True)]

    outcome = decided(state(4, [queue("a"), queue("b")], started, [pod("a", f"p{i}", 1, job="j") for i in range(6)]))

    assert outcome.units == {"a/j": 6}
    assert not outcome.suspend
    assert not outcome.evictions
    assert outcome.queues["a/a"].reclaiming == "a deserves 4 CPU, holds 6; it keeps the rest: nobody waits for it"


def test_a_started_job_shrinks_unit_by_unit_but_not_below_its_least() -> None:
    started = job("a", "j", 1, 8, least=2, had=8, started=True)
    pods = [pod("a", f"p{i}", 1, job="j", created=i) for i in range(8)]

    outcome = decided(state(8, [queue("a"), queue("b", 4)], [started], pods))

    assert outcome.units == {"a/j": 4}
    assert [eviction.pod for eviction in outcome.evictions] == ["a/p7", "a/p6", "a/p5", "a/p4"]
    assert not outcome.suspend


def test_a_started_job_is_suspended_rather_than_cut_below_its_least() -> None:
    jobs = [
        job("a", "old", 1, 4, least=4, had=4, started=True, created=-20),
        job("a", "young", 1, 4, least=4, had=4, started=True, created=-10),
    ]
    pods = [pod("a", f"{name}{i}", 1, job=name) for name in ("old", "young") for i in range(4)]

    outcome = decided(state(8, [queue("a"), queue("b", 4)], jobs, pods))

    assert outcome.suspend == {"a/young": "suspended, makes room for b: a deserves 4 CPU, holds 8"}
    assert outcome.units == {"a/old": 4, "a/young": 0}
    assert not outcome.evictions
    assert outcome.taken_from == ("a/a",)


def test_pods_of_a_suspended_job_are_on_their_way_and_nobody_else_is_asked() -> None:
    jobs = [job("a", "old", 1, 4, had=4, started=True, created=-20), job("a", "young", 1, 4, least=4, created=-10)]
    pods = [pod("a", f"{name}{i}", 1, job=name) for name in ("old", "young") for i in range(4)]

    outcome = decided(state(8, [queue("a"), queue("b", 4)], jobs, pods))

    assert not outcome.evictions
    assert not outcome.suspend
    assert preempting(outcome, "b") == {"cpu": "4"}


def test_units_that_a_started_job_does_not_use_yet_are_given_up_before_any_pod_goes() -> None:
    jobs = [job("a", "j", 1, 8, had=8, started=True)]
    pods = [pod("a", f"p{i}", 1, job="j") for i in range(4)]

    outcome = decided(state(8, [queue("a"), queue("b", 4)], jobs, pods))

    assert not outcome.evictions
    assert outcome.units == {"a/j": 4}


def test_nothing_new_is_begun_while_started_jobs_hold_more_than_their_queue_deserves() -> None:
    jobs = [job("a", "kept", 6, had=1, started=True), job("a", "small", 1, 9)]

    outcome = decided(state(4, [queue("a")], jobs, [pod("a", "p", 6, job="kept")]))

    assert outcome.units == {"a/kept": 1}


# --- trees


def test_an_inner_queue_shares_what_it_deserves_among_its_children() -> None:
    queues = [
        queue("top", weight=3, policy="priority"),
        queue("x", 9, parent="top/top", priority=1),
        queue("y", 9, parent="top/top", priority=2),
        queue("z", 9),
    ]

    outcome = decided(state(12, queues))

    assert [deserved(outcome, name)["cpu"] for name in ("top", "x", "y", "z")] == ["9", "0", "9", "3"]
    assert allocated(outcome, "top") == {"cpu": "9"}
    assert outcome.queues["top/top"].demand == amounts(18)


def test_what_an_inner_queue_waits_for_is_what_its_children_wait_for() -> None:
    queues = [queue("top"), queue("x", 4, parent="top/top"), queue("z", 4)]

    outcome = decided(state(4, queues, pods=[pod("z", f"p{i}", 1) for i in range(4)]))

    assert preempting(outcome, "x") == preempting(outcome, "top") == {"cpu": "2"}
    assert outcome.queues["top/top"].used == {}


@pytest.mark.parametrize("policy", ["drf", "hdrf", "proportion", "capacity", "priority", "fifo"])
def test_every_policy_gives_a_lonely_queue_all_it_asks_for(policy: str) -> None:
    outcome = decided(state("8/8Gi", [queue("a")], [job("a", "j", "1/1Gi", 8)], policy=policy))

    assert outcome.units == {"a/j": 8}
    assert outcome.queues["a/a"].is_satisfied
