from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Callable
from typing import Any

import pytest

from octarbiter.api import errors
from octarbiter.api.meta import Status
from octarbiter.runtime import controller, telemetry

Run = Callable[..., Any]


def now() -> float:
    return asyncio.get_running_loop().time()


class Scripted:
    """A controller whose reconcile does, for each key in turn, what the script says: raise, return, or run."""

    def __init__(self, script: dict[str, list[Any]], workers: int = 2) -> None:
        self.script = script
        self.calls: list[tuple[str, float]] = []
        self.metrics = telemetry.Metrics()
        self.controller = controller.Controller("test", self.reconcile, workers=workers, metrics=self.metrics)
        self.running = asyncio.create_task(self.controller.run())

    async def reconcile(self, key: str) -> float | None:
        self.calls.append((key, now()))
        steps = self.script.get(key, [])
        step = steps.pop(0) if steps else None
        if isinstance(step, BaseException):
            raise step
        return await step() if callable(step) else step

    def times(self, key: str) -> list[float]:
        return [at for seen, at in self.calls if seen == key]

    def outcomes(self, outcome: str) -> float:
        labels = {"controller": "test", "outcome": outcome}
        return self.metrics.registry.get_sample_value("octarbiter_reconcile_duration_seconds_count", labels) or 0.0

    async def stop(self) -> None:
        self.controller.stop()
        await self.running


def test_a_key_is_looked_at_again_when_reconcile_says_so_and_only_then(in_virtual_time: Run) -> None:
    async def story() -> None:
        bench = Scripted({"a": [30.0, None], "b": [None]})
        start = now()
        bench.controller.queue.add("a")
        bench.controller.queue.add("b")
        await asyncio.sleep(1000)
        assert bench.times("a") == pytest.approx([start, start + 30])
        assert bench.times("b") == [start]
        assert bench.outcomes("done") == 3
        await bench.stop()

    in_virtual_time(story())


def test_a_failing_key_is_tried_again_with_growing_pauses_and_harms_no_other(
    in_virtual_time: Run, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> None:
        bench = Scripted({"bad": [ValueError("broken")] * 6}, workers=1)
        bench.controller.queue.add("bad")
        for number in range(20):
            bench.controller.queue.add(f"good-{number}")
        await asyncio.sleep(100)
        assert sum(key.startswith("good") for key, _ in bench.calls) == 20
        times = bench.times("bad")
        pauses = [after - before for before, after in itertools.pairwise(times)]
        assert len(pauses) == 6
        assert all(0.05 * 2**n <= pause + 1e-9 <= 0.1 * 2**n + 1e-6 for n, pause in enumerate(pauses))
        assert bench.outcomes("error") == 6
        assert bench.controller.queue.retry("bad") <= 0.1, "the failures are forgotten after a success"
        await bench.stop()

    with caplog.at_level(logging.INFO):
        in_virtual_time(story())
    (first, *_) = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert (first.__dict__["key"], first.__dict__["controller"]) == ("bad", "test")
    assert first.exc_info is not None


def test_a_refusal_of_the_server_is_logged_as_its_sentence_without_a_trace(
    in_virtual_time: Run, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> None:
        bench = Scripted({"a": [errors.Forbidden(Status(code=403, message="exceeded quota"))]})
        bench.controller.queue.add("a")
        await asyncio.sleep(10)
        await bench.stop()

    in_virtual_time(story())
    (record,) = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert record.__dict__["error"] == "Forbidden: exceeded quota"
    assert record.exc_info is None


def test_a_busy_server_is_left_alone_for_as_long_as_it_asked(in_virtual_time: Run) -> None:
    async def story() -> None:
        bench = Scripted({"a": [errors.Retry(Status(code=429), after=20.0)]})
        start = now()
        bench.controller.queue.add("a")
        await asyncio.sleep(100)
        assert bench.times("a") == pytest.approx([start, start + 20], abs=0.1)
        await bench.stop()

    in_virtual_time(story())


def test_a_conflict_is_normal_and_looked_at_again_soon(in_virtual_time: Run, caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        bench = Scripted({"a": [errors.Conflict(Status(code=409))]})
        bench.controller.queue.add("a")
        await asyncio.sleep(1)
        assert len(bench.calls) == 2
        assert bench.outcomes("conflict") == 1
        await bench.stop()

    with caplog.at_level(logging.INFO):
        in_virtual_time(story())
    assert not caplog.records


def test_a_cancellation_that_comes_from_inside_reconcile_is_a_failure_and_not_the_end_of_a_worker(
    in_virtual_time: Run,
) -> None:
    async def story() -> None:
        bench = Scripted({"a": [asyncio.CancelledError()]}, workers=1)
        bench.controller.queue.add("a")
        await asyncio.sleep(1)
        assert len(bench.calls) == 2
        await bench.stop()

    in_virtual_time(story())


def test_as_many_keys_as_workers_are_in_progress_and_never_one_key_twice(in_virtual_time: Run) -> None:
    async def story() -> None:
        in_progress: list[str] = []
        most = 0

        async def work(key: str) -> None:
            nonlocal most
            assert key not in in_progress
            in_progress.append(key)
            most = max(most, len(in_progress))
            await asyncio.sleep(1)
            in_progress.remove(key)

        made = controller.Controller("test", work, workers=3, metrics=telemetry.Metrics())
        running = asyncio.create_task(made.run())
        for _ in range(4):
            for key in "abcdef":
                made.queue.add(key)
            await asyncio.sleep(0.5)
        await asyncio.sleep(100)
        assert most == 3
        made.stop()
        await running

    in_virtual_time(story())


def test_stopping_waits_for_what_is_in_progress_and_starts_nothing_new(in_virtual_time: Run) -> None:
    async def story() -> None:
        finished = []

        async def slow() -> None:
            await asyncio.sleep(5)
            finished.append(now())

        bench = Scripted({"a": [slow]}, workers=1)
        bench.controller.queue.add("a")
        bench.controller.queue.add("b")
        await asyncio.sleep(1)
        await bench.stop()
        assert len(finished) == 1
        assert [key for key, _ in bench.calls] == ["a"]

    in_virtual_time(story())


def test_cancelling_cuts_short_what_does_not_end(in_virtual_time: Run) -> None:
    async def story() -> None:
        async def endless() -> None:
            await asyncio.Event().wait()

        bench = Scripted({"a": [endless]})
        bench.controller.queue.add("a")
        await asyncio.sleep(1)
        bench.controller.stop()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(3):
                await bench.running
        assert bench.running.done()
        assert bench.outcomes("cancelled") == 1

    in_virtual_time(story())
