"""What do the LimitRanges of a namespace add to pods, and what do they refuse?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from octarbiter.api.meta import Json
from octarbiter.api.quantity import NANO, Quantity
from octarbiter.cluster.apiserver import admission, kinds, objects, status
from octarbiter.cluster.apiserver.admission import Attempt, amounts
from octarbiter.cluster.apiserver.admission.amounts import Amounts
from octarbiter.cluster.store.store import Store

_RANGES: Final = next(row for row in kinds.BUILT_IN if row.plural == "limitranges")
_ANNOTATION: Final = "kubernetes.io/limit-ranger"


class LimitRanges:
    def __init__(self, store: Store) -> None:
        self._store = store

    async def admit(self, attempt: Attempt) -> None:
        if _is_new(attempt, "Pod"):
            assert attempt.obj is not None
            add_defaults(attempt.obj, self._limits(attempt.namespace))

    async def validate(self, attempt: Attempt) -> None:
        obj = attempt.obj
        if obj is None or not (_is_new(attempt, "Pod") or _is_claim(attempt)):
            return
        limits = self._limits(attempt.namespace)
        found = list(claim_problems(obj, limits) if _is_claim(attempt) else pod_problems(obj["spec"], limits))
        if found:
            why = found[0] if len(found) == 1 else f"[{', '.join(found)}]"
            raise status.forbidden(attempt.served.resource, attempt.name, why)

    def _limits(self, namespace: str) -> list[Json]:
        ranges = (objects.loaded(each.value, _RANGES) for each in self._store.list(_RANGES.prefix(namespace)))
        return [limit for each in ranges for limit in (each.get("spec") or {}).get("limits") or []]


def _is_new(attempt: Attempt, kind: str) -> bool:
    resource = attempt.served.resource
    is_kind = not resource.group and resource.kind == kind and not attempt.subresource
    return is_kind and attempt.operation == admission.CREATE and attempt.obj is not None


def _is_claim(attempt: Attempt) -> bool:
    resource = attempt.served.resource
    is_claim = not resource.group and resource.kind == "PersistentVolumeClaim" and not attempt.subresource
    return is_claim and attempt.operation != admission.DELETE


def add_defaults(pod: Json, limits: Sequence[Json]) -> None:
    """Where a container says nothing; an annotation tells what was added."""
    told: list[str] = []
    for group, called in (("containers", "container"), ("initContainers", "init container")):
        for container in (pod.get("spec") or {}).get(group) or []:
            for part, field in (("requests", "defaultRequest"), ("limits", "default")):
                added = _fill(
                    container, part, [limit.get(field) or {} for limit in limits if _is_of(limit, "Container")]
                )
                if added:
                    told.append(f"{', '.join(added)} {part[:-1]} for {called} {container.get('name', '')}")
    if told:
        metadata = pod["metadata"]
        said = f"LimitRanger plugin set: {'; '.join(told)}"
        metadata["annotations"] = {**(metadata.get("annotations") or {}), _ANNOTATION: said}


def _fill(container: Json, part: str, offered: Sequence[Json]) -> list[str]:
    resources = container.get("resources") or {}
    given = dict(resources.get(part) or {})
    added = []
    for defaults in offered:
        for name, value in defaults.items():
            if name not in given:
                given[name] = value
                added.append(name)
    if added:
        container["resources"] = {**resources, part: given}
    return sorted(added)


def pod_problems(spec: Json, limits: Sequence[Json]) -> Iterator[str]:
    for limit in limits:
        if _is_of(limit, "Container"):
            for container in (*(spec.get("containers") or []), *(spec.get("initContainers") or [])):
                resources = container.get("resources") or {}
                requests, upper = (amounts.parsed(resources.get(part)) for part in ("requests", "limits"))
                yield from _problems(limit, requests, upper)
        elif _is_of(limit, "Pod"):
            yield from _problems(limit, amounts.of_pod(spec, "requests"), amounts.of_pod(spec, "limits"))


def claim_problems(claim: Json, limits: Sequence[Json]) -> Iterator[str]:
    requested = amounts.parsed(((claim.get("spec") or {}).get("resources") or {}).get("requests"))
    for limit in limits:
        if _is_of(limit, "PersistentVolumeClaim"):
            for name, least in sorted(amounts.parsed(limit.get("min")).items()):
                yield from _too_little(name, limit, least, requested, {})
            for name, most in sorted(amounts.parsed(limit.get("max")).items()):
                # A claim has no limits: what it requests is what it gets.
                if name in requested and requested[name].nano > most.nano:
                    yield f"maximum {name} usage per {limit['type']} is {most}, but request is {requested[name]}"


def _problems(limit: Json, requests: Amounts, upper: Amounts) -> Iterator[str]:
    for name, least in sorted(amounts.parsed(limit.get("min")).items()):
        yield from _too_little(name, limit, least, requests, upper)
    for name, most in sorted(amounts.parsed(limit.get("max")).items()):
        rule = f"maximum {name} usage per {limit['type']} is {most}"
        if name not in upper:
            yield f"{rule}.  No limit is specified"
        elif upper[name].nano > most.nano:
            yield f"{rule}, but limit is {upper[name]}"
        elif name in requests and requests[name].nano > most.nano:
            yield f"{rule}, but request is {requests[name]}"
    for name, ratio in sorted(amounts.parsed(limit.get("maxLimitRequestRatio")).items()):
        rule = f"{name} max limit to request ratio per {limit['type']} is {ratio}"
        request, top = requests.get(name, Quantity(0)).nano, upper.get(name, Quantity(0)).nano
        if not request:
            yield f"{rule}, but no request is specified or request is 0"
        elif not top:
            yield f"{rule}, but no limit is specified or limit is 0"
        elif top * NANO > ratio.nano * request:
            yield f"{rule}, but provided ratio is {top / request:f}"


def _too_little(name: str, limit: Json, least: Quantity, requests: Amounts, upper: Amounts) -> Iterator[str]:
    rule = f"minimum {name} usage per {limit['type']} is {least}"
    if name not in requests:
        yield f"{rule}.  No request is specified"
    elif requests[name].nano < least.nano:
        yield f"{rule}, but request is {requests[name]}"
    elif name in upper and upper[name].nano < least.nano:
        yield f"{rule}, but limit is {upper[name]}"


def _is_of(limit: Json, type_: str) -> bool:
    return bool(limit.get("type") == type_)
