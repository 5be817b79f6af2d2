"""Is the metadata of an object in order?"""

from __future__ import annotations

from collections.abc import Callable

from octarbiter.cluster.apiserver.structural import wording
from octarbiter.cluster.apiserver.validation import names, rules
from octarbiter.cluster.apiserver.validation.problems import Problem
from octarbiter.cluster.apiserver.validation.rules import Json, Problems

_MOST_ANNOTATION_BYTES = 256 * 1024
_CHECKED = ("labels", "annotations", "finalizers", "ownerReferences")
_STANDARD_FINALIZERS = ("kubernetes", "orphan", "foregroundDeletion")

NameRule = Callable[[str], list[str]]


def problems(obj: Json, name_rule: NameRule) -> Problems:
    found = rules.part(obj, "metadata")
    if prefix := found.get("generateName"):
        # What follows a hyphen at its end is not known yet.
        yield from (
            wording.invalid("metadata.generateName", prefix, wrong) for wrong in name_rule(prefix.removesuffix("-"))
        )
    name = found.get("name")
    if not name:
        yield wording.required("metadata.name", "name or generateName is required")
    else:
        yield from rules.well_formed(str(name), "metadata.name", name_rule)
    yield from rules.labels(found.get("labels"), "metadata.labels")
    yield from _annotations(found.get("annotations"), "metadata.annotations")
    yield from _owners(found)
    yield from _finalizers(found.get("finalizers") or [])


def is_as_before(obj: Json, old: Json) -> bool:
    """Nothing in the metadata has changed that could be wrong now."""
    after, before = rules.part(obj, "metadata"), rules.part(old, "metadata")
    return all(after.get(name) == before.get(name) for name in _CHECKED)


def of_template(template: Json, path: str) -> Problems:
    found = rules.part(template, "metadata")
    yield from rules.labels(found.get("labels"), f"{path}.labels")
    yield from _annotations(found.get("annotations"), f"{path}.annotations")


def _annotations(value: object, path: str) -> Problems:
    found = value if isinstance(value, dict) else {}
    for key in found:
        # Old annotations have capitals in their prefixes, so these are forgiven.
        for wrong in names.qualified(key.lower()):
            yield wording.invalid(path, key, wrong)
    size = sum(len(key.encode()) + len(str(text).encode()) for key, text in found.items())
    if size > _MOST_ANNOTATION_BYTES:
        yield wording.too_long(path, _MOST_ANNOTATION_BYTES)


def _owners(metadata: Json) -> Problems:
    path = "metadata.ownerReferences"
    controllers: list[str] = []
    owners = metadata.get("ownerReferences") or []
    for _, owner in rules.each(owners, path):
        api_version = str(owner.get("apiVersion") or "")
        if not api_version or api_version.count("/") > 1 or api_version.endswith("/"):
            yield wording.invalid(f"{path}.apiVersion", api_version, "version must not be empty")
        for name in ("kind", "name", "uid"):
            if not owner.get(name):
                yield wording.invalid(f"{path}.{name}", "", "must not be empty")
        if (api_version, owner.get("kind")) == ("v1", "Event"):
            yield wording.invalid(path, owner, "/v1, Kind=Event is disallowed from being an owner")
        if owner.get("controller"):
            controllers.append(f"{owner.get('kind')}/{owner.get('name')}")
    if len(controllers) > 1:
        rule = 'Only one reference can have Controller set to true. Found "true" in references for '
        order = ("apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion")
        shown = [{name: owner[name] for name in order if name in owner} for _, owner in rules.each(owners, path)]
        yield wording.invalid(path, wording.in_order(shown), rule + f"{controllers[0]} and {controllers[1]}")


def _finalizers(finalizers: list[str]) -> Problems:
    path = "metadata.finalizers"
    for finalizer in finalizers:
        yield from rules.well_formed(finalizer, path, names.qualified)
    if "orphan" in finalizers and "foregroundDeletion" in finalizers:
        rule = "finalizer orphan and foregroundDeletion cannot be both set"
        yield wording.invalid(path, finalizers, rule)
    for index, finalizer in enumerate(finalizers):
        yield from finalizer_name(finalizer, f"{path}[{index}]")


def is_of_finalizers(problem: Problem) -> bool:
    return problem.field.startswith("metadata.finalizers[")


def finalizer_name(finalizer: str, path: str) -> Problems:
    if "/" not in finalizer and finalizer not in _STANDARD_FINALIZERS:
        rule = "name is neither a standard finalizer name nor is it fully qualified"
        yield wording.invalid(path, finalizer, rule)
