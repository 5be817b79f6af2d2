from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from octarbiter.runtime import workqueue

Run = Callable[..., object]


class Figures:
    def __init__(self) -> None:
        self.adds = 0
        self.depths: list[int] = []
        self.waits: list[float] = []

    def added(self) -> None:
        self.adds += 1

    def depth(self, ready: int) -> None:
        self.depths.append(ready)

    def handed_out(self, waited_s: float) -> None:
        self.waits.append(waited_s)


def now() -> float:
    return asyncio.get_running_loop().time()


async def settle() -> None:
    """Lets every task that can run do so, without letting time pass."""
    for _ in range(5):
        await asyncio.sleep(0)


def test_a_key_added_twice_is_handed_out_once_and_first_come_is_first_served(in_virtual_time: Run) -> None:
    async def story() -> None:
        queue: workqueue.Queue[str] = workqueue.Queue()
        for key in ("b", "a", "b", "c", "a"):
            queue.add(key)
        assert len(queue) == 3

        assert [await queue.get() for _ in range(3)] == ["b", "a", "c"]
        assert len(queue) == 0

    in_virtual_time(story())


def test_the_lag_is_how_long_the_next_key_has_been_due(in_virtual_time: Run) -> None:
    async def story() -> None:
        queue: workqueue.Queue[str] = workqueue.Queue()
        assert queue.lag_s == 0
        queue.add("a")
        await asyncio.sleep(2)
        queue.add("b")
        await asyncio.sleep(1)
        assert queue.lag_s == 3
        await queue.get()
        assert queue.lag_s == 1

    in_virtual_time(story())


def test_a_key_added_while_being_processed_waits_for_done(in_virtual_time: Run) -> None:
    async def story() -> None:
        queue: workqueue.Queue[str] = workqueue.Queue()
        queue.add("a")
        await queue.get()
        queue.add("a")
        queue.add("a")
        second = asyncio.create_task(queue.get())
        await settle()
        assert not second.done()

        queue.done("a")
        assert await second == "a"
        queue.done("a")
        assert len(queue) == 0

    in_virtual_time(story())


def test_the_earliest_due_time_wins(in_virtual_time: Run) -> None:
    async def story() -> None:
        queue: workqueue.Queue[str] = workqueue.Queue()
        start = now()
        queue.add_after("a", 30)
        queue.add_after("a", 10)
        queue.add_after("a", 20)
        await queue.get()
        assert now() - start == pytest.approx(10)
        queue.done("a")

        late = asyncio.create_task(queue.get())
        await asyncio.sleep(3600)
        assert not late.done()
        queue.add_after("a", 50)
        queue.add("a")
        await settle()
        assert late.done()
        queue.done("a")
        another = asyncio.create_task(queue.get())
        await asyncio.sleep(3600)
        assert not another.done()
        another.cancel()

    in_virtual_time(story())


def test_delayed_keys_come_in_the_order_of_their_due_times(in_virtual_time: Run) -> None:
    async def story() -> None:
        queue: workqueue.Queue[int] = workqueue.Queue()
        delays = list(range(100))
        random.Random(7).shuffle(delays)
        for delay in delays:
            queue.add_after(delay, delay)
        start = now()
        for expected in range(100):
            assert await queue.get() == expected
            assert now() - start == pytest.approx(expected)

    in_virtual_time(story())


def test_a_cooldown_counts_from_the_start_and_keeps_every_reason_to_look(in_virtual_time: Run) -> None:
    async def story() -> None:
        queue: workqueue.Queue[str] = workqueue.Queue()
        queue.add("big")
        await queue.get()
        start = now()
        queue.add_after("big", 1)
        queue.cooldown("big", 5)
        await asyncio.sleep(2)
        queue.done("big")
        queue.add("big")
        await queue.get()
        assert now() - start == pytest.approx(5)

        queue.done("big")
        queue.add("big")
        await queue.get()
        assert now() - start == pytest.approx(5), "a cooldown holds for one look only"

    in_virtual_time(story())


def test_a_cooldown_does_not_hold_up_other_keys(in_virtual_time: Run) -> None:
    async def story() -> None:
        queue: workqueue.Queue[str] = workqueue.Queue()
        queue.add("big")
        await queue.get()
        start = now()
        queue.cooldown("big", 5)
        queue.add("big")
        queue.done("big")
        queue.add("small")
        assert await queue.get() == "small"
        assert now() == start

    in_virtual_time(story())


def test_retries_pause_longer_each_time_from_50_ms_to_60_s_until_forgotten(in_virtual_time: Run) -> None:
    async def pauses(dice: float) -> list[float]:
        queue: workqueue.Queue[str] = workqueue.Queue(dice=lambda: dice)
        seen = []
        for _ in range(15):
            before = now()
            queue.retry("a")
            await queue.get()
            seen.append(now() - before)
            queue.done("a")
        queue.forget("a")
        assert queue.retry("a") == pytest.approx(seen[0])
        return seen

    longest = in_virtual_time(pauses(1.0))
    shortest = in_virtual_time(pauses(0.0))
    assert longest == pytest.approx([min(60, 0.1 * 2**n) for n in range(15)])
    assert shortest == pytest.approx([min(30, 0.05 * 2**n) for n in range(15)])


def test_a_retry_comes_no_earlier_than_the_server_asked(in_virtual_time: Run) -> None:
    async def story() -> None:
        queue: workqueue.Queue[str] = workqueue.Queue()
        start = now()
        queue.retry("a", at_least_s=7)
        await queue.get()
        assert 7 <= now() - start < 7.1

    in_virtual_time(story())


def test_shutting_down_wakes_every_waiter_and_hands_out_nothing_more(in_virtual_time: Run) -> None:
    async def story() -> None:
        queue: workqueue.Queue[str] = workqueue.Queue()
        waiters = [asyncio.create_task(queue.get()) for _ in range(3)]
        await settle()
        queue.add_after("late", 5)
        queue.shut_down()
        outcomes = await asyncio.gather(*waiters, return_exceptions=True)
        assert [type(outcome) for outcome in outcomes] == [workqueue.ShutDown] * 3
        queue.add("a")
        with pytest.raises(workqueue.ShutDown):
            await queue.get()

    in_virtual_time(story())


def test_a_waiter_that_is_cancelled_as_it_is_woken_passes_the_key_on(in_virtual_time: Run) -> None:
    async def story() -> None:
        queue: workqueue.Queue[str] = workqueue.Queue()
        first = asyncio.create_task(queue.get())
        second = asyncio.create_task(queue.get())
        await settle()
        queue.add("a")
        first.cancel()
        assert await second == "a"
        assert first.cancelled()

    in_virtual_time(story())


def test_memory_does_not_grow_with_due_times_that_were_overtaken(in_virtual_time: Run) -> None:
    async def story() -> None:
        queue: workqueue.Queue[int] = workqueue.Queue()
        for _ in range(10_000):
            queue.add_after(1, 3600)
            queue.add(1)
            queue.cooldown(1, 1800)
            queue.done(await queue.get())
        assert len(queue._delayed) < 200
        assert len(queue._cooling) < 200

    in_virtual_time(story())


def test_the_observer_sees_adds_depth_and_waiting_time(in_virtual_time: Run) -> None:
    async def story() -> None:
        figures = Figures()
        queue: workqueue.Queue[str] = workqueue.Queue(figures)
        queue.add("a")
        queue.add("a")
        queue.add("b")
        await asyncio.sleep(3)
        await queue.get()
        assert (figures.adds, figures.depths, figures.waits) == (3, [1, 2, 1], [3.0])

    in_virtual_time(story())


STEP = st.one_of(
    st.tuples(st.just("add"), st.integers(0, 4), st.just(0.0)),
    st.tuples(st.just("after"), st.integers(0, 4), st.floats(0, 20)),
    st.tuples(st.just("retry"), st.integers(0, 4), st.just(0.0)),
    st.tuples(st.just("cooldown"), st.integers(0, 4), st.floats(0, 10)),
    st.tuples(st.just("pass"), st.just(0), st.floats(0, 15)),
    st.tuples(st.just("cancel"), st.integers(0, 2), st.just(0.0)),
)


@settings(max_examples=300, deadline=None)
@given(steps=st.lists(STEP, max_size=60), work=st.lists(st.floats(0, 5), min_size=1, max_size=10))
def test_whatever_happens_no_key_is_in_two_hands_and_no_reason_to_look_is_lost(
    in_virtual_time: Run, steps: list[tuple[str, int, float]], work: list[float]
) -> None:
    """Three workers; every reason to look (a key and a due time) must be followed by a start at or after that time."""

    async def story() -> None:
        queue: workqueue.Queue[int] = workqueue.Queue()
        in_hand: set[int] = set()
        starts: list[tuple[int, float]] = []
        reasons: list[tuple[int, float]] = []
        floor: dict[int, float] = {}  # key -> not handed out before

        async def worker() -> None:
            while True:
                key = await queue.get()
                try:
                    assert key not in in_hand
                    assert now() >= floor.pop(key, 0.0) - 1e-9
                    in_hand.add(key)
                    starts.append((key, now()))
                    await asyncio.sleep(work[len(starts) % len(work)])
                finally:
                    in_hand.discard(key)
                    queue.done(key)

        workers = [asyncio.create_task(worker()) for _ in range(3)]
        for what, key, number in steps:
            match what:
                case "add":
                    reasons.append((key, now()))
                    queue.add(key)
                case "after":
                    reasons.append((key, now()))  # an earlier look also answers it: it decides anew when to look again
                    queue.add_after(key, number)
                case "retry":
                    reasons.append((key, now()))
                    queue.retry(key)
                case "cooldown":
                    if key in in_hand:
                        started = max(at for seen, at in starts if seen == key)
                        floor[key] = started + number
                        queue.cooldown(key, number)
                case "pass":
                    await asyncio.sleep(number)
                case "cancel":
                    workers[key].cancel()
                    await asyncio.gather(workers[key], return_exceptions=True)
                    workers[key] = asyncio.create_task(worker())
        await asyncio.sleep(10_000)
        for task in workers:
            assert not task.done(), task.exception()
            task.cancel()
        await asyncio.gather(*workers, return_exceptions=True)

        for key, since in reasons:
            assert any(seen == key and at >= since for seen, at in starts), (key, since, starts)
        assert len(queue) == 0
        leftovers = (queue._due, queue._again, queue._processing, queue._ready_since, queue._not_before)
        assert not any(leftovers), leftovers

    in_virtual_time(story())


@settings(max_examples=200, deadline=None)
@given(steps=st.lists(st.tuples(st.integers(0, 3), st.floats(0, 20), st.floats(0, 5)), max_size=40))
def test_a_delayed_key_starts_exactly_when_its_earliest_due_time_comes(
    in_virtual_time: Run, steps: list[tuple[int, float, float]]
) -> None:
    async def story() -> None:
        queue: workqueue.Queue[int] = workqueue.Queue()
        due: dict[int, float] = {}

        async def worker() -> None:
            while True:
                key = await queue.get()
                assert now() == pytest.approx(due.pop(key))
                queue.done(key)

        task = asyncio.create_task(worker())
        for key, delay, passing in steps:
            due[key] = min(due.get(key, float("inf")), now() + delay)
            queue.add_after(key, delay)
            await asyncio.sleep(passing)
        await asyncio.sleep(100)
        assert not task.done(), task.exception()
        assert not due
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    in_virtual_time(story())
