"""How the objects of a TaskSet are called and marked. Names are the memory that survives a crash: the same intent
always has the same name, so a repeated create finds what the first one made."""

from __future__ import annotations

from functools import lru_cache

from octarbiter.api import taskset as api

TASKSET_LABEL = "TaskSet"
ROLE_LABEL = "PodTaskRole"
INDEX_LABEL = "PodTaskIndex"
UID_LABEL = f"{api.GROUP}/taskset-uid"
"""Names come back (delete, create again), UIDs do not: everything is found by this label."""
ATTEMPT_LABEL = f"{api.GROUP}/attempt"
REPLICA_LIST_KEY = "replicas.jsonl"


def control_unit(taskset: str, attempt: int) -> str:
    return f"c-{taskset}-{attempt}"


def service(taskset: str) -> str:
    """A Service name may not begin with a digit."""
    return f"t-{taskset}" if taskset[:1].isdigit() else taskset


def pod(taskset: str, role: str, taskset_attempt: int, replica_attempt: int, index: int) -> str:
    return f"{taskset}-{role}-{taskset_attempt}-{replica_attempt}-{index}"


def hostname(role: str, index: int) -> str:
    return f"{role}-{index}"


def replica_list(taskset: str, attempt: int, part: int) -> str:
    return f"r-{taskset}-{attempt}-{part}"


@lru_cache(maxsize=1 << 16)
def attempts_of_pod(name: str) -> tuple[int, int] | None:
    """(TaskSet attempt, replica attempt) as a pod's name tells them."""
    parts = name.rsplit("-", 3)
    if len(parts) == 4 and all(part.isdigit() for part in parts[1:]):
        return int(parts[1]), int(parts[2])
    return None
