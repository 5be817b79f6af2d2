"""May a pod be resized so, and may these containers be put beside its own? Each has a door of its own, and only these
parts of the pod pass through it."""

from __future__ import annotations

import copy
from typing import Final

from octarbiter.cluster.apiserver.defaults import completion
from octarbiter.cluster.apiserver.schemas import quantities
from octarbiter.cluster.apiserver.structural import wording
from octarbiter.cluster.apiserver.validation import pods, rules
from octarbiter.cluster.apiserver.validation.rules import Json, Problems

_MIRROR: Final = "kubernetes.io/config.mirror"
_RESIZABLE: Final = ("cpu", "memory")
_ONLY: Final = "only cpu and memory resources are mutable"


def ephemeral_containers(obj: Json, old: Json) -> Problems:
    if _MIRROR in (rules.part(old, "metadata").get("annotations") or {}):
        yield wording.forbidden("", "static pods do not support ephemeral containers")
        return
    spec, path = rules.part(obj, "spec"), "spec.ephemeralContainers"
    yield from pods.specification(spec, "spec")
    now = {each.get("name"): each for _, each in rules.each(spec.get("ephemeralContainers"), "")}
    for _, before in rules.each(rules.part(old, "spec").get("ephemeralContainers"), ""):
        name = wording.quoted(str(before.get("name")))
        if before.get("name") not in now:
            yield wording.forbidden(path, f"existing ephemeral containers {name} may not be removed\n")
        elif now[before.get("name")] != before:
            change = wording.difference(before, now[before.get("name")])
            yield wording.forbidden(path, f"existing ephemeral containers {name} may not be changed{change}")


def resize(obj: Json, old: Json) -> Problems:
    if _MIRROR in (rules.part(old, "metadata").get("annotations") or {}):
        yield wording.forbidden("", "static pods cannot be resized")
        return
    new, before, status = rules.part(obj, "spec"), rules.part(old, "spec"), rules.part(old, "status")
    yield from pods.specification(new, "spec")
    quality = str(status.get("qosClass") or completion.quality_of(before))
    if completion.quality_of(new) != quality:
        yield wording.invalid("spec", quality, "Pod QOS Class may not change as a result of resizing")
    if not _can_be_resized(status):
        yield wording.forbidden("spec", "Pod running on node without support for resize")
    if any((spec.get("resources") or {}).get(kind) for spec in (new, before) for kind in ("requests", "limits")):
        gate = "InPlacePodLevelResourcesVerticalScalingEnabled feature gate is disabled"
        yield wording.forbidden("", f"resize of pods with pod-level resources is forbidden when {gate}")
        return
    moved = list(_order(new, before))
    if moved:
        yield from moved
        return
    found = [*_removed(new, before), *_others(new, before)]
    yield from found


def _can_be_resized(status: Json) -> bool:
    """A node that can do it tells what its containers have; where nothing runs yet, any can."""
    for _, each in rules.each(status.get("containerStatuses"), ""):
        if rules.part(each, "state").get("running") is not None:
            return each.get("resources") is not None
    return True


def _order(new: Json, old: Json) -> Problems:
    for kind in ("containers", "initContainers"):
        now, before = new.get(kind) or [], old.get(kind) or []
        if len(now) != len(before):
            yield wording.forbidden(f"spec.{kind}", f"{kind} may not be added or removed on resize")
            continue
        for index, container in enumerate(before):
            if now[index].get("name") != container.get("name"):
                rule = f"{kind} may not be renamed or reordered on resize"
                yield wording.forbidden(f"spec.{kind}[{index}].name", rule)


def _removed(new: Json, old: Json) -> Problems:
    for kind in ("initContainers", "containers"):
        for index, container in enumerate(old.get(kind) or []):
            if kind == "initContainers" and container.get("restartPolicy") != "Always":
                continue
            now, before = rules.part(new[kind][index], "resources"), rules.part(container, "resources")
            for which in ("requests", "limits"):
                if (before.get(which) or {}).keys() - (now.get(which) or {}).keys():
                    path = f"spec.{kind}[{index}].resources.{which}"
                    yield wording.forbidden(path, f"resource {which} cannot be removed")


def _others(new: Json, old: Json) -> Problems:
    for kind, rule in (
        ("containers", _ONLY),
        ("initContainers", "only cpu and memory resources for sidecar containers are mutable"),
    ):
        for index, before in enumerate(old.get(kind) or []):
            now = new[kind][index]
            if kind == "containers" or before.get("restartPolicy") == "Always":
                if _fixed(now) != _fixed(before):
                    yield wording.forbidden("spec", rule)
            elif now != before:
                yield wording.forbidden("spec", "resources for non-sidecar init containers are immutable")


def _fixed(container: Json) -> Json:
    """What of a container a resize may not change; amounts as numbers, however they are written."""
    found = copy.deepcopy(container)
    amounts = rules.part(found, "resources")
    for which in ("requests", "limits"):
        amounts[which] = {
            name: quantities.nano(amount)
            for name, amount in (amounts.get(which) or {}).items()
            if name not in _RESIZABLE
        }
    return {**found, "resources": amounts}
