"""The parts of a Pod that we read."""

from __future__ import annotations

from datetime import datetime

from msgspec import field

from octarbiter.api.meta import Condition, Noun, Object


class NamedContainer(Noun, frozen=True):
    name: str = ""
    restart_policy: str = ""


class PodSpec(Noun, frozen=True):
    node_name: str = ""
    scheduler_name: str = ""
    containers: list[NamedContainer] = []
    init_containers: list[NamedContainer] = []


class Waiting(Noun, frozen=True):
    reason: str = ""
    message: str = ""


class Running(Noun, frozen=True):
    started_at: datetime | None = None


class Terminated(Noun, frozen=True):
    exit_code: int = 0
    signal: int = 0
    reason: str = ""
    message: str = ""
    started_at: datetime | None = None
    finished_at: datetime | None = None


class ContainerState(Noun, frozen=True):
    waiting: Waiting | None = None
    running: Running | None = None
    terminated: Terminated | None = None


class ContainerStatus(Noun, frozen=True):
    name: str = ""
    container_id: str = field(name="containerID", default="")
    restart_count: int = 0
    state: ContainerState = ContainerState()


class PodStatus(Noun, frozen=True):
    phase: str = ""
    reason: str = ""
    message: str = ""
    pod_ip: str = field(name="podIP", default="")
    host_ip: str = field(name="hostIP", default="")
    start_time: datetime | None = None
    conditions: list[Condition] = []
    container_statuses: list[ContainerStatus] = []
    init_container_statuses: list[ContainerStatus] = []


class Pod(Object, frozen=True):
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    def condition(self, type_: str) -> Condition | None:
        return next((c for c in self.status.conditions if c.type == type_), None)
