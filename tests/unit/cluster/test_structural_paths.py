"""JSONPaths of columns, and patterns: what they mean here is what they mean on a real server."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octarbiter.cluster.apiserver.structural import jsonpath, regexes, wording

OBJECT = {
    "spec": {"name": "x", "list": [{"n": "a", "v": 1}, {"n": "b", "v": 2}, {"n": "c", "v": 3}], "a.b": {"c/d": True}},
    "status": {"conditions": [{"type": "Ready", "status": "True"}]},
}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (".spec.name", ["x"]),
        (".spec.nothing.at.all", []),
        (".spec.list[0].n", ["a"]),
        (".spec.list[-1].n", ["c"]),
        (".spec.list[9].n", []),
        (".spec.list[*].n", ["a", "b", "c"]),
        (".spec.list[1:].n", ["b", "c"]),
        (".spec.list[:2].n", ["a", "b"]),
        ('.status.conditions[?(@.type=="Ready")].status', ["True"]),
        (".spec.list[?(@.v>1)].n", ["b", "c"]),
        (".spec.list[?(@.v!=2)].n", ["a", "c"]),
        (".spec.list[?(@.zz)].n", []),
        (r".spec.a\.b.c/d", [True]),
        (".spec['a.b']['c/d']", [True]),
        ("..n", ["a", "b", "c"]),
        (".spec.name.deeper", []),
    ],
)
def test_a_path_finds_what_it_points_at(path: str, expected: list[Any]) -> None:
    assert list(jsonpath.find(OBJECT, path)) == expected


@pytest.mark.parametrize("path", [".a[", ".a[b]", ".a[?(x)]", "a"])
def test_a_path_that_cannot_be_read_is_an_error(path: str) -> None:
    with pytest.raises(jsonpath.BadPath):
        list(jsonpath.find(OBJECT, path))


@given(st.text(alphabet=".[]*?()@'\"\\=<>!:0aé{}$-", max_size=12))
def test_no_path_breaks_the_reader(path: str) -> None:
    with contextlib.suppress(jsonpath.BadPath):
        list(jsonpath.find(OBJECT, path))


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("^a$", "a", True),
        ("^a$", "a\n", False),
        (r"^\d+$", "٣", False),
        (r"^[[:alpha:]]+$", "abc", True),
        (r"^\pL+$", "äb", True),
        (r"^a\z", "a", True),
        (r"^\Qa.b\E$", "a.b", True),
        ("(?i)^ABC$", "abc", True),
        (r"^(?P<x>a)b$", "ab", True),
        ("[^]a]", "]", False),
        ("b", "abc", True),
    ],
)
def test_a_pattern_means_what_it_means_in_go(pattern: str, text: str, expected: bool) -> None:
    assert bool(regexes.compile(pattern).search(text)) is expected


@pytest.mark.parametrize(
    "pattern", ["((", "a)", "*a", "(?=a)", "(?<!a)b", r"(a)\1", "[a", "a{2000}", "a**", r"\y", "\\"]
)
def test_what_go_does_not_take_for_a_pattern_is_refused(pattern: str) -> None:
    with pytest.raises(regexes.BadPattern):
        regexes.compile(pattern)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1, "1"),
        (1.0, "1"),
        (1.5, "1.5"),
        (100000.0, "100000"),
        (1000000.0, "1e+06"),
        (1234567.5, "1.2345675e+06"),
        (0.0001, "0.0001"),
        (0.00001, "1e-05"),
        (-2.5e-10, "-2.5e-10"),
        (1e100, "1e+100"),
        ('a"b\\\n\x01é\u200b', '"a\\"b\\\\\\n\\x01é\\u200b"'),
        (True, "true"),
        ({"b": [1.0, None], "a": "<&>"}, '{"a":"\\u003c\\u0026\\u003e","b":[1,null]}'),
    ],
)
def test_values_are_shown_as_go_shows_them(value: Any, expected: str) -> None:
    assert wording.shown(value) == expected
