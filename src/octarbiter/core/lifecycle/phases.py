"""The whole lifecycle on one screen: the phases of a TaskSet, a role, a replica, and every legal move between them.

`decide` changes a phase only through `moved`, which knows no other moves than these. A restart of an attempt
(retry, lost control unit) builds fresh roles and replicas instead of moving the old ones back.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TypeVar

P = TypeVar("P", bound=StrEnum)


class TaskSetPhase(StrEnum):
    VALIDATION = "TaskSetValidation"
    PENDING = "TaskSetAttemptPending"
    CREATION_REQUESTED = "TaskSetAttemptCreationRequested"
    PREPARING = "TaskSetAttemptPreparing"
    RUNNING = "TaskSetAttemptRunning"
    DELETION_PENDING = "TaskSetAttemptDeletionPending"
    DELETION_REQUESTED = "TaskSetAttemptDeletionRequested"
    ATTEMPT_COMPLETED = "TaskSetAttemptCompleted"
    RETRY_PENDING = "TaskSetAttemptRetryPending"
    COMPLETED = "TaskSetCompleted"


class RolePhase(StrEnum):
    WAITING = "TaskRoleWaiting"
    RUNNING = "TaskRoleRunning"
    CLEANING_PENDING = "TaskRoleCleaningPending"
    COMPLETED = "TaskRoleCompleted"


class ReplicaPhase(StrEnum):
    PENDING = "TaskRoleReplicaAttemptPending"
    CREATION_REQUESTED = "TaskRoleReplicaAttemptCreationRequested"
    PREPARING = "TaskRoleReplicaAttemptPreparing"
    ASSIGNED = "TaskRoleReplicaAttemptAssigned"
    RUNNING = "TaskRoleReplicaAttemptRunning"
    DELETION_PENDING = "TaskRoleReplicaAttemptDeletionPending"
    DELETION_REQUESTED = "TaskRoleReplicaAttemptDeletionRequested"
    ATTEMPT_COMPLETED = "TaskRoleReplicaAttemptCompleted"
    RETRY_PENDING = "TaskRoleReplicaAttemptRetryPending"
    COMPLETED = "TaskRoleReplicaCompleted"


_T = TaskSetPhase
TASKSET_MOVES: dict[TaskSetPhase, frozenset[TaskSetPhase]] = {
    # An object that no attempt could ever run (invalid beyond what the API server checks) ends here.
    _T.VALIDATION: frozenset({_T.PENDING, _T.COMPLETED}),
    _T.PENDING: frozenset({_T.CREATION_REQUESTED, _T.DELETION_PENDING}),
    _T.CREATION_REQUESTED: frozenset({_T.PREPARING, _T.PENDING, _T.DELETION_PENDING}),
    # Back to PENDING: suspended. DELETION_PENDING: a verdict, or the control unit was lost.
    _T.PREPARING: frozenset({_T.RUNNING, _T.PENDING, _T.DELETION_PENDING}),
    _T.RUNNING: frozenset({_T.PENDING, _T.DELETION_PENDING}),
    _T.DELETION_PENDING: frozenset({_T.DELETION_REQUESTED, _T.ATTEMPT_COMPLETED}),
    _T.DELETION_REQUESTED: frozenset({_T.ATTEMPT_COMPLETED}),
    _T.ATTEMPT_COMPLETED: frozenset({_T.RETRY_PENDING, _T.COMPLETED}),
    _T.RETRY_PENDING: frozenset({_T.PENDING, _T.COMPLETED}),
    _T.COMPLETED: frozenset(),
}

_R = RolePhase
ROLE_MOVES: dict[RolePhase, frozenset[RolePhase]] = {
    _R.WAITING: frozenset({_R.RUNNING, _R.CLEANING_PENDING}),
    # Back to WAITING: suspended.
    _R.RUNNING: frozenset({_R.WAITING, _R.CLEANING_PENDING}),
    _R.CLEANING_PENDING: frozenset({_R.COMPLETED}),
    _R.COMPLETED: frozenset(),
}

_P = ReplicaPhase
_ALIVE = frozenset({_P.PREPARING, _P.ASSIGNED, _P.RUNNING})
_LEAVING = frozenset({_P.DELETION_PENDING, _P.DELETION_REQUESTED, _P.ATTEMPT_COMPLETED})
REPLICA_MOVES: dict[ReplicaPhase, frozenset[ReplicaPhase]] = {
    # A pod may be seen for the first time in any state, by a controller that was away.
    _P.PENDING: frozenset({_P.CREATION_REQUESTED, _P.COMPLETED}) | _ALIVE | _LEAVING,
    _P.CREATION_REQUESTED: frozenset({_P.PENDING, _P.COMPLETED}) | _ALIVE | _LEAVING,
    _P.PREPARING: frozenset({_P.ASSIGNED, _P.RUNNING}) | _LEAVING,
    _P.ASSIGNED: frozenset({_P.RUNNING}) | _LEAVING,
    _P.RUNNING: _LEAVING,
    _P.DELETION_PENDING: frozenset({_P.DELETION_REQUESTED, _P.ATTEMPT_COMPLETED}),
    _P.DELETION_REQUESTED: frozenset({_P.ATTEMPT_COMPLETED}),
    # PENDING: lost or suspended, the next pod follows without delay or charge.
    _P.ATTEMPT_COMPLETED: frozenset({_P.RETRY_PENDING, _P.PENDING, _P.COMPLETED}),
    _P.RETRY_PENDING: frozenset({_P.PENDING, _P.COMPLETED}),
    _P.COMPLETED: frozenset(),
}


class IllegalMove(AssertionError):
    """A defect of ours, never of the user's."""


def moved_taskset(old: str, new: TaskSetPhase) -> TaskSetPhase:
    return _moved(TASKSET_MOVES, TaskSetPhase(old or TaskSetPhase.VALIDATION), new)


def moved_role(old: str, new: RolePhase) -> RolePhase:
    return _moved(ROLE_MOVES, RolePhase(old or RolePhase.WAITING), new)


def moved_replica(old: str, new: ReplicaPhase) -> ReplicaPhase:
    return _moved(REPLICA_MOVES, ReplicaPhase(old or ReplicaPhase.PENDING), new)


def _moved(moves: dict[P, frozenset[P]], old: P, new: P) -> P:
    if new != old and new not in moves[old]:
        raise IllegalMove(f"{old} -> {new} is not a legal move")
    return new
