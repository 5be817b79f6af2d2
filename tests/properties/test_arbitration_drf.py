"""What dominant resource fairness promises, and that the fast way finds what the obvious one does."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import arbitration_reference as reference
import pytest
from arbitration_problems import WHOLE, mixtures, requests, trees
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from octarbiter.core.arbitration import drf, policies, vectors
from octarbiter.core.arbitration.claims import Block, Claim, Grant, Vector
from octarbiter.core.arbitration.deserved import deserve

EXAMPLES = settings(max_examples=60, deadline=None)
"""Seeds; each makes several problems."""
SEEDS = st.integers(0, 1 << 32)
ORDERED = ["drf", "hdrf", "priority", "fifo"]
"""Policies of whole units."""


def next_unit_left_out(total: Vector, claims: Sequence[Claim], grants: Sequence[Grant]) -> str:
    """The first claim that could have had one unit more."""
    free = vectors.less(total, vectors.total_of([grant.held for grant in grants], len(total)))
    for claim, grant in zip(claims, grants, strict=True):
        floor = vectors.floors(total, claims)[claims.index(claim)]
        units = vectors.units_of(
            [replace(b, count=n) for b, n in zip(claim.path, grant.units, strict=True)], len(total)
        )
        rest = vectors.less(grant.held, vectors.larger(floor, units))
        for block, count in zip(claim.path, grant.units, strict=True):
            need = 1 if count else max(1, block.least)
            if count + need <= block.count:
                more = vectors.plus(units, tuple(amount * need for amount in block.unit))
                held = vectors.plus(vectors.larger(floor, more), rest)
                fits = vectors.smaller(held, vectors.plus(grant.held, free)) == held
                if fits and (claim.cap is None or vectors.smaller(held, claim.cap) == held):
                    return claim.key
            if block.is_barrier and count < block.count:
                break
    return ""


# --- the fast way is the obvious one


@EXAMPLES
@given(SEEDS)
def test_the_fast_filling_is_the_obvious_one(seed: int) -> None:
    for total, claims in mixtures(seed):
        assert reference.share(total, claims) == drf.share(total, claims)


@EXAMPLES
@given(SEEDS, st.integers(1, 3))
def test_it_is_so_with_leaps_too(seed: int, patience: int) -> None:
    for total, claims in mixtures(seed):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(drf, "PATIENCE", patience)
            leaping = drf.share(total, claims)
        assert reference.share(total, claims) == leaping


@EXAMPLES
@given(SEEDS, st.integers(0, 30))
def test_it_is_so_within_a_larger_whole(seed: int, more: int) -> None:
    for total, claims in mixtures(seed):
        measure = tuple(there + more for there in total)
        assert reference.share(total, claims, measure) == drf.share(total, claims, measure)


# --- every policy


@EXAMPLES
@given(SEEDS, st.sampled_from(policies.names()))
def test_no_policy_gives_more_than_there_is_or_more_than_asked(seed: int, policy: str) -> None:
    for total, claims in mixtures(seed):
        grants = policies.share(policy, total, claims)
        assert policies.broken(total, claims, grants) == []
        for claim, grant, floor in zip(claims, grants, vectors.floors(total, claims), strict=True):
            assert vectors.larger(grant.held, floor) == grant.held, f"{claim.key} has less than its floor"


@EXAMPLES
@given(SEEDS, st.sampled_from(ORDERED))
def test_no_next_unit_that_fits_is_left_out(seed: int, policy: str) -> None:
    for total, claims in mixtures(seed):
        assert next_unit_left_out(total, claims, policies.share(policy, total, claims)) == ""


@EXAMPLES
@given(SEEDS, st.sampled_from(policies.names()))
def test_through_a_tree_nothing_is_made_and_nobody_has_more_than_its_parent(seed: int, policy: str) -> None:
    for total, roots in trees(seed):
        check_tree(total, roots, deserve(total, roots, policy))


def check_tree(there: Vector, claims: Sequence[Claim], grants: dict[str, Grant]) -> None:
    held = vectors.total_of([grants[claim.key].held for claim in claims], len(there))
    assert vectors.smaller(held, there) == held
    for claim in claims:
        amount = grants[claim.key].held
        assert claim.cap is None or vectors.smaller(amount, claim.cap) == amount
        if claim.children:
            check_tree(amount, claim.children, grants)
        else:
            assert policies.broken(there, [claim], [grants[claim.key]]) == []


@EXAMPLES
@given(SEEDS, st.sampled_from(ORDERED))
def test_no_next_unit_that_fits_is_left_out_of_a_tree(seed: int, policy: str) -> None:
    """Where no cap and no policy of vectors is in the way."""
    for total, roots in trees(seed):
        plain = [without_limits(claim) for claim in roots]
        leaves = [leaf for claim in plain for leaf in leaves_of(claim)]
        grants = deserve(total, plain, policy)
        assert next_unit_left_out(total, leaves, [grants[leaf.key] for leaf in leaves]) == ""


def without_limits(claim: Claim) -> Claim:
    return replace(
        claim,
        cap=None,
        floor=(0,) * len(claim.floor),
        policy=claim.policy if claim.policy in ORDERED else "",
        children=tuple(without_limits(child) for child in claim.children),
    )


def leaves_of(claim: Claim) -> list[Claim]:
    return [leaf for child in claim.children for leaf in leaves_of(child)] if claim.children else [claim]


@EXAMPLES
@given(SEEDS)
def test_one_queue_above_all_changes_nothing(seed: int) -> None:
    """As long as all ask in whole units."""
    for total, claims in mixtures(seed):
        nothing = (0,) * len(total)
        leaves = [
            replace(claim, rest=nothing, cap=None, path=tuple(Block(b.unit, b.count) for b in claim.path), floor=floor)
            for claim, floor in zip(claims, vectors.floors(total, claims), strict=True)
        ]
        above = Claim(key="all", rest=nothing, floor=nothing, children=tuple(leaves))

        flat, deep = deserve(total, leaves, "drf"), deserve(total, [above], "drf")

        assert flat == {claim.key: deep[claim.key] for claim in leaves}


# --- the promises of the paper
#
# For divisible requests they are exact but for rounding: amounts here are whole numbers of a small unit, so one such
# unit per resource and claim is what may be missing.


def total_for(claims: Sequence[Claim]) -> Vector:
    return (WHOLE,) * len(claims[0].rest)


def use_of(held: Vector, ratio: Vector) -> Fraction:
    """How much work can be done with it by one who needs resources in this ratio."""
    return min(Fraction(there, needed) for there, needed in zip(held, ratio, strict=True) if needed)


def slack(ratio: Vector, units: int = 1) -> Fraction:
    """What so many units missing may cost."""
    return Fraction(units, min(amount for amount in ratio if amount))


@EXAMPLES
@given(SEEDS)
def test_everybody_has_at_least_what_its_part_of_the_cluster_would_be(seed: int) -> None:
    """Sharing incentive."""
    for claims in requests(seed):
        total = total_for(claims)
        weights = sum(claim.weight for claim in claims)
        for claim, grant in zip(claims, drf.share(total, claims), strict=True):
            part = tuple(amount * claim.weight // weights for amount in total)
            assert use_of(grant.held, claim.rest) >= use_of(part, claim.rest) - slack(claim.rest)


@EXAMPLES
@given(SEEDS)
def test_nobody_would_rather_have_what_another_has(seed: int) -> None:
    """Envy-freeness: what another has, scaled to one's own weight, is no better."""
    for claims in requests(seed):
        grants = drf.share(total_for(claims), claims)
        for claim, own in zip(claims, grants, strict=True):
            for other, others in zip(claims, grants, strict=True):
                scaled = tuple(amount * claim.weight // other.weight for amount in others.held)
                assert use_of(scaled, claim.rest) <= use_of(own.held, claim.rest) + slack(claim.rest)


@EXAMPLES
@given(SEEDS)
def test_nobody_can_have_more_without_another_having_less(seed: int) -> None:
    """Pareto efficiency: whoever has not all, needs something of which nothing is left."""
    for claims in requests(seed):
        total = total_for(claims)
        grants = drf.share(total, claims)
        left = vectors.less(total, vectors.total_of([grant.held for grant in grants], len(total)))
        for claim, grant in zip(claims, grants, strict=True):
            assert grant.held == claim.rest or any(
                needed and there < len(claims) for needed, there in zip(claim.rest, left, strict=True)
            )


@EXAMPLES
@given(SEEDS)
def test_nobody_gains_by_asking_for_what_it_does_not_need(seed: int) -> None:
    """Strategy-proofness."""
    for claims, others in zip(requests(seed), requests(seed + 1), strict=True):
        total = total_for(claims)
        lie = (*others[0].rest, WHOLE, WHOLE)[: len(total)]
        needs = claims[0].rest
        honest = drf.share(total, claims)[0]
        lying = drf.share(total, [replace(claims[0], rest=lie), *claims[1:]])[0]
        assert use_of(lying.held, needs) <= use_of(honest.held, needs) + slack(needs)


@EXAMPLES
@given(SEEDS)
def test_one_resource_alone_is_shared_by_weight(seed: int) -> None:
    """Single-resource fairness."""
    for claims in requests(seed):
        asking = [replace(claim, rest=(WHOLE,), floor=(0,)) for claim in claims]
        weights = sum(claim.weight for claim in asking)
        assert [(WHOLE * claim.weight // weights,) for claim in asking] == [
            grant.held for grant in drf.share((WHOLE,), asking)
        ]


@EXAMPLES
@given(SEEDS)
def test_one_resource_that_all_need_most_is_shared_by_weight(seed: int) -> None:
    """Bottleneck fairness."""
    for claims in requests(seed):
        asking = [replace(claim, rest=(20 * WHOLE, *claim.rest[1:])) for claim in claims]
        weights = sum(claim.weight for claim in asking)
        for claim, grant in zip(asking, drf.share(total_for(asking), asking), strict=True):
            assert grant.held[0] == WHOLE * claim.weight // weights


@EXAMPLES
@given(SEEDS)
def test_nobody_loses_when_another_leaves(seed: int) -> None:
    """Population monotonicity. If everybody needs some of everything: else one that was stopped by the leaver may go
    on, at the cost of others."""
    for some in requests(seed):
        claims = [replace(claim, rest=tuple(max(WHOLE, amount) for amount in claim.rest)) for claim in some]
        total = total_for(claims)
        before, after = drf.share(total, claims), drf.share(total, claims[1:])
        for claim, less, more in zip(claims[1:], before[1:], after, strict=True):
            assert use_of(more.held, claim.rest) >= use_of(less.held, claim.rest) - slack(claim.rest)


# With whole units the same holds within one unit.


def in_units(claims: Sequence[Claim], size: int) -> list[Claim]:
    """The same ratios in units, of which many make a cluster."""
    return [
        replace(
            claim,
            rest=(0,) * len(claim.rest),
            path=(Block(tuple(amount // WHOLE * size for amount in claim.rest), 1 << 40),),
        )
        for claim in claims
    ]


def level(claim: Claim, units: int) -> Fraction:
    return Fraction(max(claim.path[0].unit) * units, WHOLE * claim.weight)


@EXAMPLES
@given(SEEDS, st.sampled_from([1000, 3333, 9000]))
def test_nobody_is_ahead_by_more_than_a_unit_of_whoever_needs_no_more(seed: int, size: int) -> None:
    """Envy-freeness: whatever room another's last unit had, one that is no larger would have had, too."""
    for claims in requests(seed):
        asking = in_units(claims, size)
        grants = drf.share(total_for(asking), asking)
        for claim, grant in zip(asking, grants, strict=True):
            for other, others in zip(asking, grants, strict=True):
                is_no_smaller = vectors.larger(claim.path[0].unit, other.path[0].unit) == other.path[0].unit
                if is_no_smaller and others.units[0]:
                    assert level(other, others.units[0] - 1) <= level(claim, grant.units[0])


@EXAMPLES
@given(SEEDS, st.sampled_from([1000, 3333]))
def test_in_whole_units_everybody_has_its_part_but_for_one_unit_of_each(seed: int, size: int) -> None:
    """Sharing incentive."""
    for claims in requests(seed):
        asking = in_units(claims, size)
        weights = sum(claim.weight for claim in asking)
        units = sum(level(claim, 1) for claim in asking)
        for claim, grant in zip(asking, drf.share(total_for(asking), asking), strict=True):
            assert level(claim, grant.units[0] + 1) + units >= Fraction(1, weights)
