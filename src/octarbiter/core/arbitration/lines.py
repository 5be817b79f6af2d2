"""In which order do the unfinished jobs of a queue come, and what do they ask for together?

A `Line` is kept up to date job by job, so that one arbitration costs what it changes: thousands of jobs that wait
behind the first few are not looked at, only the sums of what they ask for, by shape.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from functools import lru_cache

import msgspec

from octarbiter.api.resources import Amounts

Place = tuple[int, datetime, str]
"""Higher priority first, then age, then name; the last is the job's key."""
Unit = tuple[tuple[str, int], ...]
"""What one unit asks for, by name, without zeros."""
Shape = tuple[Unit, int]
"""Equal units of which so many are needed at once."""


class Job(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A QueueJob that has not finished."""

    key: str
    queue: str
    """The key of its queue; resolved, and existing."""
    priority: int = 0
    created: datetime
    unit: Amounts
    count: int
    least: int = 1
    """`minResourceno`, or 1: with fewer units it gets none."""
    had: int = 0
    """How many units its status says it has."""
    started: bool = False
    """Its workload was started: it keeps what it has."""
    waits_since: datetime | None = None
    """Since when it has had less than `least`; None: it has not."""

    @property
    def floor(self) -> int:
        return max(1, min(self.least, self.count))

    @property
    def kept(self) -> int:
        """Units that only a plan takes back. It may have been granted more than it asks for now."""
        return max(0, min(self.had, self.count)) if self.started else 0


class Line:
    def __init__(self, jobs: Iterable[Job] = ()) -> None:
        self.jobs: dict[str, Job] = {}
        self.shapes: dict[str, Shape] = {}
        """Of what each job asks for beyond what it keeps."""
        self.order: list[Place] = []
        self.started: list[Place] = []
        """Those that keep something."""
        self.having: dict[str, None] = {}
        """Those whose status says that they have something."""
        self.beyond: dict[str, int] = {}
        """How many units each job asks for beyond what it keeps."""
        self.waiting: dict[Shape, int] = {}
        """The same, by shape."""
        self.asked: Amounts = {}
        self._oldest: datetime | None = None
        sums: dict[Shape, list[int]] = {}
        for job in jobs:
            self._enter(job, list.append)
            shape = self.shapes[job.key]
            both = sums.setdefault(shape, [0, 0])
            both[0] += self.beyond[job.key]
            both[1] += job.count
        for shape, (beyond, count) in sums.items():
            self._count(shape, beyond, count, 1)
        self.order.sort()
        self.started.sort()

    def __len__(self) -> int:
        return len(self.jobs)

    def __iter__(self) -> Iterator[Job]:
        return (self.jobs[place[2]] for place in self.order)

    def put(self, job: Job) -> None:
        """A new job, or one that has changed."""
        self.drop(job.key)
        self._enter(job, insort)
        self._count(self.shapes[job.key], self.beyond[job.key], job.count, 1)
        if self._oldest is not None and job.created < self._oldest:
            self._oldest = job.created

    def drop(self, key: str) -> None:
        job = self.jobs.pop(key, None)
        if job is None:
            return
        place = _place(job)
        del self.order[bisect_left(self.order, place)]
        if job.kept:
            del self.started[bisect_left(self.started, place)]
        self.having.pop(key, None)
        self._count(self.shapes.pop(key), self.beyond.pop(key), job.count, -1)
        if job.created == self._oldest:
            self._oldest = None

    def index(self, key: str) -> int:
        """How many jobs are before it."""
        return bisect_left(self.order, _place(self.jobs[key]))

    @property
    def oldest(self) -> datetime | None:
        """When the oldest of its jobs was made."""
        if self._oldest is None and self.jobs:
            self._oldest = min(place[1] for place in self.order)
        return self._oldest

    def _enter(self, job: Job, insert: Callable[[list[Place], Place], None]) -> None:
        key, kept = job.key, job.kept if job.started else 0
        place = (-job.priority, job.created, key)
        self.jobs[key] = job
        insert(self.order, place)
        if kept:
            insert(self.started, place)
        if job.had > 0:
            self.having[key] = None
        # What a started job asks for beyond what it has comes one by one.
        least = 1 if job.least <= 1 or kept >= job.floor else job.floor
        self.shapes[key] = (_unit(tuple(job.unit.items())), least)
        self.beyond[key] = job.count - kept

    def _count(self, shape: Shape, beyond: int, count: int, sign: int) -> None:
        if beyond:
            left = self.waiting.get(shape, 0) + sign * beyond
            if left:
                self.waiting[shape] = left
            else:
                del self.waiting[shape]
        for name, amount in shape[0]:
            left = self.asked.get(name, 0) + sign * amount * count
            if left:
                self.asked[name] = left
            else:
                self.asked.pop(name, None)


def by_queue(jobs: Iterable[Job]) -> dict[str, Line]:
    sorted_out: dict[str, list[Job]] = {}
    for job in jobs:
        sorted_out.setdefault(job.queue, []).append(job)
    return {queue: Line(own) for queue, own in sorted_out.items()}


def _place(job: Job) -> Place:
    return -job.priority, job.created, job.key


@lru_cache(maxsize=4096)
def _unit(parts: Unit) -> Unit:
    return tuple(sorted([part for part in parts if part[1]]))
