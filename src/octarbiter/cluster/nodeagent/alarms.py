"""Who is to be woken when? One heap and one timer for any number of sleepers."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable, Hashable
from datetime import datetime
from typing import Generic, TypeVar

from octarbiter.runtime import clock as clocks

K = TypeVar("K", bound=Hashable)


class Alarms(Generic[K]):
    """A key has one alarm at most; setting it again replaces the old one."""

    def __init__(self, ring: Callable[[K], None], clock: clocks.Clock = clocks.SYSTEM) -> None:
        self._ring = ring
        self._clock = clock
        self._due: dict[K, tuple[datetime, int]] = {}
        self._heap: list[tuple[datetime, int, K]] = []
        self._count = 0
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at: datetime | None = None

    def __len__(self) -> int:
        return len(self._due)

    def set(self, key: K, at: datetime) -> None:
        self._count += 1
        self._due[key] = (at, self._count)
        heapq.heappush(self._heap, (at, self._count, key))
        if len(self._heap) > 64 + 2 * len(self._due):  # mostly alarms that were replaced
            self._heap = [entry for entry in self._heap if self._due.get(entry[2]) == entry[:2]]
            heapq.heapify(self._heap)
        self._arm()

    def cancel(self, key: K) -> None:
        self._due.pop(key, None)

    def close(self) -> None:
        self._due.clear()
        self._heap.clear()
        if self._timer is not None:
            self._timer.cancel()

    def _arm(self) -> None:
        if not self._heap:
            return
        at = self._heap[0][0]
        if self._timer is not None:
            if self._timer_at is not None and self._timer_at <= at:
                return
            self._timer.cancel()
        delay = max(0.0, (at - self._clock.now()).total_seconds())
        self._timer, self._timer_at = asyncio.get_running_loop().call_later(delay, self._go_off), at

    def _go_off(self) -> None:
        self._timer = None
        now, due = self._clock.now(), []
        while self._heap and self._heap[0][0] <= now:
            at, number, key = heapq.heappop(self._heap)
            if self._due.get(key) == (at, number):
                del self._due[key]
                due.append(key)
        self._arm()
        for key in due:
            self._ring(key)
