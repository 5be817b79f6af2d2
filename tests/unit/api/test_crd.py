"""The CRD: every field explained, nothing the server would stumble over, the written files up to date."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from octarbiter.api import crd, facts, fields, kinds, rules, schema
from octarbiter.api.kinds import Kind
from octarbiter.api.meta import Json

ROOT = Path(__file__).resolve().parents[3]


def nodes(node: schema.Node) -> Iterator[schema.Node]:
    yield node
    for child in (*node.fields.values(), node.items, node.values):
        if child:
            yield from nodes(child)


ALL = [node for kind in kinds.ALL for node in nodes(kind.root)]


def schemas(found: Json) -> Iterator[Json]:
    yield found
    for child in found.get("properties", {}).values():
        yield from schemas(child)
    for name in ("items", "additionalProperties"):
        if name in found:
            yield from schemas(found[name])


def openapi_of(kind: Kind) -> Json:
    found: Json = crd.render(kind)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return found


each_kind = pytest.mark.parametrize("kind", kinds.ALL, ids=lambda kind: kind.definition)


def test_every_field_has_a_sentence_and_every_sentence_a_field() -> None:
    explained = {node.key for node in ALL if node.key and not node.key.endswith(("[]", "{}"))}

    assert set(fields.MEANING) == explained


def test_every_sentence_is_one() -> None:
    for key, meaning in fields.MEANING.items():
        assert meaning[-1] == "." and meaning.strip() == meaning, key  # noqa: PT018


def test_every_fact_and_every_rule_is_about_a_field_that_exists() -> None:
    known = {node.key for node in ALL} | {node.struct for node in ALL}

    assert set(facts.FACTS) <= known
    assert set(rules.RULES) <= known


@each_kind
def test_every_word_is_checked_by_a_rule_and_none_by_an_enum(kind: Kind) -> None:
    found = list(schemas(openapi_of(kind)))
    checked = [
        rule
        for one in found
        for rule in one.get("x-kubernetes-validations", ())
        if rule["rule"].startswith("self in [")
    ]

    assert len(checked) == sum(1 for node in nodes(kind.root) if node.facts.words)
    assert not any("enum" in one for one in found)


@each_kind
def test_every_immutable_field_has_a_transition_rule(kind: Kind) -> None:
    found = [rule for one in schemas(openapi_of(kind)) for rule in one.get("x-kubernetes-validations", ())]
    immutable = [node for node in nodes(kind.root) if node.facts.immutable]

    assert sum(rule["message"] == crd.IMMUTABLE and "oldSelf" in rule["rule"] for rule in found) == len(immutable)


@each_kind
def test_every_part_of_the_schema_has_a_type_and_every_number_a_width(kind: Kind) -> None:
    for one in schemas(openapi_of(kind)):
        if one.get("x-kubernetes-int-or-string"):
            assert "type" not in one
            continue
        assert one["type"] in ("object", "array", "string", "integer", "boolean")
        assert one["type"] != "integer" or one["format"] in ("int32", "int64")


@each_kind
def test_only_pod_templates_and_units_keep_fields_we_do_not_know(kind: Kind) -> None:
    found = [node.key for node in nodes(kind.root) if node.is_open and node.key and "template." not in node.key]
    rendered = [one for one in schemas(openapi_of(kind)) if "x-kubernetes-preserve-unknown-fields" in one]

    assert found == {"TaskSet": ["Role.template"], "Queue": [], "QueueJob": ["QueueJobSpec.resourceunit"]}[kind.struct]
    assert bool(rendered) == bool(found)


def test_the_older_name_of_a_queuejob_has_the_same_fields_and_rules() -> None:
    older, newer = (openapi_of(kind) for kind in (kinds.OLDER_TASKSET, kinds.QUEUEJOB))

    assert {**older, "description": ""} == {**newer, "description": ""}


@each_kind
def test_a_definition_in_a_group_of_kubernetes_says_that_nobody_approved_it(kind: Kind) -> None:
    annotations = crd.render(kind)["metadata"].get("annotations", {})

    assert kind.group.endswith(".k8s.io") == ("api-approved.kubernetes.io" in annotations)


def test_no_two_kinds_share_a_short_name() -> None:
    names = [name for kind in kinds.ALL for name in kind.short_names]

    assert len(names) == len(set(names))


def test_the_written_files_are_what_the_types_say() -> None:
    checked = subprocess.run(
        [sys.executable, "-m", "tools.generate", "--check"], cwd=ROOT, capture_output=True, text=True, check=False
    )

    assert (checked.returncode, checked.stderr) == (0, "")
