"""Which rules between the fields of a TaskSet are broken? In Python what `rules` states in CEL.

A rule looks only at values whose own form is right: one mistake is reported once.
"""

from __future__ import annotations

from collections.abc import Iterator

from octarbiter.api import fieldcheck, rules, taskset
from octarbiter.api.errors import FieldProblem
from octarbiter.api.fieldcheck import as_list, as_object, as_whole
from octarbiter.api.meta import Json


def problems(obj: Json) -> Iterator[FieldProblem]:
    spec = as_object(obj.get("spec"))
    roles = [as_object(role) for role in as_list(spec.get("roles"))[: taskset.MAX_ROLES]]
    for index, role in enumerate(roles):
        yield from _role_rules(role, f"spec.roles[{index}]")
    yield from _dependency_rules(_named_roles(spec))
    gang, sizes = as_whole(spec.get("minAvailable")), [as_whole(role.get("replicas")) for role in roles]
    total = sum(size or 0 for size in sizes)
    if gang is not None and roles and None not in sizes and gang > total:
        yield FieldProblem("spec.minAvailable", f"must be at most the sum of all replicas, {total}; is {gang}")


def changes(before: Json, after: Json, status: Json) -> Iterator[FieldProblem]:
    """Of two specs; `status` is what the controller last wrote."""
    yield from _changed_roles(_named_roles(before), _named_roles(after))
    yield from _resized_after_the_end(_named_roles(before), _named_roles(after), status)


def _role_rules(role: Json, path: str) -> Iterator[FieldProblem]:
    name, replicas = role.get("name"), as_whole(role.get("replicas"))
    if isinstance(name, str):
        yield from _role_name_problems(name, replicas, f"{path}.name")
    yield from _completion_problems(as_object(role.get("completionPolicy")), replicas, f"{path}.completionPolicy")
    if isinstance(name, str) and name in as_list(role.get("dependsOn")):
        yield FieldProblem(f"{path}.dependsOn", "a role cannot depend on itself")
    for index, rule in enumerate(as_list(as_object(role.get("failurePolicy")).get("rules"))):
        if isinstance(rule, dict) and ("exitCodes" in rule) == ("podReasons" in rule):
            has = "both" if "exitCodes" in rule else "neither"
            where = f"{path}.failurePolicy.rules[{index}]"
            yield FieldProblem(where, f"needs exactly one of exitCodes and podReasons, has {has}")


def _role_name_problems(name: str, replicas: int | None, path: str) -> Iterator[FieldProblem]:
    last = f"-{replicas - 1}" if replicas is not None and replicas >= 1 else "-0"
    if (length := len(name) + len(last)) > taskset.MAX_HOSTNAME:
        yield FieldProblem(
            path,
            f"the host name <name>{last} must have at most {taskset.MAX_HOSTNAME} characters, would have {length}",
        )


def _completion_problems(policy: Json, replicas: int | None, path: str) -> Iterator[FieldProblem]:
    succeeded, failed = as_whole(policy.get("minSucceeded")), as_whole(policy.get("maxFailed"))
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
        wanted = [name for name in as_list(role.get("dependsOn")) if isinstance(name, str)]
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
    seen = [as_object(role) for role in as_list(status.get("roleStatus"))]
    finished = [role.get("name") for role in seen if role.get("phase") in rules.FINISHED_PHASES]
    sizes = {role["name"]: role.get("replicas") for _, role in before}
    for index, role in after:
        name = role["name"]
        if name in finished and name in sizes and sizes[name] != role.get("replicas"):
            yield FieldProblem(f"spec.roles[{index}].replicas", f"cannot be changed: role {name} has finished")


def _named_roles(spec: Json) -> list[tuple[int, Json]]:
    """With their indices; without those whose name is no string, which is a mistake of its own."""
    roles = as_list(spec.get("roles"))[: taskset.MAX_ROLES]
    return [(index, role) for index, role in enumerate(roles) if isinstance(as_object(role).get("name"), str)]
