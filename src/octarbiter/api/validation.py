"""Which mistakes are in this object, all of them, and where?

One validator for all kinds of ours and all who ask: the command line, the webhook, the controllers. It works on plain
JSON, so that unknown fields and wrong types are found as well. First every field is held against the tree of `schema`;
then come the rules that relate several fields, of `taskset_checks` and `arbitrator_checks`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from octarbiter.api import arbitrator_checks, defaults, facts, fieldcheck, kinds, schema, taskset_checks
from octarbiter.api.errors import FieldProblem
from octarbiter.api.fieldcheck import as_object
from octarbiter.api.kinds import Kind
from octarbiter.api.meta import Json

_TOP = ("apiVersion", "kind", "metadata", "spec", "status")
_RULES: dict[str, Callable[[Json], Iterator[FieldProblem]]] = {
    "TaskSet": taskset_checks.problems,
    "Queue": arbitrator_checks.queue_problems,
    "QueueJob": arbitrator_checks.queuejob_problems,
}
_ANY, _STRING = schema.Node(type="any"), schema.Node(type="string")
_STRINGS = schema.Node(type="object", values=_STRING)
_METADATA = schema.Node(
    type="object",
    fields={
        "name": _STRING,
        "generateName": _STRING,
        "namespace": _STRING,
        "labels": _STRINGS,
        "annotations": _STRINGS,
        "finalizers": _ANY,
        "ownerReferences": _ANY,
        "uid": _ANY,
        "resourceVersion": _ANY,
        "generation": _ANY,
        "creationTimestamp": _ANY,
        "deletionTimestamp": _ANY,
        "deletionGracePeriodSeconds": _ANY,
        "selfLink": _ANY,
        "managedFields": _ANY,
    },
)
_GENERATED_SUFFIX = "xxxxx"
"""Stands for the five characters that the API server appends to `generateName`."""


def validate(obj: Json) -> list[FieldProblem]:
    return list(_problems(defaults.with_defaults(obj)))


def validate_update(old: Json, new: Json, status: Json | None) -> list[FieldProblem]:
    """The mistakes in `new` itself and the changes that are not allowed; `status` is what the controller last wrote."""
    problems = validate(new)
    kind = kinds.meant(new)
    if kind is not None:
        before, after = (as_object(as_object(defaults.with_defaults(obj)).get("spec")) for obj in (old, new))
        problems += fieldcheck.changes(kind.spec, before, after, "spec")
        if kind is kinds.TASKSET:
            problems += taskset_checks.changes(before, after, as_object(status))
    return problems


def _problems(obj: Any) -> Iterator[FieldProblem]:
    if not isinstance(obj, dict):
        yield FieldProblem("", f"must be an object, is {fieldcheck.shown(obj)}")
        return
    kind = kinds.meant(obj)
    if kind is None:
        known = ", ".join(f"{each.kind} of {each.api_version}" for each in kinds.ALL)
        was = (
            f", is {fieldcheck.shown(obj['kind'])} of {fieldcheck.shown(obj.get('apiVersion'))}"
            if "kind" in obj
            else ""
        )
        yield FieldProblem("kind", f"must be one of {known}{was}")
        return
    yield from fieldcheck.unknown(obj, _TOP, "")
    for name, expected in (("apiVersion", kind.api_version), ("kind", kind.kind)):
        if name not in obj:
            yield FieldProblem(name, f"is required: {expected}")
        elif obj[name] != expected:
            yield FieldProblem(name, f"must be {expected}, is {fieldcheck.shown(obj[name])}")
    yield from _metadata_problems(kind, obj.get("metadata"))
    if "spec" not in obj:
        yield FieldProblem("spec", "is required")
        return
    yield from fieldcheck.problems(kind.spec, obj["spec"], "spec")
    yield from _RULES[kind.struct](obj)


def _metadata_problems(kind: Kind, metadata: Any) -> Iterator[FieldProblem]:
    if isinstance(metadata, dict):
        # The server takes a null here for absent.
        metadata = {name: value for name, value in metadata.items() if value is not None}
    if metadata is not None:
        yield from fieldcheck.problems(_METADATA, metadata, "metadata")
    name, prefix = as_object(metadata).get("name", ""), as_object(metadata).get("generateName", "")
    if name == "" and prefix == "":
        yield FieldProblem("metadata.name", "is required")
    elif name == "":
        yield from _name_problems(kind, prefix, "metadata.generateName", generated=_GENERATED_SUFFIX)
    else:
        yield from _name_problems(kind, name, "metadata.name", generated="")


def _name_problems(kind: Kind, name: Any, path: str, generated: str) -> Iterator[FieldProblem]:
    if not isinstance(name, str):
        return
    form = facts.DNS_LABEL if kind.no_dots_because else facts.DNS_NAME
    if not fieldcheck.matches(form.pattern, name + generated):
        dots = f" (no dots, because {kind.no_dots_because})" if "." in name and kind.no_dots_because else ""
        yield FieldProblem(path, f"must be {form.words}{dots}, is {fieldcheck.shown(name)}")
    if (length := len(name + generated)) > kind.max_name:
        because = f", because {kind.name_because}" if kind.name_because else ""
        most, has = (count - len(generated) for count in (kind.max_name, length))
        yield FieldProblem(path, f"must have at most {most} characters{because}; has {has}")
