"""Where do pods run when there is no real node? On fake ones, played by kwok, that cost next to nothing.

They are real Node objects that the scheduler fills, with heartbeats, and whatever capacity they are given. What happens
to pods on them is told in `fakepods`.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import Any, Self

from octarbiter.testing.kubernetes import connection, controlplane, fakepods, processes, versions

# By this annotation kwok knows its nodes from real ones.
_MANAGED = "kwok.x-k8s.io/node"
_NODE_TIMEOUT_S = 60.0


class FakeNodes:
    """`count` nodes named `fake-0`, `fake-1` ... on a running control plane; more can be added later."""

    def __init__(
        self,
        control_plane: controlplane.ControlPlane,
        count: int = 5,
        *,
        cpu: str = "32",
        memory: str = "256Gi",
        pods: int = 250,
        resources: Mapping[str, str] | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> None:
        self._control_plane = control_plane
        self._count = count
        self._capacity = {"cpu": cpu, "memory": memory, "pods": str(pods), "ephemeral-storage": "1Ti"}
        self._capacity |= resources or {}
        self._labels = dict(labels or {})
        self._made = 0
        self.names: list[str] = []
        self.process: processes.Process | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        configuration = self._control_plane.directory / "stages.yaml"
        configuration.write_text(fakepods.configuration())
        flags = [
            f"--kubeconfig={self._control_plane.kubeconfig}",
            f"--config={configuration}",
            f"--manage-nodes-with-annotation-selector={_MANAGED}=fake",
            "--cidr=10.144.0.0/12",
            "--node-lease-duration-seconds=40",
            "--v=WARN",
        ]
        self.process = self._control_plane.run("kwok", flags)
        self.add(self._count)

    def stop(self) -> None:
        """End the player; nodes and pods stay as they are, and the control plane takes the node for lost in a while."""
        if self.process is not None:
            self.process.stop()

    def add(self, count: int, resources: Mapping[str, str] | None = None) -> list[str]:
        """More nodes, these with other or additional resources. They are ready when this returns."""
        capacity = self._capacity | dict(resources or {})
        numbers = range(self._made, self._made + count)
        self._made += count
        names = [f"fake-{number}" for number in numbers]
        for number, name in zip(numbers, names, strict=True):
            self._control_plane.request("POST", "/api/v1/nodes", self._node(name, number, capacity))
        self.names += names
        self._wait_until_ready(names)
        for name in names:
            # The server taints each new node. The controller manager would take the taint away later, if there is one.
            self._patch_node(name, {"spec": {"taints": None}})
        return names

    def lose_node(self, name: str) -> None:
        """The node falls silent, with all pods on it: no heartbeat, no more status, no deletion is confirmed."""
        self._wait(lambda: self._is_silent(name), f"the pods on {name} to fall silent")
        self._annotate(f"/api/v1/nodes/{name}", {_MANAGED: None})
        condition = {
            "type": "Ready",
            "status": "Unknown",
            "reason": "NodeStatusUnknown",
            "message": "Kubelet stopped posting node status.",
        }
        self._patch_node(name, {"status": {"conditions": [condition]}}, "/status")

    def restore_node(self, name: str) -> None:
        """A lost node is back, tells what became of its pods, and takes new ones."""
        for pod in self._pods_on(name):
            self._annotate_pod(pod, {fakepods.SILENT: None, fakepods.SILENCED: None})
        self._annotate(f"/api/v1/nodes/{name}", {_MANAGED: "fake"})
        self._wait_until_ready([name])
        self._wait(lambda: not self._taints_of(name), f"the controller manager to trust {name} again")

    def remove_node(self, name: str) -> None:
        """The node is no more, as when a machine is taken out of the cluster."""
        self._control_plane.request("DELETE", f"/api/v1/nodes/{name}")
        self.names.remove(name)

    def evict(self, namespace: str, pod: str) -> None:
        """Ask for the pod's eviction, as `kubectl drain` does."""
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod, "namespace": namespace}}
        self._control_plane.request("POST", f"/api/v1/namespaces/{namespace}/pods/{pod}/eviction", body)

    def _node(self, name: str, number: int, capacity: Mapping[str, str]) -> dict[str, Any]:
        address = f"10.{128 + (number >> 16)}.{(number >> 8) & 255}.{number & 255}"
        nothing_to_tell = ["machineID", "systemUUID", "bootID", "kernelVersion", "osImage", "kubeProxyVersion"]
        labels = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
        return {
            "metadata": {"name": name, "labels": labels | self._labels, "annotations": {_MANAGED: "fake"}},
            "status": {
                "capacity": capacity,
                "allocatable": capacity,
                "addresses": [
                    {"type": "InternalIP", "address": address},
                    {"type": "Hostname", "address": name},
                ],
                "nodeInfo": dict.fromkeys(nothing_to_tell, "")
                | {
                    "operatingSystem": "linux",
                    "architecture": "amd64",
                    "kubeletVersion": versions.KUBERNETES,
                    "containerRuntimeVersion": f"fake://{versions.KWOK}",
                },
            },
        }

    def _wait_until_ready(self, names: Iterable[str]) -> None:
        wanted = set(names)
        self._wait(lambda: wanted <= self._ready_nodes(), f"nodes {', '.join(sorted(wanted)[:5])} to be ready")

    def _ready_nodes(self) -> set[str]:
        nodes = self._control_plane.request("GET", "/api/v1/nodes?resourceVersion=0")["items"]
        return {node["metadata"]["name"] for node in nodes if _is_ready(node)}

    def _is_silent(self, name: str) -> bool:
        """Asks each pod there for silence; again and again, because pods come and go meanwhile."""
        speaking = [pod for pod in self._pods_on(name) if not _is_silenced(pod)]
        for pod in speaking:
            self._annotate_pod(pod, {fakepods.SILENT: "true"})
        return not speaking

    def _annotate_pod(self, pod: Mapping[str, Any], annotations: Mapping[str, str | None]) -> None:
        meta = pod["metadata"]
        try:
            self._annotate(f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}", annotations)
        except connection.ApiError as refusal:
            if refusal.status != 404:
                raise

    def _taints_of(self, name: str) -> list[Any]:
        return list(self._control_plane.request("GET", f"/api/v1/nodes/{name}")["spec"].get("taints", ()))

    def _pods_on(self, name: str) -> list[dict[str, Any]]:
        found = self._control_plane.request("GET", f"/api/v1/pods?fieldSelector=spec.nodeName={name}")
        return list(found["items"])

    def _patch_node(self, name: str, patch: dict[str, Any], subresource: str = "") -> None:
        path = f"/api/v1/nodes/{name}{subresource}"
        self._control_plane.request("PATCH", path, patch, connection.STRATEGIC_PATCH)

    def _annotate(self, path: str, annotations: Mapping[str, str | None]) -> None:
        patch = {"metadata": {"annotations": annotations}}
        self._control_plane.request("PATCH", path, patch, connection.MERGE_PATCH)

    def _wait(self, probe: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + _NODE_TIMEOUT_S
        while not probe():
            if time.monotonic() > deadline or self.process is None or not self.process.is_alive:
                log = processes.tail(self.process.log) if self.process else "(not started)"
                raise processes.StartFailed(f"waited in vain for {what}; the end of kwok's log:\n{log}")
            time.sleep(0.1)


def _is_silenced(pod: Mapping[str, Any]) -> bool:
    return fakepods.SILENCED in pod["metadata"].get("annotations", {})


def _is_ready(node: Mapping[str, Any]) -> bool:
    conditions = node["status"].get("conditions", [])
    return any(found["type"] == "Ready" and found["status"] == "True" for found in conditions)
