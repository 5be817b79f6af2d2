"""Do people read why they have what they have?"""

from __future__ import annotations

from typing import Any

from arbitration_builders import at, job, pod, queue, state

from octarbiter.core.arbitration import explain
from octarbiter.core.arbitration.decide import arbitrate
from octarbiter.core.arbitration.state import Job, JobResult, Phase, Queue, Settings, State

SETTINGS = Settings()


def satisfied(given: State, name: str) -> str:
    return arbitrate(given, SETTINGS, at(0)).queues[f"{name}/{name}"].satisfied


def told(given: State, about: Job) -> JobResult:
    outcome = arbitrate(given, SETTINGS, at(0))
    return explain.Jobs(given, outcome, SETTINGS, at(0)).of(about)


def alone(total: Any, *jobs: Job, own: Queue | None = None) -> State:
    return state(total, [own or queue("q")], jobs)


# --- queues


def test_the_documented_sentence() -> None:
    given = state(
        8,
        [queue("q01", 8), queue("q02", 4)],
        pods=[
            *(pod("q01", f"p{i}", 1) for i in range(4)),
            pod("q01", "e0", "1500m", phase=Phase.TERMINATING),
            pod("q01", "e1", "1500m", phase=Phase.TERMINATING),
        ],
        taken_from={"q01/q01": at(-12)},
    )

    assert satisfied(given, "q02") == (
        "q02 waits: it deserves 4 CPU, has 1; 3 CPU come back when 2 pods of q01 end (asked 12 s ago)"
    )


def test_a_queue_that_has_all_says_what() -> None:
    assert satisfied(state("9/9Gi", [queue("q", "2/1Gi")]), "q") == "q has all it asks for: 2 CPU and 1Gi memory"
    assert satisfied(state(9, [queue("q")]), "q") == "q asks for nothing"


def test_a_queue_that_has_its_share_says_of_how_much() -> None:
    assert (
        satisfied(state(4, [queue("a", 8), queue("b", 8)]), "a") == "a has all it deserves: 2 of the 8 CPU it asks for"
    )


def test_queues_of_the_same_name_are_told_apart() -> None:
    one, other = queue("q", 8), Queue(key="else/q", created=at(0), request={"cpu": 8000})
    given = state(4, [one, other])

    assert arbitrate(given, SETTINGS, at(0)).queues["else/q"].satisfied.startswith("else/q has all it deserves")


def test_a_queue_that_gives_back_says_what_and_when() -> None:
    given = state(4, [queue("a"), queue("b", 2)], pods=[pod("a", f"p{i}", 1) for i in range(4)])

    result = arbitrate(given, SETTINGS, at(0)).queues["a/a"]

    assert result.is_reclaiming
    assert result.reclaiming == "a gives back 2 CPU when 2 pods end (asked just now): it deserves 2 CPU, holds 4"


def test_a_queue_that_is_at_rest_says_so() -> None:
    result = arbitrate(state(4, [queue("a", 2)]), SETTINGS, at(0)).queues["a/a"]

    assert not result.is_reclaiming
    assert result.reclaiming == "a holds no more than it deserves"


def test_a_queue_above_one_that_holds_too_much_says_so() -> None:
    queues = [queue("top"), queue("a", parent="top/top"), queue("b", 2)]
    given = state(4, queues, pods=[pod("a", f"p{i}", 1) for i in range(4)])

    result = arbitrate(given, SETTINGS, at(0)).queues["top/top"]

    assert result.reclaiming == "top holds 2 CPU more than it deserves, in the queues below it"


def test_long_times_are_told_in_minutes_and_hours() -> None:
    ending = pod("a", "p", 4, phase=Phase.TERMINATING)

    def when(seconds: float) -> str:
        given = state(4, [queue("a"), queue("b", 2)], pods=[ending], taken_from={"a/a": at(-seconds)})
        return satisfied(given, "b").rpartition("(")[2]

    assert [when(119), when(600), when(8000)] == ["asked 119 s ago)", "asked 10 min ago)", "asked 2 h ago)"]


# --- jobs


def test_a_job_that_has_all_has_no_position() -> None:
    one, many = job("q", "one", 2), job("q", "many", 2, 3)
    given = alone(99, one, many)

    assert told(given, one) == JobResult(allocated=1, position=0, sentence="it has its unit: 2 CPU")
    assert told(given, many).sentence == "it has all 3 units: 6 CPU"


def test_those_that_wait_are_counted_without_those_that_have_all() -> None:
    full = job("q", "full", 4, created=-9)
    large, small = job("q", "large", 3, created=-8), job("q", "small", 2, 2, created=-7)
    last = job("q", "last", 2, created=-6)
    given = alone(6, full, large, small, last)

    assert [told(given, each).position for each in (full, large, small, last)] == [0, 1, 2, 3]
    assert told(given, large).sentence == (
        "it waits, number 1 in q: 3 CPU (one unit) does not fit beside what is before it; q deserves 6 CPU"
    )
    assert told(given, small).sentence.startswith("it has 1 of 2 units, number 2 in q: 2 CPU (one unit) does not fit")


def test_a_job_that_never_fits_is_told_so() -> None:
    gang = job("q", "gang", 3, 4, least=4)

    assert told(alone(9, gang), gang).sentence == (
        "it waits, number 1 in q: 12 CPU (4 units at once) never fits: there is only 9 CPU"
    )
    assert told(alone(99, gang, own=queue("q", capability=10)), gang).sentence.endswith("q is limited to 10 CPU")
    gpu = job("q", "gpu", {"nvidia.com/gpu": 1})
    assert told(alone({"cpu": 9}, gpu), gpu).sentence.endswith("never fits: there is only 0 nvidia.com/gpu")


def test_a_job_for_which_things_are_kept_is_told_since_when() -> None:
    running = job("q", "running", 1, 5, had=5, started=True)
    large = job("q", "large", 6, waits_since=at(-75))

    assert told(alone(10, running, large), large).sentence == (
        "it waits, number 1 in q: 6 CPU (one unit) does not fit yet; what comes free in q is kept for it, after 75 s"
    )


def test_a_job_whose_queue_waits_for_others_says_what_its_queue_says() -> None:
    wants = job("b", "wants", 2)
    given = state(4, [queue("a"), queue("b")], [wants], [pod("a", f"p{i}", 1) for i in range(4)])

    assert told(given, wants).sentence == (
        "it waits, number 1 in b: b waits: it deserves 2 CPU, has 0; "
        "2 CPU come back when 2 pods of a end (asked just now)"
    )


def test_a_job_that_is_suspended_says_for_whom() -> None:
    taken = job("a", "taken", 1, 4, least=4, had=4, started=True)
    given = state(
        4,
        [queue("a", capability=3), queue("b", 4)],
        [taken],
        [pod("a", f"p{i}", 1, job="taken") for i in range(4)],
    )

    assert told(given, taken).sentence == "suspended, makes room for b: a deserves 0 CPU, holds 4"
