"""What does each claim get when some come before others?

Whoever is first takes whatever fits; the next ones take what is left. Floors of all come before that.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import groupby

import msgspec

from octarbiter.core.arbitration import drf, paths, vectors
from octarbiter.core.arbitration.claims import Block, Claim, Grant, Vector

LAST = datetime.max.replace(tzinfo=UTC)


class Priority:
    """Higher priority first; those of the same priority share by dominant resource fairness."""

    def share(self, total: Vector, claims: Sequence[Claim], measure: Vector | None = None) -> list[Grant]:
        return _one_after_another(total, claims, self._groups(claims), measure)

    def path(self, measure: Vector, claims: Sequence[Claim]) -> tuple[Block, ...]:
        return paths.merged(measure, claims, self._groups(claims))

    def _groups(self, claims: Sequence[Claim]) -> list[list[int]]:
        order = sorted(range(len(claims)), key=lambda index: -claims[index].priority)
        return [list(group) for _, group in groupby(order, key=lambda index: claims[index].priority)]


class Fifo:
    """The oldest claim first; ties are decided by the key. Who has none comes last."""

    def share(self, total: Vector, claims: Sequence[Claim], measure: Vector | None = None) -> list[Grant]:
        return _one_after_another(total, claims, self._groups(claims), measure)

    def path(self, measure: Vector, claims: Sequence[Claim]) -> tuple[Block, ...]:
        return paths.merged(measure, claims, self._groups(claims))

    def _groups(self, claims: Sequence[Claim]) -> list[list[int]]:
        order = sorted(range(len(claims)), key=lambda index: (claims[index].since or LAST, claims[index].key))
        return [[index] for index in order]


def _one_after_another(
    total: Vector, claims: Sequence[Claim], groups: Sequence[Sequence[int]], measure: Vector | None
) -> list[Grant]:
    total = vectors.clamped(total)
    floors = vectors.floors(total, claims)
    free = vectors.less(total, vectors.total_of(floors, len(total)))
    grants = [Grant((), ())] * len(claims)
    for group in groups:
        there = vectors.plus(free, vectors.total_of([floors[index] for index in group], len(total)))
        asking = [msgspec.structs.replace(claims[index], floor=floors[index]) for index in group]
        given = drf.share(there, asking, measure or total)
        for index, grant in zip(group, given, strict=True):
            grants[index] = grant
        free = vectors.less(there, vectors.total_of([grant.held for grant in given], len(total)))
    return grants
