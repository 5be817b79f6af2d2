"""A pod is asked to leave, unless too few of its like would be left.

How many may be missing is the business of PodDisruptionBudgets; their controller counts, here one is taken off its
count before the pod goes.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

import msgspec

from octarbiter.api.meta import Json
from octarbiter.cluster.apiserver import deletion, kinds, objects, selectors, status
from octarbiter.cluster.apiserver.catalogue import Served
from octarbiter.cluster.apiserver.pods import conditions
from octarbiter.cluster.apiserver.registry import Call, Registry
from octarbiter.cluster.store.store import Store

_MOST_DISRUPTED: Final = 2000
_ALLOWED: Final = "DisruptionAllowed"
_RETRY_S: Final = 10
_WOULD_VIOLATE: Final = "Cannot evict pod as it would violate the pod's disruption budget."


async def evict(
    registry: Registry, store: Store, call: Call, budgets: Served, wanted: deletion.Options, now: datetime
) -> None:
    """`call` names the pod. Raises a refusal (429) if a budget forbids it for the moment."""
    pod = objects.loaded(registry.get(call.served, call.namespace, call.name).value, kinds.PODS)
    if not _goes_anyway(pod) and (budget := _budget_of(pod, store, call.namespace)):
        wanted = await _spend(registry, call, budgets, budget, pod, wanted, now)
    if not wanted.dry_run:
        stamp = objects.timestamp(now)

        def marked(old: Json) -> Json:
            deletion.check_preconditions(kinds.PODS, old, wanted)
            reason, message = "EvictionByEvictionAPI", "Eviction API: evicting"
            conditions.set_condition(old, "DisruptionTarget", "True", stamp, reason=reason, message=message)
            return old

        await registry.amend(call, marked)
        wanted = msgspec.structs.replace(wanted, resource_version=None)
    await registry.delete(call, wanted)


def _goes_anyway(pod: Json) -> bool:
    phase = (pod.get("status") or {}).get("phase")
    return phase in ("Succeeded", "Failed", "Pending") or "deletionTimestamp" in pod["metadata"]


def _budget_of(pod: Json, store: Store, namespace: str) -> Json | None:
    labels = pod["metadata"].get("labels") or {}
    found = [
        budget
        for entry in store.list(kinds.BUDGETS.prefix(namespace))
        if _covers(budget := objects.loaded(entry.value, kinds.BUDGETS), labels)
    ]
    if len(found) > 1:
        what = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
        raise status.Failure(500, "", what)
    return found[0] if found else None


def _covers(budget: Json, labels: dict[str, str]) -> bool:
    selector = (budget.get("spec") or {}).get("selector")
    return selector is not None and selectors.from_object(selector).matches(labels)


async def _spend(
    registry: Registry,
    call: Call,
    budgets: Served,
    budget: Json,
    pod: Json,
    wanted: deletion.Options,
    now: datetime,
) -> deletion.Options:
    """Takes the pod off the budget's count, if it counts at all."""
    state, name = budget.get("status") or {}, budget["metadata"]["name"]
    if not conditions.is_true(pod, "Ready"):
        healthy, needed = state.get("currentHealthy", 0), state.get("desiredHealthy", 0)
        if budget["spec"].get("unhealthyPodEvictionPolicy") == "AlwaysAllow" or (healthy >= needed > 0):
            version = pod["metadata"]["resourceVersion"]
            return msgspec.structs.replace(wanted, resource_version=wanted.resource_version or version)

    def spent(old: Json) -> Json:
        _check(old)
        if not wanted.dry_run:
            counted = old["status"]
            counted["disruptionsAllowed"] -= 1
            gone = counted.get("disruptedPods") or {}
            counted["disruptedPods"] = {**gone, call.name: objects.timestamp(now)}
            if not counted["disruptionsAllowed"]:
                _exhaust(counted, objects.timestamp(now))
        return old

    spender = Call(served=budgets, namespace=call.namespace, user=call.user, name=name, warnings=[])
    await registry.amend(spender, spent)
    return wanted


def _exhaust(status: Json, now: str) -> None:
    """The controller will say more, but not at once."""
    conditions = [dict(each) for each in status.get("conditions") or []]
    found = _allowance(conditions)
    if found is None:
        found = {"type": _ALLOWED}
        conditions.append(found)
    if found.get("status") != "False":
        found["lastTransitionTime"] = now
    found |= {"status": "False", "reason": "InsufficientPods", "message": ""}
    if status.get("observedGeneration"):
        found["observedGeneration"] = status["observedGeneration"]
    status["conditions"] = conditions


def _allowance(conditions: list[Json]) -> Json | None:
    return next((each for each in conditions if each.get("type") == _ALLOWED), None)


def _check(budget: Json) -> None:
    state, name = budget.get("status") or {}, budget["metadata"]["name"]
    if state.get("observedGeneration", 0) < budget["metadata"].get("generation", 0):
        said = f"The disruption budget {name} is still being processed by the server."
        raise status.too_many_requests(_WOULD_VIOLATE, _RETRY_S, [_cause(said)])
    allowed = state.get("disruptionsAllowed", 0)
    if allowed < 0:
        raise status.forbidden(kinds.BUDGETS, name, "pdb disruptions allowed is negative")
    if len(state.get("disruptedPods") or {}) > _MOST_DISRUPTED:
        why = "DisruptedPods map too big - too many evictions not confirmed by PDB controller"
        raise status.forbidden(kinds.BUDGETS, name, why)
    if allowed == 0:
        needed, healthy = state.get("desiredHealthy", 0), state.get("currentHealthy", 0)
        said = f"The disruption budget {name} does not allow evicting pods currently"
        condition = _allowance(state.get("conditions") or []) or {}
        told = condition.get("message") if condition.get("status") == "False" else ""
        if told and condition.get("reason") == "SyncFailed":
            said += f" because it failed sync: {told}"
        elif healthy <= needed:
            said = f"The disruption budget {name} needs {needed} healthy pods and has {healthy} currently"
        elif told:
            said += f" ({condition.get('reason')}): {told}"
        raise status.too_many_requests(_WOULD_VIOLATE, 0, [_cause(said)])


def _cause(message: str) -> Json:
    return {"reason": "DisruptionBudget", "message": message}
