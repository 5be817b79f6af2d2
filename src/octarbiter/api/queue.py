"""Queue: one tenant, what it asks for, and what it gets."""

from __future__ import annotations

from fractions import Fraction

from octarbiter.api.arbitrator import Quantities, ResourceList, ToldResources
from octarbiter.api.meta import Condition, Noun, Object
from octarbiter.api.selectors import LabelSelector

KIND = "Queue"
MAX_NAME = 63
"""It is the value of a label, too."""
MAX_FACTOR = 100
"""Of oversubscription."""

SATISFIED, RECLAIMING = "Satisfied", "Reclaiming"
"""The conditions."""


class QueueSpec(Noun, frozen=True):
    weight: int = 1
    request: ResourceList = ResourceList()
    parent: str = ""
    guarantee: ResourceList | None = None
    capability: ResourceList | None = None
    deserved: ResourceList | None = None
    priority: int = 0
    reclaimable: bool = True
    namespace_selector: LabelSelector | None = None
    policy: str = ""
    oversubscription: Quantities = {}

    def quota_factor(self, resource: str) -> Fraction:
        """By which the quota is larger than what is allocated."""
        return Fraction(self.oversubscription.get(resource, 1))


class QueueStatus(Noun, frozen=True):
    observed_generation: int = 0
    demand: ToldResources = ResourceList()
    deserved: ToldResources = ResourceList()
    allocated: ToldResources = ResourceList()
    used: ToldResources = ResourceList()
    preempting: ToldResources = ResourceList()
    share: str = ""
    """The dominant share of what is allocated and its resource, for people: `66.7% cpu`."""
    conditions: list[Condition] = []


class Queue(Object, frozen=True, kw_only=True):
    spec: QueueSpec = QueueSpec()
    status: QueueStatus = QueueStatus()

    @property
    def parent_key(self) -> str:
        """`namespace/name`; empty: the root."""
        parent = self.spec.parent
        return f"{self.metadata.namespace}/{parent}" if parent and "/" not in parent else parent
