"""What may be used in each namespace, after a decision: deeds on quotas, and pods that are let through the gate."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

import msgspec

from octarbiter.api import pod_requests, resources
from octarbiter.api.arbitrator import Mode
from octarbiter.api.core_kinds import ResourceQuota
from octarbiter.api.resources import Amounts
from octarbiter.api.workpod import WorkPod
from octarbiter.core.arbitration.state import Outcome, State
from octarbiter.core.quota import gate, keys, ledger, objects, sharing
from octarbiter.runtime.cache import Cache
from octarbiter.services.arbitrator import gates, topology
from octarbiter.services.arbitrator.claims import Claims
from octarbiter.services.arbitrator.observing import BY_NAMESPACE
from octarbiter.services.arbitrator.topology import Topology


class Decided(msgspec.Struct, frozen=True):
    """One decision, with all it rests on."""

    topology: Topology
    state: State
    outcome: Outcome
    now: datetime


class Holding:
    """Of one decision; quotas and pods are seen as they are when asked."""

    def __init__(
        self,
        decided: Decided,
        claims: Claims,
        quotas: Cache[ResourceQuota],
        pods: Cache[WorkPod],
        reserve_after_s: float,
    ) -> None:
        self._decided, self._quotas, self._pods = decided, quotas, pods
        self._reserve_after_s = reserve_after_s
        self._holders: dict[str, ledger.Holder] = {}
        self._whole: dict[str, Amounts] = {}
        for key, namespaces in decided.topology.covered.items():
            self._share(key, namespaces, claims)

    def deeds(self) -> Mapping[str, list[ledger.Deed]]:
        total = self._decided.state.total
        extended = [name for name in total if keys.is_extended(name)]
        place = self._decided.topology
        return {
            namespace: deeds
            for namespace in place.namespaces
            if (
                deeds := ledger.deeds(
                    place.ledger_entry(
                        namespace, self._holders.get(namespace), self._quotas.by_index(BY_NAMESPACE, namespace)
                    ),
                    extended,
                )
            )
        }

    def let_in(self) -> Iterable[str]:
        """Keys of the gated pods that there is room for now."""
        place = self._decided.topology
        for key, namespaces in place.covered.items():
            waiting = [
                pod
                for namespace in namespaces
                if place.mode(namespace) is Mode.GATE
                for pod in self._pods.by_index(BY_NAMESPACE, namespace)
                if gates.is_waiting(pod)
            ]
            if waiting:
                asked = {name for namespace in namespaces for name in self._holders[namespace].asked}
                chosen = gate.let_in(
                    map(_gated, waiting),
                    may_use=self._whole[key],
                    used=self._decided.state.used.get(key, {}),
                    asked=asked,
                    now=self._decided.now,
                    reserve_after_s=self._reserve_after_s,
                )
                yield from (pod.key for pod in chosen)

    def _share(self, key: str, namespaces: tuple[str, ...], claims: Claims) -> None:
        decided = self._decided
        queue, result = decided.topology.objects[key], decided.outcome.queues[key]
        factors = {name: queue.spec.quota_factor(name) for name in result.allocated}
        self._whole[key] = whole = sharing.oversubscribed(result.allocated, factors)
        asked: dict[str, Amounts] = {}
        held: dict[str, Amounts] = {}
        line = claims.lines.get(key)
        if line is not None and len(namespaces) > 1:
            for job in line:
                namespace = job.key.partition("/")[0]
                has = decided.outcome.units.get(job.key, 0)
                asked[namespace] = resources.plus(asked.get(namespace, {}), resources.times(job.unit, job.count))
                held[namespace] = resources.plus(held.get(namespace, {}), resources.times(job.unit, has))
        named = topology.named(decided.state.queues[key]) | set(line.asked if line is not None else ())
        for namespace, amounts in sharing.shares(whole, namespaces, asked, held).items():
            before = self._quotas.by_index(BY_NAMESPACE, namespace)
            self._holders[namespace] = ledger.Holder(
                namespace=queue.metadata.namespace,
                name=queue.metadata.name,
                uid=queue.metadata.uid,
                may_use=amounts,
                asked=tuple(sorted(named | _had(before))),
            )


def _had(quotas: Iterable[ResourceQuota]) -> set[str]:
    """Resources that our quota had figures for: a queue whose claims are all done must not be without a limit.
    Extended ones are left out: those that are not asked for are 0 anyway."""
    made = [quota for quota in map(objects.quota, quotas) if quota.is_made]
    return {
        name for name in (resources.CPU, resources.MEMORY) if any(f"requests.{name}" in quota.hard for quota in made)
    }


def _gated(pod: WorkPod) -> gate.GatedPod:
    created = pod.metadata.creation_timestamp
    assert created is not None
    return gate.GatedPod(
        key=pod.metadata.key,
        requests=pod_requests.requests(pod.spec),
        priority=pod.spec.priority or 0,
        created=created,
    )
