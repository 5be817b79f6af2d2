"""Who wants to know of a change, and how far have they read?

A watch is either behind (it reads history until it has caught up with what is in memory) or live (changes are handed
to it as they become durable). It becomes live within one step of the event loop, so nothing can fall between.

Changes are handed over as lists that are made once and shared by everybody who watches the same prefix.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence

import msgspec

from octarbiter.cluster.store import entries, log
from octarbiter.cluster.store.entries import Change
from octarbiter.cluster.store.errors import Closed, StoreError, TooSlow
from octarbiter.cluster.store.history import History

BACKLOG = 8192
"""Changes that may wait for a reader."""

BACKLOG_BYTES = 32 << 20
"""Of their values."""


class Portion(msgspec.Struct, frozen=True):
    changes: Sequence[Change]
    size: int
    """Bytes of the values."""


class Watch:
    """`async for changes in watch`: every change of the prefix, once, in order, in lists that are not empty.

    For one reader. Raises TooSlow, Compacted (it was so far behind that history ended before it) and Closed; ends
    when `close` is called.
    """

    def __init__(self, hub: Hub, prefix: str, after: int) -> None:
        self.prefix = prefix
        self._hub = hub
        self._read_until = after
        self._live = False
        self._portions: deque[Portion] = deque()
        self._waiting = 0
        self._waiting_bytes = 0
        self._closed = False
        self._error: StoreError | None = None
        self._wake: asyncio.Future[None] | None = None
        self._join()

    @property
    def position(self) -> int:
        """Everything of this prefix up to this revision has been handed out: what a bookmark may say."""
        return self._hub.history.revision if self._live and not self._portions else self._read_until

    def close(self) -> None:
        self._closed = True
        self._leave()
        self._ring()

    def push(self, portion: Portion) -> None:
        waiting, size = self._waiting + len(portion.changes), self._waiting_bytes + portion.size
        # Whoever has read everything is not slow, however much comes at once.
        if self._portions and (waiting > self._hub.backlog or size > BACKLOG_BYTES):
            self.cut_off(TooSlow(self.prefix))
            return
        self._waiting, self._waiting_bytes = waiting, size
        self._portions.append(portion)
        self._ring()

    def cut_off(self, why: StoreError) -> None:
        self._error = why
        self._leave()
        self._ring()

    def __aiter__(self) -> Watch:
        return self

    async def __anext__(self) -> Sequence[Change]:
        while True:
            if self._closed:
                raise StopAsyncIteration
            if self._error is not None:
                raise self._error
            if self._portions:
                return self._take()
            if self._live:
                await self._woken()
            elif not self._join():
                changes = await self._stretch()
                if changes:
                    return changes

    def _take(self) -> Sequence[Change]:
        portion = self._portions.popleft()
        self._waiting -= len(portion.changes)
        self._waiting_bytes -= portion.size
        self._read_until = portion.changes[-1].revision
        return portion.changes

    def _join(self) -> bool:
        """Becomes live, if all that is missing is in memory."""
        history = self._hub.history
        if self._read_until < history.start:
            return False
        missed = [change for change in history.recent(self._read_until) if change.key.startswith(self.prefix)]
        if missed:
            self.push(portion_of(missed))
        self._live = True
        self._hub.add(self)
        return True

    async def _stretch(self) -> Sequence[Change]:
        """The next piece of history. Whoever is cancelled here finds it again."""
        history = self._hub.history
        until = min(self._read_until + log.STRETCH, history.start)
        changes = await history.older(self.prefix, self._read_until, until)
        self._read_until = until
        return changes

    def _leave(self) -> None:
        """What waits is dropped, too: a watch that nobody reads must not hold on to it."""
        self._portions.clear()
        if self._live:
            self._live = False
            self._hub.remove(self)

    async def _woken(self) -> None:
        self._wake = asyncio.get_running_loop().create_future()
        try:
            await self._wake
        finally:
            self._wake = None

    def _ring(self) -> None:
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)


Group = dict[str, dict[Watch, None]]
"""Watches by prefix, in the order they came."""


class Hub:
    """All live watches, by the resource they watch: a change touches those of its resource only."""

    def __init__(self, history: History, backlog: int = BACKLOG) -> None:
        self.history = history
        self.backlog = backlog
        self._groups: dict[str, Group] = {}

    def watch(self, prefix: str, after: int) -> Watch:
        """Raises Compacted, Future."""
        self.history.check(after)
        return Watch(self, prefix, after)

    def publish(self, changes: Sequence[Change]) -> None:
        """To be called right after `history.append` of the same changes."""
        by_resource: dict[str, list[Change]] = {}
        for change in changes:
            by_resource.setdefault(entries.resource_of(change.key), []).append(change)
        for resource, some in by_resource.items():
            self._hand_over(some, resource)
        self._hand_over(changes, "")

    def add(self, watch: Watch) -> None:
        group = self._groups.setdefault(entries.resource_of(watch.prefix), {})
        group.setdefault(watch.prefix, {})[watch] = None

    def remove(self, watch: Watch) -> None:
        resource = entries.resource_of(watch.prefix)
        group = self._groups[resource]
        del group[watch.prefix][watch]
        if not group[watch.prefix]:
            del group[watch.prefix]
            if not group:
                del self._groups[resource]

    def close(self) -> None:
        for watch in [each for group in self._groups.values() for some in group.values() for each in some]:
            watch.cut_off(Closed())

    def _hand_over(self, changes: Sequence[Change], resource: str) -> None:
        for prefix, watches in list(self._groups.get(resource, {}).items()):
            whole = prefix == resource
            matching = changes if whole else [change for change in changes if change.key.startswith(prefix)]
            if matching:
                portion = portion_of(matching)
                for watch in list(watches):
                    watch.push(portion)


def portion_of(changes: Sequence[Change]) -> Portion:
    return Portion(changes, sum(len(change.value) for change in changes))
