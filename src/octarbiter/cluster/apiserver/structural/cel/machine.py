"""What does an expression run on, and how long may it?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

CALL_LIMIT = 1_000_000


class CostExceeded(Exception):
    """It takes too long; nothing in the expression may hide that."""


class Machine:
    __slots__ = ("cost", "limit", "variables")

    def __init__(self, variables: dict[str, Any], limit: int = CALL_LIMIT) -> None:
        self.variables = variables
        self.limit = limit
        self.cost = 0

    def spend(self, cost: int) -> None:
        self.cost += cost
        if self.cost > self.limit:
            raise CostExceeded("operation cancelled: actual cost limit exceeded")


Program = Callable[[Machine], Any]
