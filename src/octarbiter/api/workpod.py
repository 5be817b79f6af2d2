"""A pod as those see it who count what pods ask for; `pod` is how those see it who wait for its end."""

from __future__ import annotations

from msgspec import field

from octarbiter.api.meta import Noun, Object

Quantities = dict[str, str | int | float]
"""By the name of the resource, as the API has them."""


class Resources(Noun, frozen=True):
    requests: Quantities = {}
    limits: Quantities = {}


class ContainerPort(Noun, frozen=True):
    host_port: int = 0
    host_ip: str = field(name="hostIP", default="")
    protocol: str = "TCP"


class Container(Noun, frozen=True):
    name: str = ""
    restart_policy: str = ""
    resources: Resources = Resources()
    ports: list[ContainerPort] = []


class SchedulingGate(Noun, frozen=True):
    name: str = ""


class WorkPodSpec(Noun, frozen=True):
    node_name: str = ""
    scheduler_name: str = ""
    containers: list[Container] = []
    init_containers: list[Container] = []
    overhead: Quantities = {}
    resources: Resources | None = None
    scheduling_gates: list[SchedulingGate] = []
    priority: int | None = None
    priority_class_name: str = ""
    termination_grace_period_seconds: int | None = None


class WorkPodStatus(Noun, frozen=True):
    phase: str = ""


class WorkPod(Object, frozen=True):
    spec: WorkPodSpec = WorkPodSpec()
    status: WorkPodStatus = WorkPodStatus()

    @property
    def is_terminal(self) -> bool:
        return self.status.phase in ("Succeeded", "Failed")

    @property
    def is_terminating(self) -> bool:
        return self.metadata.deletion_timestamp is not None

    @property
    def is_gated(self) -> bool:
        return bool(self.spec.scheduling_gates)
