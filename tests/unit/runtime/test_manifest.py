"""Manifests: read as kubectl reads them, refused with the place where they are wrong."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from octarbiter.api.errors import Refused
from octarbiter.runtime import manifest

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
HEAD = "apiVersion: v1\nkind: Thing\n"

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(-1e6, 1e6) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=20), inner, max_size=4),
    max_leaves=20,
)


def problems(text: str | bytes) -> list[str]:
    with pytest.raises(Refused) as refused:
        manifest.read(text, "job.yaml")
    assert str(refused.value).startswith("job.yaml is invalid:")
    return [str(problem) for problem in refused.value.problems]


def scalar(text: str) -> Any:
    return manifest.read(f"{HEAD}value: {text}\n")[0]["value"]


@pytest.mark.parametrize("name", ["manual-1-tensorflowdemo", "manual-2-kube-batch", "readme-tensorflowdemo"])
def test_the_manuals_examples_are_read(name: str) -> None:
    objects = manifest.read((EXAMPLES / f"{name}.yaml").read_bytes())

    assert objects[-1]["kind"] == "TaskSet"
    assert objects[-1]["spec"]["roles"][1]["template"]["spec"]["containers"][0]["command"][2] == "sleep 30;exit 0"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("yes", True),
        ("On", True),
        ("y", True),
        ("off", False),
        ("N", False),
        ("'yes'", "yes"),
        ("nope", "nope"),
        ("~", None),
        ("", None),
        ("12", 12),
        ("-0x1F", -31),
        ("010", 8),
        ("0o17", 15),
        ("0b101", 5),
        ("08", 8),
        ("1_000", 1000),
        ("3.0", 3),
        ("1e3", 1000),
        ("1.5", 1.5),
        (".5", 0.5),
        ("22:22", "22:22"),
        ("2024-01-01", "2024-01-01"),
        ("1.5Gi", "1.5Gi"),
        ("100m", "100m"),
        ("_1", "_1"),
        ("!!str 12", "12"),
        ("!!int '12'", 12),
        ("! 12", "12"),
        ("18446744073709551615", 2**64 - 1),
    ],
)
def test_a_scalar_is_what_kubectl_takes_it_for(text: str, value: object) -> None:
    read = scalar(text)

    assert (value, type(value)) == (read, type(read))


def test_documents_and_lists_come_out_as_single_objects_in_order() -> None:
    text = f"""\
# a comment
---
{HEAD}metadata: {{name: a}}
---
---
apiVersion: v1
kind: List
items:
- {{apiVersion: v1, kind: Thing, metadata: {{name: b}}}}
- {{apiVersion: x/v1, kind: TaskSetList, items: [{{apiVersion: x/v1, kind: TaskSet, metadata: {{name: c}}}}]}}
"""

    assert [obj["metadata"]["name"] for obj in manifest.read(text)] == ["a", "b", "c"]


def test_anchors_and_merge_keys_give_copies_that_do_not_share() -> None:
    (obj,) = manifest.read(f"{HEAD}a: &a {{x: 1, z: [2]}}\nb: {{<<: *a, x: 3}}\nc: *a\nd: {{<<: [{{x: 4}}, *a]}}\n")
    obj["c"]["z"].append(5)

    assert obj["a"] == {"x": 1, "z": [2]}
    assert obj["b"] == {"x": 3, "z": [2]}
    assert obj["d"] == {"x": 4, "z": [2]}


def test_a_byte_order_mark_is_no_part_of_the_text() -> None:
    assert manifest.read(b"\xef\xbb\xbf" + HEAD.encode()) == [{"apiVersion": "v1", "kind": "Thing"}]


def test_keys_that_are_no_strings_become_strings() -> None:
    assert manifest.read(f"{HEAD}1: a\nyes: b\n")[0] == {"apiVersion": "v1", "kind": "Thing", "1": "a", "true": "b"}


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("a: b: c", "line 1, column 5: is not YAML"),
        ("a: [1, 2", "is not YAML"),
        ("a:\n\tb: 1", "line 2, column 1: is not YAML"),
        ("a: 1\nb: \x01", "line 2: is not YAML"),
        (b"a: \xff", "is not UTF-8 text: invalid start byte at byte 3"),
        ("a: \ud800", "is not UTF-8 text"),
        ("{'a': 1}}", "is not YAML"),
        ('{"a": 1', "is not YAML"),
        ("hello", "line 1: is no object"),
        ("- a", "line 1: is no object"),
        ("", "holds no object"),
        ("---\n# nothing\n", "holds no object"),
        ("kind: Thing", "line 1: is no object of Kubernetes: apiVersion missing"),
        ("\n\nkind: 3", "line 3: is no object of Kubernetes: apiVersion and kind missing"),
        ("a: !!python/object:os.system x", "line 1, column 4: the tag !!python/object:os.system is not supported"),
        ("a: !!set {x, y}", "the tag !!set is not supported"),
        ("a: !!int x", "is no int"),
        ("? [a]\n: b", "line 1, column 3: a list or an object cannot be a key"),
        ("a: &x b\n*x : c", "line 2, column 1: an alias cannot be a key"),
        ("~: a", "line 1, column 1: a key cannot be null"),
        ("a: *b", "line 1, column 4: *b refers to no anchor"),
        ("a: &b [*b]", "*b refers to no anchor before it, or to one that contains it"),
        ("<<: 3", "<< merges an object"),
        ("a: .inf", "cannot be written in JSON"),
        ("a: 1e999", "larger than any number"),
        ("a: " + "9" * 6000, "larger than any number"),
    ],
)
def test_what_is_no_manifest_is_refused_with_the_place(text: str | bytes, where: str) -> None:
    (problem,) = problems(text)

    assert where in problem


def test_every_key_written_twice_is_named_with_both_lines() -> None:
    text = f"{HEAD}spec:\n  roles:\n  - name: ps\n    name: worker\nkind: Other\n"

    assert problems(text) == [
        "spec.roles[0].name: is written twice, on line 5 and on line 6",
        "kind: is written twice, on line 2 and on line 7",
    ]
    assert problems('{"a": {"b c": 1,\n"b c": 2}}') == ['a["b c"]: is written twice, on line 1 and on line 2']


def test_every_item_of_a_list_that_is_no_object_is_named() -> None:
    text = "apiVersion: v1\nkind: List\nitems:\n- 3\n- {kind: Thing}\n"

    assert problems(text) == [
        "line 1, items[0]: is no object: apiVersion, kind and metadata are expected here",
        "line 1, items[1]: is no object of Kubernetes: apiVersion missing",
    ]


def test_a_manifest_above_1_mib_is_refused_with_its_size_and_the_limit() -> None:
    text = HEAD + "data: " + "x" * 2_000_000

    assert problems(text) == [f"is too large: {len(text)} bytes; at most 1048576 (1 MiB) are accepted"]


@pytest.mark.parametrize("text", ["[" * 500_000, "{a: " * 200_000, "- " * 300_000])
def test_deep_nesting_is_refused_whatever_it_is_made_of(text: str) -> None:
    assert "nested deeper than 100 levels" in problems(text)[0]


def test_nesting_by_an_alias_counts_where_the_alias_stands() -> None:
    harmless = f"a: &a {'[' * 60}{']' * 60}\n"

    assert "nested deeper than 100 levels" in problems(f"{harmless}b: {'[' * 60}*a{']' * 60}")[0]


def test_aliases_that_multiply_are_refused_before_they_take_memory() -> None:
    layers = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    layers += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 20)]

    assert "aliases make the text larger than 1048576 bytes" in problems("\n".join(layers))[0]


def test_aliases_cannot_multiply_over_several_documents_either() -> None:
    document = f"a: &a {'x' * 1000}\nb: [{', '.join(['*a'] * 500)}]\n"

    assert "aliases make the text larger" in problems("---\n".join([document] * 3))[0]


@settings(deadline=None)
@given(json_values, st.booleans(), st.sampled_from([None, 1, "\t"]))
def test_json_is_read_as_json(value: Any, ascii_only: bool, indent: int | str | None) -> None:
    text = json.dumps({"apiVersion": "v1", "kind": "Thing", "value": value}, ensure_ascii=ascii_only, indent=indent)

    assert manifest.read(text)[0]["value"] == value


@settings(deadline=None)
@given(st.binary(max_size=200) | st.text(alphabet="ab:-[]{}&*<>!?|'\"#, \n\t01.", max_size=80).map(str.encode))
def test_any_bytes_are_objects_or_are_refused(data: bytes) -> None:
    with contextlib.suppress(Refused):
        assert manifest.read(data)
