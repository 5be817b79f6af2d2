"""In which order do the units below an inner queue come, seen from above?

As its policy would serve its children if there were enough for all. Where they are served by dominant shares, these
are parts of the whole cluster. An inner queue's path begins with what its children have as floors, in one piece (its
own floor covers that), and goes on with what each further unit costs beyond.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from octarbiter.core.arbitration import vectors
from octarbiter.core.arbitration.claims import Block, Claim, Vector
from octarbiter.core.arbitration.filling import ALL, Parts, Scales, Taker

TURNS = 5000
"""So many turns are exact. After that steps become coarser: no cluster shares out as much, and the order inside what an
inner queue gets is decided anew, exactly, when it is shared among its children."""


class Path:
    """Blocks in the making; equal units one after another become one block."""

    def __init__(self, floors: Vector) -> None:
        self._blocks: list[Block] = []
        if any(floors):
            self._blocks.append(Block(floors, 1))

    def add(self, unit: Vector, count: int, least: int = 1) -> None:
        if least == 1 and self._blocks and self._blocks[-1].unit == unit:
            last = self._blocks[-1]
            self._blocks[-1] = Block(unit, last.count + count, last.least)
        else:
            self._blocks.append(Block(unit, count, least))

    def extend(self, blocks: Sequence[Block]) -> None:
        for block in blocks:
            self.add(block.unit, block.count, block.least)

    def blocks(self) -> tuple[Block, ...]:
        return tuple(self._blocks)


def floor_of(claim: Claim) -> Vector:
    return vectors.clamped(claim.floor if claim.cap is None else vectors.smaller(claim.floor, claim.cap))


def by_dominant_share(measure: Vector, claims: Sequence[Claim]) -> tuple[Block, ...]:
    """The path without the floors."""
    path = Path(())
    scales = Scales(measure, [claim.weight for claim in claims])
    parts = Parts()
    takers = [
        Taker(claim, floor_of(claim), scales.of(claim.weight), parts)
        for claim in sorted(claims, key=lambda claim: claim.key)
    ]
    turns = [(taker.level, rank) for rank, taker in enumerate(takers)]
    heapq.heapify(turns)
    step, left = 0, TURNS
    while turns:
        level, rank = turns[0]
        taker = takers[rank]
        until, next_rank = min(turns[1:3], default=(None, 0))
        if until is not None:
            until = max(until, level + step)
        if not add_next(path, taker, until, rank < next_rank):
            heapq.heappop(turns)
            continue
        heapq.heapreplace(turns, (taker.level, rank))
        left -= 1
        if not left:
            step, left = max(2 * step, scales.whole >> 8), TURNS
    return path.blocks()


def add_next(path: Path, taker: Taker, until: int | None, wins_ties: bool) -> bool:
    """Adds what the next units of one claim cost beyond its floor; False: there are none."""
    is_covered = any(amount < held for amount, held in zip(taker.units, taker.held, strict=True))
    if is_covered:  # units that cost less than themselves: few at a time
        until, wins_ties = taker.level, True
    held = tuple(taker.held)
    free = [ALL if factor else 0 for factor in taker.scale]  # of what is not there, nobody gets any
    some = taker.advance(free, until, wins_ties)
    if some:
        cost = vectors.less(taker.held, held)
        block = taker.path[taker.at]
        if cost == tuple(amount * some for amount in block.unit):
            is_first = taker.given[taker.at] == some
            path.add(block.unit, some, max(1, block.least) if is_first else 1)
        elif any(cost):
            path.add(cost, 1)
    return bool(some)
