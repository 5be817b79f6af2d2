"""What does the server itself work out, after everybody else has written?

Not defaults: it follows from the rest of the object, from its UID or from what it was before, and users who write
something else are overruled or refused.
"""

from __future__ import annotations

import uuid

from octarbiter.cluster.apiserver.defaults import workloads
from octarbiter.cluster.apiserver.defaults.filling import Json, absent, empty, items, part
from octarbiter.cluster.apiserver.schemas import quantities

_JOB_LABELS = ("controller-uid", "job-name")
_JOB_PREFIX = "batch.kubernetes.io/"
_SERVICES = (10, 96)
"""The first two numbers of the addresses of services, as in most clusters. Nothing routes there."""


def pod(obj: Json, old: Json | None) -> None:
    status = part(obj, "status")
    before = (old or {}).get("status") or {}
    empty(status, "qosClass", before.get("qosClass") or quality_of(part(obj, "spec")))
    if old is None and items(part(obj, "spec"), "schedulingGates"):
        absent(status, "conditions", [_gated(str(part(obj, "metadata").get("creationTimestamp") or ""))])


def _gated(since: str) -> Json:
    return {
        "type": "PodScheduled",
        "status": "False",
        "lastProbeTime": None,
        "lastTransitionTime": since,
        "reason": "SchedulingGated",
        "message": "Scheduling is blocked due to non-empty scheduling gates",
    }


def quality_of(spec: Json) -> str:
    """The class that decides who is evicted first: BestEffort, Burstable or Guaranteed."""
    containers = [*items(spec, "containers"), *items(spec, "initContainers")]
    resources = spec.get("resources") or {}
    if _counted(resources, "requests") or _counted(resources, "limits"):
        all_resources = [resources]
    else:
        all_resources = [container.get("resources") or {} for container in containers]
    requests = [_counted(each, "requests") for each in all_resources]
    limits = [_counted(each, "limits") for each in all_resources]
    if not any(requests) and not any(limits):
        return "BestEffort"
    is_limited = all(limit.keys() == {"cpu", "memory"} for limit in limits)
    # What is only limited is requested, too; defaults say so.
    is_equal = all(request in ({}, limit) for request, limit in zip(requests, limits, strict=True))
    return "Guaranteed" if is_limited and is_equal else "Burstable"


def _counted(resources: Json, which: str) -> dict[str, int]:
    amounts = resources.get(which) or {}
    found = {name: quantities.nano(amounts[name]) for name in ("cpu", "memory") if name in amounts}
    return {name: amount for name, amount in found.items() if amount}


def daemon_set(obj: Json, old: Json | None) -> None:
    """Changes of the template are counted in an annotation, and nobody else can."""
    if old is None:
        return
    before = str(part(part(old, "metadata"), "annotations").get(workloads.TEMPLATE_GENERATION) or "1")
    count = int(before) if before.isascii() and before.isdigit() else 1
    if part(obj, "spec").get("template") != part(old, "spec").get("template"):
        count += 1
    part(part(obj, "metadata"), "annotations")[workloads.TEMPLATE_GENERATION] = str(count)


def job(obj: Json, old: Json | None) -> None:
    """A job finds its pods by its UID, unless the user insists on a selector of his own."""
    spec, metadata = part(obj, "spec"), part(obj, "metadata")
    if old is not None or spec.get("manualSelector"):
        return
    uid, name = str(metadata.get("uid") or ""), str(metadata.get("name") or "")
    labels = dict(zip(_JOB_LABELS, (uid, name), strict=True))
    labels |= {_JOB_PREFIX + key: value for key, value in labels.items()}
    template = part(part(part(spec, "template"), "metadata"), "labels")
    # A job without labels of its own has those of its template.
    is_shared = metadata.get("labels") in (None, {}, template)
    for key, value in labels.items():
        template.setdefault(key, value)
    if is_shared:
        metadata["labels"] = dict(template)
    part(part(spec, "selector"), "matchLabels").setdefault(f"{_JOB_PREFIX}controller-uid", uid)


def lease(obj: Json, old: Json | None) -> None:
    """Elections that the server coordinates are switched off by default, and so is what they would need."""
    spec = part(obj, "spec")
    for name in ("strategy", "preferredHolder"):
        spec.pop(name, None)


def role(obj: Json, old: Json | None) -> None:
    """No rules are null, however they were written."""
    if not obj.get("rules"):
        obj["rules"] = None


def service(obj: Json, old: Json | None) -> None:
    spec = part(obj, "spec")
    if spec.get("type") == "ExternalName":
        for name in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"):
            spec.pop(name, None)
        return
    before = (old or {}).get("spec") or {}
    if before.get("clusterIP") and not spec.get("clusterIP") and not spec.get("clusterIPs"):
        for name in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"):
            absent(spec, name, before[name])
    if spec.get("clusterIP") != before.get("clusterIP") and spec.get("clusterIPs") == before.get("clusterIPs"):
        spec.pop("clusterIPs", None)
    addresses = spec.get("clusterIPs") or [""]
    empty(spec, "clusterIP", addresses[0] or _address(str(part(obj, "metadata").get("uid") or "")))
    empty(spec, "clusterIPs", [spec["clusterIP"]])
    # Without a selector and an address, nobody can tell which families are meant.
    both = spec["clusterIP"] == "None" and not spec.get("selector")
    absent(spec, "ipFamilyPolicy", "RequireDualStack" if both else "SingleStack")
    empty(spec, "ipFamilies", ["IPv4", "IPv6"] if both else ["IPv4"])


def _address(uid: str) -> str:
    """Different for different services, as far as 62,000 addresses go."""
    number = uuid.uuid5(uuid.NAMESPACE_OID, uid).int
    first, second = _SERVICES
    return f"{first}.{second}.{1 + number % 250}.{1 + number // 250 % 250}"
