"""Why does a queue or a job have what it has? In sentences for people, the same wherever they are shown.

`waits` and `gives` are said with every outcome, because a few queues cost little. Of jobs there may be thousands that
wait: `Jobs` tells of those that somebody asks about.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from octarbiter.api import resources
from octarbiter.api.resources import Amounts
from octarbiter.core.arbitration.demand import Scale
from octarbiter.core.arbitration.lines import Job, Line, Place
from octarbiter.core.arbitration.reclaim import Giver, Plan
from octarbiter.core.arbitration.state import JobResult, Outcome, QueueResult, Settings, State

SHOWN = {resources.CPU: "CPU"}


class Queues:
    def __init__(self, state: State, scale: Scale, plan: Plan, now: datetime) -> None:
        self._state, self._scale, self._plan, self._now = state, scale, plan, now
        self._names = Counter(key.rpartition("/")[2] for key in state.queues)

    def name(self, key: str) -> str:
        """Without its namespace, as long as that is clear."""
        name = key.rpartition("/")[2]
        return name if self._names[name] == 1 else key

    def satisfied(self, key: str, demand: Amounts, deserved: Amounts, allocated: Amounts) -> str:
        name = self.name(key)
        if lacking := resources.some(resources.less(deserved, allocated)):
            return self._waits(name, lacking, deserved, allocated)
        missing = resources.some(resources.less(demand, allocated))
        if not resources.some(demand):
            return f"{name} asks for nothing"
        if not missing:
            return f"{name} has all it asks for: {listed(demand)}"
        return f"{name} has all it deserves: {_has_of(allocated, {each: demand[each] for each in missing})} it asks for"

    def reclaiming(self, key: str, deserved: Amounts, allocated: Amounts, beyond: Amounts) -> str:
        """`beyond`: what is used of it beyond what it deserves."""
        name = self.name(key)
        if lacking := resources.some(resources.less(deserved, allocated)):
            return self._waits(name, lacking, deserved, allocated)
        giver = self._plan.givers.get(key)
        if giver is None and beyond:
            return f"{name} holds {listed(beyond)} more than it deserves, in the queues below it"
        if giver is None:
            return f"{name} holds no more than it deserves"
        over = self._scale.amounts(giver.over)
        holds = resources.plus(over, {each: deserved.get(each, 0) for each in over})
        right = _deserves({each: deserved.get(each, 0) for each in over}, holds, "holds")
        if any(giver.coming):
            coming = self._scale.amounts(giver.coming)
            return f"{name} gives back {listed(coming)}{self._when(key, giver, '')}: it {right}"
        return f"{name} {right}; it keeps the rest: {giver.stays}"

    def evicted(self, key: str, deserved: Amounts) -> str:
        """Of a queue that has to give back."""
        giver = self._plan.givers[key]
        over = self._scale.amounts(giver.over)
        holds = resources.plus(over, {each: deserved.get(each, 0) for each in over})
        right = _deserves({each: deserved.get(each, 0) for each in over}, holds, "holds")
        claimants = _and(self.name(claimant) for claimant in self._plan.claimants)
        return f"makes room for {claimants}: {self.name(key)} {right}"

    def _waits(self, name: str, lacking: Amounts, deserved: Amounts, allocated: Amounts) -> str:
        has = {each: allocated.get(each, 0) for each in lacking}
        begin = f"{name} waits: it {_deserves({each: deserved[each] for each in lacking}, has, 'has')}"
        back, kept = [], []
        for key, giver in sorted(self._plan.givers.items()):
            coming = _within(self._scale.amounts(giver.coming), lacking)
            over = _within(self._scale.amounts(giver.over), lacking)
            if coming:
                back.append(f"{listed(coming)} {_come(coming)} back{self._when(key, giver, f' of {self.name(key)}')}")
            elif over and giver.stays:
                kept.append(f"{self.name(key)} holds {listed(over)} too much, but {giver.stays}")
        told = back or kept or ["others hold the rest"]
        return f"{begin}; {', '.join(told)}"

    def _when(self, key: str, giver: Giver, whose: str) -> str:
        if not giver.ending:
            return " at once"
        when = f" when 1 pod{whose} ends" if giver.ending == 1 else f" when {giver.ending} pods{whose} end"
        asked = self._now if giver.asked else self._state.taken_from.get(key)
        return when if asked is None else f"{when} (asked {_ago(self._now - asked)})"


class Jobs:
    """Tells of single jobs, after an arbitration."""

    def __init__(self, state: State, outcome: Outcome, settings: Settings, now: datetime) -> None:
        self._state, self._outcome, self._settings, self._now = state, outcome, settings, now
        self._full: dict[str, list[Place]] = {}

    def of(self, job: Job) -> JobResult:
        units = self._outcome.units.get(job.key, 0)
        position = 0
        if units < job.count:
            line = self._state.lines[job.queue]
            ahead = line.index(job.key)
            position = ahead + 1 - bisect_left(self._satisfied(job.queue, line), line.order[ahead])
        return JobResult(allocated=units, position=position, sentence=self._sentence(job, units, position))

    def _satisfied(self, queue: str, line: Line) -> list[Place]:
        """Places of the jobs that have all they ask for; looked for once."""
        if (known := self._full.get(queue)) is None:
            units = self._outcome.units
            known = [place for place in line.order if units.get(place[2], 0) >= line.jobs[place[2]].count]
            self._full[queue] = known
        return known

    def _sentence(self, job: Job, units: int, position: int) -> str:
        if job.key in self._outcome.suspend:
            return self._outcome.suspend[job.key]
        if units >= job.count:
            return f"it has {'its unit' if job.count == 1 else f'all {job.count} units'}: {_units(job, units)}"
        has = f"it has {units} of {job.count} units" if units else "it waits"
        queue = self._outcome.queues[job.queue]
        name = job.queue.rpartition("/")[2]
        return f"{has}, number {position} in {name}: {self._why(job, units, queue, name)}"

    def _why(self, job: Job, units: int, queue: QueueResult, name: str) -> str:
        need = 1 if units else job.floor
        wanted = resources.times(resources.some(job.unit), need)
        what = f"{_units(job, need)} ({'one unit' if need == 1 else f'{need} units at once'})"
        limit = self._state.queues[job.queue].capability
        limits = {} if limit is None else {each: limit[each] for each in wanted if each in limit}
        if units < job.kept:
            return f"{job.kept - units} were taken back"
        if beyond := _beyond(wanted, self._state.total):
            return (
                f"{what} never fits: there is only {listed({each: self._state.total.get(each, 0) for each in beyond})}"
            )
        if beyond := _beyond(wanted, {**wanted, **limits}):
            return f"{what} never fits: {name} is limited to {listed({each: limits[each] for each in beyond})}"
        if any(queue.preempting.values()):
            return queue.satisfied
        since = job.waits_since
        if since is not None and not units and self._now - since >= timedelta(seconds=self._settings.reserve_after_s):
            return (
                f"{what} does not fit yet; what comes free in {name} is kept for it, after {_lasted(self._now - since)}"
            )
        right = {each: queue.deserved.get(each, 0) for each in wanted}
        return f"{what} does not fit beside what is before it; {name} deserves {listed(right)}"


def shown(name: str, amount: int) -> str:
    return f"{resources.shown(name, amount)} {SHOWN.get(name, name)}"


def listed(amounts: Mapping[str, int]) -> str:
    return _and(shown(name, amount) for name, amount in sorted(amounts.items())) or "nothing"


def _and(words: Iterable[str]) -> str:
    *most, last = [*words] or [""]
    return f"{', '.join(most)} and {last}" if most else last


def _deserves(right: Amounts, has: Amounts, verb: str) -> str:
    """`deserves 4 CPU, has 1`."""
    if len(right) == 1:
        name = next(iter(right))
        return f"deserves {listed(right)}, {verb} {resources.shown(name, has.get(name, 0))}"
    return f"deserves {listed(right)}, {verb} {listed(has)}"


def _has_of(has: Amounts, of: Amounts) -> str:
    return _and(f"{resources.shown(each, has.get(each, 0))} of the {shown(each, of[each])}" for each in sorted(of))


def _units(job: Job, count: int) -> str:
    return listed(resources.times(resources.some(job.unit), count))


def _within(amounts: Amounts, names: Mapping[str, int]) -> Amounts:
    return {name: amount for name, amount in amounts.items() if name in names}


def _beyond(wanted: Amounts, there: Amounts) -> Amounts:
    return {name: amount for name, amount in wanted.items() if amount > there.get(name, 0)}


def _come(amounts: Amounts) -> str:
    return "comes" if len(amounts) == 1 and resources.shown(*next(iter(amounts.items()))) == "1" else "come"


def _ago(time: timedelta) -> str:
    return "just now" if time < timedelta(seconds=1) else f"{_lasted(time)} ago"


def _lasted(time: timedelta) -> str:
    seconds = max(0, int(time.total_seconds()))
    if seconds < 120:
        return f"{seconds} s"
    return f"{seconds // 60} min" if seconds < 7200 else f"{seconds // 3600} h"
