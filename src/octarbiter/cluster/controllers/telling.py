"""A controller with its own voice: its Events come from the component whose work it does, as people expect."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from octarbiter.runtime import controller, events, telemetry


class Teller(controller.Controller[str]):
    def __init__(
        self,
        name: str,
        reconcile: Callable[[str], Awaitable[float | None]],
        recorder: events.Recorder,
        *,
        workers: int,
        metrics: telemetry.Metrics,
    ) -> None:
        super().__init__(name, reconcile, workers=workers, metrics=metrics)
        self._recorder = recorder

    async def run(self) -> None:
        self._recorder.start()
        try:
            await super().run()
        finally:
            await self._recorder.stop()
