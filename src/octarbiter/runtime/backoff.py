"""How long until the next try? Doubling pauses with jitter: those who failed together do not return together."""

from __future__ import annotations

import random
from collections.abc import Callable


class Backoff:
    def __init__(self, first_s: float, longest_s: float, dice: Callable[[], float] = random.random) -> None:
        self._first_s = first_s
        self._longest_s = longest_s
        self._dice = dice
        self._failures = 0

    def next_pause(self, at_least_s: float = 0.0) -> float:
        """`at_least_s`: what the other side asked for. The jitter is added, never taken off it."""
        pause = min(self._longest_s, self._first_s * 2.0 ** min(self._failures, 32))
        self._failures += 1
        return max(at_least_s, pause / 2) + self._dice() * pause / 2

    def reset(self) -> None:
        self._failures = 0
