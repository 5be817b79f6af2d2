"""Definitions: what the real server refuses is refused here, for the same reasons, in the same words."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octarbiter.api import crd, kinds
from octarbiter.cluster.apiserver import structural

GOLDEN = Path(__file__).parent / "golden"
ANSWERS = json.loads((GOLDEN / "crd_answers.json").read_text())
WIDGETS = ANSWERS[0]["definition"]


def cause(reason: str, field: str, message: str) -> tuple[str, str, str]:
    # Where the server shows its own structures there is nothing to hold ours against.
    return reason, field, re.sub(r"^Invalid value: [\[{].*[\]}]: (only \[|must contain|must have)", r"\1", message)


@pytest.mark.parametrize("answer", ANSWERS, ids=[answer["says"] for answer in ANSWERS])
def test_a_definition_gets_the_real_servers_answer(answer: dict[str, Any]) -> None:
    problems = structural.check_crd(answer["definition"])

    expected = [cause(each["reason"], each["field"], each["message"]) for each in answer["causes"]]
    assert [cause(each.reason, each.field, each.message) for each in problems] == expected


def test_our_own_definition_is_one() -> None:
    assert structural.check_crd(crd.render(kinds.TASKSET)) == []


def established(**spec: Any) -> dict[str, Any]:
    status = {"conditions": [{"type": "Established", "status": "True"}], "storedVersions": ["v1"]}
    return {**WIDGETS, "spec": {**WIDGETS["spec"], **spec}, "status": status}


def version(**changes: Any) -> dict[str, Any]:
    return {**WIDGETS["spec"]["versions"][0], **changes}


def test_names_and_scope_of_an_established_definition_stay() -> None:
    old = established()
    new = established(scope="Cluster", names={**WIDGETS["spec"]["names"], "kind": "Gadget"})

    problems = structural.check_crd(new, old)

    assert [(each.field, each.message) for each in problems] == [
        ("spec.scope", 'Invalid value: "Cluster": field is immutable'),
        ("spec.names.kind", 'Invalid value: "Gadget": field is immutable'),
    ]


def test_a_version_that_was_stored_cannot_be_dropped() -> None:
    old = established()
    new = established(versions=[version(name="v2")])
    new["status"]["storedVersions"] = ["v1", "v2"]

    assert [each.field for each in structural.check_crd(new, old)] == ["status.storedVersions[0]"]


def test_a_schema_of_endless_depth_is_refused() -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(300):
        schema = {"type": "object", "properties": {"a": schema}}

    problems = structural.check_crd(established(versions=[version(schema={"openAPIV3Schema": schema})]))

    assert "levels" in problems[0].message


SCHEMA_WORDS = st.sampled_from(
    ["type", "properties", "items", "anyOf", "not", "default", "enum", "x-kubernetes-list-type", "nullable", "pattern"]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.sampled_from(["object", "array", "string"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(SCHEMA_WORDS, inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.sampled_from(["metadata", "spec", "names", "versions", "group"]), JSON))
def test_no_definition_breaks_the_check(definition: dict[str, Any]) -> None:
    structural.check_crd(definition)
