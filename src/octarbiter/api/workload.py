"""Anything that can be suspended, and ends: a TaskSet, a batch/v1 Job, or a kind that we have never heard of."""

from __future__ import annotations

from octarbiter.api.meta import Condition, Noun, Object

_ENDS = frozenset({"Complete", "Succeeded", "Failed", "Finished"})
"""Types of conditions that say, in kinds of the field, that it is over."""
_FINAL_STATES = frozenset({"Succeeded", "Failed"})


class WorkloadSpec(Noun, frozen=True):
    suspend: bool | None = None


class WorkloadStatus(Noun, frozen=True):
    state: str = ""
    """A TaskSet's."""
    conditions: list[Condition] = []


class Workload(Object, frozen=True):
    spec: WorkloadSpec = WorkloadSpec()
    status: WorkloadStatus = WorkloadStatus()

    @property
    def is_suspended(self) -> bool:
        return self.spec.suspend is True

    @property
    def is_finished(self) -> bool:
        return self.status.state in _FINAL_STATES or any(
            condition.type in _ENDS and condition.status == "True" for condition in self.status.conditions
        )
