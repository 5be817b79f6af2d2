"""Which mistakes are in this TaskSet, all of them, and where?

Works on plain JSON, so that unknown fields and wrong types are found as well. First every field is held against the
tree of `schema`; then come the rules that relate several fields, the ones that `rules` states in CEL. A rule looks only
at values whose own form is right: one mistake is reported once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from octarbiter.api import defaults, fieldcheck, rules, schema, taskset
from octarbiter.api.errors import FieldProblem
from octarbiter.api.meta import Json

_TOP = ("apiVersion", "kind", "metadata", "spec", "status")
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
_LABEL = re.compile(schema.DNS_LABEL)


def validate_taskset(obj: Json) -> list[FieldProblem]:
    return list(_problems(defaults.with_defaults(obj)))


def validate_update(old: Json, new: Json, status: Json | None) -> list[FieldProblem]:
    """The mistakes in `new` itself and the changes that are not allowed; `status` is what the controller last wrote."""
    problems = validate_taskset(new)
    before, after = (_object(_object(defaults.with_defaults(obj)).get("spec")) for obj in (old, new))
    problems += fieldcheck.changes(schema.SPEC, before, after, "spec")
    problems += _changed_roles(_named_roles(before), _named_roles(after))
    problems += _resized_after_the_end(_named_roles(before), _named_roles(after), _object(status))
    return problems


def _problems(obj: Any) -> Iterator[FieldProblem]:
    if not isinstance(obj, dict):
        yield FieldProblem("", f"must be an object, is {fieldcheck.shown(obj)}")
        return
    yield from fieldcheck.unknown(obj, _TOP, "")
    for name, expected in (("apiVersion", taskset.API_VERSION), ("kind", taskset.KIND)):
        if name not in obj:
            yield FieldProblem(name, f"is required: {expected}")
        elif obj[name] != expected:
            yield FieldProblem(name, f"must be {expected}, is {fieldcheck.shown(obj[name])}")
    yield from _metadata_problems(obj.get("metadata"))
    if "spec" not in obj:
        yield FieldProblem("spec", "is required")
        return
    yield from fieldcheck.problems(schema.SPEC, obj["spec"], "spec")
    if isinstance(obj["spec"], dict):
        yield from _spec_rules(obj["spec"])


def _metadata_problems(metadata: Any) -> Iterator[FieldProblem]:
    if isinstance(metadata, dict):
        # The server takes a null here for absent.
        metadata = {name: value for name, value in metadata.items() if value is not None}
    if metadata is not None:
        yield from fieldcheck.problems(_METADATA, metadata, "metadata")
    name, prefix = _object(metadata).get("name", ""), _object(metadata).get("generateName", "")
    if name == "" and prefix == "":
        yield FieldProblem("metadata.name", "is required")
    elif name == "":
        yield from _name_problems(prefix, "metadata.generateName", generated=_GENERATED_SUFFIX)
    else:
        yield from _name_problems(name, "metadata.name", generated="")


def _name_problems(name: Any, path: str, generated: str) -> Iterator[FieldProblem]:
    if not isinstance(name, str):
        return
    if not _LABEL.fullmatch(name + generated):
        dots = " (no dots, because it is also a host name)" if "." in name else ""
        yield FieldProblem(path, f"must be {schema.DNS_LABEL_WORDS}{dots}, is {fieldcheck.shown(name)}")
    if (length := len(name + generated)) > taskset.MAX_NAME:
        most = taskset.MAX_NAME - len(generated)
        yield FieldProblem(
            path,
            f"must have at most {most} characters, because it is also a label and a Service name; "
            f"has {length - len(generated)}",
        )


def _spec_rules(spec: Json) -> Iterator[FieldProblem]:
    roles = [_object(role) for role in _list(spec.get("roles"))[: taskset.MAX_ROLES]]
    for index, role in enumerate(roles):
        yield from _role_rules(role, f"spec.roles[{index}]")
    yield from _dependency_rules(_named_roles(spec))
    gang, sizes = _whole(spec.get("minAvailable")), [_whole(role.get("replicas")) for role in roles]
    total = sum(size or 0 for size in sizes)
    if gang is not None and roles and None not in sizes and gang > total:
        yield FieldProblem("spec.minAvailable", f"must be at most the sum of all replicas, {total}; is {gang}")


def _role_rules(role: Json, path: str) -> Iterator[FieldProblem]:
    name, replicas = role.get("name"), _whole(role.get("replicas"))
    if isinstance(name, str):
        yield from _role_name_problems(name, replicas, f"{path}.name")
    yield from _completion_problems(_object(role.get("completionPolicy")), replicas, f"{path}.completionPolicy")
    if isinstance(name, str) and name in _list(role.get("dependsOn")):
        yield FieldProblem(f"{path}.dependsOn", "a role cannot depend on itself")
    for index, rule in enumerate(_list(_object(role.get("failurePolicy")).get("rules"))):
        if isinstance(rule, dict) and ("exitCodes" in rule) == ("podReasons" in rule):
            has = "both" if "exitCodes" in rule else "neither"
            where = f"{path}.failurePolicy.rules[{index}]"
            yield FieldProblem(where, f"needs exactly one of exitCodes and podReasons, has {has}")


def _role_name_problems(name: str, replicas: int | None, path: str) -> Iterator[FieldProblem]:
    if not _LABEL.fullmatch(name):
        yield FieldProblem(path, f"must be {schema.DNS_LABEL_WORDS}, is {fieldcheck.shown(name)}")
    last = f"-{replicas - 1}" if replicas is not None and replicas >= 1 else "-0"
    if (length := len(name) + len(last)) > schema.MAX_HOSTNAME:
        yield FieldProblem(
            path,
            f"the host name <name>{last} must have at most {schema.MAX_HOSTNAME} characters, would have {length}",
        )


def _completion_problems(policy: Json, replicas: int | None, path: str) -> Iterator[FieldProblem]:
    succeeded, failed = _whole(policy.get("minSucceeded")), _whole(policy.get("maxFailed"))
    if failed == 0:
        yield FieldProblem(
            f"{path}.maxFailed",
            "0 would fail the role before it starts; 1 means the first failure fails it, -1 never by count",
        )
    if replicas is None or replicas < 1:
        return
    if succeeded is not None and succeeded > replicas:
        yield FieldProblem(
            f"{path}.minSucceeded",
            f"must be at most replicas, {replicas}, or the role could never succeed; is {succeeded}",
        )
    if failed is not None and failed > replicas:
        yield FieldProblem(
            f"{path}.maxFailed", f"must be at most replicas, {replicas}; -1 means never by count; is {failed}"
        )


def _dependency_rules(roles: list[tuple[int, Json]]) -> Iterator[FieldProblem]:
    names = {role["name"]: index for index, role in roles}
    waits_for: dict[str, list[str]] = {}
    for index, role in roles:
        wanted = [name for name in _list(role.get("dependsOn")) if isinstance(name, str)]
        for name in wanted:
            if name not in names:
                hint = fieldcheck.suggestion(name, names)
                path = f"spec.roles[{index}].dependsOn"
                yield FieldProblem(path, f"no role is called {fieldcheck.shown(name)}{hint}")
        waits_for[role["name"]] = [name for name in wanted if name in names and name != role["name"]]
    if circle := _circle(waits_for):
        path = f"spec.roles[{names[circle[0]]}].dependsOn"
        yield FieldProblem(path, f"roles wait for each other: {' -> '.join([*circle, circle[0]])}")


def _circle(waits_for: dict[str, list[str]]) -> list[str]:
    """One circle, or nothing. Take away whoever waits for nobody until only the entangled are left, then follow one."""
    left = dict(waits_for)
    while free := [name for name, others in left.items() if not any(other in left for other in others)]:
        for name in free:
            del left[name]
    if not left:
        return []
    walk = [next(iter(left))]
    while (following := next(other for other in left[walk[-1]] if other in left)) not in walk:
        walk.append(following)
    return walk[walk.index(following) :]


def _changed_roles(before: list[tuple[int, Json]], after: list[tuple[int, Json]]) -> Iterator[FieldProblem]:
    were, are = ([role["name"] for _, role in roles] for roles in (before, after))
    if were != are:
        listed = [", ".join(fieldcheck.shown(name) for name in names) for names in (were, are)]
        yield FieldProblem(
            "spec.roles", f"roles cannot be added, removed, renamed or reordered: were {listed[0]}; are {listed[1]}"
        )


def _resized_after_the_end(
    before: list[tuple[int, Json]], after: list[tuple[int, Json]], status: Json
) -> Iterator[FieldProblem]:
    seen = [_object(role) for role in _list(status.get("roleStatus"))]
    finished = [role.get("name") for role in seen if role.get("phase") in rules.FINISHED_PHASES]
    sizes = {role["name"]: role.get("replicas") for _, role in before}
    for index, role in after:
        name = role["name"]
        if name in finished and name in sizes and sizes[name] != role.get("replicas"):
            yield FieldProblem(f"spec.roles[{index}].replicas", f"cannot be changed: role {name} has finished")


def _named_roles(spec: Json) -> list[tuple[int, Json]]:
    """With their indices; without those whose name is no string, which is a mistake of its own."""
    roles = _list(spec.get("roles"))[: taskset.MAX_ROLES]
    return [(index, role) for index, role in enumerate(roles) if isinstance(_object(role).get("name"), str)]


def _object(value: Any) -> Json:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _whole(value: Any) -> int | None:
    """Numbers that no field allows, and Python would refuse to print, are as good as none."""
    is_whole = isinstance(value, int) and not isinstance(value, bool) and value.bit_length() <= 64
    return value if is_whole else None
