"""How far can all claims go at once, without looking at every unit?

As long as everything below a level fits, the order in which it is taken does not matter. So the highest such level is
searched for, roughly, and everybody is put there at once; the last units, where order does matter, are left to the one
who takes them one by one. Numbers are floating here because nothing is decided by them: a level is only called safe if
it is so by a margin, and what is taken is counted in whole numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from octarbiter.core.arbitration.claims import Block, Vector
from octarbiter.core.arbitration.filling import Taker
from octarbiter.core.arbitration.growth import Growth

if TYPE_CHECKING:
    import numpy as np

    Numbers = np.ndarray[Any, np.dtype[np.float64]]
    Places = np.ndarray[Any, np.dtype[np.int64]]

NEAR = 1e-6
"""So much of the way, at most, is left before a safe level: what is left is gone one by one, or by the next leap."""
ERROR = 1e-10
"""Far above all errors of rounding: a sum of n numbers is right to n * 1e-16 of itself."""
EXACT = 1 << 53
"""Whole numbers below this are exact as floating ones."""
STEPS = 60


def leap(takers: Sequence[Taker], free: list[int], measure: Vector, growth: Growth) -> int:
    """Takes units for everybody out of `free`, and answers how many."""
    if max(measure) >= EXACT:
        return 0
    walking = [taker for rank, taker in enumerate(takers) if not growth.has_begun(rank) and taker.at < len(taker.path)]
    if not walking:
        return 0
    growing = [
        (taker, growth.parts.get(rank))
        for rank, taker in enumerate(takers)
        if any(taker.claim.rest) and not taker.is_barred
    ]
    rests = _Rests([taker for taker, part in growing], [part for taker, part in growing], measure)
    ways = _Ways(walking, free, measure)
    return ways.take(ways.safe_level(rests), free)


class _Rests:
    """What divisible claims hold of their rests at a level, at the most."""

    def __init__(self, takers: Sequence[Taker], parts: Sequence[Any], measure: Vector) -> None:
        import numpy as np

        width = len(measure)
        self._rest: Numbers = np.array([taker.claim.rest for taker in takers], float).reshape(-1, width)
        self._held: Numbers = np.array([taker.held for taker in takers], float).reshape(-1, width)
        weights: Numbers = np.array([taker.claim.weight for taker in takers], float)
        self._per_level: Numbers = weights[:, None] * np.array(measure, float)
        self._final: Numbers = np.array([1.0 if part is None else float(part) for part in parts])

    def at(self, level: float) -> Numbers:
        import numpy as np

        if not len(self._rest):
            return np.zeros(self._rest.shape[1])
        with np.errstate(divide="ignore", invalid="ignore"):
            parts = (level * self._per_level - self._held) / self._rest
        parts = np.where(self._rest > 0, parts, np.inf).min(axis=1)
        result: Numbers = (self._rest * np.clip(parts, 0.0, self._final)[:, None]).sum(axis=0)
        return result


class _Ways:
    """The blocks that all claims have before them, in one row, one claim after the other."""

    def __init__(self, takers: Sequence[Taker], free: Sequence[int], measure: Vector) -> None:
        import numpy as np

        self._takers = takers
        self._free: Numbers = np.array(free, float)
        blocks: list[Block] = []
        had: list[int] = []
        ends = []
        for taker in takers:
            blocks += taker.path[taker.at :]
            had += taker.given[taker.at :]
            ends.append(len(blocks))
        self._ends: Places = np.array(ends)
        self._starts: Places = np.concatenate(([0], self._ends[:-1]))
        owner: Places = np.repeat(np.arange(len(takers)), self._ends - self._starts)
        self._unit: Numbers = np.array([block.unit for block in blocks], float)
        count: Numbers = np.fromiter(map(attrgetter("count"), blocks), float, len(blocks))
        self._need: Numbers = np.fromiter(map(attrgetter("least"), blocks), float, len(blocks)).clip(1)
        barrier: Any = np.fromiter(map(attrgetter("is_barrier"), blocks), bool, len(blocks))
        given: Numbers = np.array(had, float)
        count -= given
        self._need[given > 0] = 1.0

        self._held: Numbers = np.array([taker.held for taker in takers], float)
        self._units: Numbers = np.array([taker.units for taker in takers], float)
        limit = self._free + self._held
        caps = [(row, taker.cap) for row, taker in enumerate(takers) if taker.cap is not None]
        for row, cap in caps:
            limit[row] = np.minimum(limit[row], cap)
        space = limit - self._units
        # What does not fit by itself never will.
        fits = (self._unit * self._need[:, None] <= space[owner]).all(axis=1) & (self._need <= count)
        stops = np.cumsum(barrier & ~fits & (count > 0))
        before = np.where(self._starts > 0, stops[self._starts - 1], 0)[owner]
        self._count: Numbers = np.where(fits & (stops == before), count, 0.0)

        # What each claim has when it comes to a block, and its level when it takes the last unit there.
        self._costs: Numbers = self._unit * self._count[:, None]
        self._reached: Numbers = np.empty_like(self._costs)
        for start, end in zip(self._starts.tolist(), ends, strict=True):
            np.cumsum(self._costs[start:end], axis=0, out=self._reached[start:end])
        whole: Numbers = np.array(measure, float)
        weights: Numbers = np.array([taker.claim.weight for taker in takers], float)
        self._per_level: Numbers = weights[:, None] * np.where(whole > 0, whole, np.inf)
        self._level: Numbers = (self._held / self._per_level).max(axis=1)
        last = self._reached - self._unit * np.minimum(self._count, 1.0)[:, None] + self._units[owner]
        self._last: Numbers = np.maximum((last / self._per_level[owner]).max(axis=1), self._level[owner])
        # Ranks instead of levels make one sorted row of all claims' levels, for one search.
        self._levels = np.sort(self._last)
        ranks = np.searchsorted(self._levels, self._last, side="left")
        self._stride = len(blocks) + 1
        self._row: Places = owner * self._stride + ranks
        # A claim that comes to its cap may go on with other blocks than the next: it counts with all it may have.
        self._all: Numbers = self._reached[self._ends - 1]
        self._over: Places = self._ends.copy()
        for row, cap in caps:
            start, end = int(self._starts[row]), int(self._ends[row])
            exceeds = (self._reached[start:end] > np.array(cap) - self._units[row]).any(axis=1)
            self._over[row] = start + int(exceeds.argmax()) if exceeds.any() else end
            self._all[row] = np.minimum(self._all[row], np.array(cap) - self._units[row])

    def safe_level(self, rests: _Rests) -> float:
        """Everything below it fits."""
        start = low = float(self._level.min())
        high = float(max(self._levels[-1], self._level.max())) * 2
        if self._fit(high, rests):
            return high
        for _ in range(STEPS):
            middle = (low + high) / 2
            if self._fit(middle, rests):
                low = middle
            else:
                high = middle
            if high - low <= NEAR * (high - start):
                break
        return low * (1 - ERROR)

    def take(self, level: float, free: list[int]) -> int:
        whole, some, _ = self._upto(level)
        units = 0
        for row, taker in enumerate(self._takers):
            start, end = int(self._starts[row]), int(whole[row])
            counts: list[int] = self._count[start:end].astype(int).tolist()
            if some[row] > 0:
                counts.append(int(some[row]))
            if any(counts):
                sums = (self._unit[start : start + len(counts)] * [[count] for count in counts]).sum(axis=0)
                taker.leap(counts, [int(amount) for amount in sums], free)
                units += sum(counts)
        return units

    def _fit(self, level: float, rests: _Rests) -> bool:
        import numpy as np

        whole, some, is_capped = self._upto(level)
        reached = np.where((whole > self._starts)[:, None], self._reached[np.maximum(whole - 1, 0)], 0.0)
        at = np.minimum(whole, len(self._unit) - 1)
        reached += self._unit[at] * some[:, None]
        reached = np.where(is_capped[:, None], self._all, reached)
        more = np.maximum(self._units + reached - self._held, 0.0).sum(axis=0) + rests.at(level)
        return bool((more * (1 + ERROR) <= self._free).all())

    def _upto(self, level: float) -> tuple[Places, Numbers, Any]:
        """By claim: the block up to which it takes all, how many units of that, and whether it comes to its cap."""
        import numpy as np

        rank = np.searchsorted(self._levels, level, side="left")
        whole: Places = np.searchsorted(self._row, np.arange(len(self._takers)) * self._stride + rank, side="left")
        is_capped = whole >= self._over
        whole = np.minimum(whole, self._over)
        at = np.minimum(whole, len(self._unit) - 1)
        reached = np.where((whole > self._starts)[:, None], self._reached[np.maximum(whole - 1, 0)], 0.0)
        unit = self._unit[at]
        with np.errstate(divide="ignore", invalid="ignore"):
            begins = np.ceil((level * self._per_level - self._units - reached) / unit)
        begins = np.where(unit > 0, begins, np.inf).min(axis=1)
        some: Numbers = np.minimum(np.maximum(begins, 0.0), self._count[at])
        some = np.where((some > 0) & (some < self._need[at]), self._need[at], some)
        begun = np.maximum(((self._units + reached) / self._per_level).max(axis=1), self._level) < level
        is_in = (whole < self._ends) & begun
        is_capped &= (whole < self._ends) & is_in & (some > 0)
        return whole, np.where(is_in & (whole < self._over), some, 0.0), is_capped
