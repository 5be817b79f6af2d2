"""Whose write is next?

All writes of a process share a few slots. They are granted in turn between keys (one key = one object being worked
on), so five thousand creates of one TaskSet and two of another proceed side by side: the small one waits for one
round, not for five thousand writes.

The number of slots follows the server: halved when it says it is busy, one more after each full round of successes,
never above the configured limit.

Belongs to one event loop and is not thread-safe.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Hashable
from types import TracebackType

from octarbiter.api import errors

LONGEST_PAUSE_S = 60.0
"""However long the server asks us to stay away: a wrong `Retry-After` must not stop all work."""

Waiting = OrderedDict[asyncio.Future[None], None]


class FairGate:
    def __init__(self, limit: int, guard: Callable[[], None] | None = None) -> None:
        """`guard` is called right before each slot is handed over and refuses the write by raising."""
        if limit < 1:
            raise ValueError(f"a gate needs at least one slot, not {limit}")
        self.limit = limit
        self._guard = guard
        self._allowed = float(limit)
        self._in_flight = 0
        self._slow_downs = 0
        self._closed_until = 0.0
        self._alarm: asyncio.TimerHandle | None = None
        # Keys in the order of their turns. OrderedDicts and not deques: a cancelled waiter leaves in O(1).
        self._turns: OrderedDict[Hashable, Waiting] = OrderedDict()

    @property
    def allowed(self) -> int:
        """Slots at present: the limit, or less while the server is slow."""
        return int(self._allowed)

    @property
    def in_flight(self) -> int:
        return self._in_flight

    @property
    def waiting(self) -> int:
        return sum(len(waiting) for waiting in self._turns.values())

    def slot(self, key: Hashable) -> Slot:
        """`async with gate.slot(key): <one write>`."""
        return Slot(self, key)

    def slow_down(self, after: float = 0.0) -> None:
        """Half the slots, and none is granted for `after` seconds."""
        self._slow_downs += 1
        self._allowed = max(1.0, self._allowed / 2)
        if after > 0:
            until = asyncio.get_running_loop().time() + min(after, LONGEST_PAUSE_S)
            self._closed_until = max(self._closed_until, until)

    async def _acquire(self, key: Hashable) -> int:
        """Returns the number of slow-downs seen so far: see `_release`."""
        if self._turns or not self._is_open():
            await self._wait(key)
        else:
            self._in_flight += 1
        if self._guard is not None:
            try:
                self._guard()
            except BaseException:
                self._give_back()
                raise
        return self._slow_downs

    def _release(self, slow_downs_at_start: int, error: BaseException | None) -> None:
        if isinstance(error, errors.Retry):
            # Writes that were under way at the last slow-down tell nothing new: one refusal of a full house of 32
            # would otherwise be heard 32 times and leave a single slot.
            if slow_downs_at_start == self._slow_downs:
                self.slow_down(error.after)
        elif error is None or isinstance(error, errors.ApiError):  # a refusal is an answer, too
            self._allowed = min(float(self.limit), self._allowed + 1.0 / self._allowed)
        self._give_back()

    def _give_back(self) -> None:
        self._in_flight -= 1
        if self._turns:
            self._grant()

    def _is_open(self) -> bool:
        if self._closed_until:
            if asyncio.get_running_loop().time() < self._closed_until:
                return False
            self._closed_until = 0.0
        return self._in_flight < int(self._allowed)

    def _grant(self) -> None:
        while self._turns and self._is_open():
            key, waiting = self._turns.popitem(last=False)
            future, _ = waiting.popitem(last=False)
            if waiting:
                self._turns[key] = waiting  # to the end: the others come first
            if not future.done():  # else it was cancelled a moment ago and its task has not run yet
                self._in_flight += 1
                future.set_result(None)
        self._set_alarm()

    def _set_alarm(self) -> None:
        if self._turns and self._closed_until and self._alarm is None:
            self._alarm = asyncio.get_running_loop().call_at(self._closed_until, self._ring)

    def _ring(self) -> None:
        self._alarm = None
        self._grant()

    async def _wait(self, key: Hashable) -> None:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiting = self._turns.get(key)
        if waiting is None:
            waiting = self._turns[key] = OrderedDict()
        waiting[future] = None
        self._set_alarm()
        try:
            await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled():
                self._give_back()  # granted and cancelled at once
            else:
                waiting.pop(future, None)
                if not waiting and self._turns.get(key) is waiting:
                    del self._turns[key]
            raise


class Slot:
    """One use of the gate."""

    __slots__ = ("_gate", "_key", "_slow_downs")

    def __init__(self, gate: FairGate, key: Hashable) -> None:
        self._gate = gate
        self._key = key
        self._slow_downs = 0

    async def __aenter__(self) -> None:
        self._slow_downs = await self._gate._acquire(self._key)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._gate._release(self._slow_downs, error)
