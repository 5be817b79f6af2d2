"""Pods as a node sees them, and a machine with a clock beside it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from octarbiter.api import codec
from octarbiter.cluster.nodeagent import news, orders, status
from octarbiter.cluster.nodeagent.machine import Machine
from octarbiter.cluster.nodeagent.pods import Pod, PodStatus

START = datetime(2026, 1, 1, tzinfo=UTC)


def moment(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def container(name: str = "main", **fields: Any) -> dict[str, Any]:
    return {"name": name, "image": "busybox", "command": ["true"], **fields}


def pod(
    containers: list[dict[str, Any]] | None = None,
    init: list[dict[str, Any]] | None = None,
    status: dict[str, Any] | None = None,
    metadata: dict[str, Any] | None = None,
    **spec: Any,
) -> Pod:
    meta = {"name": "web", "namespace": "team", "uid": "u-1", "resourceVersion": "1", "generation": 1}
    object_ = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": meta | (metadata or {}),
        "spec": {"nodeName": "n1", "containers": containers or [container()], "initContainers": init or []} | spec,
        "status": {"phase": "Pending"} | (status or {}),
    }
    return codec.from_json(object_, Pod)


class Bench:
    """Feeds a machine, remembers every order, and answers nothing by itself."""

    def __init__(self, pod: Pod, known: list[news.Run] | None = None) -> None:
        self.now = START
        self.machine = Machine(pod, known or [], self.now)
        self.told: list[orders.Tell] = []
        self.wake_at: datetime | None = None
        self.last: list[orders.Order] = []
        self.see(pod)

    def feed(self, event: news.Event) -> list[orders.Order]:
        """What it orders, without words and wishes to be woken."""
        made = self.machine.feed(event, self.now)
        self.told += [order for order in made if isinstance(order, orders.Tell)]
        self.wake_at = next((order.at for order in made if isinstance(order, orders.WakeAt)), None)
        self.last = [order for order in made if not isinstance(order, orders.Tell | orders.WakeAt)]
        return self.last

    def see(self, pod: Pod) -> list[orders.Order]:
        return self.feed(news.PodSeen(pod))

    def at(self, seconds: float) -> list[orders.Order]:
        self.now = moment(seconds)
        return self.feed(news.TimeCame())

    def started(self, name: str = "main", attempt: int = 0) -> list[orders.Order]:
        return self.feed(news.ContainerStarted(name, attempt, f"process://{name}-{attempt}", self.now))

    def ended(self, code: int = 0, name: str = "main", attempt: int = 0) -> list[orders.Order]:
        reason = "Completed" if code == 0 else "Error"
        return self.feed(news.ContainerEnded(name, attempt, news.Outcome(code, reason, "", self.now)))

    def run(self) -> None:
        """Prepared, and the first main container started."""
        self.feed(news.Prepared())
        self.started()

    def delete(self, grace_s: int = 30) -> list[orders.Order]:
        meta = codec.to_json(self.machine.pod)
        meta["metadata"]["deletionTimestamp"] = self.now + timedelta(seconds=grace_s)
        meta["metadata"]["deletionGracePeriodSeconds"] = grace_s
        return self.see(codec.from_json(meta, Pod))

    def status(self) -> dict[str, Any]:
        return status.of(self.machine, host_ip="127.0.0.1", pod_ip="127.64.0.1", now=self.now)

    def report(self) -> list[orders.Order]:
        """The server has taken the status, and tells so."""
        json = codec.to_json(self.machine.pod)
        json["status"] = codec.to_json(codec.from_json(self.status(), PodStatus))
        self.machine.pod = codec.from_json(json, Pod)
        return self.feed(news.Reported(self.machine.revision))

    @property
    def phase(self) -> str:
        return str(self.status()["phase"])

    def condition(self, type_: str) -> tuple[str, str, str]:
        found = next(c for c in self.status()["conditions"] if c["type"] == type_)
        return found["status"], found.get("reason", ""), found.get("message", "")

    def state(self, name: str = "main") -> dict[str, Any]:
        shown = self.status()
        everything = shown.get("initContainerStatuses", []) + shown["containerStatuses"]
        found: dict[str, Any] = next(c for c in everything if c["name"] == name)
        return found
