"""Opens the gates of pods whose queue has room for them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from octarbiter.api import arbitrator, errors, scheme
from octarbiter.api.workpod import WorkPod
from octarbiter.runtime import cache, client, fairness


def is_waiting(pod: WorkPod) -> bool:
    """At our gate, and not on its way out."""
    gates = [gate.name for gate in pod.spec.scheduling_gates]
    return arbitrator.QUEUE in gates and not pod.is_terminal and not pod.is_terminating


class Gates:
    def __init__(self, client_: client.Client, gate: fairness.FairGate, pods: cache.Cache[WorkPod]) -> None:
        self._client, self._gate, self._pods = client_, gate, pods

    async def open(self, keys: Iterable[str]) -> None:
        await asyncio.gather(*(self._open(key) for key in keys))

    async def _open(self, key: str) -> None:
        pod = self._pods.get(key)
        if pod is None or not is_waiting(pod):
            return
        gates = [gate.name for gate in pod.spec.scheduling_gates]
        index = gates.index(arbitrator.QUEUE)
        path = f"/spec/schedulingGates/{index}"
        operations = [
            {"op": "test", "path": "/metadata/uid", "value": pod.metadata.uid},
            {"op": "test", "path": f"{path}/name", "value": arbitrator.QUEUE},
            {"op": "remove", "path": path},
        ]
        try:
            async with self._gate.slot(pod.metadata.namespace):
                written = await self._client.json_patch(
                    scheme.WORKPODS, pod.metadata.namespace, pod.metadata.name, operations
                )
        except errors.NotFound:
            self._pods.remove(key, pod.metadata.uid)
        except (errors.Invalid, errors.Conflict):
            return  # somebody has changed its gates: the watch will tell
        else:
            self._pods.put(written)
