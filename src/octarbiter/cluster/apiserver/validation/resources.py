"""Are amounts of resources in order?"""

from __future__ import annotations

from octarbiter.cluster.apiserver.schemas import quantities
from octarbiter.cluster.apiserver.structural import wording
from octarbiter.cluster.apiserver.validation import names, rules
from octarbiter.cluster.apiserver.validation.rules import Json, Problems

_OF_CONTAINERS = ("cpu", "memory", "ephemeral-storage")
_OF_QUOTAS = frozenset(
    (
        *("cpu", "memory", "ephemeral-storage", "storage", "pods", "resourcequotas", "services", "secrets"),
        *("replicationcontrollers", "configmaps", "persistentvolumeclaims", "services.nodeports"),
        *("services.loadbalancers", "requests.cpu", "requests.memory", "requests.ephemeral-storage"),
        *("requests.storage", "limits.cpu", "limits.memory", "limits.ephemeral-storage"),
    )
)
_COUNTED = frozenset(
    (
        *("pods", "resourcequotas", "services", "secrets", "replicationcontrollers", "configmaps"),
        *("persistentvolumeclaims", "services.nodeports", "services.loadbalancers"),
    )
)
_STANDARD = _OF_QUOTAS
_HUGE_PAGES = "hugepages-"


def of_container(resources: Json, path: str) -> Problems:
    limits, requests = rules.part(resources, "limits"), rules.part(resources, "requests")
    for which, amounts in (("limits", limits), ("requests", requests)):
        for name, amount in amounts.items():
            where = f"{path}.{which}[{name}]"
            yield from _name(name, where)
            yield from non_negative(amount, where)
            yield from _whole(name, amount, where)
    for name, amount in requests.items():
        yield from _within_limit(name, amount, limits.get(name), path)
    used = {*limits, *requests}
    if any(name.startswith(_HUGE_PAGES) for name in used) and not used & {"cpu", "memory"}:
        yield wording.forbidden(path, "HugePages require cpu or memory")


def _within_limit(name: str, amount: object, limit: object, path: str) -> Problems:
    is_exact = name not in _OF_CONTAINERS and ("/" in name or name.startswith(_HUGE_PAGES))
    if limit is None:
        if is_exact:
            yield wording.required(f"{path}.limits", "Limit must be set for non overcommitable resources")
        return
    request, most = quantities.nano(amount), quantities.nano(limit)
    if is_exact and request != most:
        yield wording.invalid(f"{path}.requests", amount, f"must be equal to {name} limit of {limit}")
    elif request > most:
        yield wording.invalid(f"{path}.requests", amount, f"must be less than or equal to {name} limit of {limit}")


def _name(name: str, path: str) -> Problems:
    yield from rules.well_formed(name, path, names.qualified)
    if "/" not in name:
        is_huge_page = name.startswith(_HUGE_PAGES)
        if name not in _STANDARD and not is_huge_page:
            yield wording.invalid(path, name, "must be a standard resource type or fully qualified")
        if name not in _OF_CONTAINERS and not is_huge_page:
            yield wording.invalid(path, name, "must be a standard resource for containers")
    elif not _is_native(name) and (name.startswith("requests.") or names.qualified(f"requests.{name}")):
        yield wording.invalid(path, name, "doesn't follow extended resource name standard")


def _is_native(name: str) -> bool:
    return "kubernetes.io/" in name


def _whole(name: str, amount: object, path: str) -> Problems:
    units = quantities.nano(amount)
    is_extended = "/" in name and not _is_native(name)
    if (is_extended or name in _COUNTED) and units % quantities.NANO:
        yield wording.invalid(path, amount, "must be an integer")
    if name.startswith(_HUGE_PAGES):
        try:
            size = quantities.nano(name.removeprefix(_HUGE_PAGES))
        except quantities.BadQuantity:
            return
        if size <= 0 or units % size:
            yield wording.invalid(path, amount, f"{amount} is not positive integer multiple of {name}")


def non_negative(amount: object, path: str) -> Problems:
    if quantities.nano(amount) < 0:
        yield wording.invalid(path, amount, "must be greater than or equal to 0")


def of_quota(hard: Json, path: str) -> Problems:
    for name, amount in hard.items():
        where = f"{path}[{name}]"
        yield from rules.well_formed(name, where, names.qualified)
        is_known = name in _OF_QUOTAS or name.startswith((_HUGE_PAGES, f"requests.{_HUGE_PAGES}"))
        if "/" not in name and not is_known:
            if not names.qualified(name):
                yield wording.invalid(where, name, "must be a standard resource type or fully qualified")
            yield wording.invalid(where, name, "must be a standard resource for quota")
        yield from non_negative(amount, where)
        yield from _whole(name, amount, where)
