"""The known answers, and what each policy promises."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from fractions import Fraction

import pytest

from octarbiter.core.arbitration import capacity, drf, hdrf, policies, precedence, proportion
from octarbiter.core.arbitration.claims import Block, Claim, Grant, Vector
from octarbiter.core.arbitration.deserved import deserve

GI = 1 << 30
THEN = datetime(2026, 1, 1, tzinfo=UTC)


def units(key: str, *path: Block, weight: int = 1, **others: object) -> Claim:
    nothing = (0,) * len(path[0].unit)
    return Claim(key=key, weight=weight, path=path, **{"rest": nothing, "floor": nothing, **others})  # type: ignore[arg-type]


def request(key: str, *rest: int, weight: int = 1, **others: object) -> Claim:
    return Claim(key=key, weight=weight, rest=rest, **{"floor": (0,) * len(rest), **others})  # type: ignore[arg-type]


def counts(grants: list[Grant]) -> list[tuple[int, ...]]:
    return [grant.units for grant in grants]


def held(grants: list[Grant]) -> list[Vector]:
    return [grant.held for grant in grants]


# --- known answers


def test_the_example_of_the_paper_gives_three_and_two_tasks_and_equal_dominant_shares() -> None:
    grants = drf.share((9, 18), [units("a", Block((1, 4), 100)), units("b", Block((3, 1), 100))])

    assert counts(grants) == [(3,), (2,)]
    assert Fraction(2, 3) == Fraction(grants[0].held[1], 18) == Fraction(grants[1].held[0], 9)


def test_twice_the_weight_has_twice_the_dominant_share() -> None:
    grants = drf.share((90, 180), [units("a", Block((1, 4), 100)), units("b", Block((3, 1), 100), weight=2)])

    assert counts(grants) == [(18,), (24,)]


def test_requests_in_the_same_ratio_reach_the_same_shares_without_units() -> None:
    grants = drf.share((9000, 18000), [request("a", 10000, 40000), request("b", 30000, 10000)])

    assert held(grants) == [(3000, 12000), (6000, 2000)]


def test_proportion_shares_each_resource_by_weight() -> None:
    claims = [request("q1", 5000, 10 * GI, weight=2), request("q2", 10000, 20 * GI, weight=4)]

    assert held(proportion.share((9000, 27 * GI), claims)) == [(3000, 9 * GI), (6000, 18 * GI)]


@pytest.mark.parametrize(
    ("total", "asks", "expected"),
    [
        (8000, [(3, 12000), (1, 4000)], [6000, 2000]),
        (8000, [(3, 12000), (1, 4000), (4, 6000)], [3000, 1000, 4000]),
        (100, [(1, 40), (1, 45), (8, 50)], [25, 25, 50]),
    ],
)
@pytest.mark.parametrize("policy", ["proportion", "drf", "hdrf"])
def test_what_one_needs_less_the_others_have_more_by_weight(
    policy: str, total: int, asks: list[tuple[int, int]], expected: list[int]
) -> None:
    claims = [request(f"q{number}", ask, weight=weight) for number, (weight, ask) in enumerate(asks)]

    assert [(amount,) for amount in expected] == held(policies.share(policy, (total,), claims))


@pytest.mark.parametrize("policy", ["proportion", "drf", "hdrf", "priority"])
def test_the_documented_scenario_ends_as_documented(policy: str) -> None:
    unit = (1000, GI)
    first = units("ns01/q01", Block(unit, 6), Block(unit, 6), weight=3)
    second = units("ns02/q02", Block(unit, 2), Block(unit, 2), weight=1)
    third = units("ns03/q03", Block(unit, 3), Block(unit, 3), weight=4)
    total = (8000, 8 * GI)

    two = deserve(total, [first, second], policy)
    three = deserve(total, [first, second, third], policy)

    assert [two[key].units for key in ("ns01/q01", "ns02/q02")] == [(6, 0), (2, 0)]
    assert [three[key].units for key in ("ns01/q01", "ns02/q02", "ns03/q03")] == [(3, 0), (1, 0), (3, 1)]
    assert [three[key].held[0] for key in ("ns01/q01", "ns02/q02", "ns03/q03")] == [3000, 1000, 4000]


def test_memory_that_nobody_can_use_without_cpu_is_left_over() -> None:
    unit = (1000, GI)
    claims = [units("a", Block(unit, 12), weight=3), units("b", Block(unit, 4))]

    assert counts(drf.share((8000, 32 * GI), claims)) == [(6,), (2,)]


def test_a_hierarchy_does_not_starve_one_who_asks_for_what_its_sibling_does_not() -> None:
    development = units("dev", Block((1, 0), 100), weight=50)
    production = units("prod", Block((0, 1), 100), weight=50)
    engineering = Claim(key="eng", weight=50, rest=(0, 0), floor=(0, 0), children=(development, production))
    science = units("sci", Block((1, 1), 100), weight=50)

    grants = deserve((10, 10), [science, engineering], "hdrf")

    assert [grants[key].units for key in ("sci", "dev", "prod")] == [(5,), (5,), (5,)]
    assert grants["eng"].held == (5, 5)


# --- dominant resource fairness


def test_ties_go_to_the_smaller_key_whatever_the_order_of_the_claims() -> None:
    claims = [units("b", Block((1,), 5)), units("a", Block((1,), 5))]

    assert counts(drf.share((3,), claims)) == [(1,), (2,)]
    assert counts(drf.share((3,), claims[::-1])) == [(2,), (1,)]


def test_a_unit_that_does_not_fit_is_skipped_for_the_next_job() -> None:
    claim = units("a", Block((7,), 1), Block((5,), 1), Block((3,), 1))

    assert counts(drf.share((10,), [claim])) == [(1, 0, 1)]


def test_nothing_is_tried_behind_a_job_that_has_waited_for_long() -> None:
    claim = units("a", Block((7,), 1), Block((5,), 1, is_barrier=True), Block((3,), 1), rest=(1,))

    assert [Grant((7,), (1, 0, 0))] == drf.share((10,), [claim])


def test_a_job_that_has_waited_for_long_and_has_all_stops_nobody() -> None:
    claim = units("a", Block((7,), 1, is_barrier=True), Block((3,), 1))

    assert counts(drf.share((10,), [claim])) == [(1, 1)]


def test_units_that_make_sense_only_together_come_together_or_not_at_all() -> None:
    together = Block((2,), 5, least=3)

    assert counts(drf.share((5,), [units("a", together, Block((1,), 9))])) == [(0, 5)]
    assert counts(drf.share((9,), [units("a", together, Block((1,), 9))])) == [(4, 1)]


def test_what_a_floor_has_paid_for_costs_nothing_more() -> None:
    guaranteed = units("a", Block((2,), 9), floor=(5,))
    other = units("b", Block((2,), 9))

    # a holds 5 (two units and a half) until b has caught up.
    assert [Grant((6,), (3,)), Grant((4,), (2,))] == drf.share((10,), [guaranteed, other])
    assert [Grant((5,), (2,)), Grant((4,), (2,))] == drf.share((9,), [guaranteed, other])


def test_floors_that_exceed_the_total_together_are_cut_in_proportion() -> None:
    claims = [request("a", 0, floor=(6,)), request("b", 0, floor=(12,))]

    assert held(drf.share((10,), claims)) == [(3,), (6,)]


def test_nobody_grows_beyond_its_cap() -> None:
    claims = [request("a", 90, 90, cap=(20, 90)), units("b", Block((7, 7), 9), cap=(20, 20))]

    assert held(drf.share((100, 100), claims)) == [(20, 20), (14, 14)]


def test_what_is_not_there_is_no_crash_and_stops_only_who_needs_it() -> None:
    claims = [
        request("a", 10, 5),
        units("b", Block((1, 1), 5), Block((2, 0), 2)),
        request("c", 10, 0),
    ]

    assert [Grant((0, 0), ()), Grant((4, 0), (0, 2)), Grant((6, 0), ())] == drf.share((10, 0), claims)
    assert held(drf.share((-5, -(1 << 40)), claims)) == [(0, 0), (0, 0), (0, 0)]


def test_what_rounding_leaves_over_is_given_to_a_unit_that_fits() -> None:
    claims = [request("a", 9), request("b", 9), units("c", Block((1,), 2))]

    # a and b come to one half each, which is nothing when rounded down.
    assert held(drf.share((2,), claims)) == [(0,), (0,), (2,)]


def test_a_resource_that_does_not_dominate_is_taken_without_waiting() -> None:
    memory_for_its_cpus = units("a", Block((4, 0), 1), rest=(0, 10))

    assert held(drf.share((10, 10), [memory_for_its_cpus])) == [(4, 10)]


def test_the_work_grows_with_what_is_given_out_and_not_with_what_is_asked() -> None:
    """One by one, this would take years."""
    claims = [units("a", Block((1,), 1 << 60)), units("b", Block((1,), 1 << 48)), units("c", Block((3,), 1 << 60))]

    assert [grant.held[0] for grant in drf.share(((7 << 48) + 1,), claims)] == [(3 << 48) + 1, 1 << 48, 3 << 48]


# --- others


def test_proportion_hands_out_what_rounding_leaves_to_the_largest_fractions() -> None:
    claims = [request("a", 9), request("b", 9), request("c", 9)]

    assert held(proportion.share((8,), claims)) == [(3,), (3,), (2,)]


def test_proportion_lets_the_level_rise_past_whoever_is_guaranteed_more() -> None:
    claims = [request("a", 90, floor=(50,)), request("b", 90), request("c", 90)]

    assert held(proportion.share((100,), claims)) == [(50,), (25,), (25,)]


def test_under_a_policy_of_vectors_the_units_are_those_that_fit_into_the_vector() -> None:
    claims = [units("a", Block((4,), 9), Block((1,), 9)), request("b", 50)]

    assert [Grant((25,), (6, 1)), Grant((25,), ())] == proportion.share((50,), claims)


def test_capacity_keeps_promises_before_it_lends() -> None:
    claims = [
        request("a", 100, promised=(40,), weight=1),
        request("b", 100, promised=(30,), weight=3),
        request("c", 10, promised=(20,), weight=1),
    ]

    # c leaves 10 of its promise; 20 are lent, by weight.
    assert held(capacity.share((100,), claims)) == [(45,), (45,), (10,)]


def test_capacity_lends_nobody_more_than_its_cap() -> None:
    claims = [request("a", 100, promised=(40,), cap=(50,)), request("b", 100, promised=(10,))]

    assert held(capacity.share((100,), claims)) == [(50,), (50,)]


def test_capacity_fills_guarantees_first_and_cuts_promises_by_weight() -> None:
    claims = [request("a", 100, floor=(60,), promised=(80,)), request("b", 100, promised=(80,))]

    assert held(capacity.share((100,), claims)) == [(60,), (40,)]


def test_higher_priority_takes_what_it_asks_before_others_get_anything() -> None:
    claims = [
        units("a", Block((3,), 9)),
        units("b", Block((3,), 2), priority=5),
        units("c", Block((1,), 9), floor=(1,)),
    ]

    assert counts(precedence.Priority().share((8,), claims)) == [(0,), (2,), (2,)]


def test_equal_priorities_share_fairly() -> None:
    claims = [units("a", Block((1,), 9), priority=3), units("b", Block((1,), 9), priority=3)]

    assert counts(precedence.Priority().share((4,), claims)) == [(2,), (2,)]


def test_the_oldest_claim_is_served_first() -> None:
    claims = [
        units("a", Block((1,), 9), since=THEN + timedelta(hours=1)),
        units("b", Block((4,), 1), Block((3,), 1), since=THEN),
        units("c", Block((1,), 9)),
    ]

    assert counts(precedence.Fifo().share((9,), claims)) == [(2,), (1, 1), (0,)]


def test_hierarchical_fairness_ignores_siblings_that_can_grow_no_more() -> None:
    """Else the one who asks for no more than one GPU would make the whole of a look poor."""
    blocked = units("gpu", Block((0, 1), 1))
    growing = units("cpu", Block((1, 0), 99))
    inner = Claim(key="a", rest=(0, 0), floor=(0, 0), children=(blocked, growing), policy="hdrf")
    other = units("b", Block((1, 0), 99))

    grants = hdrf.share((20, 4), [inner, other])

    assert held(grants) == [(10, 1), (10, 0)]


def test_hierarchical_fairness_counts_all_that_they_have() -> None:
    children = (units("satisfied", Block((1,), 4)), units("growing", Block((1,), 99)))
    inner = Claim(key="a", rest=(0,), floor=(0,), children=children, policy="hdrf")

    assert held(hdrf.share((40,), [inner, units("b", Block((1,), 99))])) == [(20,), (20,)]


def test_hierarchical_fairness_divides_requests_too() -> None:
    one = Claim(
        key="a", rest=(0, 0), floor=(0, 0), children=(request("x", 800, 0), request("y", 0, 800)), policy="hdrf"
    )
    grants = hdrf.share((1000, 1000), [one, request("b", 640, 640)])

    assert held(grants) == [(500, 500), (500, 500)]
