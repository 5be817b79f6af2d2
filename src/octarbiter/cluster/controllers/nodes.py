"""The life of nodes: who falls silent is marked and its pods leave; who is back is trusted again.

Silence is measured by our own clock, from when we last saw a sign of life change: the clocks of nodes may be wrong.
Pods whose node is no more at all are removed after the same time of grace.
"""

from __future__ import annotations

import logging
from datetime import datetime
from typing import Final

from octarbiter.api import codec, errors
from octarbiter.api.core_kinds import Lease
from octarbiter.api.meta import Json
from octarbiter.cluster.controllers import kinds, node_health, writing
from octarbiter.cluster.controllers.kinds import Node, Pod, Taint
from octarbiter.runtime import cache, client, clock, events, fairness

BY_NODE: Final = "node"
LEASES: Final = "kube-node-lease"

log = logging.getLogger(__name__)


class NodeController:
    """`pods` has the index BY_NODE. Keys are names of nodes, also of such that only pods still speak of."""

    def __init__(
        self,
        client_: client.Client,
        gate: fairness.FairGate,
        recorder: events.Recorder,
        nodes: cache.Cache[Node],
        leases: cache.Cache[Lease],
        pods: cache.Cache[Pod],
        *,
        grace_s: float,
        clock_: clock.Clock = clock.SYSTEM,
    ) -> None:
        self._client, self._gate, self._recorder, self._clock = client_, gate, recorder, clock_
        self._nodes, self._leases, self._pods = nodes, leases, pods
        self._grace_s = grace_s
        self._signs: dict[str, tuple[object, float]] = {}  # the last sign of life, and when we first saw it

    def is_evicting(self, name: str) -> bool:
        """Whether a pod that comes to this node, or stays there, has to be looked at."""
        node = self._nodes.get(name)
        return node is None or any(taint.effect == "NoExecute" for taint in node.spec.taints)

    async def reconcile(self, name: str) -> float | None:
        node = self._nodes.get(name)
        silent_s = self._silent_s(name, node)
        if node is None:
            return await self._clear(name, silent_s)
        now = self._clock.now()
        if silent_s >= self._grace_s:
            node = await self._mark(node, now)
        wanted = node_health.taints(node, now)
        if wanted != node.spec.taints:
            node = await self._taint(node, wanted)
        evict_at = await self._evict(node, now)
        pauses = [max(1.0, self._grace_s - silent_s)]
        if evict_at is not None:
            pauses.append(max(0.0, (evict_at - now).total_seconds()))
        return min(pauses)

    def _silent_s(self, name: str, node: Node | None) -> float:
        lease = self._leases.get(f"{LEASES}/{name}") if node is not None else None
        renewed = lease.spec.renew_time if lease is not None else None
        beats = [c.last_heartbeat_time for c in node.status.conditions if c.type == "Ready"] if node is not None else []
        sign = (node.metadata.uid, renewed, beats) if node is not None else None
        now = self._clock.monotonic()
        before = self._signs.get(name)
        if before is None or before[0] != sign:
            self._signs[name] = (sign, now)
            return 0.0
        return now - before[1]

    async def _mark(self, node: Node, now: datetime) -> Node:
        conditions = node_health.unknown_conditions(node, now)
        if not conditions:
            return node
        log.warning("a node gives no sign of life", extra={"node": node.metadata.name, "for_s": self._grace_s})
        reference = kinds.reference(kinds.NODES, node)
        words = f"Node {node.metadata.name} status is now: NodeNotReady"
        self._recorder.record(reference, "Normal", "NodeNotReady", words)
        patch: Json = {"status": {"conditions": conditions}}
        async with self._gate.slot("nodes"):
            request = writing.strategic_patch(kinds.NODES, node, patch, subresource="status")
            written = await self._client.send(request, Node)
        self._nodes.put(written)
        return written

    async def _taint(self, node: Node, wanted: list[Taint]) -> Node:
        meta = node.metadata
        operations: list[Json] = [
            {"op": "test", "path": "/metadata/uid", "value": meta.uid},
            {"op": "replace", "path": "/metadata/resourceVersion", "value": meta.resource_version},
            {"op": "add", "path": "/spec/taints", "value": codec.to_json(wanted)},
        ]
        try:
            async with self._gate.slot("nodes"):
                written = await self._client.json_patch(kinds.NODES, "", meta.name, operations)
        except errors.Conflict:
            self._nodes.put(await self._client.get(kinds.NODES, "", meta.name))
            raise
        self._nodes.put(written)
        return written

    # --- pods

    async def _evict(self, node: Node, now: datetime) -> datetime | None:
        """Those whose time is up; returns when the next one's is."""
        if not self.is_evicting(node.metadata.name):
            return None
        staying = [
            (pod, node_health.leaves_at(pod, node.spec.taints, now))
            for pod in self._pods.by_index(BY_NODE, node.metadata.name)
            if not pod.is_terminal and pod.metadata.deletion_timestamp is None
        ]
        for pod, moment in staying:
            if moment is not None and moment <= now:
                await self._remove(pod, "DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint", now)
        return node_health.first([moment for _, moment in staying if moment is not None and moment > now])

    async def _clear(self, name: str, gone_s: float) -> float | None:
        """The node is no more. Its pods wait as long as a silent node is waited for; it may be created again."""
        pods = self._pods.by_index(BY_NODE, name)
        if not pods:
            self._signs.pop(name, None)
            return None
        if gone_s < self._grace_s:
            return self._grace_s - gone_s
        try:
            await self._client.get(kinds.NODES, "", name)
        except errors.NotFound:
            pass
        else:
            return 1.0  # our view is old
        for pod in pods:
            await self._remove(pod, "DeletionByPodGC", "PodGC: node no longer exists", self._clock.now(), grace_s=0)
        return self._grace_s

    async def _remove(self, pod: Pod, reason: str, message: str, now: datetime, grace_s: int | None = None) -> None:
        """Says why, then deletes. Without grace nobody is there to end the pod: it is called failed, too."""
        meta = pod.metadata
        condition: Json = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": reason,
            "message": message,
            "lastTransitionTime": writing.timestamp(now),
        }
        status: Json = {"conditions": [condition]}
        if grace_s == 0 and not pod.is_terminal:
            status["phase"] = "Failed"
        try:
            async with self._gate.slot("nodes"):
                request = writing.strategic_patch(kinds.PODS, pod, {"status": status}, subresource="status")
                await self._client.send(request, bytes)
                left = await self._client.delete(
                    kinds.PODS, meta.namespace, meta.name, uid=meta.uid, grace_period_seconds=grace_s
                )
        except (errors.NotFound, errors.Conflict):
            self._pods.remove(meta.key, meta.uid)
            return
        log.info("a pod leaves its node", extra={"pod": meta.key, "node": pod.spec.node_name, "reason": reason})
        if left is not None:
            self._pods.put(left)
