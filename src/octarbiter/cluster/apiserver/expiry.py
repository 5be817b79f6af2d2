"""What goes by itself? Events, an hour after they were last written.

They are remembered in the order of their writing, so that looking for old ones costs nothing where there are none.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Final

from octarbiter.api.meta import Json
from octarbiter.cluster.apiserver import kinds, objects
from octarbiter.cluster.apiserver.catalogue import Served
from octarbiter.cluster.store.entries import Entry
from octarbiter.cluster.store.errors import Conflict, StoreError
from octarbiter.cluster.store.store import Store

KEPT: Final = timedelta(hours=1)
_PAUSE_S: Final = 30.0
_AT_ONCE: Final = 200

log = logging.getLogger(__name__)


class Expiry:
    def __init__(self, store: Store, clock: Callable[[], datetime]) -> None:
        self._store = store
        self._clock = clock
        self._written: deque[tuple[datetime, str, str]] = deque()
        """When, which key, at which revision: the oldest first."""
        self._sweeping: asyncio.Task[None] | None = None

    def start(self) -> None:
        found = [(_last_written(entry) or self._clock(), entry) for entry in self._store.list(kinds.EVENTS.root)]
        self._written.extend(
            (when, entry.key, str(entry.revision)) for when, entry in sorted(found, key=lambda pair: pair[0])
        )
        self._sweeping = asyncio.create_task(self._sweep_for_ever(), name="expiry")

    async def stop(self) -> None:
        if self._sweeping is not None:
            self._sweeping.cancel()
            with suppress(asyncio.CancelledError):
                await self._sweeping

    def witness(self, served: Served, obj: Json, gone: bool) -> None:
        if not gone and served.resource.root == kinds.EVENTS.root:
            metadata = obj["metadata"]
            key = kinds.EVENTS.key(metadata["namespace"], metadata["name"])
            self._written.append((self._clock(), key, metadata["resourceVersion"]))

    async def sweep(self) -> None:
        """Removes what is due by now, unless it was written again."""
        due = self._clock() - KEPT
        while self._written and self._written[0][0] <= due:
            batch: list[tuple[datetime, str, str]] = []
            while self._written and self._written[0][0] <= due and len(batch) < _AT_ONCE:
                batch.append(self._written.popleft())
            try:
                await asyncio.gather(*(self._remove(key, int(revision)) for _, key, revision in batch))
            except StoreError:
                self._written.extendleft(reversed(batch))
                raise

    async def _remove(self, key: str, revision: int) -> None:
        entry = self._store.latest(key)
        if entry is None or entry.revision != revision:
            return
        event = objects.loaded(entry.value, kinds.EVENTS)
        with suppress(Conflict):
            await self._store.delete(key, lambda at: objects.stamped(event, kinds.EVENTS, at), expected=revision)

    async def _sweep_for_ever(self) -> None:
        while True:
            try:
                await self.sweep()
            except StoreError as problem:
                log.warning("old events were not removed", extra={"why": str(problem)})
            await asyncio.sleep(_PAUSE_S)


def _last_written(entry: Entry) -> datetime | None:
    metadata = objects.loaded(entry.value, kinds.EVENTS)["metadata"]
    times = [metadata.get("creationTimestamp"), *(each.get("time") for each in metadata.get("managedFields") or [])]
    found = [moment for time in times if time and (moment := objects.read_time(time))]
    return max(found, default=None)
