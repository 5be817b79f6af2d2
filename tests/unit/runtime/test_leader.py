from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import msgspec
import pytest

from octarbiter.api import errors
from octarbiter.api.core_kinds import Lease, LeaseSpec
from octarbiter.api.meta import ObjectMeta, Status
from octarbiter.api.scheme import Resource
from octarbiter.runtime import leader, telemetry

Run = Callable[..., Any]
Work = Callable[[], Coroutine[Any, Any, None]]


class LeaseServer:
    """The one Lease, with the API server's optimistic locking."""

    def __init__(self) -> None:
        self.lease: Lease | None = None
        self.version = 0
        self.writes: list[LeaseSpec] = []

    def store(self, lease: Lease) -> Lease:
        self.version += 1
        metadata = msgspec.structs.replace(lease.metadata, resource_version=str(self.version))
        self.lease = msgspec.structs.replace(lease, metadata=metadata)
        self.writes.append(lease.spec)
        return self.lease

    @property
    def holder(self) -> str | None:
        return self.lease.spec.holder_identity if self.lease else None


class Link:
    """One process's way to the server: it can be cut, slow, or lose answers."""

    def __init__(self, server: LeaseServer) -> None:
        self.server = server
        self.cut = False
        self.hangs = 0
        self.lose_answers = 0
        self.latency_s = 0.01

    async def get(self, _: Resource[Lease], namespace: str, name: str) -> Lease:
        await self._travel()
        if self.server.lease is None:
            raise errors.NotFound(Status(code=404))
        return self.server.lease

    async def create(self, _: Resource[Lease], namespace: str, lease: Lease) -> Lease:
        await self._travel()
        if self.server.lease is not None:
            raise errors.AlreadyExists(Status(code=409, reason="AlreadyExists"))
        return await self._answer(self.server.store(lease))

    async def replace(self, _: Resource[Lease], namespace: str, name: str, lease: Lease) -> Lease:
        await self._travel()
        if self.server.lease is None:
            raise errors.NotFound(Status(code=404))
        if lease.metadata.resource_version != self.server.lease.metadata.resource_version:
            raise errors.Conflict(Status(code=409, reason="Conflict"))
        return await self._answer(self.server.store(lease))

    async def _travel(self) -> None:
        await asyncio.sleep(self.latency_s)
        if self.hangs:
            self.hangs -= 1
            await asyncio.sleep(10_000)
        if self.cut:
            raise errors.Retry(Status(code=503, message="cannot be reached"))

    async def _answer(self, lease: Lease) -> Lease:
        if self.lose_answers:
            self.lose_answers -= 1
            raise errors.Retry(Status(code=503, message="the answer was lost"))
        return lease


class Process:
    """A candidate, and the story of its acting."""

    def __init__(self, server: LeaseServer, clock: Any, name: str, work: Work | None = None) -> None:
        self.link = Link(server)
        self.clock = clock
        self.metrics = telemetry.Metrics()
        self.elector = leader.Elector(
            self.link,  # type: ignore[arg-type]
            namespace="kube-system",
            name="octarbiter",
            timing=leader.Timing(),
            metrics=self.metrics,
            identity=name,
            clock=clock,
            dice=lambda: 0.5,
        )
        self.started = asyncio.Event()
        self.ended_cleanly = False
        self.finish = asyncio.Event()
        self.lost_at: float | None = None
        self.task = asyncio.create_task(self.elector.run(work or self._work, self._lost))

    async def _work(self) -> None:
        self.started.set()
        await self.finish.wait()
        self.ended_cleanly = True

    def _lost(self) -> None:
        assert not self.elector.is_leading()
        self.lost_at = self.clock.monotonic()

    async def kill(self) -> None:
        """As SIGKILL does: nothing is released."""
        self.link.cut = True
        self.task.cancel()
        await asyncio.wait({self.task})


@pytest.fixture
def elections(in_virtual_time: Run, virtual_clock: Any) -> Run:
    """Runs a story with a server and a way to start candidates, and ends them all."""

    def run(story: Callable[..., Coroutine[Any, Any, None]]) -> None:
        async def whole() -> None:
            server = LeaseServer()
            processes: list[Process] = []

            def start(name: str, work: Work | None = None) -> Process:
                processes.append(Process(server, virtual_clock, name, work))
                return processes[-1]

            await story(server, start)
            for process in processes:
                process.task.cancel()
            await asyncio.gather(*(process.task for process in processes), return_exceptions=True)

        in_virtual_time(whole())

    return run


Start = Callable[..., Process]


def now() -> float:
    return asyncio.get_running_loop().time()


def test_the_first_candidate_writes_the_whole_lease_and_leads(elections: Run) -> None:
    async def story(server: LeaseServer, start: Start) -> None:
        one = start("one")
        assert not one.elector.is_leading()
        with pytest.raises(leader.NotLeading, match="one does not hold the lease kube-system/octarbiter"):
            one.elector.require()
        await one.started.wait()
        assert one.elector.is_leading()
        one.elector.require()

        spec = server.writes[0]
        assert (spec.holder_identity, spec.lease_duration_seconds, spec.lease_transitions) == ("one", 10, 0)
        assert spec.acquire_time == spec.renew_time
        assert spec.renew_time is not None
        assert spec.renew_time.endswith("Z")
        assert len(spec.renew_time.split(".")[1]) == 7, "microseconds"
        assert server.lease is not None
        assert (server.lease.api_version, server.lease.kind) == ("coordination.k8s.io/v1", "Lease")

    elections(story)


def test_a_leader_renews_every_retry_period_and_keeps_its_acquire_time(elections: Run) -> None:
    async def story(server: LeaseServer, start: Start) -> None:
        one = start("one")
        await asyncio.sleep(60)
        assert one.elector.is_leading()
        assert len(server.writes) == pytest.approx(30, abs=1)
        assert len({spec.acquire_time for spec in server.writes}) == 1
        assert len({spec.renew_time for spec in server.writes}) == len(server.writes)
        assert {spec.lease_transitions for spec in server.writes} == {0}

    elections(story)


def test_of_many_candidates_one_leads_at_any_time(elections: Run) -> None:
    async def story(server: LeaseServer, start: Start) -> None:
        candidates = [start(f"p{number}") for number in range(5)]
        for _ in range(300):
            await asyncio.sleep(0.1)
            assert sum(candidate.elector.is_leading() for candidate in candidates) <= 1
        assert sum(candidate.elector.is_leading() for candidate in candidates) == 1

    elections(story)


def test_a_killed_leader_is_replaced_after_its_lease_and_within_15_seconds(elections: Run) -> None:
    async def story(server: LeaseServer, start: Start) -> None:
        one = start("one")
        await one.started.wait()
        two = start("two")
        await asyncio.sleep(33.3)
        assert not two.started.is_set()

        killed_at = now()
        await one.kill()
        await two.started.wait()
        assert 7 < now() - killed_at < 13
        assert server.lease is not None
        assert server.lease.spec.lease_transitions == 1

    elections(story)


def test_a_leader_that_ends_cleanly_hands_over_at_the_next_look(elections: Run) -> None:
    async def story(server: LeaseServer, start: Start) -> None:
        one = start("one")
        await one.started.wait()
        two = start("two")
        await asyncio.sleep(5)
        ended_at = now()
        one.finish.set()
        await one.task
        assert (server.holder, one.ended_cleanly, one.lost_at) == ("", True, None)
        await two.started.wait()
        assert now() - ended_at < 2.5

    elections(story)


def test_the_lease_is_kept_until_work_that_is_being_cancelled_has_ended(elections: Run) -> None:
    async def story(server: LeaseServer, start: Start) -> None:
        started, draining = asyncio.Event(), asyncio.Event()

        async def slow_to_stop() -> None:
            started.set()
            try:
                await asyncio.sleep(10_000)
            finally:
                draining.set()
                await asyncio.sleep(30)
                one.elector.require()

        one = start("one", slow_to_stop)
        await started.wait()
        two = start("two")
        await asyncio.sleep(5)
        one.task.cancel()
        await draining.wait()
        await asyncio.sleep(29)
        assert one.elector.is_leading()
        assert not two.started.is_set()
        await asyncio.wait({one.task})
        assert server.holder == ""

    elections(story)


def test_a_leader_cut_off_stops_before_anybody_else_may_start(elections: Run) -> None:
    async def story(server: LeaseServer, start: Start) -> None:
        one = start("one")
        await one.started.wait()
        two = start("two")
        await asyncio.sleep(11.1)
        one.link.cut = True
        cut_at = now()
        await two.started.wait()
        assert one.lost_at is not None
        assert one.lost_at - cut_at <= 7
        assert one.lost_at < now()
        assert one.task.done()
        assert not one.ended_cleanly

    elections(story)


def test_a_stalled_process_knows_before_any_of_its_timers_has_run(elections: Run) -> None:
    async def story(server: LeaseServer, start: Start) -> None:
        one = start("one")
        await one.started.wait()
        assert one.elector.is_leading()
        one.clock.stall(8)
        assert not one.elector.is_leading()
        with pytest.raises(leader.NotLeading):
            one.elector.require()
        await asyncio.wait({one.task})
        assert one.lost_at is not None

    elections(story)


def test_one_request_lost_in_the_network_does_not_cost_the_lease(elections: Run) -> None:
    async def story(server: LeaseServer, start: Start) -> None:
        one = start("one")
        await one.started.wait()
        one.link.hangs = 1
        for _ in range(200):
            await asyncio.sleep(0.1)
            assert one.elector.is_leading()

    elections(story)


def test_a_renewal_whose_answer_was_lost_is_recognised_as_ours(elections: Run) -> None:
    async def story(server: LeaseServer, start: Start) -> None:
        one = start("one")
        one.link.lose_answers = 1  # of the very first claim
        await one.started.wait()
        one.link.lose_answers = 1
        await asyncio.sleep(30)
        assert one.elector.is_leading()
        assert {spec.lease_transitions for spec in server.writes} == {0}

    elections(story)


def test_a_leader_that_sees_another_holder_stops_at_once(elections: Run) -> None:
    async def story(server: LeaseServer, start: Start) -> None:
        one = start("one")
        await one.started.wait()
        usurped = LeaseSpec(holder_identity="usurper", lease_duration_seconds=10, renew_time="x")
        server.store(Lease(metadata=ObjectMeta(name="octarbiter"), spec=usurped))
        usurped_at = now()
        await asyncio.wait({one.task})
        assert one.lost_at is not None
        assert one.lost_at - usurped_at < 3
        assert server.holder == "usurper"

    elections(story)


def test_a_lease_somebody_deleted_is_written_again_by_its_holder_and_not_taken_by_another(elections: Run) -> None:
    async def story(server: LeaseServer, start: Start) -> None:
        one = start("one")
        await one.started.wait()
        two = start("two")
        await asyncio.sleep(5)
        for _ in range(5):
            server.lease = None
            for _ in range(40):
                await asyncio.sleep(0.1)
                assert one.elector.is_leading()
        assert server.holder == "one"
        assert not two.started.is_set()

    elections(story)


def test_other_holders_are_judged_by_their_renewals_and_not_by_their_clocks(elections: Run) -> None:
    async def story(server: LeaseServer, start: Start) -> None:
        def renew(number: int) -> None:
            # A holder whose clock is ten years behind, which lives; and labels that say nothing.
            spec = LeaseSpec(
                holder_identity="old", lease_duration_seconds=10, renew_time=f"2020-01-01T00:00:{number:02}.000000Z"
            )
            server.store(Lease(metadata=ObjectMeta(name="octarbiter"), spec=spec))

        renew(0)
        two = start("two")
        for number in range(1, 20):
            await asyncio.sleep(5)
            renew(number)
            assert not two.started.is_set()

        died_at = now()
        while not two.started.is_set():  # its object is touched, but the holder does not renew
            await asyncio.sleep(1)
            if not two.started.is_set():
                renew(19)
            assert now() - died_at < 15

    elections(story)


def test_a_failure_of_the_work_is_told_after_the_lease_was_released(elections: Run) -> None:
    async def story(server: LeaseServer, start: Start) -> None:
        async def broken() -> None:
            raise RuntimeError("broken")

        one = start("one", broken)
        with pytest.raises(RuntimeError, match="broken"):
            await one.task
        assert server.holder == ""

    elections(story)


def test_the_gauge_tells_whether_this_process_leads_now(elections: Run) -> None:
    async def story(server: LeaseServer, start: Start) -> None:
        one = start("one")
        labels = {"lease": "kube-system/octarbiter"}
        assert one.metrics.registry.get_sample_value("octarbiter_leader", labels) == 0
        await one.started.wait()
        assert one.metrics.registry.get_sample_value("octarbiter_leader", labels) == 1
        one.clock.stall(8)
        assert one.metrics.registry.get_sample_value("octarbiter_leader", labels) == 0

    elections(story)


def test_identities_are_unique_even_within_one_host() -> None:
    assert len({leader.unique_identity() for _ in range(100)}) == 100
