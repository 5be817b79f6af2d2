"""How much is there for the queues to share?

What nodes that can take pods offer, less what pods outside every queue use there, plus what queues' pods use on all
other nodes: a cordon takes away only what comes free there, and nobody elsewhere has to make room for it.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from octarbiter.api import resources
from octarbiter.api.resources import Amounts


class Node(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    name: str
    allocatable: Amounts
    takes_pods: bool
    """Ready, and not cordoned."""
    used_by_queues: Amounts = {}
    used_by_others: Amounts = {}


class Supply(msgspec.Struct, frozen=True, gc=False):
    total: Amounts
    missing: Amounts = {}
    """What pods outside every queue use beyond all there is: counted as nothing, and worth telling."""

    @property
    def sentence(self) -> str:
        """Empty: all is well."""
        if not self.missing:
            return ""
        told = ", ".join(f"{resources.shown(name, amount)} {name}" for name, amount in sorted(self.missing.items()))
        return (
            f"pods outside every queue use {told} more than the nodes that take pods have: the queues share none of it"
        )


def supply(nodes: Iterable[Node]) -> Supply:
    total: Amounts = {}
    for node in nodes:
        parts = [(node.used_by_queues, 1)]
        if node.takes_pods:
            parts = [(node.allocatable, 1), (node.used_by_others, -1)]
        for amounts, sign in parts:
            for name, amount in amounts.items():
                total[name] = total.get(name, 0) + sign * amount
    return Supply(
        {name: max(0, amount) for name, amount in total.items()},
        {name: -amount for name, amount in total.items() if amount < 0},
    )
