"""Custom objects: pruned, defaulted and judged as by the real server."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from octarbiter.cluster.apiserver import structural
from octarbiter.cluster.apiserver.types import Type

GOLDEN = Path(__file__).parent / "golden"
CASES = yaml.safe_load((GOLDEN / "crd_cases.yaml").read_text())
ANSWERS = json.loads((GOLDEN / "crd_objects.json").read_text())
Json = dict[str, Any]


def type_of(schema: Json) -> Type:
    return structural.parse({"type": "object", "properties": {"spec": schema}})


TYPES = {name: type_of(schema) for name, schema in CASES["schemas"].items()}
LATER = {**TYPES, **{name: type_of(schema) for name, schema in CASES["then"].items()}}


def whole(spec: Json) -> Json:
    return {"apiVersion": "x/v1", "kind": "X", "metadata": {"name": "x"}, "spec": copy.deepcopy(spec)}


def judged(spec: Json, type: Type, old: Json | None = None) -> Json:
    obj = whole(spec)
    structural.prune(obj, type)
    structural.default(obj, type)
    problems = structural.problems_of(obj, type, old)
    if not problems:
        return {"stored": obj["spec"]}
    return {"causes": by_field([{"reason": p.reason, "message": p.message, "field": p.field} for p in problems])}


def by_field(causes: list[Json]) -> list[Json]:
    """The server goes through the fields of an object in no order."""
    return sorted(causes, key=lambda cause: (cause["field"], cause["message"]))


def expected(answer: Json) -> Json:
    return {"causes": by_field(answer["causes"])} if "causes" in answer else {"stored": answer["stored"]}


NUMBERED = list(zip(CASES["objects"], ANSWERS, strict=True))


@pytest.mark.parametrize(("case", "answer"), NUMBERED, ids=[f"{c['schema']}-{n}" for n, (c, _) in enumerate(NUMBERED)])
def test_a_new_object_gets_the_real_servers_answer(case: Json, answer: Json) -> None:
    assert judged(case["create"], TYPES[case["schema"]]) == expected(answer["create"])


UPDATES = [(case, answer) for case, answer in NUMBERED if "update" in answer]


@pytest.mark.parametrize(("case", "answer"), UPDATES, ids=[f"{c['schema']}-{n}" for n, (c, _) in enumerate(UPDATES)])
def test_a_changed_object_gets_the_real_servers_answer(case: Json, answer: Json) -> None:
    old = whole(answer["create"]["stored"])

    assert judged(case["update"], LATER[case["schema"]], old) == expected(answer["update"])


def test_what_nobody_declared_is_named_when_it_is_dropped() -> None:
    obj = {
        "metadata": {"name": "x", "odd": 1},
        "extra": 1,
        "spec": {"inner": {"a": "x", "zz": {"y": 1}}, "keyed": [{"q": 1}]},
    }

    dropped = structural.prune(obj, TYPES["containers"])

    assert dropped == ["extra", "metadata.odd", "spec.inner.zz", "spec.keyed[0].q"]
    assert obj == {"metadata": {"name": "x"}, "spec": {"inner": {"a": "x"}, "keyed": [{}]}}


def test_defaults_are_copies() -> None:
    first, second = whole({"inner": {"a": "x"}}), whole({"inner": {"a": "x"}})
    for obj in (first, second):
        structural.default(obj, TYPES["containers"])
    first["spec"]["inner"]["c"]["d"] = 5

    assert second["spec"]["inner"]["c"]["d"] == 4


NAMES = st.sampled_from(
    ["must", "text", "whole", "keyed", "set", "inner", "a", "b", "c", "kept", "name", "port", "one", "x"]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats(allow_nan=False) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=15,
)
SPECS = st.dictionaries(NAMES, JSON, max_size=6)
SCHEMAS = st.sampled_from(sorted(TYPES))


@given(SCHEMAS, SPECS)
def test_no_object_breaks_pruning_defaulting_or_validation(schema: str, spec: Json) -> None:
    judged(spec, TYPES[schema])


@given(SCHEMAS, SPECS)
def test_pruning_twice_is_pruning_once(schema: str, spec: Json) -> None:
    once = whole(spec)
    structural.prune(once, TYPES[schema])
    twice = copy.deepcopy(once)

    assert structural.prune(twice, TYPES[schema]) == []
    assert twice == once


@given(SCHEMAS, SPECS)
def test_defaulting_twice_is_defaulting_once(schema: str, spec: Json) -> None:
    once = whole(spec)
    structural.default(once, TYPES[schema])
    twice = copy.deepcopy(once)
    structural.default(twice, TYPES[schema])

    assert twice == once


@given(SCHEMAS, SPECS, SPECS)
def test_no_update_breaks_validation(schema: str, old: Json, new: Json) -> None:
    judged(new, TYPES[schema], whole(old))


SCALARS = st.integers(-100, 100) | st.text(max_size=8) | st.booleans()


@given(st.dictionaries(st.sampled_from(["must", "text", "whole", "real", "level", "open"]), SCALARS))
def test_fields_that_do_not_change_are_never_refused(spec: Json) -> None:
    obj = whole({"must": "x", **spec})

    assert structural.validate(obj, TYPES["scalars"], copy.deepcopy(obj)) == []
