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
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from octarbiter.api.meta import Object
from octarbiter.api.scheme import Resource
from octarbiter.runtime import cache, controller, events, fairness, httpd, informer, leader, telemetry
from octarbiter.runtime import client as clients
from octarbiter.runtime import settings as options
from octarbiter.runtime.kubeconfig import Connection

T = TypeVar("T", bound=Object)
K = TypeVar("K", bound=str)

DRAIN_S = 10.0
"""Reconciles in progress get so long to end."""
READS = 8
"""Requests besides the writes."""

log = logging.getLogger(__name__)


class Manager:
    """`assemble` adds informers and controllers, `run` does the rest. Needs a running event loop."""

    def __init__(
        self,
        settings: options.Settings,
        connection: Connection,
        *,
        component: str = "octarbiter-controller",
        leave: Callable[[int], None] = os._exit,
    ) -> None:
        self.settings = settings
        self.metrics = metrics = telemetry.Metrics()
        # Repetition belongs to the queues: a write repeated by the client would not ask again whether we still lead.
        self.client = self._client(connection, settings.write_concurrency + READS)
        # Neither the lease nor events may wait for a connection behind thirty-two slow writes.
        self._aside = self._client(connection, 4)
        self.elector = leader.Elector(
            self._aside,
            namespace=settings.lease_namespace,
            name=settings.lease_name,
            timing=leader.Timing(settings.lease_duration_s, settings.renew_deadline_s, settings.retry_period_s),
            metrics=metrics,
        )
        self.gate = fairness.FairGate(
            settings.write_concurrency, self.elector.require if settings.leader_elect else None
        )
        metrics.writes_in_flight.set_function(lambda: self.gate.in_flight)
        metrics.writes_allowed.set_function(lambda: self.gate.allowed)
        self.recorder = events.Recorder(
            self._aside, component=component, instance=self.elector.identity, metrics=metrics
        )
        self._informers: list[informer.Informer[Any]] = []
        self._controllers: list[controller.Controller[Any]] = []
        self._leave = leave
        self._stop = asyncio.Event()

    def informer(
        self,
        resource: Resource[T],
        *,
        label_selector: str = "",
        indexes: dict[str, cache.IndexFunction[T]] | None = None,
        on_change: cache.OnChange[T] | None = None,
    ) -> informer.Informer[T]:
        made = informer.Informer(
            self.client,
            resource,
            namespace=self.settings.namespace if resource.namespaced else "",
            label_selector=label_selector,
            indexes=indexes,
            on_change=on_change,
        )
        self._informers.append(made)
        return made

    def controller(self, name: str, reconcile: Callable[[str], Awaitable[float | None]]) -> controller.Controller[str]:
        made = controller.Controller(name, reconcile, workers=self.settings.workers, metrics=self.metrics)
        self._controllers.append(made)
        return made

    async def run(self) -> int:
        """The process's exit code: 0 after a signal, 1 after a failure."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._signalled)
        endpoint = self._endpoint()
        try:
            if endpoint:
                await endpoint.start()
            return await self._run_parts()
        finally:
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.remove_signal_handler(number)
            if endpoint:
                await endpoint.stop()
            await self.client.close()
            await self._aside.close()

    async def _run_parts(self) -> int:
        self.recorder.start()
        watching = [asyncio.create_task(each.run(), name=each.resource.plural) for each in self._informers]
        acting = asyncio.create_task(self._act(), name="acting")
        stopped = asyncio.create_task(self._stop.wait())
        parts = {acting, *watching}
        await asyncio.wait({stopped, *parts}, return_when=asyncio.FIRST_COMPLETED)
        # Caches stay true while the last reconciles end.
        await _end([stopped, acting])
        await self.recorder.stop()
        await _end(watching)
        failures = [part for part in parts if not part.cancelled() and (part.exception() or not self._stop.is_set())]
        for part in failures:
            log.error("a part of the process failed", exc_info=part.exception(), extra={"part": part.get_name()})
        return 1 if failures else 0

    async def _act(self) -> None:
        for each in self._informers:
            await each.synced.wait()
        gc.collect()
        gc.freeze()  # what was listed stays: the collector need not walk through it again and again
        log.info("all caches are filled", extra={each.resource.plural: len(each.cache) for each in self._informers})
        if self.settings.leader_elect:
            await self.elector.run(self._control, self._lost)
        else:
            await self._control()

    async def _control(self) -> None:
        running = [asyncio.create_task(each.run(), name=each.name) for each in self._controllers]
        try:
            await asyncio.gather(*(asyncio.shield(task) for task in running))
        finally:
            for each in self._controllers:
                each.stop()
            await asyncio.wait(running, timeout=DRAIN_S)
            await _end(running)

    def _lost(self) -> None:
        logging.shutdown()
        self._leave(1)

    def _signalled(self) -> None:
        if self._stop.is_set():
            self._leave(1)
        log.info("stopping; a second signal stops at once")
        self._stop.set()

    def _endpoint(self) -> httpd.Endpoint | None:
        if not self.settings.health_address:
            return None
        host, port = options.host_and_port(self.settings.health_address)
        # Alive is who answers: a part that fails ends the process.
        ready = {f"informer-{each.resource.plural}": each.synced.is_set for each in self._informers}
        return httpd.Endpoint(host, port, live={}, ready=ready, registry=self.metrics.registry)

    def _client(self, connection: Connection, concurrency: int) -> clients.Client:
        def count(verb: str, resource: str, code: int) -> None:
            self.metrics.requests.labels(verb, resource, str(code)).inc()

        return clients.Client(connection, concurrency=concurrency, retry_for_s=0.0, observer=count)


def main(settings: options.Settings, connection: Connection, assemble: Callable[[Manager], None]) -> int:
    async def whole() -> int:
        manager = Manager(settings, connection)
        assemble(manager)
        return await manager.run()

    telemetry.set_up_logs(settings.log_format, settings.log_level)
    return _run(whole())


def _run(main: Coroutine[Any, Any, int]) -> int:
    try:
        import uvloop
    except ImportError:
        return asyncio.run(main)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(main)


async def _end(tasks: list[asyncio.Task[Any]]) -> None:
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks)
