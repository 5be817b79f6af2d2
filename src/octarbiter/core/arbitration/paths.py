"""In which order do the units below an inner queue come, seen from above?

First those that its children would have if the whole cluster were theirs, in the order in which the queue's policy
serves them; then those that would not have fitted, in one block for each kind of every child: it is rare that one of
them is needed, and the order inside what an inner queue gets is decided anew when it is shared.

An inner queue's path begins with what its children have as floors, in one piece (its own floor covers that), and goes
on with what each further unit costs beyond.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from octarbiter.core.arbitration import vectors
from octarbiter.core.arbitration.claims import Block, Claim, Vector
from octarbiter.core.arbitration.filling import ALL, Parts, Scales, Taker

TURNS = 2000
"""So many turns are exact; after that everybody takes larger steps: by a part of what it has."""
STEPS = 8


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


def merged(measure: Vector, claims: Sequence[Claim], groups: Sequence[Sequence[int]]) -> tuple[Block, ...]:
    """The path of these claims beyond their floors. One group is served after the other, each by dominant shares."""
    path = Path(())
    scales = Scales(measure, [claim.weight for claim in claims])
    parts = Parts()
    floors = vectors.floors(measure, claims)
    takers = [Taker(claim, floor, scales.of(claim.weight), parts) for claim, floor in zip(claims, floors, strict=True)]
    in_turn = [[takers[index] for index in sorted(group, key=lambda index: claims[index].key)] for group in groups]
    room = list(vectors.less(measure, vectors.total_of(floors, len(measure))))
    for group in in_turn:
        _serve(path, group, room)
    for group in in_turn:
        for taker in group:
            add_others(path, taker, measure)
    return path.blocks()


def _serve(path: Path, takers: Sequence[Taker], room: list[int]) -> None:
    turns = [(taker.level, rank) for rank, taker in enumerate(takers)]
    heapq.heapify(turns)
    left = TURNS
    while turns:
        level, rank = turns[0]
        taker = takers[rank]
        until, next_rank = min(turns[1:3], default=(None, 0))
        if until is not None and left <= 0:
            until = max(until, level + level // STEPS)
        if not add_next(path, taker, room, until, rank < next_rank):
            heapq.heappop(turns)
            continue
        heapq.heapreplace(turns, (taker.level, rank))
        left -= 1


def add_next(path: Path, taker: Taker, room: list[int], until: int | None, wins_ties: bool) -> bool:
    """Adds what the next units of one claim cost beyond its floor, taken out of `room`; False: there are none."""
    is_covered = any(amount < held for amount, held in zip(taker.units, taker.held, strict=True))
    if is_covered:  # units that cost less than themselves: few at a time
        until, wins_ties = taker.level, True
    held = tuple(taker.held)
    some = taker.advance(room, until, wins_ties)
    if some:
        cost = vectors.less(taker.held, held)
        block = taker.path[taker.at]
        if cost == tuple(amount * some for amount in block.unit):
            is_first = taker.given[taker.at] == some
            path.add(block.unit, some, max(1, block.least) if is_first else 1)
        elif any(cost):
            path.add(cost, 1)
    return bool(some)


def add_others(path: Path, taker: Taker, measure: Vector) -> None:
    """Adds the units that one claim has not taken, as far as its cap allows."""
    kinds: dict[tuple[Vector, int], int] = {}
    for block, given in zip(taker.path, taker.given, strict=True):
        if block.count > given:
            kind = block.unit, 1 if given else max(1, block.least)
            kinds[kind] = kinds.get(kind, 0) + block.count - given
    there = [ALL if amount > 0 else 0 for amount in measure]
    for (unit, least), count in kinds.items():
        some = min(count, taker.fitting(unit, there))
        if some >= least:
            taker.hold(unit, some, there)
            path.add(unit, some, least)
