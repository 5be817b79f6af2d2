"""How much of the past is kept?

As long as a client may be away and come back without having to list everything again, and no more rows than a disk
bears. Ages are told from what this process has seen: what was there when it started counts as new.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque

from octarbiter.cluster.store.errors import WriteFailed
from octarbiter.cluster.store.store import Store

KEPT_S = 300.0
MOST_CHANGES = 100_000
PAUSE_S = 10.0

log = logging.getLogger(__name__)


class Retention:
    def __init__(self, kept_s: float = KEPT_S, most: int = MOST_CHANGES) -> None:
        self._kept_s = kept_s
        self._most = most
        self._seen: deque[tuple[float, int]] = deque()
        self._old = 0

    def horizon(self, revision: int, now: float) -> int:
        """Up to which revision may be forgotten, now that this is the present one? To be asked from time to time."""
        self._seen.append((now, revision))
        while self._seen[0][0] <= now - self._kept_s:
            self._old = self._seen.popleft()[1]
        return max(self._old, revision - self._most)


async def keep(store: Store, retention: Retention, pause_s: float = PAUSE_S) -> None:
    """Compacts from time to time, until it is cancelled."""
    while True:
        horizon = retention.horizon(store.revision, asyncio.get_running_loop().time())
        if horizon > store.horizon:
            try:
                await store.compact(horizon)
            except WriteFailed as error:
                log.warning("the past was not compacted, will try again", extra={"error": str(error)})
        await asyncio.sleep(pause_s)
