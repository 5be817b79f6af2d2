"""In which words do queues ask a policy for their share, and does a policy answer?

Amounts are vectors here: tuples of whole numbers, one for each resource there is or that anybody asks for, all in
the same order. A policy knows nothing else of queues, so a user's own policy need not, either.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

import msgspec

Vector = tuple[int, ...]


class Block(msgspec.Struct, frozen=True, gc=False):
    """Equal units of one job, the next on the way of its queue."""

    unit: Vector
    count: int
    least: int = 1
    """So many at once, or none; then one by one."""
    is_barrier: bool = False
    """It has waited for long: if it does not get all of `count`, nothing behind it on the path is tried."""


class Claim(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What one queue asks for. It asks in this order: the floor, the units of its path, then the rest.

    What it holds is the larger, per resource, of the floor and the sum of its units (a unit may be what the floor has
    already paid for), plus what it has of the rest.
    """

    key: str
    """Decides ties."""
    weight: int = 1
    path: tuple[Block, ...] = ()
    rest: Vector
    """Divisible: it grows along this vector, all resources in step."""
    floor: Vector
    """Comes first, before anybody gets anything else."""
    cap: Vector | None = None
    """It never holds more than this."""
    promised: Vector | None = None
    priority: int = 0
    since: datetime | None = None
    """When its oldest unfinished claim was made."""
    children: tuple[Claim, ...] = ()
    """Of an inner queue. `path`, `rest` and `floor` are then those of the children together, in the order in which the
    queue's own policy would serve them."""
    policy: str = ""
    """Of an inner queue: shares among its children."""


class Grant(msgspec.Struct, frozen=True, gc=False):
    held: Vector
    units: tuple[int, ...]
    """Of each block of the path, how many."""


class Policy(Protocol):
    """`share` answers with one grant for each claim, in their order.

    The sum of what is held never exceeds `total`, nobody holds more than asked (the floor included) or than its cap.
    Floors are cut, in proportion and rounded down, if they exceed the total together.
    """

    def share(self, total: Vector, claims: Sequence[Claim]) -> list[Grant]: ...
