"""Bytes to objects, compared with the messages of a real server."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
import recorded
from hypothesis import given
from hypothesis import strategies as st

from octarbiter.cluster.apiserver import decoding, schemas
from octarbiter.cluster.apiserver.types import Type

GROUPS = {"Lease": "coordination.k8s.io"}


def type_of(kind: str) -> Type:
    found = schemas.type_of(GROUPS.get(kind, ""), "v1", kind)
    assert found is not None
    return found


def refusal(kind: str, text: bytes, content_type: str = "application/json") -> str:
    """What strict validation says; empty if it says nothing."""
    try:
        obj, duplicates = decoding.decode(text, content_type)
    except decoding.Unreadable as problem:
        return str(problem)
    checked = decoding.check(obj, type_of(kind), duplicates=duplicates)
    if checked.problem is not None:
        return checked.problem
    return f"strict decoding error: {', '.join(checked.strict_errors)}" if checked.strict_errors else ""


@pytest.mark.parametrize("case", recorded.of("decoding"), ids=lambda case: case["text"][:60] or "nothing")
def test_problems_are_worded_as_a_real_server_words_them(case: dict[str, Any]) -> None:
    answer = refusal(case["kind"], case["text"].encode(), case["content_type"])

    assert answer in case["message"]
    assert bool(answer) == bool(case["message"])


@pytest.mark.parametrize("brackets", [("[", "]"), ('{"a":', "}")])
@pytest.mark.parametrize("depth", [300, 900, 10_000, 100_000])
def test_deep_nests_are_refused(brackets: tuple[str, str], depth: int) -> None:
    opening, closing = brackets
    body = '{"a":' + opening * depth + "1" + closing * depth + "}"

    for content_type in ("application/json", "application/yaml"):
        with pytest.raises(decoding.Unreadable):
            decoding.decode(body.encode(), content_type)


def test_ordinary_nests_are_read() -> None:
    body = b'{"a":' * 120 + b"1" + b"}" * 120

    assert decoding.decode(body, "")[0]


def test_integers_stay_integers() -> None:
    obj, _ = decoding.decode(b'{"a":9223372036854775807,"b":1,"c":1.5,"d":-0}', "application/json")

    assert [(type(value), value) for value in obj.values()] == [(int, 2**63 - 1), (int, 1), (float, 1.5), (int, 0)]


@pytest.mark.parametrize("number", ["1e999", "-1e999", "NaN", "Infinity", "1" * 5000])
def test_numbers_without_a_form_in_json_are_refused(number: str) -> None:
    with pytest.raises(decoding.Unreadable):
        decoding.decode(f'{{"a":{number}}}'.encode(), "")


def test_the_last_of_duplicate_keys_wins_and_all_are_named() -> None:
    obj, duplicates = decoding.decode(b'{"a":{"b":1,"b":2},"l":[{"c":1},{"c":1,"c":3}],"a":{"b":4,"b":5}}', "")

    assert obj == {"a": {"b": 5}, "l": [{"c": 1}, {"c": 3}]}
    assert duplicates == ["a", "a.b", "l[1].c"]


def test_duplicates_are_named_in_yaml_too() -> None:
    assert decoding.decode(b"a: {b: 1, b: 2}\na: 3\n", "application/yaml") == ({"a": 3}, ["a.b", "a"])


def test_duplicates_where_nobody_looks_are_forgiven() -> None:
    text = b'{"data":{"a":1,"a":2},"revision":1,"revision":2}'
    obj, duplicates = decoding.decode(text, "")
    revision = schemas.type_of("apps", "v1", "ControllerRevision")
    assert revision is not None

    assert decoding.check(obj, revision, duplicates=duplicates).duplicates == ["revision"]


def test_aliases_that_multiply_are_refused() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]

    with pytest.raises(decoding.Unreadable, match="aliasing"):
        decoding.decode("\n".join(lines).encode(), "application/yaml")


def test_yaml_merge_keys_give_way_to_what_is_written() -> None:
    obj, _ = decoding.decode(b"base: &b {a: 1, b: 2}\nall: {<<: *b, b: 3}\n", "application/yaml")

    assert obj["all"] == {"a": 1, "b": 3}


def test_halves_of_characters_are_replaced() -> None:
    obj, _ = decoding.decode(b'{"a":"\\ud800x","b":"\\ud83d\\ude00","c":"\xff"}', "")

    assert obj == {"a": "�x", "b": "😀", "c": "�"}


def kept(kind: str, obj: dict[str, Any]) -> dict[str, Any]:
    found = copy.deepcopy(obj)
    decoding.prune(found, type_of(kind))
    return found


def test_unknown_fields_and_nulls_go_and_zeros_are_settled() -> None:
    written = {"metadata": {"name": "x", "labels": {}, "foo": 1}, "data": {"a": None, "b": ""}, "immutable": None}

    assert kept("ConfigMap", written) == {"metadata": {"name": "x"}, "data": {"a": "", "b": ""}}


def test_times_are_written_in_utc_with_whole_seconds() -> None:
    written = {"metadata": {"creationTimestamp": "2020-01-01T01:30:00.987+02:00"}}

    assert kept("ConfigMap", written)["metadata"]["creationTimestamp"] == "2019-12-31T23:30:00Z"


def test_precise_times_have_six_digits() -> None:
    written = {"spec": {"renewTime": "2020-01-01T01:30:00.000100+02:00"}}

    assert kept("Lease", written)["spec"]["renewTime"] == "2019-12-31T23:30:00.000100Z"


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        (1, "1"),
        (0.5, "500m"),
        ("1000m", "1"),
        ("0.1m", "1m"),
        ("1024Mi", "1Gi"),
        ("1.5Gi", "1536Mi"),
        ("0.5Ki", "512"),
        ("1500", "1500"),
        ("1e3", "1e3"),
        ("12e5", "1200e3"),
        ("0", "0"),
        ("-2", "-2"),
        ("2000k", "2M"),
    ],
)
def test_quantities_are_canonical(written: object, canonical: str) -> None:
    pod = kept("Pod", {"spec": {"containers": [{"resources": {"limits": {"cpu": written}}}]}})

    assert pod["spec"]["containers"][0]["resources"]["limits"] == {"cpu": canonical}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=20,
)


@given(st.binary(max_size=200), st.sampled_from(["application/json", "application/yaml", ""]))
def test_garbage_is_read_or_refused(body: bytes, content_type: str) -> None:
    try:
        obj, _ = decoding.decode(body, content_type)
    except decoding.Unreadable:
        return
    assert json.dumps(obj, allow_nan=False).encode()


@given(st.sampled_from(["Pod", "ConfigMap", "Event", "Lease"]), st.data())
def test_whatever_passes_the_check_can_be_kept_and_is_kept_the_same_twice(kind: str, data: st.DataObject) -> None:
    type_ = type_of(kind)
    obj = data.draw(_shaped(type_, 4))
    if decoding.check(obj, type_).problem is None:
        once = kept(kind, obj)

        assert kept(kind, once) == once
        assert not decoding.check(once, type_).strict_errors


def _shaped(type_: Type, depth: int) -> st.SearchStrategy[Any]:
    """Objects that have the right names and often the right values."""
    if depth == 0:
        return JSON
    if type_.properties:
        names = st.lists(st.sampled_from(sorted(type_.properties)), max_size=4, unique=True)
        return names.flatmap(
            lambda chosen: st.fixed_dictionaries({name: _shaped(type_.properties[name], depth - 1) for name in chosen})
        )
    if type_.element is not None:
        inner = _shaped(type_.element, depth - 1)
        is_list = type_.shape.value == "list"
        return st.lists(inner, max_size=2) if is_list else st.dictionaries(st.text(max_size=3), inner, max_size=2)
    return st.one_of(
        JSON, st.sampled_from(["1", "5Gi", "2020-01-01T00:00:00Z", "2020-01-01T00:00:00.000000Z", "", 0, 1, True, None])
    )
