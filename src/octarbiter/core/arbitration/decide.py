"""Who deserves what, who may use what now, and who gives back?

`arbitrate(state, settings, now)` answers for the whole cluster at once, because sharing is global. It recomputes
everything from what is seen, so it may be called at any time and any number of times; with no arrivals, carrying out
what it says comes to rest.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime

import msgspec

from octarbiter.api import resources
from octarbiter.core.arbitration import allocation, demand, deserved, explain, reclaim, vectors
from octarbiter.core.arbitration.allocation import Leaf
from octarbiter.core.arbitration.claims import Block, Grant, Vector
from octarbiter.core.arbitration.demand import Owners, Scale, Want
from octarbiter.core.arbitration.lines import Job, Line
from octarbiter.core.arbitration.reclaim import Plan
from octarbiter.core.arbitration.state import Eviction, Outcome, QueueResult, Settings, State

DEEPER = 4
"""If the policy grants something to jobs that were not written out, so many times as many are."""


def arbitrate(state: State, settings: Settings, now: datetime) -> Outcome:
    """Every queue in it is whole: parents exist, jobs are in leaf queues (see `tree.sort_out`)."""
    scale = Scale(state)
    used = {key: scale.vector(state.used.get(key, {})) for key in state.queues}

    # 1. What does everybody ask for, 2. deserve, and 3. what of it may be used now?
    sharing = _settled(state, settings, now, scale, used)
    rights, grants, allocated = sharing.rights, sharing.grants, sharing.allocated

    # 4. Who gives back?
    leaves = [right.leaf for right in rights.values()]
    plan = reclaim.plan(state, settings, now, scale, leaves, lambda key: rights[key].by_job(), allocated)

    # 5. Why?
    teller = explain.Queues(state, scale, plan, now)
    results = _results(state, scale, rights, grants, allocated, used, plan, teller)
    again = [_next_barrier(right, settings, now) for right in rights.values()]
    return Outcome(
        queues=results,
        units=_without(sharing.units, plan),
        suspend={
            loss.job: f"suspended, {teller.evicted(loss.queue, results[loss.queue].deserved)}"
            for loss in plan.losses
            if loss.suspends
        },
        evictions=tuple(
            Eviction(
                pod=pod.key,
                uid=pod.uid,
                queue=loss.queue,
                sentence=f"evicted, {teller.evicted(loss.queue, results[loss.queue].deserved)}",
            )
            for loss in plan.losses
            if not loss.suspends
            for pod in loss.pods
        ),
        taken_from=tuple(sorted({loss.queue for loss in plan.losses})),
        look_again_at=min((time for time in (*again, plan.look_again_at) if time is not None), default=None),
    )


class _Sharing(msgspec.Struct, frozen=True):
    rights: Mapping[str, _Right]
    grants: Mapping[str, Grant]
    allocated: Mapping[str, Grant]
    units: Mapping[str, int]
    """By job, before anything is taken back."""


def _settled(state: State, settings: Settings, now: datetime, scale: Scale, used: Mapping[str, Vector]) -> _Sharing:
    """A claim that has its units never loses them to what is behind it in its queue, if it can keep them.

    One that waited for long gets units that it would not get if others were tried first. If it could be overtaken as
    soon as it has them, it would lose them, wait again, and so on for ever.
    """
    firm: dict[str, Job] = {}
    tried: set[str] = set()
    while True:
        sharing = _shared(state, settings, now, scale, used, firm)
        keeping = {key: job for key, job in firm.items() if sharing.units.get(key)}
        if len(keeping) == len(firm):
            overtaken = {job.key: job for job in _overtaken(state, sharing) if job.key not in tried}
            if not overtaken:
                return sharing
            tried.update(overtaken)
            keeping |= overtaken
        firm = keeping


def _overtaken(state: State, sharing: _Sharing) -> Iterator[Job]:
    """Claims that would lose what they have, while something behind them in their queue is served."""
    for key, right in sharing.rights.items():
        line = state.lines.get(key)
        lost = [job for job in line.having if not sharing.units[job]] if line else []
        if not line or not lost:
            continue
        given = demand.granted(right.owners[right.kept :], sharing.allocated[key].units[right.kept :])
        served = max(map(line.index, given), default=-1)
        for job in map(line.jobs.__getitem__, lost):
            if job.had >= job.floor and (any(right.want.claim.rest) or line.index(job.key) < served):
                yield job


def _shared(
    state: State,
    settings: Settings,
    now: datetime,
    scale: Scale,
    used: Mapping[str, Vector],
    firm: Mapping[str, Job],
) -> _Sharing:
    wants, grants = _deserved(state, settings, now, scale, used, firm)
    rights = {key: _right(want, grants[key], state.lines.get(key), used[key], scale) for key, want in wants.items()}
    allocated = allocation.fill(scale.total, [right.leaf for right in rights.values()], {})
    return _Sharing(rights, grants, allocated, _units(state, rights, allocated))


def _deserved(
    state: State,
    settings: Settings,
    now: datetime,
    scale: Scale,
    used: Mapping[str, Vector],
    firm: Mapping[str, Job],
) -> tuple[dict[str, Want], Mapping[str, Grant]]:
    depths = {key: demand.depth_at_first(state.lines.get(key)) for key in demand.leaves(state.queues)}
    for job in firm.values():
        depths[job.queue] = max(depths[job.queue], state.lines[job.queue].index(job.key) + 1)
    wants: dict[str, Want] = {}
    while True:
        for key, depth in depths.items():
            queue, line = state.queues[key], state.lines.get(key)
            wants[key] = demand.want(queue, line, used[key], depth, scale, settings, now, firm)
        grants = deserved.deserve(scale.total, demand.roots(state.queues, wants, scale), state.policy)
        depths = {
            key: max(1, wanted.depth) * DEEPER
            for key, wanted in wants.items()
            if wanted.has_tail and any(grants[key].units[len(wanted.owners) :])
        }
        if not depths:
            return wants, grants


class _Right(msgspec.Struct, frozen=True):
    """What a leaf queue deserves, block by block."""

    want: Want
    units: tuple[int, ...]
    leaf: Leaf
    owners: list[Owners]
    """Of the blocks in the leaf's path."""
    kept: int
    """So many of them are what started jobs have."""

    def by_job(self) -> dict[str, int]:
        return demand.granted(self.want.owners, self.units)


def _right(want: Want, grant: Grant, line: Line | None, used: Vector, scale: Scale) -> _Right:
    starts = all(
        granted == block.count for granted, block in zip(grant.units[: want.kept], want.claim.path, strict=False)
    )
    starts = starts and want.keeps_all
    path, owners, kept_blocks = [], [], 0
    for at, count in enumerate(grant.units):
        if count and (starts or at < want.kept):
            block = want.claim.path[at]
            path.append(
                block if count == block.count else Block(block.unit, count, min(block.least, count), block.is_barrier)
            )
            owners.append(want.owners[at])
            kept_blocks += at < want.kept
    leaf = Leaf(
        key=want.claim.key,
        weight=want.claim.weight,
        deserved=grant.held,
        held=vectors.larger(used, demand.kept(line, scale)),
        path=tuple(path),
        starts=starts,
    )
    return _Right(want, grant.units, leaf, owners, kept_blocks)


def _units(state: State, rights: Mapping[str, _Right], allocated: Mapping[str, Grant]) -> dict[str, int]:
    units: dict[str, int] = {}
    for key, right in rights.items():
        line = state.lines.get(key)
        if not line:
            continue
        units.update(dict.fromkeys(line.having, 0))
        # What started jobs keep is theirs until a plan takes it, deserved or not.
        granted = allocated[key].units
        units.update(demand.granted(right.owners[right.kept :], granted[right.kept :]))
        for place in line.started:
            units[place[2]] += line.jobs[place[2]].kept
    return units


def _without(units: Mapping[str, int], plan: Plan) -> dict[str, int]:
    """What is left when the plan is carried out."""
    left = dict(units)
    for loss in plan.losses:
        if loss.suspends:
            left[loss.job] = 0
        elif loss.job:
            left[loss.job] -= loss.units
    return left


def _next_barrier(right: _Right, settings: Settings, now: datetime) -> datetime | None:
    """When the next job that is being overtaken will not be any more."""
    last = max((at for at, count in enumerate(right.units) if count), default=-1)
    due = []
    for at in range(right.want.kept, last):
        given, block = right.units[at], right.want.claim.path[at]
        if given < block.count and not block.is_barrier:
            for job, asked in right.want.owners[at]:
                if given < min(asked, job.floor) and not job.kept:
                    due.append(demand.barrier_due(job, settings, now))
                given -= asked
    return min((time for time in due if time > now), default=None)


def _results(
    state: State,
    scale: Scale,
    rights: Mapping[str, _Right],
    grants: Mapping[str, Grant],
    allocated: Mapping[str, Grant],
    used: Mapping[str, Vector],
    plan: Plan,
    teller: explain.Queues,
) -> dict[str, QueueResult]:
    zero = scale.zero
    asks, may_use, uses = (
        dict.fromkeys(state.queues, zero),
        dict.fromkeys(state.queues, zero),
        dict.fromkeys(state.queues, zero),
    )
    waits = dict.fromkeys(state.queues, zero)
    for leaf, right in rights.items():
        lacking = vectors.less(right.leaf.deserved, allocated[leaf].held)
        key = leaf
        while key:
            asks[key] = vectors.plus(asks[key], right.want.demand)
            may_use[key] = vectors.plus(may_use[key], allocated[leaf].held)
            uses[key] = vectors.plus(uses[key], used[leaf])
            waits[key] = vectors.plus(waits[key], lacking)
            key = state.queues[key].parent
    results = {}
    for key in state.queues:
        has, right_of = may_use[key], grants[key].held
        asked = [bool(any(amounts)) for amounts in zip(asks[key], has, right_of, strict=True)]
        demanded, deserved_, allocated_ = (
            {name: amount for name, amount, wanted in zip(scale.names, vector, asked, strict=True) if wanted}
            for vector in (asks[key], right_of, has)
        )
        preempting = scale.amounts(waits[key])
        told = resources.plus(allocated_, preempting) if key not in rights else deserved_
        dominant, share = _share(scale, has)
        giver = plan.givers.get(key)
        results[key] = QueueResult(
            demand=demanded,
            deserved=deserved_,
            allocated=allocated_,
            used=scale.amounts(uses[key]),
            preempting=preempting,
            share=share,
            dominant=dominant,
            is_satisfied=not any(vectors.less(asks[key], has)),
            satisfied=teller.satisfied(key, demanded, told, allocated_),
            is_reclaiming=bool(preempting) or (giver is not None and any(giver.coming)),
            reclaiming=teller.reclaiming(key, told, allocated_, scale.amounts(vectors.less(uses[key], right_of))),
        )
    return results


def _share(scale: Scale, has: Vector) -> tuple[str, tuple[int, int]]:
    """The resource of which this is the largest part of all there is; the first by name, if several are."""
    dominant, share = "", (0, 1)
    for name, amount, there in zip(scale.names, has, scale.total, strict=True):
        if there and amount * share[1] > share[0] * there:
            dominant, share = name, (amount, there)
    return dominant, share
