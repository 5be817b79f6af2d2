from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from octarbiter.api import errors
from octarbiter.api.meta import Status
from octarbiter.runtime import fairness

Run = Callable[..., object]


def busy(after: float = 0.0) -> errors.Retry:
    return errors.Retry(Status(code=429, message="too many requests"), after=after)


async def write(gate: fairness.FairGate, key: str, order: list[str], error: Exception | None = None) -> None:
    async with gate.slot(key):
        order.append(key)
        await asyncio.sleep(1)
        if error:
            raise error


def test_a_small_key_waits_one_round_and_not_for_thousands_of_a_big_one(in_virtual_time: Run) -> None:
    async def story() -> None:
        gate = fairness.FairGate(4)
        order: list[str] = []
        big = [asyncio.create_task(write(gate, "big", order)) for _ in range(5000)]
        await asyncio.sleep(0)
        small = [asyncio.create_task(write(gate, f"small-{n}", order)) for n in range(20)]
        await asyncio.gather(*small)
        assert order.count("big") <= 4 + 4 + 4
        assert gate.waiting == len(big) - order.count("big")
        await asyncio.gather(*big)
        assert len(order) == 5020
        assert (gate.in_flight, gate.waiting) == (0, 0)

    in_virtual_time(story())


def test_two_big_keys_take_turns(in_virtual_time: Run) -> None:
    async def story() -> None:
        gate = fairness.FairGate(1)
        order: list[str] = []
        tasks = [asyncio.create_task(write(gate, key, order)) for key in "AAAABBBB"]
        await asyncio.gather(*tasks)
        assert "".join(order) == "AABABABB"  # the first A found the gate empty

    in_virtual_time(story())


def test_a_full_house_of_refusals_halves_the_slots_once(in_virtual_time: Run) -> None:
    async def story() -> None:
        gate = fairness.FairGate(32)
        order: list[str] = []
        await asyncio.gather(*(write(gate, "a", order, busy()) for _ in range(32)), return_exceptions=True)
        assert gate.allowed == 16
        await asyncio.gather(*(write(gate, "a", order, busy()) for _ in range(16)), return_exceptions=True)
        assert gate.allowed == 8

    in_virtual_time(story())


def test_slots_never_fall_below_one(in_virtual_time: Run) -> None:
    async def story() -> None:
        gate = fairness.FairGate(4)
        for _ in range(10):
            gate.slow_down()
        assert gate.allowed == 1
        order: list[str] = []
        await write(gate, "a", order)
        assert order == ["a"]

    in_virtual_time(story())


def test_each_full_round_of_successes_brings_one_slot_back_up_to_the_limit(in_virtual_time: Run) -> None:
    async def story() -> None:
        gate = fairness.FairGate(8)
        gate.slow_down()
        assert gate.allowed == 4
        order: list[str] = []
        for _ in range(5):
            await write(gate, "a", order)
        assert gate.allowed == 5
        for _ in range(100):
            await write(gate, "a", order)
        assert gate.allowed == 8

    in_virtual_time(story())


def test_a_refused_write_is_an_answer_of_a_healthy_server(in_virtual_time: Run) -> None:
    async def story() -> None:
        gate = fairness.FairGate(8)
        gate.slow_down()
        order: list[str] = []
        for _ in range(5):
            with pytest.raises(errors.NotFound):
                await write(gate, "a", order, errors.NotFound(Status(code=404)))
        assert gate.allowed == 5

    in_virtual_time(story())


def test_nothing_is_granted_before_the_time_the_server_asked_for(in_virtual_time: Run) -> None:
    async def story() -> None:
        loop = asyncio.get_running_loop()
        gate = fairness.FairGate(2)
        order: list[str] = []
        start = loop.time()
        with pytest.raises(errors.Retry):
            await write(gate, "a", order, busy(after=30))

        async def when(key: str) -> float:
            async with gate.slot(key):
                return loop.time() - start

        waits = await asyncio.gather(when("a"), when("b"), when("c"))
        assert waits == pytest.approx([31, 31, 31])

    in_virtual_time(story())


def test_an_absurd_request_to_wait_is_bounded(in_virtual_time: Run) -> None:
    async def story() -> None:
        gate = fairness.FairGate(2)
        start = asyncio.get_running_loop().time()
        gate.slow_down(after=1e9)
        await write(gate, "a", [])
        assert asyncio.get_running_loop().time() - start == pytest.approx(fairness.LONGEST_PAUSE_S + 1)

    in_virtual_time(story())


def test_the_guard_is_asked_when_the_slot_is_handed_over_and_not_when_it_is_asked_for(in_virtual_time: Run) -> None:
    async def story() -> None:
        leading = True

        def guard() -> None:
            if not leading:
                raise PermissionError

        gate = fairness.FairGate(1, guard)
        order: list[str] = []
        first = asyncio.create_task(write(gate, "a", order))
        second = asyncio.create_task(write(gate, "a", order))
        await asyncio.sleep(0.5)
        leading = False
        await first
        with pytest.raises(PermissionError):
            await second
        assert (order, gate.in_flight, gate.waiting) == (["a"], 0, 0)

    in_virtual_time(story())


def test_a_waiter_cancelled_at_the_moment_of_its_grant_gives_the_slot_to_the_next(in_virtual_time: Run) -> None:
    async def story() -> None:
        gate = fairness.FairGate(1)
        order: list[str] = []
        holder = gate.slot("x")
        await holder.__aenter__()
        first = asyncio.create_task(write(gate, "a", order))
        second = asyncio.create_task(write(gate, "b", order))
        await asyncio.sleep(0)
        await holder.__aexit__(None, None, None)
        first.cancel()  # granted, and not yet run
        await second
        await asyncio.gather(first, return_exceptions=True)
        assert (order, gate.in_flight, gate.waiting) == (["b"], 0, 0)

    in_virtual_time(story())


def test_a_waiter_cancelled_a_moment_before_its_turn_is_passed_over(in_virtual_time: Run) -> None:
    async def story() -> None:
        gate = fairness.FairGate(1)
        order: list[str] = []
        holder = gate.slot("x")
        await holder.__aenter__()
        first = asyncio.create_task(write(gate, "a", order))
        second = asyncio.create_task(write(gate, "b", order))
        await asyncio.sleep(0)
        first.cancel()
        await holder.__aexit__(None, None, None)
        await second
        assert (order, gate.in_flight, gate.waiting) == (["b"], 0, 0)

    in_virtual_time(story())


def test_nobody_overtakes_those_who_waited_for_the_gate_to_reopen(in_virtual_time: Run) -> None:
    async def story() -> None:
        gate = fairness.FairGate(1)
        gate.slow_down(after=10)
        order: list[str] = []
        waiting = asyncio.create_task(write(gate, "waiting", order))
        await asyncio.sleep(5)
        asyncio.get_running_loop().jumping.now += 20  # type: ignore[attr-defined]  # a busy moment: no timer has run
        await write(gate, "newcomer", order)
        assert order == ["waiting", "newcomer"]
        await waiting

    in_virtual_time(story())


def test_a_gate_without_slots_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one slot"):
        fairness.FairGate(0)


STEP = st.one_of(
    st.tuples(st.just("write"), st.integers(0, 2), st.floats(0, 4)),
    st.tuples(st.just("fail"), st.integers(0, 2), st.floats(0, 4)),
    st.tuples(st.just("cancel"), st.integers(0, 1000), st.just(0.0)),
    st.tuples(st.just("slow"), st.just(0), st.floats(0, 10)),
    st.tuples(st.just("pass"), st.just(0), st.floats(0, 3)),
)


@settings(max_examples=300, deadline=None)
@given(limit=st.integers(1, 5), steps=st.lists(STEP, max_size=80))
def test_whatever_happens_the_limit_holds_everybody_gets_in_and_nothing_is_left(
    in_virtual_time: Run, limit: int, steps: list[tuple[str, int, float]]
) -> None:
    async def story() -> None:
        gate = fairness.FairGate(limit)
        inside = 0
        closed_until = 0.0
        waiting: dict[int, int] = {}
        overtaken: dict[int, Counter[int]] = {}  # waiting key -> who got in since it last did

        async def enter(key: int, seconds: float, error: Exception | None) -> None:
            nonlocal inside
            waiting[key] = waiting.get(key, 0) + 1
            try:
                async with gate.slot(key):
                    inside += 1
                    assert inside <= limit
                    assert asyncio.get_running_loop().time() >= closed_until
                    for other in waiting:
                        if other != key and waiting[other]:
                            overtaken.setdefault(other, Counter())[key] += 1
                            # One turn, and those that had been granted before the other one came.
                            assert overtaken[other][key] <= 1 + limit
                    overtaken.pop(key, None)
                    waiting[key] -= 1
                    try:
                        await asyncio.sleep(seconds)
                        if error:
                            raise error
                    finally:
                        inside -= 1
                        waiting[key] += 1
            finally:
                waiting[key] -= 1
                if not waiting[key]:
                    overtaken.pop(key, None)

        tasks: list[asyncio.Task[None]] = []
        for what, number, seconds in steps:
            match what:
                case "write":
                    tasks.append(asyncio.create_task(enter(number, seconds, None)))
                case "fail":
                    tasks.append(asyncio.create_task(enter(number, seconds, busy())))
                case "cancel":
                    if tasks:
                        tasks[number % len(tasks)].cancel()
                case "slow":
                    for _ in range(100):  # those who were granted a slot a moment ago go in first
                        await asyncio.sleep(0)
                    closed_until = max(closed_until, asyncio.get_running_loop().time() + seconds)
                    gate.slow_down(seconds)
                    assert gate.allowed <= max(1, limit // 2 + 1)
                case "pass":
                    await asyncio.sleep(seconds)
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)

        for outcome in outcomes:
            assert outcome is None or isinstance(outcome, errors.Retry | asyncio.CancelledError), outcome
        assert (gate.in_flight, gate.waiting, len(gate._turns)) == (0, 0, 0)
        assert 1 <= gate.allowed <= limit

    in_virtual_time(story())
