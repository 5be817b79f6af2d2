"""How far on its path has a queue come, and which is the next unit that fits?

A `Taker` walks one path, forward only: what does not fit at one moment never fits later in the same filling, because
what is free only shrinks and what is held only grows. Every kind of unit is therefore found not to fit once, however
many jobs wait with it.

Levels are dominant shares over weight. They are compared as whole numbers: `Scales` has a common denominator of all
totals and weights, so no rounding ever decides a tie.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from operator import attrgetter

from octarbiter.core.arbitration import vectors
from octarbiter.core.arbitration.claims import Claim, Grant, Vector

Level = int | Fraction

ALL = 1 << 62
UNIT = attrgetter("unit")


class Scales:
    """`of(weight)[place] * amount` is the level of somebody with this weight who holds that amount."""

    def __init__(self, measure: Vector, weights: Sequence[int]) -> None:
        totals = math.lcm(*(amount for amount in measure if amount > 0))
        self._shares = [totals // amount if amount > 0 else 0 for amount in measure]
        self._weights = math.lcm(*weights)

    def of(self, weight: int) -> Vector:
        factor = self._weights // weight
        return tuple(share * factor for share in self._shares)


class Parts(dict[Vector, tuple[tuple[int, int], ...]]):
    """Of a unit: the places where it is not zero, and how much there."""

    def __missing__(self, unit: Vector) -> tuple[tuple[int, int], ...]:
        parts = self[unit] = tuple((place, amount) for place, amount in enumerate(unit) if amount > 0)
        return parts


class Taker:
    __slots__ = (
        "_failed",
        "_kinds",
        "_parts",
        "at",
        "cap",
        "claim",
        "given",
        "held",
        "is_barred",
        "level",
        "path",
        "scale",
        "units",
    )

    def __init__(self, claim: Claim, floor: Vector, scale: Vector, parts: Parts) -> None:
        self.claim = claim
        self.scale = scale
        self._parts = parts
        self.cap = claim.cap
        self.held = list(floor)
        """The larger of the floor and the units, per resource."""
        self.units = [0] * len(floor)
        self.level = max((amount * factor for amount, factor in zip(floor, scale, strict=True)), default=0)
        self.given = [0] * len(claim.path)
        self.path = claim.path
        self.at = 0
        self.is_barred = False
        """A job that has waited for long did not get all it asks for: nothing behind it is tried, nor the rest."""
        self._failed: set[Vector | tuple[Vector, int]] = set()
        self._kinds: set[Vector] | None = None

    def start_again(self, rest: Vector) -> None:
        """It holds so much of its rest, and something came free: what did not fit may fit now."""
        for place, amount in enumerate(rest):
            if amount:
                self.units[place] += amount
                self.held[place] += amount
                self.level = max(self.level, self.held[place] * self.scale[place])
        self.at = 0
        self.is_barred = False
        self._failed.clear()

    def seek(self, free: Sequence[int]) -> tuple[int, int]:
        """Goes on to the next unit that fits: how many must and how many may be taken at once; (0, 0): the path has
        ended."""
        path, given, failed = self.path, self.given, self._failed
        end = len(path)
        at = self.at
        while at < end:
            block = path[at]
            unit = block.unit
            left = block.count - given[at]
            if left > 0:
                if unit not in failed:
                    need = 1 if given[at] else max(1, block.least)
                    if need == 1 or (unit, need) not in failed:
                        room = self.fitting(unit, free)
                        if need <= min(room, left):
                            self.at = at
                            return need, min(room, left)
                        if not room:
                            failed.add(unit)
                            if self._nothing_else_is_waiting():
                                break
                        elif need > room:
                            failed.add((unit, need))
                if block.is_barrier:
                    self.is_barred = True
                    break
            at += 1
        self.at = end
        return 0, 0

    def _nothing_else_is_waiting(self) -> bool:
        """Thousands of jobs may wait, but with few kinds of units. (With a rest, it matters whether there is a barrier
        on the way.)"""
        if self._kinds is None:
            self._kinds = set(map(UNIT, self.path)) if not any(self.claim.rest) else set()
        return bool(self._kinds) and self._failed >= self._kinds

    def advance(self, free: list[int], until: Level | None, wins_ties: bool) -> int:
        """Takes the next unit that fits, out of `free`, and more of the same while the level is below `until`.

        Answers how many; none: the path has ended. Whoever wins ties goes on at `until` itself.
        """
        need, some = self.seek(free)
        if some > need:
            some = min(some, max(need, self._run(self.path[self.at].unit, until, wins_ties)))
        if some:
            self._take(some, free)
        return some

    def fitting(self, unit: Vector, free: Sequence[int]) -> int:
        """How many such units fit, were they all its path has left."""
        room = -1
        held, units, cap = self.held, self.units, self.cap
        for place, amount in self._parts[unit]:
            space = free[place] + held[place]
            if cap is not None and cap[place] < space:
                space = cap[place]
            some = (space - units[place]) // amount
            if some <= 0:
                return 0
            if room < 0 or some < room:
                room = some
        return room if room >= 0 else ALL  # a unit of nothing

    def _take(self, count: int, free: list[int]) -> None:
        self.given[self.at] += count
        self.hold(self.path[self.at].unit, count, free)

    def hold(self, unit: Vector, count: int, free: list[int]) -> None:
        self._hold(self._parts[unit], count, free)

    def _hold(self, parts: Iterable[tuple[int, int]], count: int, free: list[int]) -> None:
        held, units, scale = self.held, self.units, self.scale
        for place, amount in parts:
            now = units[place] = units[place] + amount * count
            more = now - held[place]
            if more > 0:
                free[place] -= more
                held[place] = now
                self.level = max(self.level, now * scale[place])

    def _run(self, unit: Vector, until: Level | None, wins_ties: bool) -> int:
        """How many units begin at a level at which it is still its turn."""
        run = -1
        if until is None:
            return ALL
        if not wins_ties:
            until -= 1
        for place, amount in self._parts[unit]:
            some = int(until // self.scale[place] - self.units[place]) // amount
            if run < 0 or some < run:
                run = max(0, some)
        return run + 1 if run >= 0 else ALL

    def leap(self, counts: Sequence[int], units: Sequence[int], free: list[int]) -> None:
        """Takes so many of each of the next blocks, `units` together, which are known to fit."""
        for step, count in enumerate(counts):
            self.given[self.at + step] += count
        self._hold(enumerate(units), 1, free)
        while self.at < len(self.path) and self.given[self.at] >= self.path[self.at].count:
            self.at += 1

    def grant(self) -> Grant:
        return Grant(tuple(self.held), tuple(self.given))


def in_order(claim: Claim, amount: Vector) -> tuple[int, ...]:
    """The units of a claim's path that fit into `amount`, in the order of the path."""
    nothing = (0,) * len(amount)
    taker = Taker(claim, nothing, nothing, Parts())
    free = list(vectors.clamped(amount))
    while taker.advance(free, None, True):
        pass
    return tuple(taker.given)
