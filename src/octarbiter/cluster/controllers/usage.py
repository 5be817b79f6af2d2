"""How much of a ResourceQuota is used? Values in, values out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from octarbiter.api import pod_requests, quantity, selectors
from octarbiter.api.core_kinds import QuotaSpec, ScopeRequirement
from octarbiter.api.pod_requests import Sums
from octarbiter.cluster.controllers.discovery import Name
from octarbiter.cluster.controllers.kinds import Pod

COMPUTE = ("cpu", "memory", "ephemeral-storage")
COUNTED = ("services", "configmaps", "secrets", "persistentvolumeclaims", "replicationcontrollers", "resourcequotas")
"""Their number may be limited by the bare name; that of everything by `count/<plural>.<group>`."""
PODS = "pods"
ONE = quantity.NANO


def of_pod(pod: Pod) -> Sums:
    """What the pod uses, by the names quotas have for it. A pod that has ended uses nothing."""
    if pod.is_terminal:
        return {}
    used = {PODS: ONE}
    for name, nano in pod_requests.exact_requests(pod.spec).items():
        used[f"requests.{name}"] = nano
        if name in COMPUTE or name.startswith("hugepages-"):
            used[name] = nano
    for name, nano in pod_requests.exact_limits(pod.spec).items():
        if name in COMPUTE:
            used[f"limits.{name}"] = nano
    return used


def applies(spec: QuotaSpec, pod: Pod) -> bool:
    """Whether the pod is within all scopes of the quota."""
    scopes = [ScopeRequirement(scope_name=name, operator="Exists") for name in spec.scopes]
    if spec.scope_selector is not None:
        scopes += spec.scope_selector.match_expressions
    return all(_is_within(scope, pod) for scope in scopes)


def _is_within(scope: ScopeRequirement, pod: Pod) -> bool:
    match scope.scope_name:
        case "Terminating":
            return pod.spec.active_deadline_seconds is not None
        case "NotTerminating":
            return pod.spec.active_deadline_seconds is None
        case "BestEffort":
            return _is_best_effort(pod)
        case "NotBestEffort":
            return not _is_best_effort(pod)
        case "PriorityClass":
            has = {"class": pod.spec.priority_class_name} if pod.spec.priority_class_name else {}
            wanted = selectors.Requirement(key="class", operator=scope.operator, values=scope.values)
            return selectors.meets([wanted], has)
        case _:
            return False


def _is_best_effort(pod: Pod) -> bool:
    """No container asks for or is limited in CPU or memory."""
    for container in (*pod.spec.containers, *pod.spec.init_containers):
        for given in (container.resources.requests, container.resources.limits):
            if any(nano > 0 for name, nano in pod_requests.amounts(given).items() if name in ("cpu", "memory")):
                return False
    return True


def counted_resource(name: str) -> Name | None:
    """The resource whose number this limits, if it does."""
    if name in COUNTED:
        return "", name
    if not name.startswith("count/"):
        return None
    plural, _, group = name.removeprefix("count/").partition(".")
    return group, plural


def used(
    spec: QuotaSpec,
    pods: Iterable[tuple[Pod, Sums]],
    count: Callable[[Name], int],
    special: Mapping[str, int],
) -> dict[str, str]:
    """For each limited resource, written like its limit. `special`: nano-units of what only their own specs tell."""
    sums = dict.fromkeys(spec.hard, 0)
    for pod, uses in pods:
        if uses and applies(spec, pod):
            for name, nano in uses.items():
                if name in sums:
                    sums[name] += nano
    for name in sums:
        resource = counted_resource(name)
        if resource is not None:
            sums[name] = count(resource) * ONE
        elif name in special:
            sums[name] = special[name]
    return {
        name: str(quantity.Quantity(nano, pod_requests.parsed(spec.hard[name]).family)) for name, nano in sums.items()
    }
