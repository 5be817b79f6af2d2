"""What the standards say of patches, and what no built-in kind and no scenario shows."""

from __future__ import annotations

from typing import Any

import pytest

from octarbiter.cluster.apiserver.patching import errors, json_patch, merge_patch, strategic
from octarbiter.cluster.apiserver.types import Shape, Type

Json = dict[str, Any]


@pytest.mark.parametrize(
    ("doc", "patch", "result"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_a_merge_patch_is_that_of_rfc_7386(doc: Json, patch: Any, result: Json) -> None:
    assert merge_patch.apply(doc, patch) == result


@pytest.mark.parametrize(
    ("doc", "operations", "result"),
    [
        ({"foo": "bar"}, [("add", "/baz", "qux")], {"baz": "qux", "foo": "bar"}),
        ({"foo": ["bar", "baz"]}, [("add", "/foo/1", "qux")], {"foo": ["bar", "qux", "baz"]}),
        ({"baz": "qux", "foo": "bar"}, [("remove", "/baz")], {"foo": "bar"}),
        ({"foo": ["bar", "qux", "baz"]}, [("remove", "/foo/1")], {"foo": ["bar", "baz"]}),
        ({"baz": "qux", "foo": "bar"}, [("replace", "/baz", "boo")], {"baz": "boo", "foo": "bar"}),
        (
            {"foo": ["all", "grass", "cows", "eat"]},
            [("move", "/foo/3", "/foo/1")],
            {"foo": ["all", "cows", "eat", "grass"]},
        ),
        (
            {"baz": "qux", "foo": ["a", 2]},
            [("test", "/baz", "qux"), ("test", "/foo/1", 2)],
            {"baz": "qux", "foo": ["a", 2]},
        ),
        ({"foo": "bar"}, [("add", "/child", {"grandchild": {}})], {"foo": "bar", "child": {"grandchild": {}}}),
        ({"/": 9, "~1": 10}, [("test", "/~01", 10)], {"/": 9, "~1": 10}),
        ({"/": 9, "~1": 10}, [("remove", "/~1")], {"~1": 10}),
        ({"foo": ["bar"]}, [("add", "/foo/-", ["abc", "def"])], {"foo": ["bar", ["abc", "def"]]}),
        ({"a": {"b": 1}}, [("copy", "/c", "/a"), ("replace", "/c/b", 2)], {"a": {"b": 1}, "c": {"b": 2}}),
        ({"a": [1, 2]}, [("add", "/a/-1", 3)], {"a": [1, 2, 3]}),
        ({"a": [1, 2]}, [("add", "/a/-3", 3)], {"a": [3, 1, 2]}),
        ({"a": [1, 2]}, [("replace", "/a/-2", 3)], {"a": [3, 2]}),
        ({"a": 1}, [("replace", "", {"b": 2})], {"b": 2}),
        ({"": 1}, [("replace", "/", 2)], {"": 2}),
        ({"a": None}, [("test", "/a", None), ("test", "/b", None)], {"a": None}),
    ],
)
def test_operations_are_those_of_rfc_6902(doc: Json, operations: list[tuple[Any, ...]], result: Json) -> None:
    steps = [
        {"op": name, "path": path, ("from" if name in ("move", "copy") else "value"): more[0] if more else None}
        for name, path, *more in operations
    ]

    assert json_patch.apply(doc, steps) == result


@pytest.mark.parametrize(
    ("found", "wanted"), [(1, True), (True, 1), ("1", 1), (10, "10"), ([1], [2]), ({}, {"a": None})]
)
def test_a_test_tells_values_of_different_types_apart(found: Any, wanted: Any) -> None:
    with pytest.raises(errors.BadPatch) as refused:
        json_patch.apply({"a": found}, [{"op": "test", "path": "/a", "value": wanted}])

    assert refused.value.hint == "testing value /a failed: test failed"


@pytest.mark.parametrize("index", ["9" * 30, "1.0", "１", "", " 1", "1 ", "0x1", "--1"])
def test_what_is_no_index_is_refused(index: str) -> None:
    with pytest.raises(errors.BadPatch) as refused:
        json_patch.apply({"a": [1]}, [{"op": "remove", "path": f"/a/{index}"}])

    assert refused.value.code == 422


def test_an_object_cannot_become_a_list() -> None:
    with pytest.raises(errors.BadPatch):
        json_patch.apply({"a": 1}, [{"op": "replace", "path": "", "value": []}])


@pytest.mark.parametrize(
    ("strategies", "result"),
    [((), {"a": "1", "b": "2"}), (("replace",), {"b": "2"}), (("merge",), {"a": "1", "b": "2"})],
)
def test_an_object_whose_type_says_replace_is_replaced(strategies: tuple[str, ...], result: Json) -> None:
    inner = Type(shape=Shape.MAP, element=Type(shape=Shape.STRING), patch_strategies=frozenset(strategies))
    outer = Type(shape=Shape.OBJECT, properties={"map": inner})

    assert strategic.apply({"map": {"a": "1"}}, {"map": {"b": "2"}}, outer) == {"map": result}


def test_apply_needs_a_manager_and_only_apply_can_be_forced() -> None:
    nameless = errors.options("", force=True, applying=True)
    forced = errors.options("", force=True, applying=False)

    assert nameless is not None
    assert nameless.message == (
        'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch'
    )
    assert forced is not None
    assert forced.message == (
        'PatchOptions.meta.k8s.io "" is invalid: force: Forbidden: may not be specified for non-apply patch'
    )
    assert errors.options("me", force=True, applying=True) is None
    assert errors.options("", force=False, applying=False) is None
