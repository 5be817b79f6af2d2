"""How do the parts make one process?

Informers fill their caches from the start, also in a process that only stands by: a take-over begins with what is
already known. Controllers run while the process holds the lease. A first SIGTERM or SIGINT lets what is in progress
end, hands the lease over and writes the last events; a second one ends the process at once, and so does the loss of
the lease, because nothing may be done without it, not even tidying up.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from octarbiter.runtime import client as clients
from octarbiter.runtime import controller, events, fairness, httpd, informer, leader, telemetry
from octarbiter.runtime import settings as options
from octarbiter.runtime.kubeconfig import Connection

COMPONENT = "octarbiter-controller"
DRAIN_S = 10.0  # reconciles in progress get so long to end
LAG_S = 0.25  # work that waits longer for its turn makes a process busy
READS = 8  # requests besides the writes

log = logging.getLogger(__name__)


class Manager:
    """Fill `informers` and `controllers`, then `run`. Needs a running event loop."""

    def __init__(
        self, settings: options.Settings, connection: Connection, leave: Callable[[int], None] = os._exit
    ) -> None:
        self.settings = settings
        self.metrics = metrics = telemetry.Metrics()
        self.informers: list[informer.Informer[Any]] = []
        self.controllers: list[controller.Controller[Any]] = []
        self._leave = leave
        self._stop = asyncio.Event()
        self._followed: set[asyncio.Task[None]] = set()

        def count(verb: str, resource: str, code: int) -> None:
            metrics.requests.labels(verb, resource, str(code)).inc()

        # Repetition belongs to the queues: a write repeated by the client would not ask again whether we still lead.
        self.client = clients.Client(
            connection, concurrency=settings.write_concurrency + READS, retry_for_s=0.0, observer=count
        )
        # Neither the lease nor events may wait for a connection behind a crowd of slow writes.
        self._aside = clients.Client(connection, concurrency=4, retry_for_s=0.0, observer=count)
        self.elector = leader.Elector(
            self._aside,
            namespace=settings.lease_namespace,
            name=settings.lease_name,
            timing=leader.Timing(settings.lease_duration_s, settings.renew_deadline_s, settings.retry_period_s),
            metrics=metrics,
        )
        self.recorder = events.Recorder(
            self._aside,
            component=COMPONENT,
            instance=self.elector.identity,
            metrics=metrics,
            is_busy=self.is_busy,
        )
        guard = self.elector.require if settings.leader_elect else None
        self.gate = fairness.FairGate(settings.write_concurrency, guard)
        metrics.writes_in_flight.set_function(lambda: self.gate.in_flight)
        metrics.writes_allowed.set_function(lambda: self.gate.allowed)

    def is_busy(self) -> bool:
        """Work that others wait for is queueing up: what only tells of it can wait."""
        return self.gate.waiting > 0 or any(each.queue.lag_s > LAG_S for each in self.controllers)

    def follow(self, watched: informer.Informer[Any]) -> None:
        """An informer that turned out to be needed only while we run. Nobody else waits for it."""
        task = asyncio.create_task(watched.run(), name=watched.resource.plural)
        self._followed.add(task)
        task.add_done_callback(self._followed.discard)

    async def run(self) -> int:
        """As a process of its own: until a signal."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._signalled)
        return await self.serve()

    def stop(self) -> None:
        """Lets `serve` end in order."""
        self._stop.set()

    async def serve(self) -> int:
        """Until `stop`: 0, or until a part has failed: 1."""
        async with self.client, self._aside, self._endpoint():
            self.recorder.start()
            watching = [asyncio.create_task(each.run(), name=each.resource.plural) for each in self.informers]
            acting = asyncio.create_task(self._act(), name="acting")
            stopped = asyncio.create_task(self._stop.wait())
            await asyncio.wait({stopped, acting, *watching}, return_when=asyncio.FIRST_COMPLETED)
            await _end([stopped, acting])
            await self.recorder.stop()
            await _end([*watching, *self._followed])  # last: caches stay true while the last reconciles end
        failed = [part for part in (acting, *watching) if not part.cancelled()]
        for part in failed:
            log.error("a part of the process ended", exc_info=part.exception(), extra={"part": part.get_name()})
        return 1 if failed else 0

    async def _act(self) -> None:
        for each in self.informers:
            await each.synced.wait()
        gc.collect()
        gc.freeze()  # what was listed stays: the collector need not walk through it again and again
        log.info("all caches are filled", extra={each.resource.plural: len(each.cache) for each in self.informers})
        if self.settings.leader_elect:
            await self.elector.run(self._control, self._lost)
        else:
            await self._control()

    async def _control(self) -> None:
        # One by one, in the order they were added: what comes later is never older than what came before, whoever was
        # writing until a moment ago. A cache filled while standing by promises that for no two informers.
        for watched in self.informers:
            await watched.list_anew()
        running = [asyncio.create_task(each.run(), name=each.name) for each in self.controllers]
        try:
            await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in self.controllers:
                each.stop()
            await asyncio.wait(running, timeout=DRAIN_S)
            await _end(running)
        for task in (ended for ended in running if not ended.cancelled()):
            task.result()

    def _lost(self) -> None:
        logging.shutdown()
        self._leave(1)

    def _signalled(self) -> None:
        if self._stop.is_set():
            self._leave(1)
        log.info("stopping; a second signal stops at once")
        self.stop()

    def _endpoint(self) -> httpd.Endpoint:
        # Alive is who answers: a part that fails ends the process.
        ready = {f"informer-{each.resource.plural}": each.synced.is_set for each in self.informers}
        return httpd.Endpoint(self.settings.health_address, live={}, ready=ready, registry=self.metrics.registry)


def main(settings: options.Settings, connection: Connection, assemble: Callable[[Manager], None]) -> int:
    """`assemble` fills the manager's informers and controllers."""

    async def assembled(manager: Manager) -> int:
        assemble(manager)
        return await manager.run()

    return process(settings, connection, assembled)


def process(
    settings: options.Settings, connection: Connection, run: Callable[[Manager], Coroutine[Any, Any, int]]
) -> int:
    """For what has more to do than to fill a manager: `run` does that, and runs it."""

    async def whole() -> int:
        return await run(Manager(settings, connection))

    telemetry.set_up_logs(settings.log_format, settings.log_level)
    with asyncio.Runner(loop_factory=_loop) as runner:
        return runner.run(whole())


def _loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


async def _end(tasks: Sequence[asyncio.Task[Any]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
