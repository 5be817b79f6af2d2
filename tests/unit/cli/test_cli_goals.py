"""When waiting is over, and with which exit code."""

from datetime import UTC, datetime
from typing import Any

import pytest

from octarbiter.api import taskset as api
from octarbiter.api.meta import Condition, ObjectMeta
from octarbiter.cli import goals
from octarbiter.cli.exits import Exit

SPEC = api.TaskSetSpec(roles=[])


def seen(state: str = "", uid: str = "1", **status: Any) -> api.TaskSet:
    return api.TaskSet(metadata=ObjectMeta(uid=uid), spec=SPEC, status=api.TaskSetStatus(state=state, **status))


def code(goal: str, what: api.TaskSet | None) -> Exit | None:
    verdict = goals.judge(goals.parse(goal), what, "1")
    return verdict.exit if verdict else None


GONE, REBORN = None, seen("Succeeded", uid="2")


@pytest.mark.parametrize(
    ("goal", "codes"),
    [
        #              none   Waiting  Running  Succeeded    Failed       gone            another of that name
        ("succeeded", [None, None, None, Exit.OK, Exit.FAILED, Exit.NOT_FOUND, Exit.NOT_FOUND]),
        ("failed", [None, None, None, Exit.FAILED, Exit.OK, Exit.NOT_FOUND, Exit.NOT_FOUND]),
        ("completed", [None, None, None, Exit.OK, Exit.OK, Exit.NOT_FOUND, Exit.NOT_FOUND]),
        ("running", [None, None, Exit.OK, Exit.OK, Exit.FAILED, Exit.NOT_FOUND, Exit.NOT_FOUND]),
        ("deleted", [None, None, None, None, None, Exit.OK, Exit.OK]),
    ],
)
def test_a_goal_is_reached_missed_or_still_open(goal: str, codes: list[Exit | None]) -> None:
    states = [seen(), seen("Waiting"), seen("Running"), seen("Succeeded"), seen("Failed"), GONE, REBORN]

    assert [code(goal, state) for state in states] == codes


def test_a_condition_is_waited_for_until_the_end() -> None:
    suspended = [Condition(type="Suspended", status="True")]

    assert code("condition=suspended", seen("Waiting", conditions=suspended)) is Exit.OK
    assert code("condition=Suspended=False", seen("Waiting", conditions=suspended)) is None
    assert code("condition=Suspended", seen("Running")) is None
    assert code("condition=Suspended", seen("Succeeded")) is Exit.FAILED


def test_the_sentence_says_how_it_ended_and_why() -> None:
    start, end = (datetime(2026, 1, 1, hour, tzinfo=UTC) for hour in (1, 3))
    failed = seen("Failed", start_at=start, finish_at=end, state_message="worker-1: exit\ncode 3")
    verdict = goals.judge(goals.parse("succeeded"), failed, "1")

    assert verdict == goals.Verdict(Exit.FAILED, "failed after 2h: worker-1: exit code 3")


def test_who_gives_up_hears_where_it_stands() -> None:
    assert goals.present(seen("Waiting", state_message="no GPUs")) == "is Waiting: no GPUs"
    assert "controller" in goals.present(seen())


@pytest.mark.parametrize("written", ["", "success", "condition=", "running=yes", "Condition"])
def test_a_goal_that_does_not_exist_is_refused_with_those_that_do(written: str) -> None:
    with pytest.raises(ValueError, match="succeeded, failed, completed, running, deleted, condition=NAME"):
        goals.parse(written)
