"""The parts of built-in kinds, pods apart, that we read or write."""

from __future__ import annotations

from datetime import datetime

from octarbiter.api.meta import Condition, Noun, Object
from octarbiter.api.workpod import Quantities


class Taint(Noun, frozen=True):
    key: str = ""
    effect: str = ""
    value: str = ""


class NodeSpec(Noun, frozen=True):
    unschedulable: bool = False
    taints: list[Taint] = []


class NodeStatus(Noun, frozen=True):
    conditions: list[Condition] = []
    capacity: dict[str, str] = {}
    allocatable: dict[str, str] = {}


class Node(Object, frozen=True):
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()

    @property
    def is_ready(self) -> bool:
        return any(c.type == "Ready" and c.status == "True" for c in self.status.conditions)


class ConfigMap(Object, frozen=True):
    data: dict[str, str] = {}


class ServiceSpec(Noun, frozen=True):
    selector: dict[str, str] = {}


class Service(Object, frozen=True):
    spec: ServiceSpec = ServiceSpec()


class ObjectReference(Noun, frozen=True):
    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    resource_version: str = ""
    field_path: str = ""


class EventSource(Noun, frozen=True):
    component: str = ""
    host: str = ""


class Event(Object, frozen=True):
    involved_object: ObjectReference = ObjectReference()
    type: str = ""
    reason: str = ""
    message: str = ""
    count: int = 0
    first_timestamp: datetime | None = None
    last_timestamp: datetime | None = None
    event_time: datetime | None = None
    source: EventSource = EventSource()
    reporting_component: str = ""
    reporting_instance: str = ""


class LeaseSpec(Noun, frozen=True):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None


class Lease(Object, frozen=True):
    spec: LeaseSpec = LeaseSpec()


class NamespaceSpec(Noun, frozen=True):
    finalizers: list[str] = []


class NamespaceStatus(Noun, frozen=True):
    phase: str = ""
    conditions: list[Condition] = []


class Namespace(Object, frozen=True):
    spec: NamespaceSpec = NamespaceSpec()
    status: NamespaceStatus = NamespaceStatus()


class ScopeRequirement(Noun, frozen=True):
    scope_name: str = ""
    operator: str = ""
    values: list[str] = []


class ScopeSelector(Noun, frozen=True):
    match_expressions: list[ScopeRequirement] = []


class QuotaSpec(Noun, frozen=True):
    hard: Quantities = {}
    scopes: list[str] = []
    scope_selector: ScopeSelector | None = None


class QuotaStatus(Noun, frozen=True):
    hard: Quantities = {}
    used: Quantities = {}


class ResourceQuota(Object, frozen=True):
    spec: QuotaSpec = QuotaSpec()
    status: QuotaStatus = QuotaStatus()


class PriorityClass(Object, frozen=True):
    value: int = 0
    global_default: bool = False
