"""What may queues use, while others hold what is theirs?"""

from __future__ import annotations

from octarbiter.core.arbitration import allocation
from octarbiter.core.arbitration.allocation import Leaf
from octarbiter.core.arbitration.claims import Block, Grant


def leaf(key: str, deserved: int, held: int, *path: Block, weight: int = 1, starts: bool = True) -> Leaf:
    return Leaf(key=key, weight=weight, deserved=(deserved,), held=(held,), path=path, starts=starts)


def held(total: int, *leaves: Leaf) -> dict[str, int]:
    return {key: grant.held[0] for key, grant in allocation.fill((total,), leaves, {}).items()}


def test_if_nobody_holds_too_much_all_may_use_what_they_deserve() -> None:
    assert held(9, leaf("a", 4, 1), leaf("b", 5, 0)) == {"a": 4, "b": 5}


def test_nobody_may_use_more_than_it_deserves_even_if_it_holds_more() -> None:
    assert held(9, leaf("a", 4, 7), leaf("b", 5, 2)) == {"a": 4, "b": 2}


def test_what_is_free_goes_to_the_smallest_share_first() -> None:
    assert held(9, leaf("a", 2, 4), leaf("b", 4, 3), leaf("c", 3, 0)) == {"a": 2, "b": 3, "c": 2}


def test_units_are_given_whole() -> None:
    pairs = Block((2,), 2)

    granted = allocation.fill((9,), [leaf("a", 5, 6), leaf("b", 4, 0, pairs)], {})

    assert granted["b"] == Grant((2,), (1,))


def test_what_is_held_pays_for_the_first_units() -> None:
    granted = allocation.fill((9,), [leaf("a", 4, 5), leaf("b", 5, 2, Block((1,), 2), Block((3,), 1))], {})

    assert granted["b"] == Grant((2,), (2, 0))


def test_a_job_that_has_waited_long_is_not_overtaken_for_what_is_free_now_either() -> None:
    large, small = Block((3,), 1, is_barrier=True), Block((1,), 2)

    assert held(9, leaf("a", 4, 7), leaf("b", 5, 0, large, small)) == {"a": 4, "b": 0}
    assert held(9, leaf("a", 4, 7), leaf("b", 5, 0, Block((3,), 1), small)) == {"a": 4, "b": 2}


def test_those_who_begin_nothing_may_use_what_they_hold_of_their_own() -> None:
    assert held(9, leaf("a", 4, 1, starts=False), leaf("b", 5, 0)) == {"a": 1, "b": 5}
    assert held(9, leaf("a", 4, 1, starts=False), leaf("b", 5, 0), leaf("c", 0, 6)) == {"a": 1, "b": 2, "c": 0}


def test_if_more_is_held_than_there_is_nobody_grows_and_nobody_shrinks_below_its_own() -> None:
    assert held(8, leaf("a", 4, 6), leaf("b", 3, 3), leaf("c", 1, 0)) == {"a": 4, "b": 3, "c": 0}


def test_it_can_be_asked_what_would_be_if_others_held_less() -> None:
    leaves = [leaf("a", 4, 7), leaf("b", 5, 2)]

    assert allocation.fill((9,), leaves, {"a": (5,)})["b"].held == (4,)
    assert allocation.missing((9,), leaves, {}) == (3,)
    assert allocation.missing((9,), leaves, {"a": (5,)}) == (1,)
