"""What do people see happen? Kubernetes Events, told without getting in the way.

`record` only notes; one background task writes, slowly and one at a time, because telling about work must not
compete with it. What is said again is counted in the Event that said it first; what is said in ever new words about
one object is combined; an object that talks too much is cut off. When the writer falls behind, the oldest news is
dropped and counted.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections import OrderedDict
from collections.abc import Callable, Hashable
from datetime import datetime
from typing import TypeVar

from octarbiter.api import errors
from octarbiter.api.core_kinds import Event, EventSource, ObjectReference
from octarbiter.api.meta import ObjectMeta
from octarbiter.api.scheme import EVENTS
from octarbiter.runtime import backoff, telemetry
from octarbiter.runtime import client as clients
from octarbiter.runtime import clock as clocks

log = logging.getLogger(__name__)

WINDOW_S = 600.0
"""Repetitions within it are counted rather than told anew."""
SIMILAR = 10
"""So many different messages for one object and reason within the window; the others are combined."""
BURST_PER_OBJECT = 25
REFILL_S = 300.0
"""An object that used up its burst gets one write per so many seconds."""
WRITES_PER_S = 10.0
BURST = 50
BUSY_PAUSE_S = 0.5
"""After each write, while work is queueing up."""
CAPACITY = 1000
"""Events that may wait to be written."""
REMEMBERED = 4096
"""Objects and reasons remembered for counting; the longest unheard-of is forgotten first."""
TRIES = 5
FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 60.0
LONGEST_MESSAGE = 1024
LONGEST_NAME = 253
COMBINED = "(combined from similar events): "

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
Topic = tuple[str, str, str, str, str, str]
"""kind, namespace, name and UID of the object, type and reason of the event."""


class Telling:
    """One Event object, as it should be."""

    __slots__ = ("count", "exists", "first", "heard_at", "last", "message", "name", "reason", "ref", "tries", "type")

    def __init__(self, ref: ObjectReference, type_: str, reason: str, name: str, first: datetime) -> None:
        self.ref = ref
        self.type = type_
        self.reason = reason
        self.name = name
        self.message = ""
        self.first = self.last = first
        self.count = 0
        self.heard_at = 0.0
        self.exists = False
        self.tries = 0

    @property
    def namespace(self) -> str:
        return self.ref.namespace or "default"  # where the API server wants those of cluster-wide objects


class Bucket:
    """Tokens that come back with time."""

    __slots__ = ("_at", "_every_s", "_size", "_tokens")

    def __init__(self, size: float, every_s: float, now: float) -> None:
        self._size = self._tokens = size
        self._every_s = every_s
        self._at = now

    def wait_s(self, now: float) -> float:
        """Until there is a token; 0 = take it."""
        self._tokens = min(self._size, self._tokens + (now - self._at) / self._every_s)
        self._at = now
        # The tiny part: what comes back in fractions need not add up to exactly one.
        return 0.0 if self._tokens > 1.0 - 1e-9 else (1.0 - self._tokens) * self._every_s

    def take(self, now: float) -> bool:
        if self.wait_s(now) > 0:
            return False
        self._tokens -= 1.0
        return True


class Recorder:
    def __init__(
        self,
        client: clients.Client,
        *,
        component: str,
        instance: str,
        metrics: telemetry.Metrics,
        is_busy: Callable[[], bool] = lambda: False,
        clock: clocks.Clock = clocks.SYSTEM,
    ) -> None:
        self._client = client
        self._is_busy = is_busy
        self._component = component
        self._instance = instance
        self._outcomes = metrics.events
        self._clock = clock
        self._topics: OrderedDict[Topic, dict[str, Telling]] = OrderedDict()
        self._buckets: OrderedDict[Topic, Bucket] = OrderedDict()
        self._waiting: OrderedDict[str, Telling] = OrderedDict()  # by name, oldest first
        self._pauses = backoff.Backoff(FIRST_PAUSE_S, LONGEST_PAUSE_S)
        self._news = asyncio.Event()
        self._closing = False
        self._writer: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._writer = asyncio.create_task(self._write_all(), name="events")

    async def stop(self, timeout_s: float = 2.0) -> None:
        """Writes what waits, without pauses, for at most `timeout_s`."""
        self._closing = True
        self._news.set()
        if self._writer is not None:
            await asyncio.wait({self._writer}, timeout=timeout_s)
            self._writer.cancel()
            await asyncio.wait({self._writer})
        if self._waiting:
            self._outcomes.labels("dropped").inc(len(self._waiting))
            log.warning("events were not written", extra={"count": len(self._waiting)})

    def record(self, ref: ObjectReference, type_: str, reason: str, message: str) -> None:
        """`type_`: Normal or Warning. Does not wait and does not fail."""
        now = self._clock.monotonic()
        telling = self._telling(ref, type_, reason, _shortened(message), now)
        telling.count += 1
        telling.last = self._clock.now()
        telling.heard_at = now
        if telling.name in self._waiting:
            return  # it will be written anyway: costs no token
        object_key = (ref.kind, ref.namespace, ref.name, ref.uid, "", "")
        bucket = _remembered(self._buckets, object_key) or Bucket(BURST_PER_OBJECT, REFILL_S, now)
        _remember(self._buckets, object_key, bucket)
        if not bucket.take(now):
            self._outcomes.labels("dropped").inc()
            return
        telling.tries = 0
        self._waiting[telling.name] = telling
        if len(self._waiting) > CAPACITY:
            self._waiting.popitem(last=False)
            self._outcomes.labels("dropped").inc()
        self._news.set()

    def _telling(self, ref: ObjectReference, type_: str, reason: str, message: str, now: float) -> Telling:
        """The one that already says it, or a new one, or the one for too many similar ones."""
        topic = (ref.kind, ref.namespace, ref.name, ref.uid, type_, reason)
        known = _remembered(self._topics, topic) or {}
        known = {words: telling for words, telling in known.items() if now - telling.heard_at <= WINDOW_S}
        _remember(self._topics, topic, known)
        if message in known:
            return known[message]
        words = message
        if len(known) >= SIMILAR:
            words, message = COMBINED, _shortened(COMBINED + message)
        if words not in known:
            known[words] = Telling(ref, type_, reason, _fresh_name(ref), self._clock.now())
        known[words].message = message
        return known[words]

    async def _write_all(self) -> None:
        bucket = Bucket(BURST, 1 / WRITES_PER_S, self._clock.monotonic())
        while self._waiting or not self._closing:
            if not self._waiting:
                self._news.clear()
                await self._news.wait()
                continue
            wait_s = bucket.wait_s(self._clock.monotonic())
            if wait_s > 0 and not self._closing:
                await self._sleep(wait_s)
                continue
            bucket.take(self._clock.monotonic())
            _, telling = self._waiting.popitem(last=False)
            await self._write(telling)
            if self._is_busy():
                await self._sleep(BUSY_PAUSE_S)

    async def _sleep(self, seconds: float) -> None:
        """Cut short by `stop`."""
        end = self._clock.monotonic() + seconds
        while not self._closing and (left := end - self._clock.monotonic()) > 0:
            self._news.clear()
            try:
                async with asyncio.timeout(left):
                    await self._news.wait()
            except TimeoutError:
                return

    async def _write(self, telling: Telling) -> None:
        telling.tries += 1
        try:
            await (self._update(telling) if telling.exists else self._create(telling))
            self._outcomes.labels("updated" if telling.exists else "created").inc()
            telling.exists = True
            self._pauses.reset()
        except Exception as error:
            again_in_s = self._again_in_s(telling, error)
            if again_in_s is None or telling.tries >= TRIES:
                # Refused (RBAC, a namespace being deleted), or a fault of ours: not worth the process.
                self._outcomes.labels("failed").inc()
                log.warning(
                    "an event was not written",
                    extra={
                        "object": f"{telling.ref.kind} {telling.ref.namespace}/{telling.ref.name}",
                        "reason": telling.reason,
                        "error": f"{type(error).__name__}: {error}",
                    },
                )
                return
            # The answer to the first try may have been lost, and the server forgets events (after an hour, as a rule).
            telling.exists = isinstance(error, errors.AlreadyExists) or (
                telling.exists and not isinstance(error, errors.NotFound)
            )
            self._waiting[telling.name] = telling
            self._waiting.move_to_end(telling.name, last=False)
            await self._sleep(again_in_s)

    def _again_in_s(self, telling: Telling, error: Exception) -> float | None:
        """None: never."""
        match error:
            case errors.Retry():
                return self._pauses.next_pause(min(error.after, LONGEST_PAUSE_S))
            case errors.AlreadyExists() if not telling.exists:
                return 0.0
            case errors.NotFound() if telling.exists:
                return 0.0
            case _:
                return None

    async def _create(self, telling: Telling) -> None:
        event = Event(
            api_version=EVENTS.api_version,
            kind=EVENTS.kind,
            metadata=ObjectMeta(name=telling.name, namespace=telling.namespace),
            involved_object=telling.ref,
            type=telling.type,
            reason=telling.reason,
            message=telling.message,
            count=telling.count,
            first_timestamp=telling.first.replace(microsecond=0),
            last_timestamp=telling.last.replace(microsecond=0),
            source=EventSource(component=self._component),
            reporting_component=self._component,
            reporting_instance=self._instance,
        )
        await self._client.create(EVENTS, telling.namespace, event)

    async def _update(self, telling: Telling) -> None:
        last = telling.last.replace(microsecond=0)
        patch = {"count": telling.count, "message": telling.message, "lastTimestamp": last}
        await self._client.merge_patch(EVENTS, telling.namespace, telling.name, patch)


def _fresh_name(ref: ObjectReference) -> str:
    ending = f".{secrets.token_hex(8)}"
    return ref.name[: LONGEST_NAME - len(ending)].rstrip(".-") + ending


def _shortened(message: str) -> str:
    encoded = message.encode()
    if len(encoded) <= LONGEST_MESSAGE:
        return message
    return encoded[: LONGEST_MESSAGE - 3].decode(errors="ignore") + "..."


def _remembered(memory: OrderedDict[K, V], key: K) -> V | None:
    if key in memory:
        memory.move_to_end(key)
        return memory[key]
    return None


def _remember(memory: OrderedDict[K, V], key: K, value: V) -> None:
    memory[key] = value
    if len(memory) > REMEMBERED:
        memory.popitem(last=False)
