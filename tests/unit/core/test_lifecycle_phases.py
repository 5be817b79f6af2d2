from __future__ import annotations

from enum import StrEnum
from typing import Any

import pytest

from octarbiter.core.lifecycle import phases

TABLES: dict[str, tuple[type[StrEnum], dict[Any, frozenset[Any]], Any]] = {
    "TaskSet": (phases.TaskSetPhase, phases.TASKSET_MOVES, phases.TaskSetPhase.VALIDATION),
    "role": (phases.RolePhase, phases.ROLE_MOVES, phases.RolePhase.WAITING),
    "replica": (phases.ReplicaPhase, phases.REPLICA_MOVES, phases.ReplicaPhase.PENDING),
}
MOVED = {"TaskSet": phases.moved_taskset, "role": phases.moved_role, "replica": phases.moved_replica}
LAST = {"TaskSetCompleted", "TaskRoleCompleted", "TaskRoleReplicaCompleted"}


def reachable(moves: dict[Any, frozenset[Any]], first: Any) -> set[Any]:
    found, left = {first}, [first]
    while left:
        for phase in moves[left.pop()] - found:
            found.add(phase)
            left.append(phase)
    return found


@pytest.mark.parametrize("what", TABLES)
def test_every_phase_can_be_reached(what: str) -> None:
    words, moves, first = TABLES[what]

    assert reachable(moves, first) == set(words) == set(moves)


@pytest.mark.parametrize("what", TABLES)
def test_the_end_can_be_reached_from_everywhere(what: str) -> None:
    words, moves, _ = TABLES[what]

    assert all(LAST & reachable(moves, phase) for phase in words)


@pytest.mark.parametrize("what", TABLES)
def test_only_the_last_phase_leads_nowhere(what: str) -> None:
    _, moves, _ = TABLES[what]

    assert {phase for phase, onward in moves.items() if not onward} == LAST & set(moves)


@pytest.mark.parametrize("what", TABLES)
def test_a_move_that_is_not_in_the_table_is_refused(what: str) -> None:
    words, moves, _ = TABLES[what]
    moved: Any = MOVED[what]
    for old in words:
        for new in words:
            if new == old or new in moves[old]:
                assert moved(old, new) == new
            else:
                with pytest.raises(phases.IllegalMove, match=f"{old} -> {new}"):
                    moved(old, new)


def test_what_has_no_phase_yet_is_at_the_beginning() -> None:
    assert phases.moved_taskset("", phases.TaskSetPhase.PENDING) == "TaskSetAttemptPending"
    assert phases.moved_role("", phases.RolePhase.RUNNING) == "TaskRoleRunning"
    assert phases.moved_replica("", phases.ReplicaPhase.PREPARING) == "TaskRoleReplicaAttemptPreparing"


def test_the_words_are_those_of_the_manual() -> None:
    assert [str(phase) for phase in phases.TaskSetPhase] == [
        "TaskSetValidation",
        "TaskSetAttemptPending",
        "TaskSetAttemptCreationRequested",
        "TaskSetAttemptPreparing",
        "TaskSetAttemptRunning",
        "TaskSetAttemptDeletionPending",
        "TaskSetAttemptDeletionRequested",
        "TaskSetAttemptCompleted",
        "TaskSetAttemptRetryPending",
        "TaskSetCompleted",
    ]
    assert [str(phase) for phase in phases.RolePhase] == [
        "TaskRoleWaiting",
        "TaskRoleRunning",
        "TaskRoleCleaningPending",
        "TaskRoleCompleted",
    ]
    assert [str(phase).removeprefix("TaskRoleReplica") for phase in phases.ReplicaPhase] == [
        "AttemptPending",
        "AttemptCreationRequested",
        "AttemptPreparing",
        "AttemptAssigned",
        "AttemptRunning",
        "AttemptDeletionPending",
        "AttemptDeletionRequested",
        "AttemptCompleted",
        "AttemptRetryPending",
        "Completed",
    ]
