"""Is there room for one more in the ResourceQuotas of its namespace?

What a new object takes is charged to the status of every quota it falls under, before it is written, in the same step
in which room was found: two that come at once cannot both have the last place. The quota controller takes back what
turns out not to be used; but what was charged a moment ago it may not have seen yet, so that stays for a while.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from octarbiter.api.meta import Json
from octarbiter.api.quantity import NANO, Quantity
from octarbiter.cluster.apiserver import admission, kinds, objects, selectors, status
from octarbiter.cluster.apiserver.admission import Attempt, amounts
from octarbiter.cluster.apiserver.admission.amounts import Amounts
from octarbiter.cluster.store.entries import Entry
from octarbiter.cluster.store.errors import Conflict
from octarbiter.cluster.store.store import Store

_QUOTAS: Final = next(row for row in kinds.BUILT_IN if row.plural == "resourcequotas")
_COMPUTE: Final = ("cpu", "memory", "ephemeral-storage")
_COUNTED: Final = frozenset(
    ("configmaps", "persistentvolumeclaims", "pods", "replicationcontrollers", "resourcequotas", "secrets", "services")
)
"""Their number may be limited by the bare name; that of everything by `count/<plural>.<group>`."""
_ONE: Final = Quantity(NANO)
_ATTEMPTS: Final = 64
_SEEN_AFTER_S: Final = 1.0
"""So long after an object was charged, everybody's view has it."""


class Quotas:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._recent: dict[str, deque[tuple[float, Amounts]]] = {}  # by the quota's key: when, and how much

    async def admit(self, attempt: Attempt) -> None:
        """What is new is charged when it is final. Here only somebody else's count is put right."""
        if attempt.served.resource is _QUOTAS and attempt.subresource == "status" and attempt.obj and attempt.old:
            keep(attempt.obj, attempt.old, self._unseen(_QUOTAS.key(attempt.namespace, attempt.name)))

    async def validate(self, attempt: Attempt) -> None:
        resource, obj = attempt.served.resource, attempt.obj
        if not resource.namespaced or obj is None or attempt.subresource or attempt.operation == admission.DELETE:
            return None
        if not self._store.list(_QUOTAS.prefix(attempt.namespace)):
            return None
        wanted = needs(resource, obj)
        if attempt.operation == admission.UPDATE and attempt.old is not None:
            wanted = _more(wanted, needs(resource, attempt.old))
        if not wanted:
            return None
        done: set[str] = set()
        for _ in range(_ATTEMPTS):
            try:
                return await self._charge(attempt, wanted, done)
            except Conflict:
                continue  # somebody else was charged meanwhile: look again
        raise status.conflict(resource, attempt.name)

    async def _charge(self, attempt: Attempt, wanted: Amounts, done: set[str]) -> None:
        """All quotas that are not `done`; the first has the chance to refuse before any of them is charged."""
        resource, obj = attempt.served.resource, attempt.obj
        assert obj is not None
        charges: list[tuple[Entry, Json]] = []
        for each in self._store.list(_QUOTAS.prefix(attempt.namespace)):
            latest = self._store.latest(each.key)
            quota = objects.loaded(latest.value, _QUOTAS) if latest is not None and each.key not in done else None
            if latest is None or quota is None or not covers(quota.get("spec") or {}, resource, obj):
                continue
            if attempt.operation == admission.CREATE and resource is kinds.PODS and (why := unsaid(quota, obj["spec"])):
                raise status.forbidden(resource, attempt.name, why)
            if why := excess(quota, wanted):
                raise status.forbidden(resource, attempt.name, why)
            if charged(quota, wanted):
                charges.append((latest, quota))
        for entry, quota in charges if not attempt.dry_run else ():
            charge = {name: value for name, value in wanted.items() if name in quota["status"]["used"]}
            self._unseen(entry.key)  # forgets what is old
            self._recent.setdefault(entry.key, deque()).append((asyncio.get_running_loop().time(), charge))
            await self._store.put(entry.key, _stamped(quota), expected=entry.revision)
            done.add(entry.key)

    def _unseen(self, key: str) -> Amounts:
        """What was charged so recently that nobody can be relied upon to have counted it."""
        charges = self._recent.get(key, deque())
        while charges and charges[0][0] < asyncio.get_running_loop().time() - _SEEN_AFTER_S:
            charges.popleft()
        if not charges:
            self._recent.pop(key, None)
        return amounts.total(charge for _, charge in charges)


def _stamped(quota: Json) -> Callable[[int], bytes]:
    return lambda revision: objects.stamped(quota, _QUOTAS, revision)


def keep(quota: Json, old: Json, unseen: Amounts) -> None:
    """A count that is lower than before does not know of what is yet unseen."""
    state = quota.get("status")
    if not unseen or not isinstance(state, dict) or not isinstance(state.get("used"), dict):
        return
    now, before = amounts.parsed(state["used"]), amounts.parsed((old.get("status") or {}).get("used"))
    for name in now.keys() & before.keys() & unseen.keys():
        if now[name].nano < before[name].nano:
            nano = min(before[name].nano, now[name].nano + unseen[name].nano)
            state["used"] = {**state["used"], name: str(Quantity(nano, before[name].family))}


def needs(resource: kinds.Resource, obj: Json) -> Amounts:
    """What one object takes, by the names quotas have for it."""
    count = f"count/{resource.plural}.{resource.group}" if resource.group else f"count/{resource.plural}"
    found: Amounts = {count: _ONE}
    if resource.group:
        return found
    if resource.plural in _COUNTED:
        found[resource.plural] = _ONE
    spec = obj.get("spec") or {}
    match resource.kind:
        case "Pod":
            found |= _of_pod(spec)
        case "PersistentVolumeClaim":
            found |= _of_claim(spec)
        case "Service":
            found |= _of_service(spec)
    return found


def _of_pod(spec: Json) -> Iterator[tuple[str, Quantity]]:
    for name, value in amounts.of_pod(spec, "requests").items():
        yield f"requests.{name}", value
        if name in _COMPUTE or name.startswith("hugepages-"):
            yield name, value
    for name, value in amounts.of_pod(spec, "limits").items():
        if name in _COMPUTE:
            yield f"limits.{name}", value


def _of_claim(spec: Json) -> Iterator[tuple[str, Quantity]]:
    storage = amounts.parsed((spec.get("resources") or {}).get("requests")).get("storage", Quantity(0))
    yield "requests.storage", storage
    if name := spec.get("storageClassName"):
        yield f"{name}.storageclass.storage.k8s.io/requests.storage", storage
        yield f"{name}.storageclass.storage.k8s.io/persistentvolumeclaims", _ONE


def _of_service(spec: Json) -> Iterator[tuple[str, Quantity]]:
    type_, ports = spec.get("type"), spec.get("ports") or []
    if type_ == "LoadBalancer":
        yield "services.loadbalancers", _ONE
    if type_ in ("NodePort", "LoadBalancer"):
        with_port = sum(1 for port in ports if type_ == "NodePort" or port.get("nodePort"))
        yield "services.nodeports", Quantity(with_port * NANO)


def _more(now: Amounts, before: Amounts) -> Amounts:
    return {
        name: Quantity(value.nano - before[name].nano if name in before else value.nano, value.family)
        for name, value in now.items()
        if name not in before or value.nano > before[name].nano
    }


def covers(spec: Json, resource: kinds.Resource, obj: Json) -> bool:
    """Whether the object is within all scopes of the quota."""
    scopes = [{"scopeName": name, "operator": "Exists"} for name in spec.get("scopes") or []]
    scopes += (spec.get("scopeSelector") or {}).get("matchExpressions") or []
    if not scopes:
        return True
    return resource is kinds.PODS and all(_is_within(scope, obj["spec"]) for scope in scopes)


def _is_within(scope: Json, pod: Json) -> bool:
    match scope.get("scopeName"):
        case "Terminating":
            return pod.get("activeDeadlineSeconds") is not None
        case "NotTerminating":
            return pod.get("activeDeadlineSeconds") is None
        case "BestEffort":
            return _is_best_effort(pod)
        case "NotBestEffort":
            return not _is_best_effort(pod)
        case "PriorityClass":
            labels = {"class": pod["priorityClassName"]} if pod.get("priorityClassName") else {}
            wanted = {"key": "class", "operator": scope.get("operator"), "values": scope.get("values") or []}
            return selectors.from_object({"matchExpressions": [wanted]}).matches(labels)
    return False


def _is_best_effort(pod: Json) -> bool:
    parts = [amounts.of_pod(pod, part) for part in ("requests", "limits")]
    return not any(part[name].nano for part in parts for name in ("cpu", "memory") if name in part)


def unsaid(quota: Json, pod: Json) -> str:
    """Where CPU or memory is limited, every container must say how much it takes. Empty: they do."""
    missing: dict[str, list[str]] = {}
    for name in sorted((quota.get("spec") or {}).get("hard") or {}):
        part, _, short = name.rpartition(".")
        if short not in ("cpu", "memory") or part not in ("", "requests", "limits"):
            continue
        for container in (*(pod.get("containers") or []), *(pod.get("initContainers") or [])):
            if short not in ((container.get("resources") or {}).get(part or "requests") or {}):
                missing.setdefault(name, []).append(container["name"])
    if not missing:
        return ""
    told = "; ".join(f"{name} for: {','.join(sorted(who))}" for name, who in missing.items())
    return f"failed quota: {quota['metadata']['name']}: must specify {told}"


def excess(quota: Json, wanted: Amounts) -> str:
    """Why there is no room; empty: there is."""
    name = quota["metadata"]["name"]
    hard = amounts.parsed((quota.get("spec") or {}).get("hard"))
    state = quota.get("status") or {}
    used = amounts.parsed(state.get("used"))
    limited = [each for each in sorted(wanted) if each in hard]
    if unknown := [each for each in limited if each not in used]:
        return f"status unknown for quota: {name}, resources: {','.join(unknown)}"
    over = [each for each in limited if wanted[each].nano and used[each].nano + wanted[each].nano > hard[each].nano]
    if not over:
        return ""
    asked, taken, most = (_list(over, each) for each in (wanted, used, hard))
    return f"exceeded quota: {name}, requested: {asked}, used: {taken}, limited: {most}"


def charged(quota: Json, wanted: Amounts) -> bool:
    """Adds it to what is used; whether that changed anything."""
    used = (quota.get("status") or {}).get("used") or {}
    before = amounts.parsed(used)
    changed = {name: amounts.plus(before[name], wanted[name]) for name in before if name in wanted}
    changed = {name: value for name, value in changed.items() if value.nano != before[name].nano}
    if changed:
        quota["status"]["used"] = {**used, **{name: str(value) for name, value in changed.items()}}
    return bool(changed)


def _list(names: Sequence[str], values: Mapping[str, Quantity]) -> str:
    return ",".join(f"{name}={values[name]}" for name in names)
