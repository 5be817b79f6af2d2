"""What changed after a revision?

The last changes are kept in memory, because nearly everybody asks for those. What is older is read from the log, in
stretches. Below the horizon nothing can be told.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Awaitable, Callable, Sequence
from operator import attrgetter

from octarbiter.cluster.store.entries import Change
from octarbiter.cluster.store.errors import Compacted, Future

WINDOW = 8192
"""Changes that are kept in memory, at least, if they are small."""

WINDOW_BYTES = 32 << 20
"""Of their values, at most."""

Replay = Callable[[str, int, int], Awaitable[Sequence[Change]]]
"""(prefix, after, until): from the log."""

_revision = attrgetter("revision")


class History:
    def __init__(self, revision: int, horizon: int, replay: Replay, window: int = WINDOW) -> None:
        self.revision = revision
        """The last that is durable."""
        self.horizon = horizon
        """The oldest that can be told of."""
        self.start = revision
        """What came after it is in memory."""
        self._replay = replay
        self._window = window
        self._recent: list[Change] = []
        self._bytes = 0

    def check(self, revision: int) -> None:
        """Raises Compacted or Future."""
        if revision < self.horizon:
            raise Compacted(revision, self.horizon)
        if revision > self.revision:
            raise Future(revision, self.revision)

    def append(self, changes: Sequence[Change]) -> None:
        self.revision = changes[-1].revision
        self._recent += changes
        self._bytes += sum(len(change.value) for change in changes)
        if len(self._recent) > 2 * self._window or self._bytes > WINDOW_BYTES:
            self._forget()

    def recent(self, after: int) -> Sequence[Change]:
        """From memory; `after` must not be before `start`."""
        return self._recent[bisect_right(self._recent, after, key=_revision) :]

    async def older(self, prefix: str, after: int, until: int) -> Sequence[Change]:
        """From the log. Raises Compacted when the horizon has passed by meanwhile."""
        changes = await self._replay(prefix, after, until)
        if after < self.horizon:
            raise Compacted(after, self.horizon)
        return changes

    def _forget(self) -> None:
        """Down to half of what is allowed: then it is not done for every change."""
        first = len(self._recent)
        kept = 0
        for change in reversed(self._recent[-self._window :]):
            kept += len(change.value)
            if kept > WINDOW_BYTES // 2:
                kept -= len(change.value)
                break
            first -= 1
        if first:
            self.start = self._recent[first - 1].revision
            del self._recent[:first]
        self._bytes = kept
