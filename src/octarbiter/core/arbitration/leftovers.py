"""Which units fit into what inner queues were given and could not use?

What an inner queue deserves is counted out in one order and shared among its children in another, so that a little of
it may be of no use to them. That is not kept from others: an inner queue deserves what its children do (and its floor),
and what that leaves goes, in whole units, to whichever leaves have the smallest dominant shares.

Leaves below a cap, or below a policy that shares vectors, do not take part: what they may have is more than their own
affair.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from octarbiter.core.arbitration import drf, policies, vectors
from octarbiter.core.arbitration.claims import Block, Claim, Grant, Vector


def hand_out(total: Vector, roots: Sequence[Claim], policy: str, grants: dict[str, Grant]) -> None:
    """Changes `grants`."""
    if not policies.ordered(policy) or not any(claim.children for claim in roots):
        return
    leaves: list[Claim] = []
    held = vectors.total_of([_settled(claim, grants, leaves, True) for claim in roots], len(total))
    free = vectors.less(total, held)
    if not any(free) or not leaves:
        return
    own = vectors.total_of([grants[leaf.key].held for leaf in leaves], len(total))
    claims = [_remaining(leaf, grants[leaf.key]) for leaf in leaves]
    for leaf, more in zip(leaves, drf.share(vectors.plus(own, free), claims, total), strict=True):
        before = grants[leaf.key].units
        grants[leaf.key] = Grant(more.held, tuple(map(sum, zip(before, more.units[1:], strict=True))))
    for claim in roots:
        _settled(claim, grants, [], True)


def _settled(claim: Claim, grants: dict[str, Grant], leaves: list[Claim], is_open: bool) -> Vector:
    """What a claim and those below it hold of what they were given; adds the leaves that may have more to `leaves`."""
    given = grants[claim.key]
    if not claim.children:
        if is_open:
            leaves.append(claim)
        return given.held
    is_ordered = policies.ordered(claim.policy) is not None
    is_open = is_open and is_ordered and claim.cap is None
    below = [_settled(child, grants, leaves, is_open) for child in claim.children]
    if is_ordered:
        floor = vectors.smaller(claim.floor, given.held)
        grants[claim.key] = Grant(vectors.larger(floor, vectors.total_of(below, len(floor))), ())
    return grants[claim.key].held


def _remaining(leaf: Claim, grant: Grant) -> Claim:
    """The same claim on top of what it has: that is its floor, and what its units and its rest are of that comes first
    on its path."""
    width = len(grant.held)
    units = vectors.units_of((Block(b.unit, n) for b, n in zip(leaf.path, grant.units, strict=True) if n), width)
    rest = vectors.less(grant.held, vectors.larger(leaf.floor, units))
    path = [Block(vectors.plus(units, rest), 1)]
    for block, count in zip(leaf.path, grant.units, strict=True):
        path.append(Block(block.unit, block.count - count, 1 if count else block.least, block.is_barrier))
    return msgspec.structs.replace(leaf, floor=grant.held, path=tuple(path), rest=(0,) * width)
