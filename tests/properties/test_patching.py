"""Whatever is patched with whatever: the result is new, and a refusal is a refusal."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from patching_values import KIND, anything, kinds, names, objects, well_formed

from octarbiter.cluster.apiserver.patching import apply, errors, json_patch, managed_fields, merge_patch, strategic

Json = dict[str, Any]

UNTYPED = ("nested", "blob")
"""What a strategic merge patch cannot merge."""

pointers = st.lists(names | st.sampled_from(["spec", "parts", "0", "-1", "-", "~0", "~1"]), max_size=4).map(
    lambda tokens: "".join(f"/{token}" for token in tokens)
)
operations = st.lists(
    st.fixed_dictionaries(
        {"op": st.sampled_from(["add", "remove", "replace", "move", "copy", "test"]), "path": pointers},
        optional={"from": pointers, "value": anything},
    )
    | anything,
    max_size=4,
)


def applied(live: Json | None, body: Any, manager: str = "one", force: bool = True) -> Json:
    return apply.apply(
        live, body, KIND, manager=manager, api_version="v1", subresource="", force=force, now="2026-01-01T00:00:00Z"
    )


def updated(before: Json | None, after: Json, manager: str = "one") -> list[Json]:
    return managed_fields.updated(
        before, after, KIND, manager=manager, api_version="v1", subresource="", now="2026-01-01T00:00:00Z"
    )


def recorded(obj: Json) -> Json:
    """With the one owner a new object has."""
    obj = {**obj, "metadata": {**obj["metadata"], "annotations": {"made": "here"}}}
    return {**obj, "metadata": {**obj["metadata"], "managedFields": updated(None, obj, "creator")}}


PATCHES: dict[str, Callable[[Json, Any], Any]] = {
    "json": json_patch.apply,
    "merge": merge_patch.apply,
    "strategic": lambda doc, patch: strategic.apply(doc, patch, KIND),
    "apply": lambda doc, patch: applied(doc, patch),
    "update": lambda doc, patch: updated(doc, patch) if isinstance(patch, dict) else None,
}


def mutables(value: Any) -> set[int]:
    if isinstance(value, dict):
        return {id(value)}.union(*(mutables(item) for item in value.values()))
    if isinstance(value, list):
        return {id(value)}.union(*(mutables(item) for item in value))
    return set()


@pytest.mark.parametrize("how", PATCHES)
@given(doc=objects | well_formed, patch=operations | objects | well_formed | anything)
@settings(max_examples=150)
def test_no_patch_changes_what_it_is_given_or_fails_otherwise_than_declared(how: str, doc: Json, patch: Any) -> None:
    before = copy.deepcopy((doc, patch))
    try:
        result = PATCHES[how](doc, patch)
    except (errors.BadPatch, errors.ApplyConflict):
        result = None

    assert (doc, patch) == before
    assert mutables(result).isdisjoint(mutables(doc) | mutables(patch))


@given(objects, objects)
def test_a_merge_patch_twice_is_the_patch_once(doc: Json, patch: Json) -> None:
    once = merge_patch.apply(doc, patch)

    assert merge_patch.apply(once, patch) == once


flat = kinds("name").map(
    lambda obj: {
        **obj,
        "spec": {name: obj.get("spec", {})[name] for name in obj.get("spec", {}) if name not in UNTYPED},
    }
)


@given(flat, flat)
def test_a_strategic_patch_without_directives_twice_is_the_patch_once(doc: Json, patch: Json) -> None:
    once = strategic.apply(doc, patch, KIND)

    assert strategic.apply(once, patch, KIND) == once


@given(well_formed, well_formed)
def test_applying_twice_is_applying_once(live: Json, body: Json) -> None:
    once = applied(recorded(live), body)
    twice = applied(once, body)

    assert managed_fields.same_but_for_times(once, twice)
    assert twice == once


@given(st.none() | well_formed, well_formed, well_formed)
def test_what_only_one_manager_ever_applied_goes_when_they_apply_nothing(
    live: Json | None, body: Json, others: Json
) -> None:
    nothing = {"apiVersion": "v1", "kind": "Kind", "metadata": {"name": "probe"}}
    start = applied(live, others, manager="two")

    after = applied(applied(start, body, force=False) if not conflicts(start, body) else start, nothing)

    assert not [entry for entry in after["metadata"].get("managedFields", []) if entry["manager"] == "one"]
    assert contained(others, after)


@given(well_formed, well_formed)
def test_what_is_applied_is_there(live: Json, body: Json) -> None:
    assert contained(body, applied(live, body))


@given(well_formed, well_formed)
def test_an_applier_never_loses_a_field_to_one_who_applies_the_same(first: Json, second: Json) -> None:
    start = applied(None, first)
    if conflicts(start, second):
        return

    after = applied(start, second, manager="two", force=False)

    assert contained(first, after)


@given(well_formed, well_formed)
def test_whoever_writes_owns_what_differs_and_nobody_what_is_gone(before: Json, after: Json) -> None:
    live = recorded(before)
    record = updated(live, {**after, "metadata": {**after["metadata"], "managedFields": None}}, "writer")

    assert {entry["manager"] for entry in record} <= {"creator", "writer"}
    assert updated(live, {**live}, "writer") == live["metadata"]["managedFields"]


def conflicts(live: Json, body: Json) -> bool:
    manager = "one" if live["metadata"].get("managedFields", [{}])[0].get("manager") != "one" else "two"
    try:
        applied(live, body, manager=manager, force=False)
    except errors.ApplyConflict:
        return True
    return False


def contained(body: Any, obj: Any) -> bool:
    """Whether everything of `body` is in `obj`; lists hold its elements, perhaps among others."""
    if isinstance(body, dict):
        return not body or (isinstance(obj, dict) and all(contained(item, obj.get(key)) for key, item in body.items()))
    if isinstance(body, list):
        return not body or (isinstance(obj, list) and all(any(contained(x, y) for y in obj) for x in body))
    return bool(body == obj)
