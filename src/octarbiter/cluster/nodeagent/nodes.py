"""How does the API server learn of a node, and that it is alive?

A Node object is created, or taken over from an earlier agent; its status is renewed every few minutes, its Lease every
few seconds. The taint that keeps pods off a node that is not ready is removed here, because in a small cluster nobody
else does.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import os
import platform
import shutil
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Final

import msgspec

import octarbiter
from octarbiter.api import errors
from octarbiter.api.core_kinds import Node
from octarbiter.api.meta import Json
from octarbiter.api.scheme import LEASES, NODES
from octarbiter.cluster.nodeagent import status
from octarbiter.runtime import backoff
from octarbiter.runtime import clock as clocks
from octarbiter.runtime.client import Client

LEASE_NAMESPACE: Final = "kube-node-lease"
LEASE_S: Final = 40
RENEW_S: Final = 10.0
STATUS_S: Final = 300.0
AT_ONCE: Final = 32
"""Nodes that are spoken of to the server."""
NOT_READY: Final = "node.kubernetes.io/not-ready"

log = logging.getLogger(__name__)


class NodeSettings(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    capacity: Mapping[str, str]
    """Pretended or real; `machine_capacity` says what this machine has."""
    address: str = "127.0.0.1"
    labels: Mapping[str, str] = {}
    runtime: str = "process"


def machine_capacity(directory: Path, pods: int = 110) -> dict[str, str]:
    """What this machine has; `directory` is on the disk that counts."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "cpu": str(len(os.sched_getaffinity(0))),
        "memory": f"{memory // 1024}Ki",
        "ephemeral-storage": f"{shutil.disk_usage(directory).total // 1024}Ki",
        "pods": str(pods),
    }


def object_of(settings: NodeSettings, now: datetime) -> Json:
    labels = {
        "kubernetes.io/hostname": settings.name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": _architecture(),
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": settings.name, "labels": labels | dict(settings.labels)},
        "status": status_of(settings, {}, now),
    }


def status_of(settings: NodeSettings, since: Mapping[str, tuple[str, datetime]], now: datetime) -> Json:
    """`since`: each condition's last state, and since when."""
    wanted = (
        ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
        ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
        ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
    )
    conditions = []
    for type_, word, reason, message in wanted:
        before = since.get(type_)
        changed = before[1] if before is not None and before[0] == word else now
        times = {"lastHeartbeatTime": status.time(now), "lastTransitionTime": status.time(changed)}
        conditions.append({"type": type_, "status": word, "reason": reason, "message": message} | times)
    return {
        "capacity": dict(settings.capacity),
        "allocatable": dict(settings.capacity),
        "conditions": conditions,
        "addresses": [
            {"type": "InternalIP", "address": settings.address},
            {"type": "Hostname", "address": settings.name},
        ],
        "nodeInfo": _info(settings),
    }


def _info(settings: NodeSettings) -> Json:
    machine = socket.gethostname()
    return {
        "machineID": machine,
        "systemUUID": machine,
        "bootID": Path("/proc/sys/kernel/random/boot_id").read_text().strip(),
        "kernelVersion": platform.release(),
        "osImage": _system(),
        "containerRuntimeVersion": f"{settings.runtime}://{octarbiter.__version__}",
        "kubeletVersion": f"v{octarbiter.__version__}+octarbiter",
        "kubeProxyVersion": "",
        "operatingSystem": "linux",
        "architecture": _architecture(),
    }


def _architecture() -> str:
    return {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())


def _system() -> str:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", "Linux")
    except OSError:
        return "Linux"


class Registration:
    """Of all nodes that one agent plays."""

    def __init__(self, client: Client, nodes: Sequence[NodeSettings], clock: clocks.Clock = clocks.SYSTEM) -> None:
        self._client = client
        self._nodes = nodes
        self._clock = clock

    async def register(self) -> None:
        """As soon as the server is there."""
        await self._for_all(self._register_at_last)

    async def keep(self) -> None:
        """Until cancelled. What fails is tried again a moment later: the server may be away for a while."""
        due = asyncio.get_running_loop().time()
        status_due = due + STATUS_S
        while True:
            due += RENEW_S
            with_status = due >= status_due
            if with_status:
                status_due += STATUS_S
            await self._for_all(functools.partial(self._keep, with_status=with_status))
            await asyncio.sleep(max(0.0, due - asyncio.get_running_loop().time()))

    async def _for_all(self, deed: Callable[[NodeSettings], Awaitable[None]]) -> None:
        """Several at once: one after the other, the last of many nodes would be taken for dead on a busy machine."""
        waiting = iter(self._nodes)

        async def work() -> None:
            for settings in waiting:
                await deed(settings)

        async with asyncio.TaskGroup() as group:
            for _ in range(min(AT_ONCE, len(self._nodes))):
                group.create_task(work(), name="nodes")

    async def _register_at_last(self, settings: NodeSettings) -> None:
        pauses = backoff.Backoff(0.1, 5.0)
        while True:
            try:
                await self._register(settings)
                await self._renew(settings)
                return
            except errors.Retry as problem:
                log.warning("a node is not registered yet", extra={"node": settings.name, "error": str(problem)})
                await asyncio.sleep(pauses.next_pause(problem.after))

    async def _keep(self, settings: NodeSettings, *, with_status: bool) -> None:
        try:
            await self._renew(settings)
            if with_status:
                await self._register(settings)
        except errors.ApiError as problem:
            log.warning("a node was not renewed", extra={"node": settings.name, "error": str(problem)})

    async def _register(self, settings: NodeSettings) -> None:
        now = self._clock.now()
        wanted = object_of(settings, now)
        try:
            node = await self._client.create(NODES, "", wanted)
        except errors.AlreadyExists:
            labels = {"metadata": {"labels": wanted["metadata"]["labels"]}}
            node = await self._client.merge_patch(NODES, "", settings.name, labels)
        since = {c.type: (c.status, c.last_transition_time or now) for c in node.status.conditions}
        patch = {"status": status_of(settings, since, now)}
        node = await self._client.merge_patch(NODES, "", settings.name, patch, subresource="status")
        await self._welcome(node)

    async def _welcome(self, node: Node) -> None:
        kept = [taint for taint in node.spec.taints if taint.key != NOT_READY]
        if len(kept) == len(node.spec.taints):
            return
        meta = {"resourceVersion": node.metadata.resource_version}
        try:
            await self._client.merge_patch(
                NODES, "", node.metadata.name, {"metadata": meta, "spec": {"taints": kept or None}}
            )
        except errors.Conflict:
            node = await self._client.get(NODES, "", node.metadata.name)
            await self._welcome(node)

    async def _renew(self, settings: NodeSettings) -> None:
        renewed = {"renewTime": self._clock.now().strftime("%Y-%m-%dT%H:%M:%S.%fZ")}
        try:
            await self._client.merge_patch(LEASES, LEASE_NAMESPACE, settings.name, {"spec": renewed})
        except errors.NotFound:
            await self._create_lease(settings, renewed)

    async def _create_lease(self, settings: NodeSettings, renewed: Mapping[str, str]) -> None:
        node = await self._client.get(NODES, "", settings.name)
        owner = {"apiVersion": "v1", "kind": "Node", "name": settings.name, "uid": node.metadata.uid}
        lease = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": settings.name, "namespace": LEASE_NAMESPACE, "ownerReferences": [owner]},
            "spec": {"holderIdentity": settings.name, "leaseDurationSeconds": LEASE_S, **renewed},
        }
        await self._client.create(LEASES, LEASE_NAMESPACE, lease)
