"""What time is it? The only place that reads a clock. Whoever needs one takes a `Clock`; tests pass their own."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    def now(self) -> datetime:
        """The time people see: in UTC, aware."""
        ...

    def monotonic(self) -> float:
        """Seconds that never go back, for durations."""
        ...


class SystemClock:
    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        # Goes on while the machine sleeps, unlike CLOCK_MONOTONIC: a lease runs out in the meantime, too.
        return time.clock_gettime(time.CLOCK_BOOTTIME)


SYSTEM = SystemClock()
