"""What does each queue ask for?

A queue with unfinished jobs asks for their units: first those that started jobs keep, then the others in the order of
its line. One without asks for its request. What its pods use already counts as asked; nobody asks for more than its
capability.

Of a long line only the first jobs are written out as blocks of their own. The units of all others follow in one block
for each shape, the tail. As long as a policy grants nothing of the tail, its answer is the same as for the whole line:
what does not fit when the tail is reached does not fit later, either. If it does grant some, ask again with more.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from datetime import datetime, timedelta
from itertools import islice

import msgspec

from octarbiter.api.resources import Amounts
from octarbiter.core.arbitration import vectors
from octarbiter.core.arbitration.claims import Block, Claim, Vector
from octarbiter.core.arbitration.lines import Job, Line, Place, Shape, Unit
from octarbiter.core.arbitration.state import Queue, Settings, State

FIRST_JOBS = 16
"""So many jobs are written out at first, beside as many as have something already."""

Owners = list[tuple[Job, int]]
"""Whose units a block has, in order, and how many each."""


class Scale:
    """All resources that anybody has, asks for or uses, in one order: amounts become vectors and back."""

    def __init__(self, state: State) -> None:
        names = set(state.total)
        for queue in state.queues.values():
            names.update(queue.request)
        for used in state.used.values():
            names.update(used)
        for line in state.lines.values():
            names.update(line.asked)
        self.names = tuple(sorted(names))
        self.zero: Vector = (0,) * len(self.names)
        self.total = vectors.clamped(self.vector(state.total))
        self._units: dict[Unit, Vector] = {}

    def vector(self, amounts: Mapping[str, int]) -> Vector:
        return tuple([amounts.get(name, 0) for name in self.names])

    def unit(self, unit: Unit) -> Vector:
        if (known := self._units.get(unit)) is None:
            known = self._units[unit] = self.vector(dict(unit))
        return known

    def amounts(self, vector: Vector) -> Amounts:
        """Without zeros."""
        return {name: amount for name, amount in zip(self.names, vector, strict=True) if amount}


class Want(msgspec.Struct, frozen=True):
    """What one leaf queue asks for, and whose units are in its path."""

    claim: Claim
    demand: Vector
    owners: tuple[Owners, ...]
    """Of each block before the tail."""
    kept: int
    """So many blocks at the beginning are what started jobs have."""
    keeps_all: bool
    """No started job has more than could ever fit."""
    depth: int
    """So many jobs were written out."""

    @property
    def has_tail(self) -> bool:
        return len(self.owners) < len(self.claim.path)


def depth_at_first(line: Line | None) -> int:
    return FIRST_JOBS + len(line.having) if line is not None else 0


def want(
    queue: Queue,
    line: Line | None,
    used: Vector,
    depth: int,
    scale: Scale,
    settings: Settings,
    now: datetime,
    firm: Container[str] = (),
) -> Want:
    """`firm`: jobs that are not overtaken, as if they had waited for long."""
    cap = _cap(queue, scale)
    if line:
        path = _Path(scale, scale.total if cap is None else vectors.smaller(scale.total, cap))
        for place in line.started:
            path.keep(*_at(line, place))
        kept = len(path.owners)
        path.follow(line, depth, now - timedelta(seconds=settings.reserve_after_s), firm)
        blocks, owners, keeps_all = path.blocks(), tuple(path.owners), path.keeps_all
        asked, since = scale.vector(line.asked), line.oldest
    else:
        blocks, owners, kept, keeps_all = (), (), 0, True
        asked, since = vectors.clamped(scale.vector(queue.request)), queue.created
    demand = vectors.larger(asked, used)
    if cap is not None:
        demand = vectors.smaller(demand, cap)
    floor = vectors.smaller(vectors.clamped(scale.vector(queue.guarantee)), demand)
    claim = Claim(
        key=queue.key,
        weight=queue.weight,
        path=blocks,
        rest=vectors.less(demand, vectors.larger(floor, asked) if line else floor),
        floor=floor,
        cap=cap,
        promised=vectors.clamped(scale.vector(queue.promised)) if queue.promised else None,
        priority=queue.priority,
        since=since,
    )
    return Want(claim, demand, owners, kept, keeps_all, depth)


def kept(line: Line | None, scale: Scale) -> Vector:
    """What started jobs have."""
    if line is None or not line.started:
        return scale.zero
    sums = [0] * len(scale.zero)
    for place in line.started:
        job, (unit, _) = _at(line, place)
        for at, amount in enumerate(scale.unit(unit)):
            sums[at] += amount * job.kept
    return tuple(sums)


def roots(queues: Mapping[str, Queue], wants: Mapping[str, Want], scale: Scale) -> tuple[Claim, ...]:
    """The claims of all queues without a parent, each with those below it."""
    below: dict[str, list[str]] = {}
    for queue in queues.values():
        below.setdefault(queue.parent, []).append(queue.key)

    def claim(key: str) -> Claim:
        if key in wants:
            return wants[key].claim
        queue = queues[key]
        return Claim(
            key=key,
            weight=queue.weight,
            rest=scale.zero,
            floor=vectors.clamped(scale.vector(queue.guarantee)),
            cap=_cap(queue, scale),
            promised=vectors.clamped(scale.vector(queue.promised)) if queue.promised else None,
            priority=queue.priority,
            children=tuple(claim(child) for child in sorted(below[key])),
            policy=queue.policy,
        )

    return tuple(claim(key) for key in sorted(below.get("", ())))


def leaves(queues: Mapping[str, Queue]) -> list[str]:
    parents = {queue.parent for queue in queues.values()}
    return [key for key in queues if key not in parents]


def barrier_due(job: Job, settings: Settings, now: datetime) -> datetime:
    """When a job that has less than it needs is not overtaken any more."""
    return (job.waits_since or now) + timedelta(seconds=settings.reserve_after_s)


class _Path:
    """A path that is being written."""

    def __init__(self, scale: Scale, room: Vector) -> None:
        self._scale, self._room = scale, room
        self._most: dict[Unit, int] = {}
        self._units: list[Unit] = []
        self._counts: list[int] = []
        self._leasts: list[int] = []
        self._barriers: list[bool] = []
        self.owners: list[Owners] = []
        self.keeps_all = True
        self._left: dict[Shape, int] | None = None

    def keep(self, job: Job, shape: Shape) -> None:
        unit = shape[0]
        count = min(job.kept, self._fits(unit))
        least = min(job.floor, job.kept)
        if count < job.kept:
            self.keeps_all = False
        if count >= least:
            self._add(job, unit, count, least, joins=bool(self.owners))

    def follow(self, line: Line, depth: int, waiting_since: datetime, firm: Container[str]) -> None:
        """The first jobs of the line, with what they ask for beyond what they keep."""
        whole = depth >= len(line.order)
        left = None if whole else dict(line.waiting)
        kept = len(self.owners)  # nothing joins the last of these
        jobs, shapes, beyond = line.jobs, line.shapes, line.beyond
        for place in line.order if whole else islice(line.order, depth):
            key = place[2]
            wants, shape = beyond[key], shapes[key]
            if left is not None and wants:
                left[shape] -= wants
            unit, least = shape
            count = min(wants, self._fits(unit))
            if wants <= 0 or count < least:
                continue  # it never fits, however long others wait for it
            job = jobs[key]
            if (job.waits_since is not None and job.waits_since <= waiting_since) or key in firm:
                self._add(job, unit, least, least, is_barrier=True)
                if count > least:
                    self._add(job, unit, count - least, 1)
            else:
                self._add(job, unit, count, least, joins=len(self.owners) > kept)
        self._left = left

    def blocks(self) -> tuple[Block, ...]:
        built = [
            Block(self._scale.unit(unit), count, least, is_barrier)
            for unit, count, least, is_barrier in zip(
                self._units, self._counts, self._leasts, self._barriers, strict=True
            )
        ]
        for (unit, least), count in (self._left or {}).items():
            most = min(count, self._fits(unit))
            if most >= least:
                built.append(Block(self._scale.unit(unit), most, least))
        return tuple(built)

    def _add(
        self, job: Job, unit: Unit, count: int, least: int, *, joins: bool = False, is_barrier: bool = False
    ) -> None:
        """Jobs that ask for the same one after the other, unit by unit, have one block together."""
        if joins and least == 1 and self._units[-1] == unit and self._leasts[-1] == 1 and not self._barriers[-1]:
            self._counts[-1] += count
            self.owners[-1].append((job, count))
            return
        self._units.append(unit)
        self._counts.append(count)
        self._leasts.append(least)
        self._barriers.append(is_barrier)
        self.owners.append([(job, count)])

    def _fits(self, unit: Unit) -> int:
        """How many such units there could be at all."""
        if (known := self._most.get(unit)) is None:
            wanted = self._scale.unit(unit)
            # A unit of nothing fits without end: as often as anybody may ask.
            known = min(
                (there // each for each, there in zip(wanted, self._room, strict=True) if each), default=1 << 31
            )
            self._most[unit] = known
        return known


def _at(line: Line, place: Place) -> tuple[Job, Shape]:
    key = place[2]
    return line.jobs[key], line.shapes[key]


def _cap(queue: Queue, scale: Scale) -> Vector | None:
    """Resources that the capability does not name have no limit but what there is."""
    if queue.capability is None:
        return None
    return tuple(
        max(0, queue.capability.get(name, there)) for name, there in zip(scale.names, scale.total, strict=True)
    )


def granted(owners: Iterable[Owners], units: Iterable[int]) -> dict[str, int]:
    """Units by job, of those that get some."""
    found: dict[str, int] = {}
    for block, count in zip(owners, units, strict=False):
        for job, asked in block:
            if count <= 0:
                break
            found[job.key] = found.get(job.key, 0) + min(asked, count)
            count -= asked
    return found
