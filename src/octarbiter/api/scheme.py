"""Which kind is served under which URL, and which class decodes it."""

from __future__ import annotations

from typing import Generic, TypeVar

import msgspec

from octarbiter.api import arbitrator, core_kinds, queue, queuejob, taskset
from octarbiter.api.meta import Object
from octarbiter.api.pod import Pod
from octarbiter.api.workload import Workload
from octarbiter.api.workpod import WorkPod

T = TypeVar("T", bound=Object, covariant=True)


class Resource(msgspec.Struct, Generic[T], frozen=True):
    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool
    type: type[T]

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def prefix(self) -> str:
        return f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """Empty namespace: all namespaces (lists) or a cluster-scoped object."""
        parts = [self.prefix]
        if self.namespaced and namespace:
            parts.append(f"namespaces/{namespace}")
        parts.append(self.plural)
        if name:
            parts.append(name)
        if subresource:
            parts.append(subresource)
        return "/".join(parts)


PODS = Resource("", "v1", "Pod", "pods", True, Pod)
WORKPODS = Resource("", "v1", "Pod", "pods", True, WorkPod)
NODES = Resource("", "v1", "Node", "nodes", False, core_kinds.Node)
CONFIGMAPS = Resource("", "v1", "ConfigMap", "configmaps", True, core_kinds.ConfigMap)
SERVICES = Resource("", "v1", "Service", "services", True, core_kinds.Service)
EVENTS = Resource("", "v1", "Event", "events", True, core_kinds.Event)
NAMESPACES = Resource("", "v1", "Namespace", "namespaces", False, core_kinds.Namespace)
RESOURCEQUOTAS = Resource("", "v1", "ResourceQuota", "resourcequotas", True, core_kinds.ResourceQuota)
JOBS = Resource("batch", "v1", "Job", "jobs", True, Workload)
PRIORITYCLASSES = Resource(
    "scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", False, core_kinds.PriorityClass
)
LEASES = Resource("coordination.k8s.io", "v1", "Lease", "leases", True, core_kinds.Lease)
CRDS = Resource("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", False, Object)
TASKSETS = Resource(taskset.GROUP, taskset.VERSION, taskset.KIND, "tasksets", True, taskset.TaskSet)
QUEUES = Resource(arbitrator.GROUP, arbitrator.VERSION, queue.KIND, "queues", True, queue.Queue)
QUEUEJOBS = Resource(arbitrator.GROUP, arbitrator.VERSION, queuejob.KIND, "queuejobs", True, queuejob.QueueJob)
ARBITRATOR_TASKSETS = Resource(
    arbitrator.GROUP, arbitrator.VERSION, queuejob.OLDER_KIND, "tasksets", True, queuejob.QueueJob
)
