"""What would everybody be allowed to use, if these pods were gone?

The copy on which taking back is planned. Losses are tried and put back; what is on its way out already is gone here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from octarbiter.core.arbitration import allocation, demand, vectors, victims
from octarbiter.core.arbitration.allocation import Leaf
from octarbiter.core.arbitration.claims import Grant, Vector
from octarbiter.core.arbitration.demand import Scale
from octarbiter.core.arbitration.state import State
from octarbiter.core.arbitration.victims import Loss, Losses


class Holder:
    """What one queue holds, while losses are tried."""

    def __init__(self, state: State, scale: Scale, leaf: Leaf, units: Mapping[str, int]) -> None:
        line = state.lines.get(leaf.key)
        self.leaf = leaf
        self.going, staying = victims.parted(state.pods.get(leaf.key, ()), line)
        self._staying, self._line, self._units, self._gangs = staying, line, units, state.gangs
        self.guarantee = vectors.smaller(scale.vector(state.queues[leaf.key].guarantee), leaf.held)
        self.used = list(scale.vector(state.used.get(leaf.key, {})))
        self.kept = list(demand.kept(line, scale))
        self.members: dict[str, int] = {}
        for pod in self.going:
            _add(self.used, scale.vector(pod.requests), -1)

    def losses(self) -> Losses:
        """Looked for only if it is to give something back."""
        found = victims.losses(self.leaf.key, self._staying, self._line, self._units, self._gangs)
        self.members = dict(found.members)
        return found

    @property
    def held(self) -> Vector:
        return vectors.larger(vectors.clamped(self.used), self.kept)

    @property
    def over(self) -> Vector:
        return self.leaf.over(self.held)


class Trial:
    def __init__(
        self, state: State, scale: Scale, leaves: Sequence[Leaf], waiting: Sequence[Leaf], holders: dict[str, Holder]
    ) -> None:
        """`waiting`: those for whom things are taken back. `holders`: those who hold too much."""
        self._state, self._scale, self._waiting, self.holders = state, scale, waiting, holders
        # Those who have just what they deserve are left out, with what they have: nothing changes for them.
        self._leaves = [leaf for leaf in leaves if leaf.key in holders or leaf.held != leaf.deserved]
        everything = vectors.total_of((leaf.held for leaf in leaves), len(scale.zero))
        involved = vectors.total_of((leaf.held for leaf in self._leaves), len(scale.zero))
        self._total = tuple(
            there - all_of_it + own for there, all_of_it, own in zip(scale.total, everything, involved, strict=True)
        )
        self.taken: list[Loss] = []
        self._at_first = self._fill()

    def is_short(self) -> bool:
        """Somebody still waits, when all that was taken has come free."""
        filled = self._fill()
        return any(filled[leaf.key].held != leaf.deserved for leaf in self._waiting)

    def gainers(self) -> list[str]:
        """Those who could grow."""
        filled = self._fill()
        return [leaf.key for leaf in self._waiting if not _has_all(self._at_first[leaf.key], filled[leaf.key])]

    def take(self, losses: Sequence[Loss]) -> bool:
        """In their order, as long as they bring back something that is missing. True if any did."""
        missing = self._missing()
        before = len(self.taken)
        known = {id(loss) for loss in self.taken}
        wholes = [loss for loss in self.taken if loss.is_whole]
        for loss in losses:
            if not any(missing):
                break
            if id(loss) in known or any(_is_part(loss, whole) for whole in wholes):
                continue
            brought = self._try(loss, missing)
            missing = vectors.less(missing, brought or self._scale.zero)
            if brought and loss.is_whole:
                wholes.append(loss)
        return len(self.taken) != before

    def take_fewest(self, wholes: Sequence[Loss]) -> None:
        """As few whole gangs and jobs as possible; among as few, the first in order."""
        before = [*self.taken]
        self.take(wholes)
        if sum(loss.is_whole for loss in self.taken) < 2:
            return
        self.drop_needless()
        in_order, reached = [*self.taken], self._fill()
        self._set(before)
        missing = self._missing()
        self.take(sorted(wholes, key=lambda loss: -self._part_of(loss, missing)))
        self.drop_needless()
        fewer = sum(loss.is_whole for loss in self.taken) < sum(loss.is_whole for loss in in_order)
        if not fewer or not self._reaches(reached):
            self._set(in_order)

    def drop_needless(self) -> None:
        """Those without whom nobody who waits would get less; the worthiest are looked at first."""
        reached = self._fill()
        for loss in self.taken[::-1]:
            self._change(loss, 1)
            if self._reaches(reached):
                self.taken.remove(loss)
            else:
                self._change(loss, -1)

    def keep_only(self, losses: Sequence[Loss]) -> None:
        self._set(losses)

    # --- within

    def _fill(self) -> dict[str, Grant]:
        return allocation.fill(self._total, self._leaves, self._held(), self._scale.total)

    def _held(self) -> dict[str, Vector]:
        return {key: holder.held for key, holder in self.holders.items()}

    def _reaches(self, filled: Mapping[str, Grant]) -> bool:
        now = self._fill()
        return all(_has_all(now[leaf.key], filled[leaf.key]) for leaf in self._waiting)

    def _missing(self) -> Vector:
        """What has to come free, of the resources that somebody waits for."""
        filled = self._fill()
        lacking = (vectors.less(leaf.deserved, filled[leaf.key].held) for leaf in self._waiting)
        waited_for = vectors.total_of(lacking, len(self._scale.zero))
        missing = allocation.missing(self._total, self._leaves, self._held())
        return tuple(amount if waited else 0 for amount, waited in zip(missing, waited_for, strict=True))

    def _try(self, loss: Loss, missing: Vector) -> Vector:
        """Takes the loss if it brings back something that is missing, and may be taken. Nothing: it was not."""
        holder = self.holders[loss.queue]
        if not loss.is_whole and not victims.leaves_gang_whole(loss, holder.members, self._state.gangs):
            return ()
        if not _both(missing, holder.over):
            return ()
        held, over = holder.held, holder.over
        parts = [other for other in self.taken if loss.is_whole and _is_part(other, loss)]
        for part in parts:
            self._change(part, 1)
        self._change(loss, -1)
        brought, left = vectors.less(over, holder.over), holder.held
        below = any(now < then and now < least for now, then, least in zip(left, held, holder.guarantee, strict=True))
        # Units that nobody uses cost nothing, and what pods use is not free before these are given up.
        if below or (loss.pods and not _both(missing, brought)):
            self._change(loss, 1)
            for part in parts:
                self._change(part, -1)
            return ()
        if parts:
            self.taken = [other for other in self.taken if other not in parts]
        self.taken.append(loss)
        return brought

    def _part_of(self, loss: Loss, missing: Vector) -> Fraction:
        """How much of what is missing it brings back, at most."""
        over = self.holders[loss.queue].over
        released = self._scale.zero
        for pod in loss.pods:
            released = vectors.plus(released, self._scale.vector(pod.requests))
        brings = vectors.smaller(over, released)
        parts = (Fraction(min(more, wanted), wanted) for more, wanted in zip(brings, missing, strict=True) if wanted)
        return sum(parts, Fraction(0))

    def _set(self, losses: Sequence[Loss]) -> None:
        for loss in self.taken:
            self._change(loss, 1)
        for loss in losses:
            self._change(loss, -1)
        self.taken = [*losses]

    def _change(self, loss: Loss, sign: int) -> None:
        holder = self.holders[loss.queue]
        for pod in loss.pods:
            _add(holder.used, self._scale.vector(pod.requests), sign)
            if pod.gang in holder.members:
                holder.members[pod.gang] += sign
        if loss.job:
            shape = self._state.lines[loss.queue].shapes[loss.job]
            _add(holder.kept, self._scale.unit(shape[0]), sign * loss.units)


def _is_part(loss: Loss, whole: Loss) -> bool:
    if loss.job and loss.job == whole.job:
        return True
    pods = {pod.key for pod in whole.pods}
    return any(pod.key in pods for pod in loss.pods)


def _both(one: Vector, other: Vector) -> bool:
    return any(a and b for a, b in zip(one, other, strict=True))


def _has_all(grant: Grant, of: Grant) -> bool:
    return all(now >= then for now, then in zip(grant.held, of.held, strict=True)) and all(
        now >= then for now, then in zip(grant.units, of.units, strict=True)
    )


def _add(sums: list[int], vector: Vector, times: int) -> None:
    for place, amount in enumerate(vector):
        sums[place] += amount * times
