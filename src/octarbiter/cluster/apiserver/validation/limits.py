"""Are quotas, limit ranges and priority classes in order? And what of them may change?"""

from __future__ import annotations

from octarbiter.cluster.apiserver.schemas import quantities
from octarbiter.cluster.apiserver.structural import wording
from octarbiter.cluster.apiserver.validation import names, resources, rules
from octarbiter.cluster.apiserver.validation.rules import Json, Problems

_SCOPES = (
    *("Terminating", "NotTerminating", "BestEffort", "NotBestEffort"),
    *("PriorityClass", "CrossNamespacePodAffinity", "VolumeAttributesClass"),
)
_HIGHEST_PRIORITY = 1_000_000_000
_SYSTEM_PRIORITIES = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}
_LIMIT_TYPES = ("Pod", "Container", "PersistentVolumeClaim")


def quota(obj: Json, old: Json | None) -> Problems:
    spec = rules.part(obj, "spec")
    yield from resources.of_quota(rules.part(spec, "hard"), "spec.hard")
    scopes = spec.get("scopes") or []
    if any(scope not in _SCOPES for scope in scopes):
        yield wording.invalid("spec.scopes", scopes, "unsupported scope")
    if any({scope, f"Not{scope}"} <= set(scopes) for scope in ("BestEffort", "Terminating")):
        yield wording.invalid("spec.scopes", scopes, "conflicting scopes")
    if old is not None and sorted(scopes) != sorted(rules.part(old, "spec").get("scopes") or []):
        yield wording.invalid("spec.scopes", scopes, rules.IMMUTABLE)


def limit_range(obj: Json, old: Json | None) -> Problems:
    seen: set[str] = set()
    for where, limit in rules.each(rules.part(obj, "spec").get("limits"), "spec.limits"):
        kind = str(limit.get("type") or "")
        yield from rules.well_formed(kind, f"{where}.type", names.qualified)
        if not names.qualified(kind) and "/" not in kind and kind not in _LIMIT_TYPES:
            rule = "must be a standard limit type or fully qualified"
            yield wording.invalid(f"{where}.type", kind, rule)
        if kind in seen:
            yield wording.duplicate(f"{where}.type", kind)
        seen.add(kind)
        if kind == "Pod":
            for name in ("default", "defaultRequest"):
                if limit.get(name):
                    yield wording.forbidden(f"{where}.{name}", "may not be specified when `type` is 'Pod'")
        else:
            yield from _order(limit, where)
        for name, ratio in rules.part(limit, "maxLimitRequestRatio").items():
            if quantities.nano(ratio) < quantities.NANO:
                path = f"{where}.maxLimitRequestRatio[{name}]"
                yield wording.invalid(path, ratio, f"ratio {ratio} is less than 1")


_ORDER = (
    ("min", "max", "min", "min value {} is greater than max value {}"),
    ("min", "defaultRequest", "defaultRequest", "min value {} is greater than default request value {}"),
    ("defaultRequest", "max", "defaultRequest", "default request value {} is greater than max value {}"),
    ("defaultRequest", "default", "defaultRequest", "default request value {} is greater than default limit value {}"),
    ("min", "default", "default", "min value {} is greater than default value {}"),
    ("default", "max", "default", "default value {} is greater than max value {}"),
)
"""Smaller, larger, which of them is named, and in which words. The value shown is one that is not at that place for two
of them, as in the real server."""
_SHOWN = {("min", "default"): "min", ("default", "max"): "max"}


def _order(limit: Json, path: str) -> Problems:
    for smaller, larger, place, words in _ORDER:
        low, high = rules.part(limit, smaller), rules.part(limit, larger)
        for name in low.keys() & high.keys():
            if quantities.nano(low[name]) > quantities.nano(high[name]):
                shown = rules.part(limit, _SHOWN.get((smaller, larger), place))[name]
                yield wording.invalid(f"{path}.{place}[{name}]", shown, words.format(low[name], high[name]))


def priority_class(obj: Json, old: Json | None) -> Problems:
    name, value = str(rules.part(obj, "metadata").get("name") or ""), obj.get("value") or 0
    if name.startswith("system-"):
        if _SYSTEM_PRIORITIES.get(name) != value:
            what = "priority class names with 'system-' prefix are reserved for system use only. error: "
            yield wording.forbidden("metadata.name", f"{what}{name} is not a known system priority class")
    elif value > _HIGHEST_PRIORITY:
        rule = f"maximum allowed value of a user defined priority is {_HIGHEST_PRIORITY}"
        yield wording.forbidden("value", rule)
    yield from rules.one_of(obj.get("preemptionPolicy"), "preemptionPolicy", ("PreemptLowerPriority", "Never"))
    if old is not None:
        if value != (old.get("value") or 0):
            yield wording.forbidden("value", "may not be changed in an update.")
        yield from rules.unchanged(obj.get("preemptionPolicy"), old.get("preemptionPolicy"), "preemptionPolicy")
