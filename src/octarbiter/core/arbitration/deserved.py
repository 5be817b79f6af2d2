"""How much does each queue deserve?

From below, inner queues learn what their children ask for; from above, what a queue deserves is shared among its
children, by its own policy, down to the leaves.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from octarbiter.core.arbitration import hdrf, leftovers, paths, policies, vectors
from octarbiter.core.arbitration.claims import Claim, Grant, Vector


def deserve(total: Vector, roots: Sequence[Claim], policy: str) -> dict[str, Grant]:
    """By key, of every claim in the trees. `units` is empty for inner ones.

    Of an inner claim only its own floor, cap and so on are looked at; what it asks for is what its children do.
    """
    total = vectors.clamped(total)
    grants: dict[str, Grant] = {}
    asking = [_with_children(claim, policy, total) for claim in roots]
    _share(total, asking, policy, total, grants)
    leftovers.hand_out(total, asking, policy, grants)
    return grants


def _with_children(claim: Claim, inherited: str, measure: Vector) -> Claim:
    """What an inner claim asks for: the path, rest and floor of its children together."""
    if not claim.children:
        return claim
    # One queue's mistake must not stop the sharing for all: a policy that is not there is as none at all.
    policy = claim.policy if claim.policy in policies.names() else inherited
    children = tuple(_with_children(child, policy, measure) for child in claim.children)
    width = len(measure)
    floors = vectors.total_of(vectors.floors(measure, children), width)
    # The hierarchical policy looks at the children themselves: any order of what they ask for will do.
    order = policies.ordered("drf" if policy == inherited == hdrf.NAME else policy)
    path = paths.Path(floors)
    if order:
        path.extend(order.path(measure, children))
        rest = vectors.total_of((vectors.clamped(child.rest) for child in children), width)
    else:
        rest = vectors.less(vectors.total_of(map(vectors.asked, children), width), floors)
    inner = msgspec.structs.replace(
        claim,
        path=path.blocks(),
        rest=rest,
        children=children,
        policy=policy,
        since=claim.since or min((child.since for child in children if child.since), default=None),
    )
    asked = vectors.asked(msgspec.structs.replace(inner, floor=floors))
    return msgspec.structs.replace(inner, floor=vectors.smaller(vectors.larger(claim.floor, floors), asked))


def _share(total: Vector, claims: Sequence[Claim], policy: str, measure: Vector, grants: dict[str, Grant]) -> None:
    order = policies.ordered(policy)
    shared = order.share(total, claims, measure) if order else policies.share(policy, total, claims)
    for claim, grant in zip(claims, shared, strict=True):
        if not claim.children:
            grants[claim.key] = grant
            continue
        grants[claim.key] = Grant(grant.held, ())
        # What it deserves in units was counted out in parts of the same measure as its path; a vector is the whole
        # that its children have parts of.
        _share(grant.held, claim.children, claim.policy, measure if order else grant.held, grants)
