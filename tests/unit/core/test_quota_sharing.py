"""How is what a queue may use divided among its namespaces?"""

from __future__ import annotations

from fractions import Fraction

import hypothesis.strategies as st
from hypothesis import given

from octarbiter.core.quota import sharing

NAMESPACES = ("a", "b", "c")


def test_namespaces_get_by_what_their_jobs_ask() -> None:
    asked = {"a": {"cpu": 8000}, "b": {"cpu": 4000}}

    assert sharing.shares({"cpu": 6000}, ("a", "b"), asked) == {"a": {"cpu": 4000}, "b": {"cpu": 2000}}


def test_where_only_a_request_is_given_all_get_the_same() -> None:
    assert sharing.shares({"cpu": 3001}, NAMESPACES, {}) == {"a": {"cpu": 1001}, "b": {"cpu": 1000}, "c": {"cpu": 1000}}


def test_what_was_given_to_jobs_comes_first() -> None:
    asked, held = {"a": {"cpu": 4}, "b": {"cpu": 4}}, {"a": {"cpu": 4}}

    assert sharing.shares({"cpu": 5}, ("a", "b"), asked, held) == {"a": {"cpu": 4}, "b": {"cpu": 1}}


def test_oversubscription_is_exact_and_rounded_down() -> None:
    factors = {"cpu": Fraction("1.1"), "memory": Fraction(1, 3)}

    assert sharing.oversubscribed({"cpu": 1009, "memory": 10, "x/y": 7}, factors) == {
        "cpu": 1109,
        "memory": 3,
        "x/y": 7,
    }


amounts = st.dictionaries(st.sampled_from(["cpu", "memory"]), st.integers(0, 2**60))
by_namespace = st.dictionaries(st.sampled_from(NAMESPACES), amounts)


@given(amounts, st.sets(st.sampled_from(NAMESPACES), min_size=1), by_namespace, by_namespace)
def test_the_parts_are_never_more_and_never_less_than_the_whole(
    whole: dict[str, int], names: set[str], asked: dict[str, dict[str, int]], held: dict[str, dict[str, int]]
) -> None:
    parts = sharing.shares(whole, list(names), asked, held)

    assert set(parts) == names
    for resource, amount in whole.items():
        assert sum(part[resource] for part in parts.values()) == amount
        assert all(part[resource] >= 0 for part in parts.values())


@given(amounts, st.dictionaries(st.sampled_from(["cpu", "memory"]), st.fractions(min_value=0, max_value=10)))
def test_a_quota_is_never_above_what_is_allocated_times_the_factor(
    allocated: dict[str, int], factors: dict[str, Fraction]
) -> None:
    for name, amount in sharing.oversubscribed(allocated, factors).items():
        exact = allocated[name] * factors.get(name, Fraction(1))
        assert exact - 1 < amount <= exact
