"""Time for these tests is made, not waited for.

`in_virtual_time(coroutine)` runs it on an event loop whose clock jumps to the next timer whenever nothing can be done
now. An hour of back-off takes a millisecond, and waiting for something that can never happen is an error at once.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest


class _JumpingSelector(selectors.DefaultSelector):
    def __init__(self) -> None:
        super().__init__()
        self.now = 1000.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        events = super().select(0)
        if events or timeout == 0:
            return events
        if timeout is None:
            raise RuntimeError("everybody waits and nothing will ever happen")
        self.now += timeout
        return events


class VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self.jumping = _JumpingSelector()
        super().__init__(self.jumping)

    def time(self) -> float:
        return self.jumping.now


class VirtualClock:
    """A `clock.Clock` that shows the running loop's time; `stall` is time in which the process did not run."""

    stalled = 0.0

    def now(self) -> datetime:
        return datetime(2030, 1, 1, tzinfo=UTC) + timedelta(seconds=self.monotonic())

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time() + self.stalled

    def stall(self, seconds: float) -> None:
        self.stalled += seconds


@pytest.fixture(scope="session")
def in_virtual_time() -> Callable[[Coroutine[Any, Any, Any]], Any]:
    def run(coroutine: Coroutine[Any, Any, Any]) -> Any:
        with asyncio.Runner(loop_factory=VirtualLoop) as runner:
            return runner.run(coroutine)

    return run


@pytest.fixture
def virtual_clock() -> VirtualClock:
    return VirtualClock()
