"""How do divisible claims grow while the level rises?

Once its path is done, a claim grows along the vector of its rest: at a level it holds as much as makes its dominant
share, over its weight, just that level. Which resource dominates can change on the way, so what it has of its rest is,
over the level, a line with a few bends. All claims that grow at the same time are summed up in one line per resource;
only a bend, an end or the last of a resource needs a closer look. Fractions are exact; nothing is rounded here.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from octarbiter.core.arbitration.claims import Vector
from octarbiter.core.arbitration.filling import Level, Taker

ZERO = Fraction(0)


class Line:
    """The part of its rest that a claim has at a level: `slope * level + offset`, up to `most`."""

    __slots__ = ("most", "offset", "rest", "slope", "taker")

    def __init__(self, taker: Taker) -> None:
        self.taker = taker
        self.rest = [(place, amount) for place, amount in enumerate(taker.claim.rest) if amount > 0]
        self.most = Fraction(1)
        cap = taker.claim.cap
        if cap is not None:
            bounds = [Fraction(cap[place] - taker.held[place], amount) for place, amount in self.rest]
            self.most = max(ZERO, min([self.most, *bounds]))
        self.slope = self.offset = ZERO

    def at(self, level: Level) -> Fraction:
        return self.slope * level + self.offset

    def bend(self, level: Level) -> Level:
        """Sets the line as it is from this level on; answers the level of its next bend or end."""
        taker = self.taker
        lines = []
        for place, amount in self.rest:
            scale = taker.scale[place]
            slope = Fraction(1, scale * amount)
            offset = Fraction(-taker.held[place], amount)
            lines.append((slope * level + offset, slope, offset))
        _, self.slope, self.offset = min(lines)
        ends = [(self.most - self.offset) / self.slope]
        for _, slope, offset in lines:
            if slope < self.slope:
                ends.append((offset - self.offset) / (self.slope - slope))
        return max(level, min(ends))


class Growth:
    def __init__(self, width: int) -> None:
        self.parts: dict[int, Fraction] = {}
        """Of each claim that has come to its rest: which part of it it has, once that is final."""
        self._lines: dict[int, Line] = {}
        self._slopes = [ZERO] * width
        self._offsets = [ZERO] * width
        """What those who do not grow any more have of their rests is in here, too."""

    def __bool__(self) -> bool:
        """Somebody grows."""
        return bool(self._lines)

    @property
    def is_untouched(self) -> bool:
        return not self._lines and not self.parts

    def begin(self, rank: int, taker: Taker, level: Level, free: Sequence[int]) -> Level | None:
        """The level of its first bend; None: it does not grow.

        What it can take without rising (of resources that do not dominate yet) it takes at once.
        """
        line = Line(taker)
        if not line.rest or not line.most or not all(taker.scale[place] for place, _ in line.rest):
            return None
        level_of_bend = line.bend(level)
        at_once = line.at(level)
        if at_once > 0:
            open_ = self._open(free, level)
            at_once = min(at_once, line.most, *(open_[place] / amount for place, amount in line.rest))
        if at_once == line.most or at_once < line.at(level):
            self._keep(rank, line, at_once)
            return None
        self._lines[rank] = line
        self._add(line, 1)
        return level_of_bend

    def bend(self, rank: int, level: Level) -> Level | None:
        """At its bend: the level of the next one; None: it has all its rest, or was stopped before."""
        line = self._lines.get(rank)
        if line is None:
            return None
        self._add(line, -1)
        if line.at(level) >= line.most:
            del self._lines[rank]
            self._keep(rank, line, line.most)
            return None
        next_bend = line.bend(level)
        self._add(line, 1)
        return next_bend

    def runs_out(self, free: Sequence[int]) -> Level | None:
        """The level at which the first resource is used up; None: never."""
        levels = [
            (there - offset) / slope
            for there, slope, offset in zip(free, self._slopes, self._offsets, strict=True)
            if slope
        ]
        return min(levels, default=None)

    def stop(self, free: Sequence[int], level: Level) -> None:
        """Whoever needs a resource of which nothing is left at this level grows no more."""
        gone = {place for place, there in enumerate(self._open(free, level)) if there <= 0}
        for rank, line in list(self._lines.items()):
            if any(place in gone for place, _ in line.rest):
                self._add(line, -1)
                del self._lines[rank]
                self._keep(rank, line, line.at(level))

    def has_begun(self, rank: int) -> bool:
        return rank in self._lines or rank in self.parts

    def room(self, free: Sequence[int], level: Level) -> list[int]:
        """What is left for whole units, in whole numbers."""
        return [int(there // 1) for there in self._open(free, level)]

    def whole(self, rank: int, taker: Taker) -> Vector:
        """What it has of its rest in the end, rounded down."""
        part = self.parts.get(rank, ZERO)
        return tuple(int(part * amount) if amount > 0 else 0 for amount in taker.claim.rest)

    def _open(self, free: Sequence[int], level: Level) -> list[Fraction]:
        return [
            there - slope * level - offset
            for there, slope, offset in zip(free, self._slopes, self._offsets, strict=True)
        ]

    def _add(self, line: Line, sign: int) -> None:
        for place, amount in line.rest:
            self._slopes[place] += sign * amount * line.slope
            self._offsets[place] += sign * amount * line.offset

    def _keep(self, rank: int, line: Line, part: Fraction) -> None:
        self.parts[rank] = part
        for place, amount in line.rest:
            self._offsets[place] += amount * part
