"""Who works through a queue?

Some workers take keys and call `reconcile(key)`, which looks at the world anew and returns in how many seconds to
look again, or None. A key that fails is logged, counted and tried again with a growing pause; the others do not
notice.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from octarbiter.api import errors
from octarbiter.runtime import telemetry, workqueue

K = TypeVar("K", bound=Hashable)

log = logging.getLogger(__name__)


class Controller(Generic[K]):
    def __init__(
        self,
        name: str,
        reconcile: Callable[[K], Awaitable[float | None]],
        *,
        workers: int,
        metrics: telemetry.Metrics,
    ) -> None:
        self.name = name
        self.queue: workqueue.Queue[K] = workqueue.Queue(metrics.queue(name))
        self._reconcile = reconcile
        self._workers = workers
        self._metrics = metrics

    async def run(self) -> None:
        """Returns after `stop`, or when cancelled (then reconciles in progress are cancelled, too)."""
        async with asyncio.TaskGroup() as group:
            for number in range(self._workers):
                group.create_task(self._work(), name=f"{self.name}-{number}")

    def stop(self) -> None:
        """No new reconcile is started; `run` returns when those in progress are over (bound that with a timeout)."""
        self.queue.shut_down()

    async def _work(self) -> None:
        while True:
            try:
                key = await self.queue.get()
            except workqueue.ShutDown:
                return
            try:
                await self._look(key)
            finally:
                self.queue.done(key)

    async def _look(self, key: K) -> None:
        loop = asyncio.get_running_loop()
        started = loop.time()
        outcome = "error"
        try:
            again = await self._reconcile(key)
        except errors.Conflict as error:
            outcome = "conflict"
            log.debug("somebody else wrote first, looking again", extra=self._failed(key, error))
        except errors.ApiError as error:
            # No trace: the server's sentence says it all.
            log.warning("reconcile failed, will try again", extra=self._failed(key, error))
        except (Exception, asyncio.CancelledError) as error:
            if isinstance(error, asyncio.CancelledError) and _is_cancelled():
                outcome = "cancelled"
                raise
            # A CancelledError that nobody meant for this worker comes from something reconcile waited for.
            log.exception("reconcile failed, will try again", extra=self._failed(key, error))
        else:
            outcome = "done"
            self.queue.forget(key)
            if again is not None:
                self.queue.add_after(key, again)
        finally:
            self._metrics.reconciles.labels(self.name, outcome).observe(loop.time() - started)

    def _failed(self, key: K, error: BaseException) -> dict[str, object]:
        """Has the key tried again; returns what to log."""
        again_in_s = self.queue.retry(key, error.after if isinstance(error, errors.Retry) else 0.0)
        return {
            "controller": self.name,
            "key": str(key),
            "error": f"{type(error).__name__}: {error}",
            "again_in_s": round(again_in_s, 3),
        }


def _is_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
