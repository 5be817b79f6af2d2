"""Which rules between the fields of a Queue or a QueueJob are broken? In Python what `rules` states in CEL, and more.

Amounts are compared here only: on older servers it would cost more than CEL may. A rule looks only at values whose own
form is right: one mistake is reported once. What needs other objects (parents that exist, policies that are known, one
queue per namespace) is not asked here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from octarbiter.api import fieldcheck, kinds, resources, selectors
from octarbiter.api.errors import FieldProblem, Refused
from octarbiter.api.fieldcheck import as_list, as_object, as_whole
from octarbiter.api.meta import Json
from octarbiter.api.resources import Amounts


def queue_problems(queue: Json) -> Iterator[FieldProblem]:
    metadata, spec = as_object(queue.get("metadata")), as_object(queue.get("spec"))
    name, namespace, parent = metadata.get("name"), metadata.get("namespace"), spec.get("parent")
    if parent and parent in (name, f"{namespace}/{name}"):
        yield FieldProblem("spec.parent", "a queue cannot be its own parent")
    guarantee, deserved, capability = (
        _amounts(as_object(spec.get(part)).get("resources")) for part in ("guarantee", "deserved", "capability")
    )
    yield from _at_most(guarantee, deserved, "spec.guarantee", "what is promised in deserved")
    yield from _at_most(guarantee, capability, "spec.guarantee", "capability")
    yield from _at_most(deserved, capability, "spec.deserved", "capability")
    for index, each in enumerate(as_list(as_object(spec.get("namespaceSelector")).get("matchExpressions"))):
        requirement = as_object(each)
        if requirement.get("operator") not in selectors.OPERATORS:
            continue
        if (requirement["operator"] in ("In", "NotIn")) != bool(requirement.get("values")):
            where = f"spec.namespaceSelector.matchExpressions[{index}].values"
            yield FieldProblem(where, "In and NotIn need values, Exists and DoesNotExist must not have any")


def queuejob_problems(job: Json) -> Iterator[FieldProblem]:
    spec = as_object(job.get("spec"))
    least, count = as_whole(spec.get("minResourceno")), as_whole(spec.get("resourceno"))
    if least is not None and count is not None and count >= 1 and least > count:
        yield FieldProblem(
            "spec.minResourceno", f"must be at most resourceno, {count}, or the job could never start; is {least}"
        )
    yield from _unit_problems(as_object(spec.get("resourceunit")), "spec.resourceunit")


def _unit_problems(unit: Json, path: str) -> Iterator[FieldProblem]:
    beside = {name: value for name, value in unit.items() if name != "resources"}
    if "resources" in unit and beside:
        yield FieldProblem(path, "the amounts stand either in resources or beside it, not both")
        return
    listed = kinds.QUEUEJOB.spec.fields["resourceunit"].fields
    if others := {name: value for name, value in beside.items() if name not in listed}:
        yield from fieldcheck.problems(listed["resources"], others, path)
    stated = beside or as_object(unit.get("resources"))
    amounts = _amounts(stated)
    if stated and len(amounts) == len(stated) and not any(amounts.values()):
        yield FieldProblem(path, "asks for nothing: at least one amount must be above 0")


def _at_most(lower: Amounts, upper: Amounts, path: str, what: str) -> Iterator[FieldProblem]:
    for name, amount in lower.items():
        if name in upper and amount > upper[name]:
            most, has = (resources.shown(name, number) for number in (upper[name], amount))
            yield FieldProblem(f"{path}.resources[{name}]", f"must be at most {what}, {most}; is {has}")


def _amounts(quantities: Any) -> Amounts:
    """Of what is right; the rest is a mistake of its own."""
    found: Amounts = {}
    for name, value in as_object(quantities).items():
        if isinstance(value, str) or as_whole(value) is not None:
            try:
                found |= resources.asked({name: value})
            except Refused:
                continue
    return found
