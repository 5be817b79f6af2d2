"""Who is overtaken by what is behind it in its queue, once it has its units?"""

from __future__ import annotations

from typing import Any

import pytest
from arbitration_builders import at, job, queue, state

from octarbiter.core.arbitration.decide import arbitrate
from octarbiter.core.arbitration.state import Job, Settings

# It deserves all 3 FPGAs, and 1.2 GPUs with them, of which it gets 1: what was cut off is only seen in the end, when
# those behind a gang of 9 GPUs have been served from the 8.8 that seemed to be free.
DIVISIBLE = queue("a", {"gpu": 2, "fpga": 5}, weight=3)


def served(*jobs: Job, gpus: int = 19) -> dict[str, int]:
    there = state({"gpu": gpus, "fpga": 3}, [DIVISIBLE, queue("b")], jobs)
    outcome = arbitrate(there, Settings(), at(0))
    return {key.partition("/")[2]: count for key, count in outcome.units.items() if count}


def first(**more: Any) -> Job:
    return job("b", "first", {"gpu": 3}, 3, created=-30, **more)


def gang(**more: Any) -> Job:
    return job("b", "gang", {"gpu": 3}, 3, least=3, created=-20, **more)


def small(**more: Any) -> Job:
    return job("b", "small", {"gpu": 1}, created=-10, **more)


def test_a_claim_that_got_its_units_because_it_waited_is_not_overtaken_as_soon_as_it_has_them() -> None:
    assert served(first(), gang(), small()) == {"first": 3, "small": 1}
    assert served(first(), gang(waits_since=at(-60)), small(had=1)) == {"first": 3, "gang": 3}

    assert served(first(had=3), gang(had=3), small()) == {"first": 3, "gang": 3}


@pytest.mark.parametrize("waits_since", [None, at(-600)])
def test_it_keeps_them_however_long_those_behind_it_wait(waits_since: Any) -> None:
    assert served(first(had=3), gang(had=3), small(waits_since=waits_since)) == {"first": 3, "gang": 3}


def test_a_claim_that_cannot_keep_its_units_keeps_nobody_waiting() -> None:
    assert served(first(had=3), gang(had=3), small(had=1), gpus=18) == {"first": 3, "small": 1}


def test_a_claim_that_has_its_units_loses_them_at_once_to_a_younger_one_of_higher_priority() -> None:
    urgent = job("b", "urgent", {"gpu": 2}, created=0, priority=1)

    assert served(first(had=3), gang(had=3), small(had=1), urgent) == {"urgent": 1, "first": 3, "small": 1}


def test_a_claim_that_has_less_than_its_least_is_overtaken_as_one_that_waits() -> None:
    assert served(first(had=3), gang(had=2), small()) == {"first": 3, "small": 1}
