from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import msgspec
import pytest

from octarbiter.api import errors
from octarbiter.api.core_kinds import Event, ObjectReference
from octarbiter.api.meta import Status
from octarbiter.api.scheme import Resource
from octarbiter.runtime import events, telemetry

Run = Callable[..., Any]


class EventServer:
    """Keeps Events; `problems` are raised instead, one per request."""

    def __init__(self) -> None:
        self.stored: dict[str, Event] = {}
        self.requests: list[tuple[str, float]] = []
        self.problems: list[Exception] = []
        self.lose_answer = False
        self.open = asyncio.Event()
        self.open.set()

    async def create(self, _: Resource[Event], namespace: str, event: Event) -> Event:
        await self._arrive("create")
        assert event.metadata.namespace == namespace
        if event.metadata.name in self.stored:
            raise errors.AlreadyExists(Status(code=409, reason="AlreadyExists"))
        self.stored[event.metadata.name] = event
        if self.lose_answer:
            self.lose_answer = False
            raise errors.Retry(Status(code=0, message="the answer was lost"))
        return event

    async def merge_patch(self, _: Resource[Event], namespace: str, name: str, patch: dict[str, Any]) -> Event:
        await self._arrive("patch")
        if name not in self.stored:
            raise errors.NotFound(Status(code=404))
        self.stored[name] = msgspec.structs.replace(
            self.stored[name], count=patch["count"], message=patch["message"], last_timestamp=patch["lastTimestamp"]
        )
        return self.stored[name]

    async def _arrive(self, verb: str) -> None:
        await self.open.wait()
        self.requests.append((verb, now()))
        if self.problems:
            raise self.problems.pop(0)

    def told(self) -> list[tuple[str, int]]:
        return [(event.message, event.count) for event in self.stored.values()]


class Bench:
    def __init__(self, clock: Any) -> None:
        self.server = EventServer()
        self.metrics = telemetry.Metrics()
        self.busy = False
        self.recorder = events.Recorder(
            self.server,  # type: ignore[arg-type]
            component="octarbiter",
            instance="host-1",
            metrics=self.metrics,
            is_busy=lambda: self.busy,
            clock=clock,
        )

    def say(self, message: str, *, of: str = "job", reason: str = "Created", type_: str = "Normal") -> None:
        ref = ObjectReference(api_version="v1", kind="TaskSet", namespace="team", name=of, uid=f"uid-{of}")
        self.recorder.record(ref, type_, reason, message)

    def counted(self, outcome: str) -> float:
        return self.metrics.registry.get_sample_value("octarbiter_events_total", {"outcome": outcome}) or 0.0


def now() -> float:
    return asyncio.get_running_loop().time()


@pytest.fixture
def telling(in_virtual_time: Run, virtual_clock: Any) -> Run:
    def run(story: Callable[[Bench], Coroutine[Any, Any, None]]) -> None:
        async def whole() -> None:
            bench = Bench(virtual_clock)
            bench.recorder.start()
            try:
                await story(bench)
            finally:
                bench.server.open.set()
                await bench.recorder.stop()

        in_virtual_time(whole())

    return run


def test_an_event_names_its_object_its_reporter_and_its_time(telling: Run) -> None:
    async def story(bench: Bench) -> None:
        bench.say("created pod job-worker-0-0-0")
        await asyncio.sleep(1)
        (event,) = bench.server.stored.values()
        prefix, _, ending = event.metadata.name.rpartition(".")
        assert prefix == "job"
        assert int(ending, 16) >= 0
        assert event.involved_object.uid == "uid-job"
        assert (event.type, event.reason, event.message) == ("Normal", "Created", "created pod job-worker-0-0-0")
        assert (event.source.component, event.reporting_component, event.reporting_instance) == (
            "octarbiter",
            "octarbiter",
            "host-1",
        )
        assert event.count == 1
        assert event.first_timestamp == event.last_timestamp
        assert event.first_timestamp is not None
        assert event.first_timestamp.tzinfo is not None

    telling(story)


def test_while_others_are_busy_events_are_told_slowly(telling: Run) -> None:
    async def story(bench: Bench) -> None:
        bench.busy = True
        for number in range(10):
            bench.say("hello", of=f"job-{number}")
        await asyncio.sleep(1.1)
        assert len(bench.server.stored) == 3
        bench.busy = False
        await asyncio.sleep(1)
        assert len(bench.server.stored) == 10

    telling(story)


def test_the_same_thing_said_again_is_counted_in_the_same_event(telling: Run) -> None:
    async def story(bench: Bench) -> None:
        for _ in range(4):
            bench.say("waiting for quota")
            await asyncio.sleep(100)
        (event,) = bench.server.stored.values()
        assert event.count == 4
        assert event.first_timestamp is not None
        assert event.last_timestamp is not None
        assert (event.last_timestamp - event.first_timestamp).total_seconds() == 300
        assert [verb for verb, _ in bench.server.requests] == ["create", "patch", "patch", "patch"]

    telling(story)


def test_after_ten_quiet_minutes_the_same_thing_is_news_again(telling: Run) -> None:
    async def story(bench: Bench) -> None:
        bench.say("waiting")
        await asyncio.sleep(601)
        bench.say("waiting")
        await asyncio.sleep(1)
        assert bench.server.told() == [("waiting", 1), ("waiting", 1)]

    telling(story)


@pytest.mark.parametrize("other", [{"of": "job2"}, {"reason": "Deleted"}, {"type_": "Warning"}])
def test_another_object_reason_or_type_is_another_event(telling: Run, other: dict[str, str]) -> None:
    async def story(bench: Bench) -> None:
        bench.say("hello")
        bench.say("hello", **other)
        await asyncio.sleep(1)
        assert bench.server.told() == [("hello", 1), ("hello", 1)]

    telling(story)


def test_the_eleventh_similar_message_begins_to_combine_them(telling: Run) -> None:
    async def story(bench: Bench) -> None:
        for number in range(15):
            bench.say(f"created pod {number}")
            await asyncio.sleep(1)
        bench.say("created pod 3")
        await asyncio.sleep(1)
        told = bench.server.told()
        assert told[:3] == [("created pod 0", 1), ("created pod 1", 1), ("created pod 2", 1)]
        assert told[3] == ("created pod 3", 2), "what has an event of its own keeps it"
        assert told[10:] == [("(combined from similar events): created pod 14", 5)]

    telling(story)


def test_an_object_that_talks_too_much_gets_25_writes_and_then_one_in_five_minutes(telling: Run) -> None:
    async def story(bench: Bench) -> None:
        for number in range(200):
            bench.say("x", reason=f"Reason{number}")
            bench.say("y", of="modest") if number == 199 else None
        await asyncio.sleep(60)
        writes = [event for event in bench.server.stored.values() if event.involved_object.name == "job"]
        assert len(writes) == 25
        assert len(bench.server.stored) == 26, "others are not cut off with it"
        assert bench.counted("dropped") == 175

        await asyncio.sleep(600)
        for number in range(200, 210):
            bench.say("x", reason=f"Reason{number}")
        await asyncio.sleep(60)
        assert len(bench.server.stored) == 28

    telling(story)


def test_repetitions_before_the_write_cost_nothing_and_are_all_counted(telling: Run) -> None:
    async def story(bench: Bench) -> None:
        for _ in range(1000):
            bench.say("again")
        await asyncio.sleep(60)
        assert bench.server.told() == [("again", 1000)]
        assert len(bench.server.requests) == 1
        assert bench.counted("dropped") == 0

    telling(story)


def test_all_objects_together_write_slowly_and_one_at_a_time(telling: Run) -> None:
    async def story(bench: Bench) -> None:
        start = now()
        for number in range(250):
            bench.say("hello", of=f"job-{number}")
        await asyncio.sleep(60)
        times = [at - start for _, at in bench.server.requests]
        assert len(times) == 250
        assert times[events.BURST - 1] == 0
        assert times[-1] == pytest.approx((250 - events.BURST) / events.WRITES_PER_S, abs=0.2)

    telling(story)


def test_when_the_writer_falls_behind_the_oldest_news_is_dropped_and_counted(telling: Run) -> None:
    async def story(bench: Bench) -> None:
        for number in range(events.CAPACITY + 7):
            bench.say("hello", of=f"job-{number}")
        await asyncio.sleep(1000)
        names = {event.involved_object.name for event in bench.server.stored.values()}
        assert names == {f"job-{number}" for number in range(7, events.CAPACITY + 7)}
        assert bench.counted("dropped") == 7
        assert bench.counted("created") == events.CAPACITY

    telling(story)


def test_recording_never_waits_for_the_server(telling: Run) -> None:
    async def story(bench: Bench) -> None:
        bench.server.open.clear()
        for number in range(10):
            bench.say("hello", of=f"job-{number}")
            await asyncio.sleep(0)
        assert bench.server.stored == {}
        bench.server.open.set()
        await asyncio.sleep(1)
        assert len(bench.server.stored) == 10

    telling(story)


def test_a_busy_server_is_asked_again_later_and_no_event_is_lost(telling: Run) -> None:
    async def story(bench: Bench) -> None:
        start = now()
        bench.server.problems = [errors.Retry(Status(code=429), after=20.0), errors.Retry(Status(code=503))]
        bench.say("hello")
        bench.say("hello", of="other")
        await asyncio.sleep(100)
        assert len(bench.server.stored) == 2
        assert 20 <= bench.server.requests[1][1] - start < 21
        assert bench.counted("failed") == 0

    telling(story)


def test_a_refused_event_is_counted_and_does_not_stop_the_others(telling: Run) -> None:
    async def story(bench: Bench) -> None:
        bench.server.problems = [
            errors.Forbidden(Status(code=403)),
            errors.NotFound(Status(code=404)),
            RuntimeError("a fault of ours"),
        ]
        for number in range(5):
            bench.say("hello", of=f"job-{number}")
        await asyncio.sleep(10)
        assert len(bench.server.stored) == 2
        assert bench.counted("failed") == 3

    telling(story)


def test_an_event_whose_answer_was_lost_is_not_told_twice(telling: Run) -> None:
    async def story(bench: Bench) -> None:
        bench.server.lose_answer = True
        bench.say("hello")
        await asyncio.sleep(100)
        assert bench.server.told() == [("hello", 1)]
        assert bench.counted("failed") == 0
        bench.say("hello")
        await asyncio.sleep(1)
        assert bench.server.told() == [("hello", 2)]

    telling(story)


def test_an_event_the_server_has_forgotten_is_written_anew_with_its_count(telling: Run) -> None:
    async def story(bench: Bench) -> None:
        bench.say("hello")
        await asyncio.sleep(1)
        bench.server.stored.clear()
        bench.say("hello")
        await asyncio.sleep(1)
        assert bench.server.told() == [("hello", 2)]

    telling(story)


def test_stopping_writes_what_waits_without_pauses(telling: Run) -> None:
    async def story(bench: Bench) -> None:
        start = now()
        for number in range(200):
            bench.say("hello", of=f"job-{number}")
        await bench.recorder.stop(timeout_s=5)
        assert len(bench.server.stored) == 200
        assert now() == start

    telling(story)


def test_stopping_takes_bounded_time_when_the_server_does_not_answer(telling: Run) -> None:
    async def story(bench: Bench) -> None:
        start = now()
        bench.server.open.clear()
        bench.say("hello")
        bench.say("hello", of="other")
        await bench.recorder.stop(timeout_s=2)
        assert now() - start == pytest.approx(2)
        assert bench.counted("dropped") >= 1

    telling(story)


def test_long_messages_and_names_are_cut_to_what_the_server_takes(telling: Run) -> None:
    async def story(bench: Bench) -> None:
        bench.say("é" * 5000, of="j" * 253)
        await asyncio.sleep(1)
        (event,) = bench.server.stored.values()
        assert len(event.message.encode()) <= 1024
        assert event.message.endswith("...")
        assert len(event.metadata.name) == 253

    telling(story)


def test_memory_is_bounded_whatever_is_said(telling: Run) -> None:
    async def story(bench: Bench) -> None:
        for number in range(events.REMEMBERED + 500):
            bench.say("hello", of=f"job-{number}")
        for number in range(1000):
            bench.say(f"message {number}")
        assert len(bench.recorder._topics) == events.REMEMBERED
        assert len(bench.recorder._buckets) == events.REMEMBERED
        assert len(bench.recorder._waiting) == events.CAPACITY
        assert max(len(known) for known in bench.recorder._topics.values()) == events.SIMILAR + 1

    telling(story)
