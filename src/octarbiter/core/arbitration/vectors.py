"""What does a claim ask for in all, and what of its floor can there be?

Vectors are tuples of whole numbers, one for each resource; nothing below is ever negative.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from octarbiter.core.arbitration.claims import Block, Claim, Vector


def clamped(vector: Sequence[int]) -> Vector:
    return tuple(amount if amount > 0 else 0 for amount in vector)


def plus(one: Sequence[int], other: Sequence[int]) -> Vector:
    return tuple(a + b for a, b in zip(one, other, strict=True))


def less(whole: Sequence[int], part: Sequence[int]) -> Vector:
    """What is left; never below nothing."""
    return tuple(a - b if a > b else 0 for a, b in zip(whole, part, strict=True))


def smaller(one: Sequence[int], other: Sequence[int]) -> Vector:
    return tuple(min(a, b) for a, b in zip(one, other, strict=True))


def larger(one: Sequence[int], other: Sequence[int]) -> Vector:
    return tuple(max(a, b) for a, b in zip(one, other, strict=True))


def total_of(vectors: Iterable[Sequence[int]], width: int) -> Vector:
    sums = [0] * width
    for vector in vectors:
        for place, amount in enumerate(vector):
            sums[place] += amount
    return tuple(sums)


def units_of(path: Iterable[Block], width: int) -> Vector:
    """All units of a path together."""
    sums = [0] * width
    counts: dict[Vector, int] = {}
    for block in path:
        counts[block.unit] = counts.get(block.unit, 0) + max(0, block.count)
    for unit, count in counts.items():
        for place, amount in enumerate(unit):
            sums[place] += amount * count
    return tuple(sums)


def asked(claim: Claim) -> Vector:
    """The most it may hold."""
    units = units_of(claim.path, len(claim.rest))
    all_of_it = plus(larger(clamped(claim.floor), units), clamped(claim.rest))
    return all_of_it if claim.cap is None else smaller(all_of_it, clamped(claim.cap))


def floors(total: Vector, claims: Sequence[Claim]) -> list[Vector]:
    """The floors, none above its cap; cut in proportion where they exceed the total together."""
    wanted = [clamped(claim.floor if claim.cap is None else smaller(claim.floor, claim.cap)) for claim in claims]
    if not any(map(any, wanted)):
        return wanted
    sums = total_of(wanted, len(total))
    if all(amount <= there for amount, there in zip(sums, total, strict=True)):
        return wanted
    return [
        tuple(
            amount if needed <= there else amount * there // needed
            for amount, needed, there in zip(floor, sums, total, strict=True)
        )
        for floor in wanted
    ]
