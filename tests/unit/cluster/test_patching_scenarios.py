"""Patches, applies and owners are what a real kube-apiserver made of them: see tools/record_patches.py."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from octarbiter.api import crd, kinds
from octarbiter.cluster.apiserver import schemas, structural
from octarbiter.cluster.apiserver.patching import (
    apply,
    errors,
    json_patch,
    managed_fields,
    merge_patch,
    strategic,
    values,
)
from octarbiter.cluster.apiserver.patching.field_sets import Path as FieldPath
from octarbiter.cluster.apiserver.schemas import forms
from octarbiter.cluster.apiserver.types import Type

Json = dict[str, Any]

RECORDED: Json = json.loads(Path(__file__).with_name("patching_scenarios.json").read_text())
SCENARIOS: list[Json] = RECORDED["scenarios"]
BUILT_IN = {"ConfigMap": "", "Pod": "", "Service": "", "Deployment": "apps"}
CUSTOM = {"Gadget": RECORDED["gadgets"], "TaskSet": crd.render(kinds.TASKSET)}
WITHOUT_STATUS = {"ConfigMap"}
SET_BY_THE_SERVER = ("managedFields", "resourceVersion", "generation", "uid", "creationTimestamp", "namespace")


def type_of(kind: str) -> Type:
    if kind in CUSTOM:
        return structural.parse(CUSTOM[kind]["spec"]["versions"][0]["schema"]["openAPIV3Schema"])
    found = schemas.type_of(BUILT_IN[kind], "v1", kind)
    assert found is not None
    return found


def api_version_of(kind: str) -> str:
    if kind in CUSTOM:
        spec = CUSTOM[kind]["spec"]
        return f"{spec['group']}/{spec['versions'][0]['name']}"
    return "/".join(filter(None, (BUILT_IN[kind], "v1")))


def ignored_by(kind: str, subresource: str) -> list[FieldPath]:
    return managed_fields.reset_by(subresource, has_status=kind not in WITHOUT_STATUS)


def steps() -> Iterator[Any]:
    for scenario in SCENARIOS:
        live = scenario["start"]
        for number, step in enumerate(scenario["steps"]):
            yield pytest.param(scenario["kind"], live, step, id=f"{scenario['name']} {number}".replace(" ", "-"))
            if step["code"] < 300:
                live = step["result"]


def carried_out(kind: str, live: Json | None, step: Json) -> Json:
    """What we make of a step, with managedFields."""
    type = type_of(kind)
    writer = {
        "manager": step.get("manager", ""),
        "api_version": api_version_of(kind),
        "subresource": step.get("subresource", ""),
        "now": step["now"],
        "ignored": ignored_by(kind, step.get("subresource", "")),
    }
    if step["how"] == "apply":
        if refusal := errors.options(writer["manager"], force=False, applying=True):
            raise refusal
        made = apply.apply(live, step["body"], type, force=step.get("force", False), **writer)
        settle(made, kind)
        if live is not None and "status" in live and not writer["subresource"]:
            made["status"] = live["status"]
        return made
    assert live is not None
    match step["how"]:
        case "json":
            after = json_patch.apply(live, step["body"])
        case "merge":
            after = merge_patch.apply(live, step["body"])
        case "strategic":
            after = strategic.apply(live, step["body"], type)
        case _:
            after = values.copied(step["body"])
    settle(after, kind)
    record = managed_fields.updated(live, after, type, **writer)
    return {**after, "metadata": {**after["metadata"], "managedFields": record}}


def settle(obj: Json, kind: str) -> None:
    """What the server does to every object it reads."""
    if kind in CUSTOM:
        structural.default(obj, type_of(kind))
        return
    record = managed_fields.record_of(obj)
    forms.prune(obj, type_of(kind))
    if record == []:  # an empty list resets the record, none at all does not
        obj["metadata"]["managedFields"] = record


def own(obj: Json) -> Json:
    """What is the client's of an object."""
    metadata = {name: value for name, value in obj["metadata"].items() if name not in SET_BY_THE_SERVER}
    return {name: value for name, value in {**obj, "metadata": metadata}.items() if value not in (None, {})}


def contained(ours: Any, theirs: Any) -> bool:
    """Whether the server has all of it; what it has more are defaults of built-in kinds."""
    if isinstance(ours, dict):
        return isinstance(theirs, dict) and all(contained(item, theirs.get(name)) for name, item in ours.items())
    if isinstance(ours, list):
        return isinstance(theirs, list) and len(ours) == len(theirs) and all(map(contained, ours, theirs))
    return bool(ours == theirs)


SUCCESSES = [case for case in steps() if case.values[2]["code"] < 300]
REFUSALS = [case for case in steps() if case.values[2]["code"] >= 300]
REFUSED_FOR_ITS_OWN_NULLS = [
    case for case in REFUSALS if 'of type object: "null"' in case.values[2]["result"]["message"]
]


@pytest.mark.parametrize(("kind", "live", "step"), SUCCESSES)
def test_the_object_is_what_the_real_server_made(kind: str, live: Json | None, step: Json) -> None:
    ours = own(carried_out(kind, live, step))
    theirs = own(step["result"])

    assert contained(ours, theirs) if step["how"] == "apply" and kind in BUILT_IN else ours == theirs


@pytest.mark.parametrize(("kind", "live", "step"), SUCCESSES)
def test_the_owners_are_who_the_real_server_says(kind: str, live: Json | None, step: Json) -> None:
    ours = carried_out(kind, live, step)
    expected = step["result"]["metadata"].get("managedFields", [])

    if live is not None and managed_fields.same_but_for_times(live, ours):
        ours = live

    found = ours["metadata"].get("managedFields", [])
    assert found == expected
    if kind in BUILT_IN:  # what custom objects hold comes in the order of the alphabet
        assert json.dumps(found) == json.dumps(expected), "in another order"


@pytest.mark.parametrize(("kind", "live", "step"), REFUSED_FOR_ITS_OWN_NULLS)
def test_what_the_real_server_makes_null_is_empty_and_therefore_valid(kind: str, live: Json | None, step: Json) -> None:
    made = carried_out(kind, live, step)

    assert structural.validate(made, type_of(kind)) == []


@pytest.mark.parametrize(("kind", "live", "step"), [case for case in REFUSALS if case not in REFUSED_FOR_ITS_OWN_NULLS])
def test_what_the_real_server_refuses_is_refused_in_its_words(kind: str, live: Json | None, step: Json) -> None:
    expected = step["result"]

    with pytest.raises((errors.BadPatch, errors.ApplyConflict)) as raised:
        carried_out(kind, live, step)

    refusal = raised.value
    if isinstance(refusal, errors.ApplyConflict):
        assert step["code"] == 409
        assert refusal.message == expected["message"]
        assert by_text(refusal.causes) == by_text(expected["details"]["causes"])
    else:
        assert (refusal.code, refusal.message) == (step["code"], expected["message"])
        assert refusal.reason == expected.get("reason", "")
        assert refusal.details == expected.get("details", {})
        if refusal.message == errors.unprocessable("").message:
            assert refusal.hint, "we say what is wrong beside it, the real server does not"


def by_text(causes: list[Json]) -> list[Json]:
    return sorted(causes, key=lambda cause: (cause["message"], cause["field"]))


# To pods and services admission and allocation add what nobody owns.
CREATED_AS_SENT = [case for case in SCENARIOS if case["start"] and case["kind"] not in ("Pod", "Service")]


@pytest.mark.parametrize("scenario", CREATED_AS_SENT, ids=lambda case: case["name"])
def test_whoever_creates_an_object_owns_what_they_sent(scenario: Json) -> None:
    kind, start = scenario["kind"], scenario["start"]
    made = managed_fields.without_record(start)

    found = managed_fields.updated(
        None,
        made,
        type_of(kind),
        manager="creator",
        api_version=api_version_of(kind),
        subresource="",
        now=start["metadata"]["managedFields"][0]["time"],
        ignored=ignored_by(kind, ""),
    )

    assert found == start["metadata"]["managedFields"]
