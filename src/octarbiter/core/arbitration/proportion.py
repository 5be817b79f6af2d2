"""What does each claim get when every resource is shared for itself, by weight?

Weighted max-min, resource by resource: as long as something is left, everybody gets of it by weight; who needs less
than that leaves the remainder to the others. Floors count: the level rises past whoever holds more already.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from octarbiter.core.arbitration import filling, vectors
from octarbiter.core.arbitration.claims import Claim, Grant, Vector


def share(total: Vector, claims: Sequence[Claim]) -> list[Grant]:
    total = vectors.clamped(total)
    most = [vectors.asked(claim) for claim in claims]
    return granted(claims, filled(total, claims, vectors.floors(total, claims), most))


def filled(total: Vector, claims: Sequence[Claim], least: Sequence[Vector], most: Sequence[Vector]) -> list[Vector]:
    """Everybody has at least `least`, which fits, and nobody more than `most`."""
    weights = [claim.weight for claim in claims]
    keys = [claim.key for claim in claims]
    places = [
        _one(there, weights, keys, [vector[place] for vector in least], [vector[place] for vector in most])
        for place, there in enumerate(total)
    ]
    return [tuple(place[index] for place in places) for index in range(len(claims))]


def granted(claims: Sequence[Claim], held: Sequence[Vector]) -> list[Grant]:
    return [Grant(amount, filling.in_order(claim, amount)) for claim, amount in zip(claims, held, strict=True)]


def _one(total: int, weights: Sequence[int], keys: Sequence[str], least: list[int], most: list[int]) -> list[int]:
    """One resource. Fractions are rounded down; the few units that leaves go, one each, to the largest fractions
    (ties: key)."""
    if sum(most) <= total:
        return most
    level = _level(total, weights, least, most)
    exact = [
        max(Fraction(low), min(Fraction(high), level * weight))
        for low, high, weight in zip(least, most, weights, strict=True)
    ]
    held = [int(amount) for amount in exact]
    by_fraction = sorted(range(len(held)), key=lambda index: (held[index] - exact[index], keys[index]))
    for index in by_fraction[: total - sum(held)]:
        if exact[index] > held[index]:
            held[index] += 1
    return held


def _level(total: int, weights: Sequence[int], least: list[int], most: list[int]) -> Fraction:
    """At which everything is given out: the sum over all, of `weight * level` between `least` and `most`, is `total`.

    Between two bends of that sum it is a straight line, so the bends are passed in order until the total is reached.
    """
    bends = []
    for low, high, weight in zip(least, most, weights, strict=True):
        if high > low:
            bends.append((Fraction(low, weight), weight))
            bends.append((Fraction(high, weight), -weight))
    bends.sort()
    reached, slope, level = Fraction(sum(least)), 0, Fraction(0)
    for bend, change in bends:
        if reached + slope * (bend - level) >= total:
            break
        reached += slope * (bend - level)
        slope += change
        level = bend
    return level + (total - reached) / slope if slope else level
