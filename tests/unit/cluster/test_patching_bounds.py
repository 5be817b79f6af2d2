"""However large or deep what is asked for: the answer comes soon, and is a refusal in words."""

from __future__ import annotations

from typing import Any

import pytest

from octarbiter.cluster.apiserver.patching import (
    apply,
    errors,
    field_sets,
    json_patch,
    managed_fields,
    merge_patch,
    strategic,
    values,
)
from octarbiter.cluster.apiserver.schemas import nesting
from octarbiter.cluster.apiserver.types import ANYTHING, ListType, Shape, Type

TYPE = Type(shape=Shape.OBJECT, properties={"a": ANYTHING})


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = {"a": value}
    return value


def test_a_json_patch_has_at_most_ten_thousand_operations() -> None:
    step = {"op": "test", "path": "/a", "value": 1}

    assert json_patch.apply({"a": 1}, [step] * 10_000) == {"a": 1}
    with pytest.raises(errors.BadPatch) as refused:
        json_patch.apply({"a": 1}, [step] * 10_001)

    assert refused.value.code == 413
    assert "The allowed maximum operations in a JSON patch is 10000, got 10001" in refused.value.message


def test_copies_that_double_a_list_each_time_are_stopped() -> None:
    doubling = [{"op": "copy", "from": "/a", "path": "/a/-"}] * 100

    with pytest.raises(errors.BadPatch) as refused:
        json_patch.apply({"a": ["x" * 1000]}, doubling)

    assert refused.value.code == 422
    cause = refused.value.hint
    assert cause.startswith("Unable to complete the copy, the accumulated size increase of copy is ")
    assert cause.endswith(f", exceeding the limit {3 * 1024 * 1024}")


def test_moves_cannot_nest_a_document_without_end() -> None:
    steps = []
    for _ in range(2 * values.MAX_DEPTH):
        steps += [
            {"op": "add", "path": "/b", "value": {}},
            {"op": "move", "from": "/a", "path": "/b/a"},
            {"op": "move", "from": "/b", "path": "/a"},
        ]

    with pytest.raises(errors.BadPatch, match="levels deep"):
        json_patch.apply({"a": 1}, steps)


@pytest.mark.parametrize(
    "patch",
    [
        lambda value: json_patch.apply({}, [{"op": "add", "path": "/a", "value": value}]),
        lambda value: json_patch.apply({}, [{"op": "add", "path": "/a" * 5000, "value": 1}]),
        lambda value: json_patch.apply(value, []),
        lambda value: merge_patch.apply({}, value),
        lambda value: merge_patch.apply(value, {}),
        lambda value: strategic.apply({}, value, TYPE),
        lambda value: apply.apply(
            None, value, TYPE, manager="m", api_version="v1", subresource="", force=False, now=""
        ),
    ],
)
def test_documents_of_great_depth_are_refused(patch: Any) -> None:
    with pytest.raises(errors.BadPatch, match="levels deep"):
        patch(nested(5000))


def test_sets_of_fields_of_great_depth_are_refused() -> None:
    raw: Any = {}
    for _ in range(5000):
        raw = {"f:a": raw}

    with pytest.raises(field_sets.BadFields, match="levels deep"):
        field_sets.decode(raw)


def test_long_lists_merge_in_time_that_grows_with_their_length() -> None:
    element = Type(shape=Shape.OBJECT, properties={"name": Type(shape=Shape.STRING)})
    lists = Type(
        shape=Shape.OBJECT,
        properties={
            "named": Type(shape=Shape.LIST, element=element, merge_key="name", patch_strategies=frozenset({"merge"})),
            "plain": Type(shape=Shape.LIST, element=Type(shape=Shape.STRING), patch_strategies=frozenset({"merge"})),
        },
    )
    doc = {"named": [{"name": str(n)} for n in range(50_000)], "plain": [str(n) for n in range(50_000)]}

    # Comparing each element with each other one would take hours, and the suite has a time limit.
    assert strategic.apply(doc, doc, lists) == doc


def test_whatever_can_be_decoded_can_be_patched_applied_and_owned() -> None:
    levels = nesting.DEEPEST - 1
    keyed = Type(shape=Shape.OBJECT, properties={"name": Type(shape=Shape.STRING)})
    keyed.properties["below"] = Type(
        shape=Shape.LIST,
        list_type=ListType.MAP,
        list_keys=("name",),
        element=keyed,
        merge_key="name",
        patch_strategies=frozenset({"merge"}),
    )
    deep: Any = {"name": "x"}
    for _ in range(levels // 2):
        deep = {"name": "x", "below": [deep]}
    type = Type(shape=Shape.OBJECT, properties={"a": ANYTHING, "deep": keyed})
    obj = {"a": nested(levels), "deep": deep}
    assert not nesting.is_too_deep(obj)
    writer: Any = {"manager": "m", "api_version": "v1", "subresource": "", "now": "2026-01-01T00:00:00Z"}

    once = apply.apply(None, obj, type, force=False, **writer)
    assert apply.apply(once, obj, type, force=False, **writer) == once
    gone = apply.apply(once, {"a": 1}, type, force=False, **writer)
    assert "deep" not in gone
    assert json_patch.apply(obj, [{"op": "copy", "from": "/a", "path": "/b"}])["b"] == obj["a"]
    assert merge_patch.apply(obj, obj) == obj
    assert strategic.apply({"deep": deep}, {"deep": deep}, type) == {"deep": deep}
    assert managed_fields.updated(None, obj, type, **writer)
    assert managed_fields.same_but_for_times(once, once)
