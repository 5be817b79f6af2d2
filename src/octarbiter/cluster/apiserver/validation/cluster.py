"""Are namespaces, nodes, leases, events and classes in order? And what of them may change?"""

from __future__ import annotations

from octarbiter.cluster.apiserver.structural import wording
from octarbiter.cluster.apiserver.validation import metadata, names, placement, resources, rules
from octarbiter.cluster.apiserver.validation.problems import Problem
from octarbiter.cluster.apiserver.validation.rules import Json, Problems


def namespace(obj: Json, old: Json | None) -> Problems:
    for finalizer in rules.part(obj, "spec").get("finalizers") or []:
        yield from rules.well_formed(finalizer, "spec.finalizers", names.qualified)
        yield from metadata.finalizer_name(finalizer, "spec.finalizers")


def node(obj: Json, old: Json | None) -> Problems:
    spec = rules.part(obj, "spec")
    seen: set[tuple[object, object]] = set()
    for where, taint in rules.each(spec.get("taints"), "metadata.taints"):
        yield from rules.well_formed(str(taint.get("key") or ""), f"{where}.key", names.qualified)
        yield from rules.well_formed(str(taint.get("value") or ""), f"{where}.value", names.label_value)
        yield from rules.one_of(taint.get("effect") or "", f"{where}.effect", placement.EFFECTS)
        key = (taint.get("key"), taint.get("effect"))
        if key in seen:
            shown = wording.duplicate(where, taint)
            yield Problem(shown.reason, where, f"{shown.message}: taints must be unique by key and effect pair")
        seen.add(key)
    for index, address_range in enumerate(spec.get("podCIDRs") or []):
        yield from rules.well_formed(address_range, f"spec.podCIDRs[{index}]", names.ip_range)
    for kind in ("capacity", "allocatable"):
        for name, amount in rules.part(rules.part(obj, "status"), kind).items():
            yield from resources.non_negative(amount, f"status.{kind}.{name}")
    if old is not None:
        yield from _node_update(spec, rules.part(old, "spec"))


def _node_update(new: Json, old: Json) -> Problems:
    if old.get("podCIDRs") and new.get("podCIDRs") != old["podCIDRs"]:
        rule = 'node updates may not change podCIDR except from "" to valid'
        yield wording.forbidden("spec.podCIDRs", rule)
    if old.get("providerID") and new.get("providerID") != old["providerID"]:
        rule = 'node updates may not change providerID except from "" to valid'
        yield wording.forbidden("spec.providerID", rule)


def lease(obj: Json, old: Json | None) -> Problems:
    spec = rules.part(obj, "spec")
    seconds = spec.get("leaseDurationSeconds")
    if isinstance(seconds, int) and seconds <= 0:
        yield wording.invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0")
    yield from rules.at_least(spec.get("leaseTransitions"), "spec.leaseTransitions")


def core_event(obj: Json, old: Json | None) -> Problems:
    yield from _subject(obj, "involvedObject")


def _subject(obj: Json, name: str) -> Problems:
    mine = rules.part(obj, "metadata").get("namespace") or ""
    about = rules.part(obj, name).get("namespace") or ""
    # What has no namespace is spoken of in `default`.
    if about != mine and not (about == "" and mine == "default"):
        yield wording.invalid("involvedObject.namespace", about, "does not match event.namespace")


_LONGEST_REASON = 128


def event(obj: Json, old: Json | None) -> Problems:
    """Of the newer API, which asks for more."""
    if old is not None:
        return
    yield from _subject(obj, "regarding")
    if not obj.get("eventTime"):
        yield wording.required("eventTime")
        yield from _event_type(obj)
        return
    for name in ("reportingController", "reportingInstance", "action", "reason"):
        if not obj.get(name):
            yield wording.required(name)
    for name in ("reportingInstance", "action", "reason"):
        if len(str(obj.get(name) or "")) > _LONGEST_REASON:
            yield wording.invalid(name, "", f"can have at most {_LONGEST_REASON} characters")
    yield from _event_type(obj)


def _event_type(obj: Json) -> Problems:
    kind = str(obj.get("type") or "")
    if kind not in ("Normal", "Warning"):
        yield wording.invalid("type", "", f"has invalid value: {kind}")


def runtime_class(obj: Json, old: Json | None) -> Problems:
    yield from rules.well_formed(str(obj.get("handler") or ""), "handler", names.label)
    if old is not None:
        yield from rules.unchanged(obj.get("handler"), old.get("handler"), "handler")


def storage_class(obj: Json, old: Json | None) -> Problems:
    if not obj.get("provisioner"):
        yield wording.required("provisioner")
    if old is not None:
        for name in ("provisioner", "parameters", "reclaimPolicy", "volumeBindingMode"):
            if obj.get(name) != old.get(name):
                yield wording.forbidden(name, f"updates to {name} are forbidden.")
