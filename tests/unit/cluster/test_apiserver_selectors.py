from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octarbiter.cluster.apiserver import kinds, selectors, status

LABELS = {"app": "web", "tier": "front", "size": "7", "empty": ""}


@pytest.mark.parametrize(
    ("selector", "matches"),
    [
        ("", True),
        ("app=web", True),
        ("app==web", True),
        ("app!=web", False),
        ("other!=x", True),
        ("app in (db, web)", True),
        ("app notin (db,web)", False),
        ("other notin (x)", True),
        ("app", True),
        ("!app", False),
        ("!other", True),
        ("empty=", True),
        ("empty in ()", True),
        ("empty in (,x)", True),
        ("size>6", True),
        ("size>7", False),
        ("size<8", True),
        ("app>1", False),
        ("app=web,tier=front", True),
        (" app = web , tier in ( front ) ", True),
        ("app=web,tier=back", False),
        ("in in (in)", False),
        ("example.com/x", False),
    ],
)
def test_a_label_selector_chooses(selector: str, matches: bool) -> None:
    assert selectors.parse_labels(selector).matches(LABELS) is matches


@pytest.mark.parametrize(
    ("selector", "message"),
    [
        ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ("a===b", "unable to parse requirement: found '=', expected: identifier"),
        ("a in b", "unable to parse requirement: found 'b' expected: '('"),
        ("a in (b", "unable to parse requirement: found '', expected: ',' or ')'"),
        (",", "found ',', expected: !, identifier, or 'end of string'"),
        ("a,", "found '', expected: identifier after ','"),
        ("!a=b", "found '=', expected: ',' or 'end of string'"),
        ("a=b c", "found 'c', expected: ',' or 'end of string'"),
        ("!", "unable to parse requirement: found '', expected: identifier"),
    ],
)
def test_an_unreadable_label_selector_is_refused_in_the_servers_words(selector: str, message: str) -> None:
    with pytest.raises(status.Failure) as refused:
        selectors.parse_labels(selector)

    assert (refused.value.code, str(refused.value)) == (400, message)


@pytest.mark.parametrize("selector", ["-a", "a/b/c", "/a", "a=-", "a>x", f"{'k' * 64}", f"a={'v' * 64}"])
def test_keys_and_values_must_be_those_of_labels(selector: str) -> None:
    with pytest.raises(status.Failure, match=r"unable to parse requirement: .*Invalid value"):
        selectors.parse_labels(selector)


@given(st.text(alphabet="ab1!=<>(), /-innot\t", max_size=24))
def test_whatever_is_written_is_parsed_or_refused(text: str) -> None:
    codes = set()
    try:
        selectors.parse_labels(text).matches(LABELS)
        selectors.parse_fields(text, kinds.PODS)
    except status.Failure as failure:
        codes.add(failure.code)

    assert codes <= {400}


@given(st.dictionaries(st.sampled_from(["a", "b", "c"]), st.sampled_from(["x", "y", ""])))
def test_equals_and_not_equals_divide_everything(labels: dict[str, str]) -> None:
    for value in ("x", "y", ""):
        equal = selectors.parse_labels(f"a={value}").matches(labels)
        assert equal is not selectors.parse_labels(f"a!={value}").matches(labels)


def test_a_field_selector_chooses_and_knows_what_can_be_chosen_by() -> None:
    chosen = selectors.parse_fields("spec.nodeName=n,status.phase!=Failed", kinds.PODS)
    values = {"spec.nodeName": "n", "status.phase": "Running"}

    assert chosen.matches(lambda name: values.get(name, ""))
    assert chosen.exact("spec.nodeName") == "n"
    assert chosen.exact("status.phase") is None
    with pytest.raises(status.Failure, match=r"field label not supported: spec\.x"):
        selectors.parse_fields("spec.x=y", kinds.PODS)


@pytest.mark.parametrize(
    ("written", "meant"), [(r"metadata.name=a\,b", "a,b"), (r"metadata.name=a\\b", "a\\b"), ("metadata.name==a", "a")]
)
def test_field_values_can_be_escaped(written: str, meant: str) -> None:
    assert selectors.parse_fields(written, kinds.PODS).exact("metadata.name") == meant


def test_a_selector_in_an_object_says_the_same_as_one_in_a_query() -> None:
    given = {"matchLabels": {"app": "web"}, "matchExpressions": [{"key": "x", "operator": "DoesNotExist"}]}

    assert selectors.from_object(given) == selectors.parse_labels("app=web,!x")
    assert selectors.from_object({}).matches(LABELS)
    assert not selectors.from_object({"matchExpressions": [{"key": "x", "operator": "Nonsense"}]}).matches(LABELS)
