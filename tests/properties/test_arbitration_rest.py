"""Whatever there is: does arbitration come to rest, and does it hurt nobody in vain on the way?"""

from __future__ import annotations

import types
import unittest.mock
from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from typing import Any

from arbitration_world import START, World
from hypothesis import given, settings
from hypothesis import strategies as some

from octarbiter.api import resources
from octarbiter.api.resources import Amounts
from octarbiter.core.arbitration import allocation, decide, demand, reclaim
from octarbiter.core.arbitration.allocation import Leaf
from octarbiter.core.arbitration.claims import Grant
from octarbiter.core.arbitration.demand import Scale
from octarbiter.core.arbitration.reclaim import Plan
from octarbiter.core.arbitration.state import Job, Line, Outcome, Phase, Pod, Queue, Settings, State
from octarbiter.core.arbitration.victims import Loss

POLICIES = ("drf", "hdrf", "proportion", "capacity", "priority", "fifo")
NAMES = ("cpu", "gpu")
SOON, LATER = timedelta(seconds=3), timedelta(seconds=70)
LONGEST = 400
QUIET = 5
"""Steps without any change, all but the first of them longer than any hold or wait for a reservation."""

small = some.integers(0, 6)
sizes = some.fixed_dictionaries({"cpu": some.integers(1, 4)}, optional={"gpu": some.integers(0, 3)})
limits = some.dictionaries(some.sampled_from(NAMES), some.integers(0, 9))


@some.composite
def worlds(draw: some.DrawFn, tame: bool = False, budget: int = 0) -> World:
    """`tame`: nobody is protected, or has a guarantee, and no gang or job is larger than its pods."""
    leaves = [f"q{index}/q{index}" for index in range(draw(some.integers(2, 4)))]
    inner = draw(some.booleans())
    queues = [
        Queue(
            key=key,
            weight=draw(some.integers(1, 3)),
            priority=draw(some.integers(0, 2)),
            parent="p/p" if inner and index % 2 else "",
            request=draw(limits),
            guarantee={} if tame else draw(some.just({}) | limits),
            capability=draw(some.none() | limits),
            promised=draw(some.just({}) | limits),
            reclaimable=tame or draw(some.integers(0, 4)) > 0,
            created=START - timedelta(seconds=draw(small)),
        )
        for index, key in enumerate(leaves)
    ]
    if inner:
        queues.append(
            Queue(
                key="p/p",
                weight=draw(some.integers(1, 3)),
                policy=draw(some.sampled_from(("", *POLICIES))),
                created=START,
            )
        )
    jobs, pods, workloads = [], [], set()
    gangs: dict[str, int] = {}
    for key in leaves:
        namespace = key.partition("/")[0]
        for index in range(draw(some.integers(0, 4))):
            count = draw(some.integers(1, 4))
            job = Job(
                key=f"{namespace}/j{index}",
                queue=key,
                priority=draw(some.integers(0, 2)),
                created=START - timedelta(seconds=draw(small)),
                unit=draw(sizes),
                count=count,
                least=draw(some.integers(1, count)),
                had=draw(some.integers(0, count)),
                started=draw(some.booleans()),
                waits_since=draw(some.none() | some.just(START - timedelta(seconds=50))),
            )
            if job.started or draw(some.booleans()):
                workloads.add(job.key)
            jobs.append(job)
            for number in range(draw(some.integers(0, job.had)) if job.started else 0):
                pods.append(_pod(draw, tame, f"{job.key}-{number}", key, job.unit, job=job.key))
        for index in range(draw(some.integers(0, 5))):
            gang = draw(some.sampled_from(("", "", f"{namespace}/g0", f"{namespace}/g1")))
            if gang:
                gangs.setdefault(gang, draw(some.integers(1, 3)))
            pods.append(_pod(draw, tame, f"{namespace}/p{index}", key, draw(sizes), gang=gang))
    return World(
        draw(some.fixed_dictionaries({"cpu": some.integers(0, 20)}, optional={"gpu": some.integers(0, 12)})),
        draw(some.sampled_from(POLICIES)),
        queues,
        jobs,
        workloads,
        pods,
        gangs,
        linger=draw(some.integers(0, 2)),
        settings=Settings(reserve_after_s=60, hold_s=draw(some.sampled_from((0, 5)))),
        budget=budget or draw(some.sampled_from((1, 2, 100))),
    )


def _pod(
    draw: some.DrawFn, tame: bool, name: str, queue: str, requests: dict[str, int], job: str = "", gang: str = ""
) -> Pod:
    return Pod(
        key=name,
        uid=name,
        queue=queue,
        requests=requests,
        phase=draw(some.sampled_from((Phase.RUNNING, Phase.RUNNING, Phase.PENDING, Phase.TERMINATING))),
        priority=draw(some.integers(0, 1)),
        rank=draw(some.integers(0, 1)),
        created=START - timedelta(seconds=draw(small)),
        gang=gang,
        job=job,
        is_protected=not tame and draw(some.integers(0, 9)) == 0,
    )


def ran(world: World) -> Iterator[tuple[State, Outcome]]:
    """Every step until nothing changes any more."""
    quiet = 0
    for _ in range(LONGEST):
        before = world.image()
        now = world.now
        state, outcome = world.step(SOON if not quiet else LATER)
        assert outcome.look_again_at is None or outcome.look_again_at > now
        yield state, outcome
        moved = outcome.evictions or outcome.suspend or outcome.taken_from or world.image() != before
        quiet = 0 if moved else quiet + 1
        if quiet == QUIET:
            return
    raise AssertionError("it goes on for ever")


def held(state: State, key: str) -> Amounts:
    """What its pods use, or what its started jobs have."""
    jobs: Iterable[Job] = state.lines.get(key, ())
    kept = resources.plus(*(resources.times(job.unit, job.kept) for job in jobs))
    return resources.larger(state.used.get(key, {}), kept)


def leaves(state: State) -> list[str]:
    return [key for key in state.queues if key != "p/p"]


@settings(max_examples=120, deadline=None)
@given(worlds())
def test_without_arrivals_arbitration_comes_to_rest(world: World) -> None:
    for _ in ran(world):
        pass


@settings(max_examples=120, deadline=None)
@given(worlds(tame=True))
def test_at_rest_everybody_may_use_what_it_deserves_and_nobody_uses_more_if_all_may_be_asked_to_go(
    world: World,
) -> None:
    *_, (state, outcome) = ran(world)

    for key in leaves(state):
        result = outcome.queues[key]
        waits_for_itself = any(resources.less(held(state, key), result.deserved).values())
        assert not result.preempting or waits_for_itself, key
        if not any(outcome.queues[other].preempting for other in leaves(state)):
            assert result.deserved == result.allocated


@settings(max_examples=120, deadline=None)
@given(worlds())
def test_nobody_may_use_more_than_it_deserves_and_together_no_more_than_there_is(world: World) -> None:
    for state, outcome in ran(world):
        there = {name: state.total.get(name, 0) for name in NAMES}
        holding = resources.plus(*(held(state, key) for key in leaves(state)))
        # Somebody may have used too much before; that is no reason for anybody to use more.
        bound = resources.larger(there, holding)
        may_hold: Amounts = {}
        for key in leaves(state):
            result = outcome.queues[key]
            assert resources.fits(result.allocated, result.deserved)
            assert resources.fits(result.deserved, result.demand)
            assert resources.plus(result.allocated, result.preempting) == resources.plus(result.deserved, {})
            may_hold = resources.plus(may_hold, resources.larger(held(state, key), result.allocated))
        assert resources.fits(resources.plus(*(outcome.queues[key].deserved for key in leaves(state))), there)
        assert resources.fits(may_hold, bound)


@settings(max_examples=120, deadline=None)
@given(worlds())
def test_nobody_is_asked_who_is_protected_or_not_reclaimable_nor_below_a_guarantee_nor_within_its_right(
    world: World,
) -> None:
    for state, outcome in ran(world):
        pods = {pod.key: pod for own in state.pods.values() for pod in own}
        lost = [pods[eviction.pod] for eviction in outcome.evictions]
        # Who is on his way out already is not asked.
        lost += [pod for pod in pods.values() if pod.job in outcome.suspend and pod.phase is not Phase.TERMINATING]
        assert not any(pod.is_protected for pod in lost)
        assert not any(eviction.pod for eviction in outcome.evictions if pods[eviction.pod].phase == Phase.TERMINATING)
        for key in outcome.taken_from:
            queue, used = state.queues[key], held(state, key)
            assert queue.reclaimable
            assert any(resources.less(used, outcome.queues[key].deserved).values())
            for pod in [pod for pod in lost if pod.queue == key]:
                used = resources.less(used, pod.requests)
            stays = [pod for pod in state.pods.get(key, ()) if pod not in lost and pod.phase != Phase.TERMINATING]
            left = resources.plus(*(pod.requests for pod in stays))
            for name, least in queue.guarantee.items():
                touched = any(pod.requests.get(name) for pod in lost if pod.queue == key)
                assert not touched or max(left.get(name, 0), _kept(state, outcome, key, name)) >= min(
                    least, held(state, key).get(name, 0)
                )


def _kept(state: State, outcome: Outcome, key: str, name: str) -> int:
    jobs: Iterable[Job] = state.lines.get(key, ())
    return sum(job.unit.get(name, 0) * min(job.kept, outcome.units[job.key]) for job in jobs if job.kept)


@settings(max_examples=120, deadline=None)
@given(worlds(budget=1000))
def test_nobody_is_asked_in_vain(world: World) -> None:
    plans: list[tuple[State, Sequence[Leaf], Scale, Plan]] = []

    def recorded(*args: Any) -> Plan:
        plan = reclaim.plan(*args)
        plans.append((args[0], args[4], args[3], plan))
        return plan

    with unittest.mock.patch.object(decide, "reclaim", types.SimpleNamespace(plan=recorded)):
        for _ in ran(world):
            pass

    for state, there, scale, plan in plans:
        if not plan.losses:
            continue
        waiting = [leaf for leaf in there if leaf.key in plan.claimants]
        reached = filled(state, there, scale, plan.losses)
        before = filled(state, there, scale, ())
        assert waiting
        assert all(reached[leaf.key] != before[leaf.key] for leaf in waiting)
        for loss in plan.losses:
            without = filled(state, there, scale, [other for other in plan.losses if other is not loss])
            assert any(without[leaf.key] != reached[leaf.key] for leaf in there), loss


def filled(state: State, there: Sequence[Leaf], scale: Scale, losses: Sequence[Loss]) -> dict[str, Grant]:
    """What everybody may use when all that is going has gone, and these with it."""
    lost = {pod.key for loss in losses for pod in loss.pods}
    after = {}
    for leaf in there:
        line = state.lines.get(leaf.key, Line())
        if not any(leaf.over(leaf.held)):
            continue
        going = {job.key for job in line if not job.started}
        stays = [
            pod.requests
            for pod in state.pods.get(leaf.key, ())
            if pod.phase != Phase.TERMINATING and pod.job not in going and pod.key not in lost
        ]
        units = {job.key: job.kept for job in line}
        for loss in losses:
            if loss.queue == leaf.key and loss.job:
                units[loss.job] -= loss.units
        kept = resources.plus(*(resources.times(job.unit, units[job.key]) for job in line))
        after[leaf.key] = scale.vector(resources.larger(resources.plus(*stays), kept))
    return allocation.fill(scale.total, there, after)


@settings(max_examples=120, deadline=None)
@given(worlds(), some.integers(0, 3))
def test_jobs_far_back_in_line_get_what_they_would_get_if_all_were_looked_at(world: World, first: int) -> None:
    state = world.state()

    outcomes = []
    for depth in (first, 1000):
        with unittest.mock.patch.object(demand, "FIRST_JOBS", depth):
            outcomes.append(decide.arbitrate(state, world.settings, world.now))

    assert outcomes[0] == outcomes[1]
