"""Has a TaskSet come to what somebody waits for, or can it never?"""

from __future__ import annotations

import msgspec

from octarbiter.api import taskset as api
from octarbiter.cli import text
from octarbiter.cli.exits import Exit

WORDS = ("succeeded", "failed", "completed", "running", "deleted")
_ENDS = (api.State.SUCCEEDED, api.State.FAILED)


class Goal(msgspec.Struct, frozen=True):
    word: str
    """One of WORDS, or `condition`."""
    condition: str = ""
    status: str = "True"


class Verdict(msgspec.Struct, frozen=True):
    exit: Exit
    sentence: str


def parse(written: str) -> Goal:
    """Raises ValueError with a sentence."""
    word, _, rest = written.partition("=")
    if word.lower() == "condition" and rest:
        condition, _, status = rest.partition("=")
        return Goal("condition", condition, status or "True")
    if word.lower() in WORDS and not rest:
        return Goal(word.lower())
    raise ValueError(f"{written!r} is none of {', '.join(WORDS)}, condition=NAME, condition=NAME=STATUS")


def judge(goal: Goal, seen: api.TaskSet | None, uid: str) -> Verdict | None:
    """None: it may still come. `uid`: of the TaskSet that was there when the waiting began."""
    if seen is None or seen.metadata.uid != uid:
        return Verdict(Exit.OK if goal.word == "deleted" else Exit.NOT_FOUND, "was deleted")
    if goal.word == "deleted":
        return None
    ended = seen.status.state in _ENDS
    if goal.word == "condition":
        return _judge_condition(goal, seen, ended)
    if ended:
        return Verdict(_exit_of(goal, seen.status.state), _told(seen))
    if goal.word == "running" and seen.status.state == api.State.RUNNING:
        return Verdict(Exit.OK, "runs")
    return None


def _exit_of(goal: Goal, state: str) -> Exit:
    if goal.word == "completed":
        return Exit.OK
    # One that has succeeded did run; who waits for `running` may have looked too late.
    good = api.State.FAILED if goal.word == "failed" else api.State.SUCCEEDED
    return Exit.OK if state == good else Exit.FAILED


def _judge_condition(goal: Goal, seen: api.TaskSet, ended: bool) -> Verdict | None:
    found = next((c for c in seen.status.conditions if c.type.lower() == goal.condition.lower()), None)
    if found is not None and found.status.lower() == goal.status.lower():
        return Verdict(Exit.OK, f"condition {found.type} is {found.status}")
    if ended:
        return Verdict(Exit.FAILED, f"{_told(seen)}; condition {goal.condition} is not {goal.status}")
    return None


def _told(seen: api.TaskSet) -> str:
    status = seen.status
    took = ""
    if status.start_at is not None and status.finish_at is not None:
        took = f" after {text.age(status.start_at, status.finish_at)}"
    why = f": {text.line(status.state_message)}" if status.state_message else ""
    return f"{status.state.lower()}{took}{why}"


def present(seen: api.TaskSet | None) -> str:
    """Where it stands, for somebody who gives up waiting."""
    if seen is None:
        return "is gone"
    if not seen.status.state:
        return "has not been looked at by a controller yet (is one running?)"
    why = f": {text.line(seen.status.state_message)}" if seen.status.state_message else ""
    return f"is {seen.status.state}{why}"
