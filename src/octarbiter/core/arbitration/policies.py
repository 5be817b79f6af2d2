"""Which policies are there, and does one of them keep its promise?

The installation and every inner queue name theirs. A user's own one is a class (or any callable that makes one) under
the entry point group `octarbiter.policies` of an installed package; it has one method, `share`, and is made once.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from importlib import metadata
from typing import Protocol, cast

from octarbiter.api.errors import FieldProblem, Refused
from octarbiter.core.arbitration import capacity, drf, filling, hdrf, precedence, proportion, vectors
from octarbiter.core.arbitration.claims import Block, Claim, Grant, Policy, Vector

GROUP = "octarbiter.policies"


class Ordered(Protocol):
    """A policy that serves whole units, in an order of its own."""

    def share(self, total: Vector, claims: Sequence[Claim], measure: Vector | None = None) -> list[Grant]: ...

    def path(self, measure: Vector, claims: Sequence[Claim]) -> tuple[Block, ...]:
        """The units of these claims, beyond their floors, in that order."""
        ...


# Modules are policies, too: each has the functions of the protocol.
_ORDERED: dict[str, Ordered] = {
    "drf": drf,
    hdrf.NAME: hdrf,
    "priority": precedence.Priority(),
    "fifo": precedence.Fifo(),
}
_VECTORS: dict[str, Policy] = {"proportion": proportion, "capacity": capacity}


def names() -> tuple[str, ...]:
    return tuple(sorted({*_ORDERED, *_VECTORS, *_foreign()}))


def ordered(name: str) -> Ordered | None:
    """None: it shares vectors, or is a user's own."""
    return _ORDERED.get(name)


def by_name(name: str) -> Policy:
    own = _ORDERED.get(name) or _VECTORS.get(name)
    if own:
        return own
    entry = _foreign().get(name)
    if entry is None:
        raise Refused([FieldProblem("policy", f"there is no policy {name!r}, only {', '.join(names())}")])
    return _made(name, entry)


def share(name: str, total: Vector, claims: Sequence[Claim]) -> list[Grant]:
    """As the policy says, if that can be: what a user's own policy answers is checked first."""
    policy = by_name(name)
    grants = policy.share(total, claims)
    if name in _ORDERED or name in _VECTORS:
        return grants
    problems = broken(total, claims, grants)
    if problems:
        raise Refused(
            [FieldProblem("policy", f"{name} {problem}; nothing of it is carried out") for problem in problems]
        )
    return [
        Grant(grant.held, grant.units or filling.in_order(claim, grant.held))
        for claim, grant in zip(claims, grants, strict=True)
    ]


def broken(total: Vector, claims: Sequence[Claim], grants: Sequence[Grant]) -> list[str]:
    """How an answer breaks what `Policy` promises, in words."""
    if len(grants) != len(claims):
        return [f"answers with {len(grants)} grants for {len(claims)} claims"]
    problems = []
    for claim, grant in zip(claims, grants, strict=True):
        problem = _broken_grant(claim, grant, len(total))
        if problem:
            problems.append(f"{problem} {claim.key}")
    if problems:
        return problems
    for place, there in enumerate(vectors.clamped(total)):
        given = sum(grant.held[place] for grant in grants)
        if given > there:
            problems.append(f"gives out {given} of resource {place}, of which there is {there}")
    return problems


def _broken_grant(claim: Claim, grant: Grant, width: int) -> str:
    if len(grant.held) != width or not all(isinstance(amount, int) and amount >= 0 for amount in grant.held):
        return f"holds {grant.held!r}, not {width} whole numbers, for"
    if vectors.smaller(grant.held, vectors.asked(claim)) != grant.held:
        return "gives more than it asks for, or than its cap, to"
    if grant.units:
        if len(grant.units) != len(claim.path):
            return "counts other units than are on the path of"
        if not all(0 <= some <= block.count for some, block in zip(grant.units, claim.path, strict=True)):
            return "gives more units than are on the path of"
        given = [Block(block.unit, some) for some, block in zip(grant.units, claim.path, strict=True)]
        if vectors.less(vectors.units_of(given, width), grant.held) != (0,) * width:
            return "gives units that do not fit into what is held by"
    return ""


@functools.cache
def _foreign() -> dict[str, metadata.EntryPoint]:
    return {entry.name: entry for entry in metadata.entry_points(group=GROUP)}


@functools.cache
def _made(name: str, entry: metadata.EntryPoint) -> Policy:
    policy = entry.load()()
    if not callable(getattr(policy, "share", None)):
        raise Refused([FieldProblem("policy", f"{name} ({entry.value}) has no method share(total, claims)")])
    return cast(Policy, policy)
