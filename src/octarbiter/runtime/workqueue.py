"""Which key is looked at next?

A key is a name that something has to be done about, not a message: adding it twice before it is handed out means
once. A key is in one of four places: nowhere, delayed (due later), ready (due, first come first served) or being
processed. Added while being processed, it is handed out again after `done`, so no key is ever in two hands at once
and no reason to look is ever lost.

Belongs to one event loop and is not thread-safe.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import random
from collections import deque
from collections.abc import Callable, Hashable
from typing import Generic, Protocol, TypeVar

from octarbiter.runtime import backoff

K = TypeVar("K", bound=Hashable)

SHORTEST_PAUSE_S = 0.05
LONGEST_PAUSE_S = 60.0
"""Of a key that failed."""

Moment = tuple[float, int]
"""A time and a running number: no two are equal, so ties go to the first and keys need not be comparable."""


class ShutDown(Exception):
    """The queue hands out nothing any more."""


class Observer(Protocol):
    """Where the queue's figures go."""

    def added(self) -> None: ...
    def depth(self, ready: int) -> None: ...
    def handed_out(self, waited_s: float) -> None: ...


class Queue(Generic[K]):
    def __init__(self, observer: Observer | None = None, dice: Callable[[], float] = random.random) -> None:
        self._observer = observer
        self._dice = dice
        self._ready: deque[K] = deque()
        self._ready_since: dict[K, float] = {}
        self._processing: dict[K, float] = {}  # key -> when it was handed out
        self._again: set[K] = set()  # being processed, and due again
        self._due: dict[K, Moment] = {}
        self._delayed: list[tuple[Moment, K]] = []  # heap of `_due`
        self._not_before: dict[K, Moment] = {}
        self._cooling: list[tuple[Moment, K]] = []  # heap of `_not_before`, only to forget in time
        self._pauses: dict[K, backoff.Backoff] = {}
        self._moments = 0
        self._getters: deque[asyncio.Future[None]] = deque()
        self._alarm: asyncio.Handle | None = None
        self._alarm_at = 0.0  # kept here: uvloop's handle of a time that has come does not tell it
        self._shut = False

    def __len__(self) -> int:
        """Keys that are due and wait for a worker."""
        return len(self._ready)

    @property
    def lag_s(self) -> float:
        """How long the key that is next has been due."""
        return self._now() - self._ready_since[self._ready[0]] if self._ready else 0.0

    def add(self, key: K) -> None:
        self.add_after(key, 0.0)

    def add_after(self, key: K, seconds: float) -> None:
        """The earliest due time wins: a later one is dropped, because whoever looks then decides anew."""
        if self._shut:
            return
        if self._observer:
            self._observer.added()
        self._schedule(key, self._now() + max(0.0, seconds))
        self._set_alarm()

    def retry(self, key: K, at_least_s: float = 0.0) -> float:
        """Again after a pause, which is returned, and which grows with every failure until `forget`."""
        pauses = self._pauses.get(key)
        if pauses is None:
            pauses = self._pauses[key] = backoff.Backoff(2 * SHORTEST_PAUSE_S, LONGEST_PAUSE_S, self._dice)
        pause = pauses.next_pause(at_least_s)
        self.add_after(key, pause)
        return pause

    def forget(self, key: K) -> None:
        """It went well: the next `retry` starts with the shortest pause."""
        self._pauses.pop(key, None)

    def cooldown(self, key: K, seconds: float) -> None:
        """Do not hand the key out again until so long after its present start (after now, if nobody has it).

        Said by whoever processes the key, in proportion to what a look costs. Whatever makes the key due meanwhile
        is kept, not lost.
        """
        self._note(self._cooling, self._not_before, key, self._processing.get(key, self._now()) + seconds)
        self._set_alarm()

    async def get(self) -> K:
        """The next key that is due; `done` must follow. Raises ShutDown."""
        while True:
            if self._shut:
                raise ShutDown
            now = self._now()
            self._promote(now)
            if self._ready:
                key = self._ready.popleft()
                waited = now - self._ready_since.pop(key)
                self._processing[key] = now
                self._not_before.pop(key, None)
                self._set_alarm()
                if self._observer:
                    self._observer.handed_out(waited)
                    self._observer.depth(len(self._ready))
                return key
            await self._wait()

    def done(self, key: K) -> None:
        del self._processing[key]
        if key in self._again:
            self._again.discard(key)
            self._schedule(key, self._now())
            self._set_alarm()

    def shut_down(self) -> None:
        """Everybody in `get` gets ShutDown. What is queued is dropped: the next process looks at everything anyway."""
        self._shut = True
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        while self._getters:
            self._wake_one()

    def _now(self) -> float:
        return asyncio.get_running_loop().time()

    def _note(self, heap: list[tuple[Moment, K]], valid: dict[K, Moment], key: K, at: float) -> None:
        """`heap` is an index of `valid`: an entry that `valid` does not confirm is out of date and is skipped.

        Such entries would pile up where keys that are due in an hour become due at once again and again, so the heap
        is swept when they are the majority: constant cost per push.
        """
        self._moments += 1
        moment = valid[key] = (at, self._moments)
        heapq.heappush(heap, (moment, key))
        if len(heap) > 64 + 2 * len(valid):
            heap[:] = [entry for entry in heap if valid.get(entry[1]) == entry[0]]
            heapq.heapify(heap)

    def _schedule(self, key: K, due: float) -> None:
        now = self._now()
        if key in self._ready_since or key in self._again:
            return
        if key in self._not_before:
            due = max(due, self._not_before[key][0])
        if due <= now:
            self._due.pop(key, None)
            self._make_ready(key, now)
        elif key not in self._due or due < self._due[key][0]:
            self._note(self._delayed, self._due, key, due)

    def _make_ready(self, key: K, now: float) -> None:
        if key in self._processing:
            self._again.add(key)
            return
        self._ready_since[key] = now
        self._ready.append(key)
        if self._observer:
            self._observer.depth(len(self._ready))
        self._wake_one()

    def _promote(self, now: float) -> None:
        """Moves what has become due from the heap to the end of the line."""
        while self._delayed and self._delayed[0][0][0] <= now:
            due, key = heapq.heappop(self._delayed)
            if self._due.get(key) == due:
                del self._due[key]
                self._schedule(key, due[0])  # a cooldown said meanwhile may put it off once more
        while self._cooling and self._cooling[0][0][0] <= now:
            until, key = heapq.heappop(self._cooling)
            if self._not_before.get(key) == until:
                del self._not_before[key]

    def _set_alarm(self) -> None:
        """One timer, for what comes first: a delayed key is due, or a cooldown can be forgotten."""
        heads = [heap[0][0][0] for heap in (self._delayed, self._cooling) if heap]
        if not heads or self._shut:
            return
        due = min(heads)
        if self._alarm is not None:
            if self._alarm_at <= due:
                return
            self._alarm.cancel()
        self._alarm, self._alarm_at = asyncio.get_running_loop().call_at(due, self._ring), due

    def _ring(self) -> None:
        self._alarm = None
        self._promote(self._now())
        self._set_alarm()

    async def _wait(self) -> None:
        getter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._getters.append(getter)
        try:
            await getter
        except asyncio.CancelledError:
            if getter.done() and not getter.cancelled():
                self._wake_one()  # it was woken and cancelled at once: the key it was woken for goes to another
            else:
                with contextlib.suppress(ValueError):
                    self._getters.remove(getter)
            raise

    def _wake_one(self) -> None:
        while self._getters:
            getter = self._getters.popleft()
            if not getter.done():
                getter.set_result(None)
                return
