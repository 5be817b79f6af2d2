"""What may each queue use now?

What a queue deserves may still be held by others. So what is really free is filled a second time, always by dominant
shares: everybody has what it holds of its own right, and grows from there towards what it deserves. What others hold
beyond their right is not there to be shared, until they give it back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from octarbiter.core.arbitration import drf, vectors
from octarbiter.core.arbitration.claims import Block, Claim, Grant, Vector


class Leaf(msgspec.Struct, frozen=True):
    """A queue that holds something or wants to."""

    key: str
    weight: int
    deserved: Vector
    held: Vector
    """What its pods use, or what its started jobs keep, if that is more."""
    path: tuple[Block, ...]
    """The units that it deserves; those of started jobs first."""
    starts: bool = True
    """Not if its started jobs keep more than it deserves: nothing new is begun until they have given it back."""

    def own(self, held: Vector) -> Vector:
        return vectors.smaller(held, self.deserved)

    def over(self, held: Vector) -> Vector:
        return vectors.less(held, self.deserved)


Held = Mapping[str, Vector]


def fill(total: Vector, leaves: Sequence[Leaf], held: Held, measure: Vector | None = None) -> dict[str, Grant]:
    """What each queue may use, if they hold so much. Never above what it deserves; nobody grows but into what is free.

    `held` says by queue what is different from what the queues hold now. `measure` is all there is, where `total` is
    what these queues have of it.
    """
    granted: dict[str, Grant] = {}
    growing: list[tuple[Leaf, Vector]] = []
    for leaf in leaves:
        own = leaf.own(held.get(leaf.key, leaf.held))
        if own == leaf.deserved:
            granted[leaf.key] = _all_of(leaf)
        else:
            growing.append((leaf, own))
    if not growing:
        return granted
    width = len(total)
    owned = vectors.total_of((own for _, own in growing), width)
    wanted = vectors.less(vectors.total_of((leaf.deserved for leaf, _ in growing), width), owned)
    free = vectors.less(total, vectors.total_of((held.get(leaf.key, leaf.held) for leaf in leaves), width))
    if not any(vectors.less(wanted, free)):
        granted.update((leaf.key, _all_of(leaf)) for leaf, _ in growing if leaf.starts)
        growing = [(leaf, own) for leaf, own in growing if not leaf.starts]
    claims = [_claim(leaf, own) for leaf, own in growing]
    shared = drf.share(vectors.plus(owned, free), claims, measure or total)
    granted.update(zip((leaf.key for leaf, _ in growing), shared, strict=True))
    return granted


def missing(total: Vector, leaves: Sequence[Leaf], held: Held) -> Vector:
    """What has to come free before everybody can have what it deserves; all that is used beyond the total, too."""
    wanted = [leaf.deserved for leaf in leaves]
    wanted += [leaf.over(held.get(leaf.key, leaf.held)) for leaf in leaves]
    return vectors.less(vectors.total_of(wanted, len(total)), total)


def _all_of(leaf: Leaf) -> Grant:
    return Grant(leaf.deserved, tuple([block.count for block in leaf.path]))


def _claim(leaf: Leaf, floor: Vector) -> Claim:
    if not leaf.starts:
        return Claim(key=leaf.key, weight=leaf.weight, rest=(0,) * len(floor), floor=floor, path=leaf.path)
    units = vectors.units_of(leaf.path, len(floor))
    rest = vectors.less(leaf.deserved, vectors.larger(floor, units))
    return Claim(key=leaf.key, weight=leaf.weight, path=leaf.path, rest=rest, floor=floor)
