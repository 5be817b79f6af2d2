"""QueueJob: the claim of one batch job inside a queue. Its older name is TaskSet, of the same group."""

from __future__ import annotations

from octarbiter.api import resources
from octarbiter.api.arbitrator import Quantities, ResourceList, ToldResources
from octarbiter.api.meta import Condition, Noun, Object
from octarbiter.api.resources import Amounts

KIND = "QueueJob"
OLDER_KIND = "TaskSet"

ALLOCATED, STARTED, FINISHED = "Allocated", "Started", "Finished"
"""The conditions."""


class WorkloadRef(Noun, frozen=True):
    api_version: str
    kind: str
    name: str


Unit = dict[str, str | int | Quantities]
"""`{resources: {cpu: 1}}`, or the same without the inner `resources`."""


def quantities(unit: Unit) -> Quantities:
    """Both ways of writing a unit mean the same."""
    inner = unit.get("resources")
    if isinstance(inner, dict):
        return inner
    return {name: value for name, value in unit.items() if not isinstance(value, dict)}


class QueueJobSpec(Noun, frozen=True):
    queue: str
    resourceunit: Unit
    resourceno: int = 1
    min_resourceno: int | None = None
    priority: int = 0
    workload_ref: WorkloadRef | None = None

    @property
    def unit(self) -> Amounts:
        """Raises Refused for what is no quantity; `validation` has told before."""
        return resources.asked(quantities(self.resourceunit))

    @property
    def least(self) -> int:
        """With fewer units the job gets none."""
        return 1 if self.min_resourceno is None else self.min_resourceno


class QueueJobStatus(Noun, frozen=True):
    observed_generation: int = 0
    allocated: ToldResources = ResourceList()
    allocated_no: int = 0
    position: int = 0
    """Among those of its queue that do not have all they ask for; 0: it has."""
    conditions: list[Condition] = []


class QueueJob(Object, frozen=True, kw_only=True):
    spec: QueueJobSpec
    status: QueueJobStatus = QueueJobStatus()

    def condition(self, type_: str) -> Condition | None:
        return next((found for found in self.status.conditions if found.type == type_), None)
