"""Who must go, so that who can run?

Planned on a copy: what would everybody be allowed to use if these pods were gone? Only those are asked without whom
some claimant would get less; if no claimant gets anything, nobody is asked. What is on its way out already counts as
gone, so nobody is asked twice for the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta

import msgspec

from octarbiter.core.arbitration import vectors, victims
from octarbiter.core.arbitration.allocation import Leaf
from octarbiter.core.arbitration.claims import Grant, Vector
from octarbiter.core.arbitration.demand import Scale
from octarbiter.core.arbitration.state import Queue, Settings, State
from octarbiter.core.arbitration.trial import Holder, Trial
from octarbiter.core.arbitration.victims import Loss


class Giver(msgspec.Struct, frozen=True):
    """A queue that holds more than it deserves."""

    over: Vector
    coming: Vector
    """What it gives back when the pods that are going, or are asked now, have ended."""
    ending: int
    """How many pods these are."""
    asked: bool
    """Some of them now."""
    stays: str
    """Why it is not asked for more; empty: it was."""


class Plan(msgspec.Struct, frozen=True):
    losses: tuple[Loss, ...] = ()
    claimants: tuple[str, ...] = ()
    """The queues that can grow thereby."""
    givers: Mapping[str, Giver] = {}
    look_again_at: datetime | None = None


def plan(
    state: State,
    settings: Settings,
    now: datetime,
    scale: Scale,
    leaves: Sequence[Leaf],
    units: Callable[[str], Mapping[str, int]],
    allocated: Mapping[str, Grant],
) -> Plan:
    """`units`: of a queue, how many units each of its jobs deserves. `allocated`: what is so at this moment."""
    waiting = [leaf for leaf in leaves if leaf.starts and allocated[leaf.key].held != leaf.deserved]
    givers = [leaf for leaf in leaves if any(leaf.over(leaf.held))]
    if not givers:
        return Plan()
    holders = {leaf.key: Holder(state, scale, leaf, units(leaf.key)) for leaf in givers}
    trial = Trial(state, scale, leaves, waiting, holders)
    on_hold = _on_hold(state, settings, now, holders)
    is_short = trial.is_short()
    if is_short:
        _choose(trial, [key for key in holders if state.queues[key].reclaimable and key not in on_hold])
    due, is_cut = _within_budget(trial.taken, state.evictions_left)
    again = [*on_hold.values()] if is_short else []
    if is_cut:
        again.append(now + timedelta(seconds=max(1.0, settings.hold_s)))
    claimants = trial.gainers() if due else []
    trial.keep_only(due)
    stays_short = is_short and trial.is_short()
    return Plan(
        losses=tuple(due),
        claimants=tuple(claimants),
        givers={
            key: _giver(holder, due, _why_it_stays(state.queues[key], key in on_hold, stays_short))
            for key, holder in holders.items()
        },
        look_again_at=min(again, default=None),
    )


def _choose(trial: Trial, willing: Sequence[str]) -> None:
    losses = [trial.holders[key].losses() for key in willing]
    singles = sorted((loss for each in losses for loss in each.single), key=victims.order)
    wholes = sorted((loss for each in losses for loss in each.whole), key=victims.order)
    trial.take(singles)
    if trial.is_short():
        trial.take_fewest(wholes)
    # A pod brings nothing back as long as a started job keeps as much for itself; that may have changed.
    while trial.is_short() and trial.take([*singles, *wholes]):
        pass
    trial.drop_needless()
    if not trial.gainers():
        trial.keep_only([])


def _on_hold(state: State, settings: Settings, now: datetime, holders: Iterable[str]) -> dict[str, datetime]:
    """Until when queues are left alone."""
    hold = timedelta(seconds=settings.hold_s)
    ends = {key: state.taken_from[key] + hold for key in holders if key in state.taken_from}
    return {key: end for key, end in ends.items() if end > now}


def _within_budget(chosen: Sequence[Loss], left: int) -> tuple[list[Loss], bool]:
    """The first so many evictions; what goes together goes together, even if it is more than the budget ever has."""
    due: list[Loss] = []
    for loss in chosen:
        evictions = 0 if loss.suspends else len(loss.pods)
        if evictions and evictions > left and (left <= 0 or any(not other.suspends and other.pods for other in due)):
            return due, True
        left -= evictions
        due.append(loss)
    return due, False


def _giver(holder: Holder, due: Sequence[Loss], stays: str) -> Giver:
    own = [loss for loss in due if loss.queue == holder.leaf.key]
    over = holder.leaf.over(holder.leaf.held)
    return Giver(
        over=over,
        coming=vectors.less(over, holder.over),
        ending=len(holder.going) + sum(len(loss.pods) for loss in own),
        asked=bool(own),
        stays="" if own or not any(holder.over) else stays,
    )


def _why_it_stays(queue: Queue, is_on_hold: bool, somebody_waits: bool) -> str:
    if not queue.reclaimable:
        return "it is not reclaimable"
    if not somebody_waits:
        return "nobody waits for it"
    if is_on_hold:
        return "it was asked a moment ago"
    return "nobody who waits could run if its pods went"
