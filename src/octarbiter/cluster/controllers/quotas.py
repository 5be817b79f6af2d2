"""Keeps the status of ResourceQuotas true: what is used is decided in `usage`, from the pods and the census.

The API server adds to `used` when it lets something in, and nobody but us takes away; so a status is written only on
the version it was decided on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from octarbiter.api import codec, errors, pod_requests
from octarbiter.api.core_kinds import ResourceQuota
from octarbiter.api.meta import Json, Noun
from octarbiter.api.pod_requests import Sums
from octarbiter.api.workpod import Quantities, Resources
from octarbiter.cluster.controllers import census, kinds, usage
from octarbiter.cluster.controllers.kinds import Pod
from octarbiter.runtime import cache, client, fairness, requests

BY_NAMESPACE: Final = "namespace"
SHORTEST_INTERVAL_S: Final = 0.2
SECONDS_PER_POD: Final = 0.0001
"""A look costs in proportion to the pods of the namespace."""
LOOK_AGAIN_S: Final = 300.0
WAIT_FOR_CENSUS_S: Final = 0.5
SERVICES: Final = ("services.nodeports", "services.loadbalancers")
STORAGE: Final = "requests.storage"


class _ServiceSpec(Noun, frozen=True):
    type: str = ""
    ports: list[Json] = []


class _Service(Noun, frozen=True):
    spec: _ServiceSpec = _ServiceSpec()


class _ClaimSpec(Noun, frozen=True):
    resources: Resources = Resources()


class _Claim(Noun, frozen=True):
    spec: _ClaimSpec = _ClaimSpec()


class QuotaController:
    """`pods` has the index BY_NAMESPACE."""

    def __init__(
        self,
        client_: client.Client,
        gate: fairness.FairGate,
        quotas: cache.Cache[ResourceQuota],
        pods: cache.Cache[Pod],
        counts: census.Census,
        cool_down: Callable[[str, float], None],
    ) -> None:
        self._client, self._gate = client_, gate
        self._quotas, self._pods, self._counts, self._cool_down = quotas, pods, counts, cool_down
        self._uses: dict[str, tuple[str, Sums]] = {}  # of pods, by UID, at a resourceVersion

    def forget(self, uid: str) -> None:
        self._uses.pop(uid, None)

    async def reconcile(self, key: str) -> float | None:
        quota = self._quotas.get(key)
        if quota is None or quota.metadata.deletion_timestamp is not None:
            return None
        if not self._counts.is_complete and any(map(usage.counted_resource, quota.spec.hard)):
            return WAIT_FOR_CENSUS_S
        namespace = quota.metadata.namespace
        pods = self._pods.by_index(BY_NAMESPACE, namespace)
        self._cool_down(key, SHORTEST_INTERVAL_S + len(pods) * SECONDS_PER_POD)
        special = await self._special(quota)
        used = usage.used(
            quota.spec,
            ((pod, self._use(pod)) for pod in pods),
            lambda resource: self._counts.count(resource, namespace),
            special,
        )
        status = quota.status
        if not (_same(used, status.used) and _same(quota.spec.hard, status.hard)):
            await self._record(quota, {"hard": quota.spec.hard, "used": used})
        return LOOK_AGAIN_S if special else None

    def _use(self, pod: Pod) -> Sums:
        meta = pod.metadata
        known = self._uses.get(meta.uid)
        if known is None or known[0] != meta.resource_version:
            known = self._uses[meta.uid] = (meta.resource_version, usage.of_pod(pod))
        return known[1]

    async def _record(self, quota: ResourceQuota, status: Json) -> None:
        meta = quota.metadata
        operations: list[Json] = [
            {"op": "test", "path": "/metadata/uid", "value": meta.uid},
            {"op": "replace", "path": "/metadata/resourceVersion", "value": meta.resource_version},
            {"op": "add", "path": "/status", "value": status},
        ]
        try:
            async with self._gate.slot("quotas"):
                written = await self._client.json_patch(
                    kinds.QUOTAS, meta.namespace, meta.name, operations, subresource="status"
                )
        except errors.NotFound:
            self._quotas.remove(meta.key, meta.uid)
            return
        except errors.Conflict:
            self._quotas.put(await self._client.get(kinds.QUOTAS, meta.namespace, meta.name))
            raise
        self._quotas.put(written)

    async def _special(self, quota: ResourceQuota) -> dict[str, int]:
        """What neither pods nor numbers of objects tell; rarely limited, so asked for when it is."""
        found: dict[str, int] = {}
        namespace, hard = quota.metadata.namespace, quota.spec.hard
        if any(name in hard for name in SERVICES):
            services = [codec.decode(item, _Service).spec for item in await self._list("services", namespace)]
            balanced = [spec for spec in services if spec.type == "LoadBalancer"]
            ported = [spec for spec in services if spec.type in ("NodePort", "LoadBalancer")]
            found["services.loadbalancers"] = len(balanced) * usage.ONE
            found["services.nodeports"] = usage.ONE * sum(
                1 for spec in ported for port in spec.ports if spec.type == "NodePort" or port.get("nodePort")
            )
        if STORAGE in hard:
            claims = [codec.decode(item, _Claim) for item in await self._list("persistentvolumeclaims", namespace)]
            found[STORAGE] = sum(
                pod_requests.amounts(claim.spec.resources.requests).get("storage", 0) for claim in claims
            )
        return found

    async def _list(self, plural: str, namespace: str) -> list[Any]:
        path = f"/api/v1/namespaces/{namespace}/{plural}"
        request = requests.Request(method="GET", path=path, verb="list", resource=plural)
        return (await self._client.send(request, codec.RawList)).items


def _same(one: Quantities | dict[str, str], other: Quantities) -> bool:
    return pod_requests.amounts(one) == pod_requests.amounts(other)
