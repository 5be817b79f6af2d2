"""Keeps the status of PodDisruptionBudgets true: evictions are allowed by it, so it is told without delay."""

from __future__ import annotations

from typing import Final

from octarbiter.api import codec, errors
from octarbiter.api.meta import Json
from octarbiter.cluster.controllers import budgets, kinds
from octarbiter.cluster.controllers.kinds import Budget, BudgetStatus, Pod
from octarbiter.runtime import cache, client, clock, fairness

BY_NAMESPACE: Final = "namespace"


class DisruptionController:
    """Both caches have the index BY_NAMESPACE."""

    def __init__(
        self,
        client_: client.Client,
        gate: fairness.FairGate,
        all_budgets: cache.Cache[Budget],
        pods: cache.Cache[Pod],
        clock_: clock.Clock = clock.SYSTEM,
    ) -> None:
        self._client, self._gate, self._clock = client_, gate, clock_
        self._budgets, self._pods = all_budgets, pods

    def concerned(self, pod: Pod) -> list[str]:
        """Keys of the budgets whose affair this pod is."""
        found = self._budgets.by_index(BY_NAMESPACE, pod.metadata.namespace)
        return [budget.metadata.key for budget in found if budgets.covers(budget, pod)]

    async def reconcile(self, key: str) -> float | None:
        budget = self._budgets.get(key)
        if budget is None:
            return None
        now = self._clock.now()
        namespace = budget.metadata.namespace
        covered = [pod for pod in self._pods.by_index(BY_NAMESPACE, namespace) if budgets.covers(budget, pod)]
        status = budgets.status(budget, covered, now)
        if status != budget.status:
            await self._record(budget, status)
        again_at = budgets.look_again_at(status)
        return max(0.0, (again_at - now).total_seconds()) if again_at is not None else None

    async def _record(self, budget: Budget, status: BudgetStatus) -> None:
        meta = budget.metadata
        numbers = {"currentHealthy": 0, "desiredHealthy": 0, "disruptionsAllowed": 0, "expectedPods": 0}
        whole: Json = {**numbers, **codec.to_json(status)}
        for condition in whole.get("conditions", ()):
            condition.setdefault("message", "")  # the server wants it, and there is nothing to say
        operations: list[Json] = [
            {"op": "test", "path": "/metadata/uid", "value": meta.uid},
            {"op": "replace", "path": "/metadata/resourceVersion", "value": meta.resource_version},
            {"op": "add", "path": "/status", "value": whole},
        ]
        try:
            async with self._gate.slot("disruption"):
                written = await self._client.json_patch(
                    kinds.BUDGETS, meta.namespace, meta.name, operations, subresource="status"
                )
        except errors.NotFound:
            self._budgets.remove(meta.key, meta.uid)
            return
        except errors.Conflict:
            # An eviction was faster.
            self._budgets.put(await self._client.get(kinds.BUDGETS, meta.namespace, meta.name))
            raise
        self._budgets.put(written)
