"""Is a pod, or a template of one, in order? And what of a pod may change?"""

from __future__ import annotations

import copy

from octarbiter.cluster.apiserver.structural import wording
from octarbiter.cluster.apiserver.validation import containers, metadata, names, placement, rules, volumes
from octarbiter.cluster.apiserver.validation.rules import Json, Problems

_DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_RESTART_POLICIES = ("Always", "OnFailure", "Never")
_MOST_SECONDS = 2**31 - 1
_MAY_CHANGE = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


def pod(obj: Json, old: Json | None) -> Problems:
    spec = rules.part(obj, "spec")
    yield from specification(spec, "spec")
    if old is None:
        if spec.get("ephemeralContainers"):
            yield wording.forbidden("spec.ephemeralContainers", "cannot be set on create")
        if spec.get("nodeName") and spec.get("schedulingGates"):
            rule = "cannot be set until all schedulingGates have been cleared"
            yield wording.forbidden("spec.nodeName", rule)
    else:
        yield from _update(spec, rules.part(old, "spec"))


def template(value: Json, path: str) -> Problems:
    yield from metadata.of_template(value, path)
    yield from specification(rules.part(value, "spec"), f"{path}.spec")


def specification(spec: Json, path: str) -> Problems:
    yield from volumes.all_of(spec.get("volumes"), f"{path}.volumes")
    known = {str(volume.get("name")) for _, volume in rules.each(spec.get("volumes"), "")}
    yield from containers.all_of(spec, path, known)
    yield from _claims(spec, path)
    yield from rules.one_of(spec.get("restartPolicy"), f"{path}.restartPolicy", _RESTART_POLICIES)
    yield from rules.one_of(spec.get("dnsPolicy"), f"{path}.dnsPolicy", _DNS_POLICIES)
    if isinstance(seconds := spec.get("activeDeadlineSeconds"), int):
        for wrong in names.within(seconds, 1, _MOST_SECONDS):
            yield wording.invalid(f"{path}.activeDeadlineSeconds", seconds, wrong)
    for name in ("serviceAccountName", "nodeName"):
        if value := spec.get(name):
            yield from rules.well_formed(str(value), f"{path}.{name}", names.subdomain)
    for name in ("hostname", "subdomain"):
        if value := spec.get(name):
            yield from rules.well_formed(str(value), f"{path}.{name}", names.label)
    yield from placement.of_pod(spec, path)
    yield from _details(spec, path)


def _claims(spec: Json, path: str) -> Problems:
    known = [str(claim.get("name")) for _, claim in rules.each(spec.get("resourceClaims"), "")]
    rule = "must be one of the names in pod.spec.resourceClaims" + ("" if known else " which is empty")
    for kind in ("containers", "initContainers"):
        for where, container in rules.each(spec.get(kind), f"{path}.{kind}"):
            claims = rules.part(container, "resources").get("claims")
            for at, claim in rules.each(claims, f"{where}.resources.claims"):
                if claim.get("name") not in known:
                    yield rules.not_found(at, claim.get("name"), rule)


def _details(spec: Json, path: str) -> Problems:
    context = rules.part(spec, "securityContext")
    for name in ("runAsUser", "runAsGroup", "fsGroup"):
        if isinstance(number := context.get(name), int):
            for wrong in names.within(number, 0, _MOST_SECONDS):
                yield wording.invalid(f"{path}.securityContext.{name}", number, wrong)
    seen: set[str] = set()
    for where, gate in rules.each(spec.get("schedulingGates"), f"{path}.schedulingGates"):
        name = str(gate.get("name") or "")
        yield from rules.well_formed(name, where, names.qualified)
        if name in seen:
            yield wording.duplicate(where, name)
        seen.add(name)
    for where, gate in rules.each(spec.get("readinessGates"), f"{path}.readinessGates"):
        yield from rules.well_formed(str(gate.get("conditionType") or ""), f"{where}.conditionType", names.qualified)
    for where, alias in rules.each(spec.get("hostAliases"), f"{path}.hostAliases"):
        yield from rules.well_formed(str(alias.get("ip") or ""), f"{where}.ip", names.ip_address)
        for index, name in enumerate(alias.get("hostnames") or []):
            yield from rules.well_formed(name, f"{where}.hostnames[{index}]", names.subdomain)
    if system := rules.part(spec, "os").get("name"):
        yield from rules.one_of(system, f"{path}.os", ("linux", "windows"))


def _update(new: Json, old: Json) -> Problems:
    for kind in ("containers", "initContainers"):
        if len(new.get(kind) or []) != len(old.get(kind) or []):
            yield wording.forbidden(f"spec.{kind}", "pod updates may not add or remove containers")
            return
    yield from _deadline(new.get("activeDeadlineSeconds"), old.get("activeDeadlineSeconds"))
    kept = [_without_seconds(toleration) for toleration in new.get("tolerations") or []]
    if any(_without_seconds(toleration) not in kept for toleration in old.get("tolerations") or []):
        rule = "existing toleration can not be modified except its tolerationSeconds"
        yield wording.forbidden("spec.tolerations", rule)
    known = {str(gate.get("name")) for _, gate in rules.each(old.get("schedulingGates"), "")}
    added = [name for _, gate in rules.each(new.get("schedulingGates"), "") if (name := gate.get("name")) not in known]
    for index, name in enumerate(added):
        rule = f"only deletion is allowed, but found new scheduling gate '{name}'"
        yield wording.forbidden(f"spec.schedulingGates[{index}].name", rule)
    after, before = _fixed(new, old, bool(known)), _fixed(old, old, bool(known))
    if not added and after != before:
        yield wording.forbidden("spec", _MAY_CHANGE + wording.difference(before, after))


def _deadline(new: object, old: object) -> Problems:
    path = "spec.activeDeadlineSeconds"
    if isinstance(old, int) and not isinstance(new, int):
        yield wording.invalid(path, None, "must not update from a positive integer to nil value")
    elif isinstance(old, int) and isinstance(new, int) and new > old:
        yield wording.invalid(path, new, "must be less than or equal to previous value")


def _without_seconds(toleration: Json) -> Json:
    return {name: value for name, value in toleration.items() if name != "tolerationSeconds"}


def _fixed(spec: Json, old: Json, is_gated: bool) -> Json:
    """What of a pod's spec may not change: everything else is taken out."""
    found = copy.deepcopy(spec)
    for name in ("activeDeadlineSeconds", "tolerations", "schedulingGates"):
        found.pop(name, None)
    for kind in ("containers", "initContainers"):
        for _, container in rules.each(found.get(kind), ""):
            container.pop("image", None)
    if (old.get("terminationGracePeriodSeconds") or 0) < 0:
        found.pop("terminationGracePeriodSeconds", None)
    if is_gated:
        # Whoever holds a pod back may still say where it may go.
        for name in ("nodeSelector", "affinity"):
            found.pop(name, None)
    return found
