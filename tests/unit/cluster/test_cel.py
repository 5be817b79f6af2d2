"""Expressions: worth what they are worth on the real server, and refused when they are refused there."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from octarbiter.cluster.apiserver import structural
from octarbiter.cluster.apiserver.structural.cel import forms, machine, parsing, running, syntax, values

GOLDEN = Path(__file__).parent / "golden"
CASES = yaml.safe_load((GOLDEN / "cel_cases.yaml").read_text())
ANSWERS = json.loads((GOLDEN / "cel_answers.json").read_text())
Json = dict[str, Any]


def told(expression: str) -> list[str]:
    """What a rule that never holds says about it, as the recorder asks the server."""
    rule = {"rule": "false", "messageExpression": f"'told: %s'.format([{expression}])", "message": "no value"}
    type = structural.parse(
        {"type": "object", "properties": {"spec": {**CASES["schema"], "x-kubernetes-validations": [rule]}}}
    )
    problems = structural.cel.validate({"spec": CASES["object"]}, None, type)
    return [problem.message.removeprefix("Invalid value: ") for problem in problems]


VALUES = [answer for answer in ANSWERS["values"] if "value" in answer]
# What an expression may cost at worst we do not estimate; we stop it while it runs.
REFUSED = [answer for answer in ANSWERS["values"] if "cost" not in answer.get("refused", "cost")]


@pytest.mark.parametrize("answer", VALUES, ids=[answer["expression"] for answer in VALUES])
def test_an_expression_is_worth_what_the_real_server_says(answer: Json) -> None:
    expected = "no value" if answer["value"] is None else f"told: {answer['value']}"

    assert told(answer["expression"]) == [expected]


def problems_of_rule(rule: Json) -> list[str]:
    schema = {"type": "object", "properties": {"spec": {**CASES["schema"], "x-kubernetes-validations": [rule]}}}
    crd = {
        "metadata": {"name": "xs.example.org"},
        "spec": {
            "group": "example.org",
            "scope": "Namespaced",
            "names": {"plural": "xs", "singular": "x", "kind": "X", "listKind": "XList"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
        },
    }
    return [problem.message for problem in structural.check_crd(crd)]


@pytest.mark.parametrize("answer", REFUSED, ids=[answer["expression"] for answer in REFUSED])
def test_an_expression_that_the_real_server_refuses_is_refused(answer: Json) -> None:
    rule = {"rule": "false", "messageExpression": f"'told: %s'.format([{answer['expression']}])", "message": "no value"}

    assert problems_of_rule(rule)


MISTAKES = ANSWERS["mistakes"]


@pytest.mark.parametrize("answer", MISTAKES, ids=[answer["rule"] for answer in MISTAKES])
def test_a_mistake_is_found_where_the_real_server_finds_it(answer: Json) -> None:
    problems = problems_of_rule({"rule": answer["rule"]})

    assert bool(problems) == bool(answer["messages"])
    # The grammar's own words differ, names of types are drawn, and we stop at the first mistake.
    if answer["messages"] and "Syntax error" not in answer["messages"][0]:
        expected = re.sub(r"selfType\d+[.\w]*", "object", answer["messages"][0]).split("\nERROR")[0]
        assert problems == [expected]


def run(expression: str, limit: int = 10_000, **variables: Any) -> Any:
    return running.run(running.program(expression, tuple(variables)), machine.Machine(variables, limit))


def test_an_expression_that_takes_too_long_is_stopped() -> None:
    with pytest.raises(machine.CostExceeded):
        run("x.map(a, x.map(b, x.map(c, a + b + c))).size() > 0", x=list(range(100)))


def test_nothing_in_an_expression_can_hide_that_it_takes_too_long() -> None:
    with pytest.raises(machine.CostExceeded):
        run("x.exists(a, x.all(b, x.all(c, true))) || true", x=list(range(100)))


def test_a_variable_of_a_loop_hides_an_outer_one_only_inside_the_loop() -> None:
    assert run("[1, 2].map(x, x)[0] + x", x=10) == 11


@pytest.mark.parametrize("text", ["(" * 500 + "1" + ")" * 500, "!" * 500 + "true", "1" + "+1" * 1000, "a" + ".b" * 500])
def test_an_expression_of_endless_depth_is_refused(text: str) -> None:
    with pytest.raises(syntax.Mistake, match="recursion limit"):
        parsing.parse(text)


def test_names_that_the_language_reserves_are_escaped() -> None:
    names = ["namespace", "a-b", "a.b/c", "x__y", "plain", "ümlaut", "0a"]

    escaped = [forms.escaped(name) for name in names]

    assert escaped == ["__namespace__", "a__dash__b", "a__dot__b__slash__c", "x__underscores__y", "plain", None, None]


ALPHABET = st.sampled_from(
    [
        *(
            "self",
            ".",
            "s",
            "list",
            "(",
            ")",
            "[",
            "]",
            "{",
            "}",
            "1",
            "'a'",
            "+",
            "-",
            "&&",
            "||",
            "?",
            ":",
            "!",
            ",",
            "x",
        ),
        *("all", "map", "has", "size", "in", "==", "<", "0.5", "null", "true", "matches", "%", "/", "optional", "of"),
    ]
)


@given(st.lists(ALPHABET, max_size=12))
def test_no_text_breaks_the_compiler(words: list[str]) -> None:
    problems_of_rule({"rule": " ".join(words) or "true"})


PLAIN = st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.text(max_size=3)
ANY = st.recursive(PLAIN, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner))


@given(ANY, ANY)
def test_equality_is_symmetric_and_never_fails(left: Any, right: Any) -> None:
    assert values.equal(left, right) == values.equal(right, left)
    assert values.equal(left, left)
