"""Asks pods to go, through the Eviction API: with their own grace period, and only if their budgets allow it.

Nothing is remembered across restarts, and need not be: a pod that was asked to go has a deletion timestamp.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable

from octarbiter.api import errors, scheme
from octarbiter.api.core_kinds import ObjectReference
from octarbiter.core.arbitration.state import Eviction
from octarbiter.runtime import client as clients
from octarbiter.runtime import clock, events, fairness, requests

BLOCKED_S = 10.0
"""A pod that its budget protects is left alone for so long: others are looked for."""
REASON = "Preempted"

log = logging.getLogger(__name__)


class Budget:
    """At most so many evictions in so many seconds."""

    def __init__(self, count: int, seconds: float) -> None:
        self._count, self._seconds = count, seconds
        self._times: deque[float] = deque()

    def left(self, now: float) -> int:
        while self._times and self._times[0] <= now - self._seconds:
            self._times.popleft()
        return self._count - len(self._times)

    def take(self, now: float) -> None:
        self._times.append(now)


class Evictor:
    def __init__(
        self,
        client: clients.Client,
        gate: fairness.FairGate,
        recorder: events.Recorder,
        budget: Budget,
        gone: Callable[[str, str], None],
        clock_: clock.Clock = clock.SYSTEM,
    ) -> None:
        """`gone` is told the key and the UID of a pod that was not there any more."""
        self._client, self._gate, self._recorder, self._clock = client, gate, recorder, clock_
        self._budget, self._gone = budget, gone
        self._blocked: dict[str, float] = {}
        self._asked: dict[str, float] = {}

    @property
    def left(self) -> int:
        return self._budget.left(self._clock.monotonic())

    def blocked(self) -> set[str]:
        """UIDs of pods that are not to be asked now, because a budget said no."""
        now = self._clock.monotonic()
        self._blocked = {uid: until for uid, until in self._blocked.items() if until > now}
        return set(self._blocked)

    def asked(self) -> set[str]:
        """UIDs of pods that are or were asked to go, until the watch shows it (or long enough that it should have)."""
        now = self._clock.monotonic()
        self._asked = {uid: until for uid, until in self._asked.items() if until > now}
        return set(self._asked)

    async def evict(self, evictions: Iterable[Eviction]) -> None:
        await asyncio.gather(*(self._evict(eviction) for eviction in evictions))

    async def _evict(self, eviction: Eviction) -> None:
        namespace, _, name = eviction.pod.partition("/")
        now = self._clock.monotonic()
        self._asked[eviction.uid] = now + BLOCKED_S
        try:
            async with self._gate.slot(eviction.queue):
                self._budget.take(now)
                await self._client.send(requests.evict(namespace, name, uid=eviction.uid), bytes)
        except (errors.NotFound, errors.Conflict):
            # Gone, or another pod by that name: the watch will tell, but the next cycle may come before.
            self._gone(eviction.pod, eviction.uid)
        except errors.ApiError as error:
            # 429 is a disruption budget's no; anything else is no better for being asked again at once.
            self._asked.pop(eviction.uid, None)
            self._blocked[eviction.uid] = now + BLOCKED_S
            log.info("an eviction was refused", extra={"pod": eviction.pod, "error": str(error)})
        else:
            reference = ObjectReference(
                api_version=scheme.PODS.api_version,
                kind=scheme.PODS.kind,
                namespace=namespace,
                name=name,
                uid=eviction.uid,
            )
            self._recorder.record(reference, "Normal", REASON, eviction.sentence)
