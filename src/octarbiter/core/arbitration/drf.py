"""What does each claim get when dominant shares are to be as equal as they can be?

Progressive filling: again and again the claim with the smallest dominant share over weight takes the next unit of its
path, if it fits. Claims that are divisible grow while the level of all rises; a claim with units takes its next one
when the level reaches its own. (Ghodsi et al., Dominant Resource Fairness: Fair Allocation of Multiple Resource Types.)
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from octarbiter.core.arbitration import leaping, paths, vectors
from octarbiter.core.arbitration.claims import Block, Claim, Grant, Vector
from octarbiter.core.arbitration.filling import Level, Parts, Scales, Taker
from octarbiter.core.arbitration.growth import Growth

PATIENCE = 4000
"""So many turns are taken one by one before a large problem is looked at as a whole: that costs more than these."""


def share(total: Vector, claims: Sequence[Claim], measure: Vector | None = None) -> list[Grant]:
    """Shares are parts of `measure`, if given: of the whole cluster, where `total` is what an inner queue deserves."""
    total = vectors.clamped(total)
    filling = Filling(total, claims, vectors.larger(total, measure) if measure else total)
    filling.fill()
    return filling.grants()


def path(measure: Vector, claims: Sequence[Claim]) -> tuple[Block, ...]:
    return paths.merged(measure, claims, [range(len(claims))])


class Filling:
    def __init__(self, total: Vector, claims: Sequence[Claim], measure: Vector) -> None:
        scales = Scales(measure, [claim.weight for claim in claims])
        parts = Parts()
        floors = vectors.floors(total, claims)
        self._measure = measure
        self._order = sorted(range(len(claims)), key=lambda index: claims[index].key)
        """Who is first where levels are equal: its place here is a claim's rank."""
        self._takers = [
            Taker(claims[index], floors[index], scales.of(claims[index].weight), parts) for index in self._order
        ]
        self._free = list(vectors.less(total, vectors.total_of(floors, len(total))))
        """Less floors and units. What grows is counted by `_growth`."""
        self._growth = Growth(len(total))

    def fill(self) -> None:
        """Lets the level rise until nobody can take anything more."""
        self._rise(True)
        if self._growth.is_untouched:
            return
        rests = [self._growth.whole(rank, taker) for rank, taker in enumerate(self._takers)]
        # What was cut off by rounding down is enough, now and then, for a unit that did not fit.
        free = vectors.less(self._free, vectors.total_of(rests, len(self._free)))
        self._free[:] = free
        self._growth = Growth(len(free))
        for taker, rest in zip(self._takers, rests, strict=True):
            taker.start_again(rest)
        self._rise(False)

    def grants(self) -> list[Grant]:
        grants = [Grant((), ())] * len(self._order)
        for index, taker in zip(self._order, self._takers, strict=True):
            grants[index] = taker.grant()
        return grants

    def _rise(self, may_grow: bool) -> None:
        takers, growth = self._takers, self._growth
        turns: list[tuple[Level, int]] = [(taker.level, rank) for rank, taker in enumerate(takers)]
        heapq.heapify(turns)
        patience = left = PATIENCE
        while turns:
            level, rank = turns[0]
            if growth:
                end = growth.runs_out(self._free)
                if end is not None and end <= level:
                    growth.stop(self._free, end)
                    continue
            taker = takers[rank]
            next_level: Level | None = None
            if growth.has_begun(rank):
                next_level = growth.bend(rank, level)
            elif self._take(taker, turns):
                next_level = taker.level
                left -= 1
            elif may_grow and not taker.is_barred:
                next_level = growth.begin(rank, taker, level, self._free)
            if next_level is None:
                heapq.heappop(turns)
            else:
                heapq.heapreplace(turns, (next_level, rank))
            if not left:
                if leaping.leap(takers, self._free, self._measure, growth) < patience:
                    patience *= 2
                left = patience
                turns = [(max(level, takers[rank].level), rank) for level, rank in turns]
                heapq.heapify(turns)

    def _take(self, taker: Taker, turns: list[tuple[Level, int]]) -> int:
        """Lets the first in turn take what it can before it is another's turn; answers how many units."""
        growth = self._growth
        until, next_rank = min(turns[1:3], default=(None, 0))
        wins_ties = turns[0][1] < next_rank
        if growth.is_untouched:
            return taker.advance(self._free, until, wins_ties)
        if growth:  # what is free changes with the level, so only what begins at this level is taken now
            until, wins_ties = taker.level, True
        room = growth.room(self._free, taker.level)
        left = room.copy()
        some = taker.advance(left, until, wins_ties)
        for place, amount in enumerate(left):
            self._free[place] -= room[place] - amount
        return some
