"""Which nodes does the embedded cluster show, and how are they emptied?"""

from __future__ import annotations

import asyncio
import contextlib
import platform
from collections.abc import Mapping
from pathlib import Path

from octarbiter.api import errors, scheme
from octarbiter.cluster.nodeagent import nodes
from octarbiter.cluster.nodeagent.agent import Agent
from octarbiter.cluster.nodeagent.runtimes.pretend import PretendRuntime
from octarbiter.cluster.nodeagent.runtimes.process import ProcessRuntime
from octarbiter.cluster.nodeagent.runtimes.protocol import Runtime
from octarbiter.cluster.nodeagent.sources import ApiSources
from octarbiter.runtime.client import Client

PODS = 110
PRETENDED_PODS = 10_000
"""On one node: they cost next to nothing."""
_LOOK_S = 0.1
_LATE_S = 5.0


def runtime(client: Client, directory: Path, pretend: bool) -> Runtime:
    return PretendRuntime() if pretend else ProcessRuntime(directory / "pods", ApiSources(client))


def agent(client: Client, runtime: Runtime, directory: Path, count: int, resources: Mapping[str, str]) -> Agent:
    """One agent plays them all."""
    capacity = nodes.machine_capacity(directory, PODS if runtime.is_real else PRETENDED_PODS) | dict(resources)
    host = platform.node().lower() or "node"
    names = [host] if count == 1 else [f"{host}-{number}" for number in range(count)]
    return Agent(
        client, [nodes.NodeSettings(name=name, capacity=capacity, runtime=runtime.scheme) for name in names], runtime
    )


async def drain(client: Client, grace_s: int) -> None:
    """All pods away; those that do not go in time are left to whoever comes next."""
    for pod in await client.list(scheme.PODS):
        meta = pod.metadata
        with contextlib.suppress(errors.NotFound, errors.Conflict):
            await client.delete(scheme.PODS, meta.namespace, meta.name, uid=meta.uid, grace_period_seconds=grace_s)
    for _ in range(round((grace_s + _LATE_S) / _LOOK_S)):
        if not await client.list(scheme.PODS):
            return
        await asyncio.sleep(_LOOK_S)
