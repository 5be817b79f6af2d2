"""What do queues ask for, and in which order?"""

from __future__ import annotations

import random

from arbitration_builders import Sizes, at, job, pod, queue, state

from octarbiter.core.arbitration import demand
from octarbiter.core.arbitration.claims import Block
from octarbiter.core.arbitration.demand import Scale, Want
from octarbiter.core.arbitration.lines import Job, Line
from octarbiter.core.arbitration.state import Queue, Settings, State

SETTINGS = Settings(reserve_after_s=60)
WHOLE = 1000


def wanted(given: State, depth: int = WHOLE) -> Want:
    scale = Scale(given)
    (key,) = given.queues
    used = scale.vector(given.used.get(key, {}))
    return demand.want(given.queues[key], given.lines.get(key), used, depth, scale, SETTINGS, at(0))


def asked(*jobs: Job, total: Sizes = 100, depth: int = WHOLE, own: Queue | None = None) -> tuple[Block, ...]:
    return wanted(state(total, [own or queue("a")], jobs), depth).claim.path


# --- paths


def test_what_started_jobs_keep_comes_first_and_what_they_ask_beyond_it_in_its_place() -> None:
    path = asked(
        job("a", "high", 2, 1, priority=5),
        job("a", "started", 1, 5, had=3, started=True, least=2),
        job("a", "low", 3, 1, priority=-1),
    )

    assert path == (Block((1000,), 3, 2), Block((2000,), 1), Block((1000,), 2), Block((3000,), 1))


def test_what_a_bare_claim_had_does_not_matter() -> None:
    assert asked(job("a", "bare", 1, 5, had=3)) == (Block((1000,), 5),)


def test_jobs_that_ask_for_the_same_one_by_one_share_a_block() -> None:
    want = wanted(state(100, [queue("a")], [job("a", "x", 1, 2), job("a", "y", 1, 3), job("a", "z", 1, 4, least=4)]))

    assert want.claim.path == (Block((1000,), 5), Block((1000,), 4, 4))
    assert demand.granted(want.owners, (4, 4)) == {"a/x": 2, "a/y": 2, "a/z": 4}


def test_a_job_that_has_waited_long_is_a_barrier_with_its_least() -> None:
    path = asked(job("a", "gang", 1, 9, least=4, waits_since=at(-60)), job("a", "next", 1, waits_since=at(-59)))

    assert path == (Block((1000,), 4, 4, is_barrier=True), Block((1000,), 6))


def test_no_block_has_more_units_than_there_could_be() -> None:
    assert asked(job("a", "many", 3, 1000), total=10) == (Block((3000,), 3),)
    assert asked(job("a", "many", 3, 1000), total=10, own=queue("a", capability=7)) == (Block((3000,), 2),)


def test_a_job_whose_least_could_never_fit_is_not_on_the_path() -> None:
    assert asked(job("a", "gang", 3, 9, least=4, waits_since=at(-99)), total=10) == ()


def test_behind_the_first_jobs_stand_the_units_of_all_others_by_shape() -> None:
    jobs = [job("a", f"j{i}", 1 + i % 2, created=i) for i in range(10)]
    want = wanted(state(100, [queue("a")], [*jobs, job("a", "gang", 1, 3, least=3, created=99)]), depth=2)

    first, tail = want.claim.path[:2], want.claim.path[2:]
    assert first == (Block((1000,), 1), Block((2000,), 1))
    assert sorted(tail, key=repr) == [Block((1000,), 3, 3), Block((1000,), 4), Block((2000,), 4)]
    assert want.has_tail
    assert len(want.owners) == 2


def test_the_tail_asks_for_as_much_as_the_jobs_it_stands_for() -> None:
    given = state(100, [queue("a")], [job("a", f"j{i}", 1 + i % 3, 1 + i % 2, created=i) for i in range(20)])

    for depth in (0, 5, 20):
        assert sum(block.unit[0] * block.count for block in wanted(given, depth).claim.path) == wanted(given).demand[0]


# --- amounts


def test_a_request_is_what_a_queue_without_jobs_asks_for() -> None:
    claim = wanted(state("9/9Gi", [queue("a", "4/2Gi", guarantee="1/1Gi")])).claim

    assert claim.path == ()
    assert claim.floor == (1000, 1 << 30)
    assert claim.rest == (3000, 1 << 30)


def test_pods_that_use_more_than_all_units_ask_for_the_rest() -> None:
    want = wanted(state(9, [queue("a")], [job("a", "j", 2)], [pod("a", "p", 5)]))

    assert want.demand == (5000,)
    assert want.claim.rest == (3000,)


def test_a_guarantee_is_a_floor_only_as_far_as_it_is_asked_for() -> None:
    assert wanted(state(9, [queue("a", 2, guarantee=5)])).claim.floor == (2000,)


def test_a_capability_limits_only_what_it_names() -> None:
    want = wanted(state("9/9Gi", [queue("a", "5/5Gi", capability=3)]))

    assert want.demand == (3000, 5 << 30)
    assert want.claim.cap == (3000, 9 << 30)


def test_the_oldest_job_says_since_when_a_queue_asks() -> None:
    jobs = [job("a", "x", 1, created=-5), job("a", "y", 1, created=-50, priority=-1)]

    assert wanted(state(9, [queue("a")], jobs)).claim.since == at(-50)
    assert wanted(state(9, [queue("a", 1)])).claim.since == at(-1000)


# --- lines


def test_a_line_that_was_changed_is_as_one_that_was_made_so() -> None:
    dice = random.Random(5)
    line = Line()
    jobs: dict[str, Job] = {}
    for _ in range(600):
        count = dice.randrange(1, 4)
        new = job(
            "a",
            f"j{dice.randrange(30)}",
            dice.randrange(0, 3),
            count,
            least=dice.randrange(1, 4),
            priority=dice.randrange(2),
            created=dice.randrange(5),
            had=dice.randrange(count + 2),
            started=dice.random() < 0.5,
        )
        if dice.random() < 0.3:
            line.drop(new.key)
            jobs.pop(new.key, None)
        else:
            line.put(new)
            jobs[new.key] = new

        made = Line(jobs.values())
        assert {**vars(line), "_oldest": 0} == {**vars(made), "_oldest": 0}
        assert line.oldest == made.oldest
        assert [line.index(each.key) for each in line] == list(range(len(jobs)))
