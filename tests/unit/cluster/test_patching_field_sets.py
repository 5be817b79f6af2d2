"""Sets of fields read and write what `managedFields` holds."""

from __future__ import annotations

import json
from typing import Any

import pytest

from octarbiter.cluster.apiserver import schemas
from octarbiter.cluster.apiserver.patching import field_sets, ownership, shapes
from octarbiter.cluster.apiserver.types import ANYTHING, ListType, Shape, Type

STRING = Type(shape=Shape.STRING)
TAGS = Type(shape=Shape.LIST, list_type=ListType.SET, element=STRING)
PORT = Type(
    shape=Shape.OBJECT,
    properties={"port": Type(shape=Shape.INTEGER), "protocol": Type(shape=Shape.STRING, default="TCP")},
)
PORTS = Type(shape=Shape.LIST, list_type=ListType.MAP, list_keys=("port", "protocol"), element=PORT)
SPEC = Type(
    shape=Shape.OBJECT,
    properties={
        "tags": TAGS,
        "ports": PORTS,
        "words": Type(shape=Shape.LIST, element=STRING),
        "labels": Type(shape=Shape.MAP, element=STRING),
        "selector": Type(shape=Shape.MAP, element=STRING, atomic=True),
        "blob": ANYTHING,
    },
)


def test_elements_are_written_in_the_order_of_the_server() -> None:
    raw = {"v:true": {}, 'v:"b"': {}, "v:2": {}, "v:-1.5": {}, "i:2": {}, "f:b": {}, "f:a": {}, 'k:{"a":"x"}': {}}
    raw |= {'k:{"a":2}': {}, 'k:{"a":2,"b":1}': {}, "i:10": {}, "v:null": {}}

    assert list(field_sets.encode(field_sets.decode(raw))) == [
        "f:a",
        "f:b",
        'k:{"a":2}',
        'k:{"a":2,"b":1}',
        'k:{"a":"x"}',
        "v:-1.5",
        "v:2",
        'v:"b"',
        "v:true",
        "v:null",
        "i:2",
        "i:10",
    ]


def test_equal_elements_are_one_however_they_are_spelled() -> None:
    fields = field_sets.decode({'k:{ "b":1, "a":2.0}': {"f:x": {}}, 'k:{"a":2,"b":1}': {}})

    assert fields == {'k:{"a":2,"b":1}': {".": {}, "f:x": {}}}


def test_kinds_of_elements_from_the_future_are_dropped() -> None:
    assert field_sets.decode({"z:new": {}, "f:a": {"z:new": {}}}) == {"f:a": {}}


@pytest.mark.parametrize("raw", [[], "x", {"f": {}}, {"fx": {}}, {"k:[]": {}}, {"v:{": {}}, {"i:x": {}}, {"f:a": 1}])
def test_what_is_no_set_of_fields_is_refused(raw: Any) -> None:
    with pytest.raises(field_sets.BadFields):
        field_sets.decode(raw)


def test_paths_are_written_for_people() -> None:
    fields = {"f:spec": {'k:{"name":"a<b","port":80}': {"f:image": {}, 'v:"x y"': {}, "i:3": {}}}}

    assert [field_sets.text(path) for path in field_sets.paths(fields)] == [
        '.spec[name="a<b",port=80].image',
        '.spec[name="a<b",port=80][="x y"]',
        '.spec[name="a<b",port=80][3]',
    ]


@pytest.mark.parametrize(
    ("value", "fields"),
    [
        ({"tags": ["b", "a"]}, {"f:tags": {'v:"b"': {}, 'v:"a"': {}}}),
        ({"tags": []}, {}),
        ({"words": []}, {"f:words": {}}),
        ({"labels": {}}, {"f:labels": {}}),
        ({"labels": {"a": "1"}}, {"f:labels": {"f:a": {}}}),
        ({"labels": None}, {"f:labels": {}}),
        ({"selector": {"a": "1"}}, {"f:selector": {}}),
        ({"ports": [{"port": 80}]}, {"f:ports": {'k:{"port":80,"protocol":"TCP"}': {".": {}, "f:port": {}}}}),
        ({"ports": [{"port": 80}, {"port": 80}]}, {"f:ports": {'k:{"port":80,"protocol":"TCP"}': {}}}),
        ({"blob": {"a": {"b": [1]}}}, {"f:blob": {"f:a": {".": {}, "f:b": {}}}}),
        ({"unknown": {"a": 1}}, {"f:unknown": {".": {}, "f:a": {}}}),
    ],
)
def test_whoever_applies_a_value_owns_its_leaves_and_elements(value: Any, fields: Any) -> None:
    assert ownership.of(value, SPEC) == fields


@pytest.mark.parametrize(
    ("before", "after", "removed", "modified", "added"),
    [
        ({"labels": {"a": "1"}}, {"labels": {"a": "2"}}, {}, {"f:labels": {"f:a": {}}}, {}),
        ({}, {"labels": {"a": "2"}}, {}, {}, {"f:labels": {".": {}, "f:a": {}}}),
        ({"labels": {"a": "1"}}, {}, {"f:labels": {".": {}, "f:a": {}}}, {}, {}),
        ({"words": ["a"]}, {"words": ["b"]}, {}, {"f:words": {}}, {}),
        ({"tags": ["a"]}, {"tags": ["b"]}, {"f:tags": {'v:"a"': {}}}, {}, {"f:tags": {'v:"b"': {}}}),
        ({"tags": ["a", "b"]}, {"tags": ["b", "a"]}, {}, {}, {}),
        ({"tags": ["a", "a"]}, {"tags": ["a"]}, {"f:tags": {'v:"a"': {}}}, {}, {"f:tags": {'v:"a"': {}}}),
        ({"tags": ["a", "a"]}, {"tags": ["a", "a", "a"]}, {}, {"f:tags": {'v:"a"': {}}}, {}),
        ({"selector": {"a": "1"}}, {"selector": {"a": "1", "b": "2"}}, {}, {"f:selector": {}}, {}),
        ({"blob": 1}, {"blob": True}, {}, {"f:blob": {}}, {}),
        ({"blob": 1}, {"blob": {"a": 1}}, {}, {"f:blob": {}}, {"f:blob": {"f:a": {}}}),
        ({"blob": {"a": 1}}, {"blob": [1]}, {"f:blob": {"f:a": {}}}, {"f:blob": {}}, {}),
        ({"blob": {}}, {"blob": None}, {}, {"f:blob": {}}, {}),
    ],
)
def test_a_change_is_what_was_removed_modified_and_added(
    before: Any, after: Any, removed: Any, modified: Any, added: Any
) -> None:
    assert ownership.compare(before, after, SPEC) == (removed, modified, added)


@pytest.mark.parametrize("item", [{}, None, "x", ["x"]])
def test_an_element_without_its_keys_cannot_be_told_apart(item: Any) -> None:
    keyed = Type(shape=Shape.LIST, list_type=ListType.MAP, list_keys=("name",), element=ANYTHING)

    with pytest.raises(shapes.NoKey):
        shapes.element_of(item, keyed)


def test_owners_of_parts_own_the_whole_where_the_type_has_become_atomic() -> None:
    fields = {"f:selector": {"f:a": {}}, "f:words": {"i:0": {}}, "f:labels": {"f:a": {}}, "f:gone": {"f:x": {}}}

    assert ownership.fitted(fields, SPEC) == {
        "f:selector": {},
        "f:words": {},
        "f:labels": {"f:a": {}},
        "f:gone": {"f:x": {}},
    }


def test_metadata_of_a_custom_kind_is_that_of_every_object() -> None:
    custom = shapes.whole_object(Type(shape=Shape.OBJECT, properties={"spec": SPEC}))
    obj = {"metadata": {"labels": {"a": "b"}, "finalizers": ["x"], "ownerReferences": [{"uid": "1", "name": "n"}]}}

    found = ownership.of(obj, custom)

    assert found == {
        "f:metadata": {
            "f:labels": {"f:a": {}},
            "f:finalizers": {'v:"x"': {}},
            "f:ownerReferences": {'k:{"uid":"1"}': {}},
        }
    }
    pod = schemas.type_of("", "v1", "Pod")
    assert pod is not None
    assert ownership.of(obj, pod) == found
    assert shapes.OBJECT_META.properties.keys() == pod.properties["metadata"].properties.keys()


def test_an_encoded_set_shares_nothing_with_the_set() -> None:
    fields = field_sets.decode({"f:a": {"f:b": {}}})
    encoded = field_sets.encode(fields)
    encoded["f:a"]["f:b"]["f:c"] = {}

    assert json.dumps(fields) == '{"f:a": {"f:b": {}}}'
