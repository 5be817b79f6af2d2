"""The parts of built-in kinds that a cluster's own controllers read, and where each kind is served."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from msgspec import field

from octarbiter.api.core_kinds import ConfigMap, Lease, Namespace, ObjectReference, ResourceQuota
from octarbiter.api.meta import Condition, Json, Noun, Object
from octarbiter.api.pod import ContainerStatus
from octarbiter.api.scheme import Resource
from octarbiter.api.selectors import LabelSelector, Requirement
from octarbiter.api.workpod import Quantities, WorkPod, WorkPodSpec, WorkPodStatus

# --- pods


class Toleration(Noun, frozen=True):
    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class NodeSelectorTerm(Noun, frozen=True):
    match_expressions: list[Requirement] = []
    match_fields: list[Requirement] = []


class NodeSelector(Noun, frozen=True):
    node_selector_terms: list[NodeSelectorTerm] = []


class NodeAffinity(Noun, frozen=True):
    required: NodeSelector | None = field(name="requiredDuringSchedulingIgnoredDuringExecution", default=None)


class Affinity(Noun, frozen=True):
    node_affinity: NodeAffinity | None = None


class PodSpec(WorkPodSpec, frozen=True):
    node_selector: dict[str, str] = {}
    affinity: Affinity | None = None
    tolerations: list[Toleration] = []
    active_deadline_seconds: int | None = None


class PodStatus(WorkPodStatus, frozen=True):
    conditions: list[Condition] = []
    container_statuses: list[ContainerStatus] = []


class Pod(WorkPod, frozen=True):
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    def condition(self, type_: str) -> Condition | None:
        return next((found for found in self.status.conditions if found.type == type_), None)

    @property
    def is_ready(self) -> bool:
        ready = self.condition("Ready")
        return ready is not None and ready.status == "True"


# --- nodes


class Taint(Noun, frozen=True):
    key: str = ""
    value: str = ""
    effect: str = ""
    time_added: datetime | None = None


class NodeSpec(Noun, frozen=True):
    unschedulable: bool = False
    taints: list[Taint] = []


class NodeCondition(Condition, frozen=True):
    last_heartbeat_time: datetime | None = None


class NodeStatus(Noun, frozen=True):
    conditions: list[NodeCondition] = []
    allocatable: Quantities = {}


class Node(Object, frozen=True):
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


# --- the rest


class JobSpec(Noun, frozen=True):
    parallelism: int | None = None
    completions: int | None = None
    backoff_limit: int | None = None
    active_deadline_seconds: int | None = None
    ttl_seconds_after_finished: int | None = None
    completion_mode: str = ""
    suspend: bool = False
    template: Json = {}
    managed_by: str = ""


class JobStatus(Noun, frozen=True):
    active: int = 0
    ready: int = 0
    succeeded: int = 0
    failed: int = 0
    terminating: int = 0
    start_time: datetime | None = None
    completion_time: datetime | None = None
    completed_indexes: str = ""
    conditions: list[Condition] = []
    uncounted_terminated_pods: Json | None = None


class Job(Object, frozen=True):
    spec: JobSpec = JobSpec()
    status: JobStatus = JobStatus()


class BudgetSpec(Noun, frozen=True):
    min_available: int | str | None = None
    max_unavailable: int | str | None = None
    selector: LabelSelector | None = None


class BudgetStatus(Noun, frozen=True):
    observed_generation: int = 0
    current_healthy: int = 0
    desired_healthy: int = 0
    disruptions_allowed: int = 0
    expected_pods: int = 0
    disrupted_pods: dict[str, datetime] = {}
    conditions: list[Condition] = []


class Budget(Object, frozen=True):
    spec: BudgetSpec = BudgetSpec()
    status: BudgetStatus = BudgetStatus()


class CrdNames(Noun, frozen=True):
    plural: str = ""


class CrdSpec(Noun, frozen=True):
    group: str = ""
    names: CrdNames = CrdNames()


class CrdStatus(Noun, frozen=True):
    conditions: list[Condition] | None = None  # null for a moment, at the very beginning


class Crd(Object, frozen=True):
    spec: CrdSpec = CrdSpec()
    status: CrdStatus = CrdStatus()


PODS = Resource("", "v1", "Pod", "pods", True, Pod)
NODES = Resource("", "v1", "Node", "nodes", False, Node)
NAMESPACES = Resource("", "v1", "Namespace", "namespaces", False, Namespace)
SERVICE_ACCOUNTS = Resource("", "v1", "ServiceAccount", "serviceaccounts", True, Object)
CONFIGMAPS = Resource("", "v1", "ConfigMap", "configmaps", True, ConfigMap)
QUOTAS = Resource("", "v1", "ResourceQuota", "resourcequotas", True, ResourceQuota)
JOBS = Resource("batch", "v1", "Job", "jobs", True, Job)
BUDGETS = Resource("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets", True, Budget)
LEASES = Resource("coordination.k8s.io", "v1", "Lease", "leases", True, Lease)
CRDS = Resource("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", False, Crd)


def reference(resource: Resource[Any], of: Object) -> ObjectReference:
    """How an Event names what it is about."""
    meta = of.metadata
    return ObjectReference(
        api_version=resource.api_version,
        kind=resource.kind,
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
        resource_version=meta.resource_version,
    )
