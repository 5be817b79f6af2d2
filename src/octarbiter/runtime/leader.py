"""May this process act?

Processes share one Lease object. Whoever wrote it last holds it, and keeps it by writing it again and again. The
rules that keep two from acting at once:

- Clocks of different machines are never compared. A candidate watches whether the record changes, and calls the
  holder dead when it has seen no change for the lease duration on its own monotonic clock.
- The holder counts its own time from *before* it sent the last successful renewal, and for a shorter span (the renew
  deadline), so it has stopped before anybody else may start.
- `is_leading` reads the clock at the moment of asking: a process that was stalled finds out before its next write,
  even if none of its timers has run yet.
- Every write carries the resource version it is based on: of two candidates one gets a Conflict.
"""

from __future__ import annotations

import asyncio
import logging
import math
import random
import socket
import uuid
from collections.abc import Callable, Coroutine
from typing import Any

import msgspec

from octarbiter.api import errors
from octarbiter.api.core_kinds import Lease, LeaseSpec
from octarbiter.api.meta import ObjectMeta
from octarbiter.api.scheme import LEASES
from octarbiter.runtime import client as clients
from octarbiter.runtime import clock as clocks
from octarbiter.runtime import telemetry

log = logging.getLogger(__name__)

RELEASE_TIMEOUT_S = 2.0
LONGEST_LEASE_S = 3600
"""Whatever another holder wrote into the record."""


class NotLeading(errors.OctarbiterError):
    """A write was about to happen without the lease."""


class Timing(msgspec.Struct, frozen=True):
    lease_duration_s: float = 10.0
    renew_deadline_s: float = 7.0
    retry_period_s: float = 2.0


def unique_identity() -> str:
    """Another one for each process: a restarted process must not mistake its predecessor's lease for its own."""
    return f"{socket.gethostname()}_{uuid.uuid4()}"


class Elector:
    def __init__(
        self,
        client: clients.Client,
        *,
        namespace: str,
        name: str,
        timing: Timing,
        metrics: telemetry.Metrics,
        identity: str = "",
        clock: clocks.Clock = clocks.SYSTEM,
        dice: Callable[[], float] = random.random,
    ) -> None:
        self.identity = identity or unique_identity()
        self._client = client
        self._namespace = namespace
        self._name = name
        self._timing = timing
        self._clock = clock
        self._dice = dice
        self._seen = LeaseSpec()
        self._seen_at = -math.inf  # when the record was last seen to change
        self._version: str | None = None  # of the object; "" when there is none; None: look before writing
        self._leads_until = -math.inf
        metrics.leader.labels(f"{namespace}/{name}").set_function(lambda: float(self.is_leading()))

    def is_leading(self) -> bool:
        return self._clock.monotonic() < self._leads_until

    def require(self) -> None:
        """To be called right before a write."""
        if not self.is_leading():
            raise NotLeading(f"{self.identity} does not hold the lease {self._namespace}/{self._name} (any more)")

    async def run(self, on_started: Callable[[], Coroutine[Any, Any, None]], on_lost: Callable[[], None]) -> None:
        """Waits for the lease, then runs `on_started()` until it ends (the lease is released) or the lease is lost.

        On loss `on_lost` is called first, at once and synchronously (the usual one ends the process), then the work
        is cancelled. Cancelled itself, it cancels the work and keeps the lease until that has ended. An elector runs
        once: who has lost comes back as a new process.
        """
        await self._acquire()
        log.info("leading", extra=self._about())
        work = asyncio.create_task(on_started(), name="leading")
        renewing = asyncio.create_task(self._keep(), name="renewing")
        try:
            await asyncio.wait({work, renewing}, return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                self._leads_until = -math.inf
                log.error("lost the lease", extra=self._about())
                on_lost()
        finally:
            if not work.done():
                work.cancel()
            await asyncio.wait({work})
            renewing.cancel()
            await asyncio.wait({renewing})
            await self._release()
        if not work.cancelled():
            work.result()

    async def _acquire(self) -> None:
        holder = self.identity
        while not await self._attempt():
            if self._holder not in ("", holder):
                holder = self._holder
                log.info("standing by", extra=self._about())
            await asyncio.sleep(self._pause())

    def _pause(self) -> float:
        """The usual period, but no longer than until the holder's time is up: that is what take-over speed hangs on."""
        left = self._expires_at - self._clock.monotonic() if self._holder else math.inf
        # The small extra spreads candidates that began to count at the same moment.
        return max(0.05, min(self._timing.retry_period_s, left)) + 0.1 * self._dice()

    async def _keep(self) -> None:
        """Returns when the lease is lost."""
        period = self._timing.retry_period_s
        pause = period
        while self._holder == self.identity and self.is_leading():
            await asyncio.sleep(min(pause, self._left))
            if self.is_leading():
                pause = period if await self._attempt() else period / 4

    @property
    def _left(self) -> float:
        return max(0.0, self._leads_until - self._clock.monotonic())

    async def _attempt(self) -> bool:
        # Half the deadline, so that one request lost in the network does not cost the lease.
        timeout_s = self._timing.renew_deadline_s / 2
        if self.is_leading():
            timeout_s = min(timeout_s, self._left)
        try:
            async with asyncio.timeout(timeout_s):
                return await self._acquire_or_renew()
        except (errors.Conflict, errors.AlreadyExists):
            self._version = None
        except Exception as error:  # whatever it is: the lease must be tried again, or run out
            self._version = None
            log.warning("cannot reach the lease", extra={**self._about(), "error": f"{type(error).__name__}: {error}"})
        return False

    async def _acquire_or_renew(self) -> bool:
        # A leader writes on top of its own last write; only when that failed does it look first.
        if self._version is None or not self.is_leading():
            try:
                self._observe(await self._client.get(LEASES, self._namespace, self._name))
            except errors.NotFound:
                # What was seen is kept: a Lease deleted by somebody does not stop its holder at once.
                self._version = ""
        if self._holder not in ("", self.identity) and self._clock.monotonic() < self._expires_at:
            return False
        before = self._clock.monotonic()
        self._observe(await self._write(self._claim()))
        self._leads_until = before + self._timing.renew_deadline_s
        return True

    async def _write(self, spec: LeaseSpec) -> Lease:
        """The whole object: nobody else has fields in it that a PUT could lose."""
        lease = Lease(
            api_version=LEASES.api_version,
            kind=LEASES.kind,
            metadata=ObjectMeta(name=self._name, namespace=self._namespace, resource_version=self._version or ""),
            spec=spec,
        )
        if self._version:
            return await self._client.replace(LEASES, self._namespace, self._name, lease)
        return await self._client.create(LEASES, self._namespace, lease)

    def _observe(self, lease: Lease) -> None:
        # Only the spec tells of life: somebody who labels the object does not renew the holder's lease.
        if self._seen != lease.spec:
            self._seen_at = self._clock.monotonic()
        self._seen = lease.spec
        self._version = lease.metadata.resource_version

    @property
    def _holder(self) -> str:
        return self._seen.holder_identity or ""

    @property
    def _expires_at(self) -> float:
        stated = self._seen.lease_duration_seconds
        return self._seen_at + (self._timing.lease_duration_s if stated is None else min(stated, LONGEST_LEASE_S))

    def _claim(self) -> LeaseSpec:
        now = self._timestamp()
        old = self._seen
        was_ours = old.holder_identity == self.identity
        transitions = old.lease_transitions or 0
        return LeaseSpec(
            holder_identity=self.identity,
            lease_duration_seconds=math.ceil(self._timing.lease_duration_s),
            acquire_time=old.acquire_time if was_ours else now,
            renew_time=now,
            lease_transitions=transitions if was_ours or old.holder_identity is None else transitions + 1,
        )

    async def _release(self) -> None:
        """The next candidate need not wait. Failing to is no harm: the lease runs out by itself."""
        self._leads_until = -math.inf
        if self._holder != self.identity or not self._version:
            return
        now = self._timestamp()
        spec = LeaseSpec(
            holder_identity="",
            lease_duration_seconds=1,
            acquire_time=now,
            renew_time=now,
            lease_transitions=self._seen.lease_transitions,
        )
        try:
            async with asyncio.timeout(RELEASE_TIMEOUT_S):
                await self._write(spec)
            log.info("released the lease", extra=self._about())
        except Exception as error:
            log.warning("could not release the lease", extra={**self._about(), "error": str(error)})

    def _about(self) -> dict[str, str]:
        return {"lease": f"{self._namespace}/{self._name}", "identity": self.identity, "holder": self._holder}

    def _timestamp(self) -> str:
        """With microseconds, as the API's MicroTime wants it."""
        return self._clock.now().strftime("%Y-%m-%dT%H:%M:%S.%fZ")
