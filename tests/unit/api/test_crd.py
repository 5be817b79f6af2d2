"""The CRD: every field explained, nothing the server would stumble over, the written files up to date."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from octarbiter.api import crd, fields, rules, schema
from octarbiter.api.meta import Json

ROOT = Path(__file__).resolve().parents[3]


def nodes(node: schema.Node) -> Iterator[schema.Node]:
    yield node
    for child in (*node.fields.values(), node.items, node.values):
        if child:
            yield from nodes(child)


ALL = [*nodes(schema.SPEC), *nodes(schema.STATUS)]


def schemas(found: Json) -> Iterator[Json]:
    yield found
    for child in found.get("properties", {}).values():
        yield from schemas(child)
    for name in ("items", "additionalProperties"):
        if name in found:
            yield from schemas(found[name])


@pytest.fixture(scope="module")
def openapi() -> Json:
    found: Json = crd.render()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return found


def test_every_field_has_a_sentence_and_every_sentence_a_field() -> None:
    explained = {node.key for node in ALL if node.key and not node.key.endswith("[]")}

    assert set(fields.MEANING) == explained


def test_every_sentence_is_one() -> None:
    for key, meaning in fields.MEANING.items():
        assert meaning[-1] == "." and meaning.strip() == meaning, key  # noqa: PT018


def test_every_fact_and_every_rule_is_about_a_field_that_exists() -> None:
    known = {node.key for node in ALL} | {node.struct for node in ALL} | {"TaskSet"}

    assert set(schema.FACTS) <= known
    assert set(rules.RULES) <= known


def test_every_word_is_checked_by_a_rule_and_none_by_an_enum(openapi: Json) -> None:
    found = list(schemas(openapi))
    checked = [rule for one in found for rule in one.get("x-kubernetes-validations", ()) if "self in [" in rule["rule"]]

    assert len(checked) == sum(1 for node in ALL if node.facts.words)
    assert not any("enum" in one for one in found)


def test_every_immutable_field_has_a_transition_rule(openapi: Json) -> None:
    found = [rule for one in schemas(openapi) for rule in one.get("x-kubernetes-validations", ())]
    immutable = [node for node in ALL if node.facts.immutable]

    assert sum(rule["message"] == crd.IMMUTABLE and "oldSelf" in rule["rule"] for rule in found) == len(immutable)


def test_every_part_of_the_schema_has_a_type_and_every_number_a_width(openapi: Json) -> None:
    for one in schemas(openapi):
        assert one["type"] in ("object", "array", "string", "integer", "boolean")
        assert one["type"] != "integer" or one["format"] in ("int32", "int64")


def test_only_pod_templates_keep_fields_we_do_not_know(openapi: Json) -> None:
    roles = openapi["properties"]["spec"]["properties"]["roles"]["items"]["properties"]
    template = roles.pop("template")

    assert not any("x-kubernetes-preserve-unknown-fields" in one for one in schemas(openapi))
    assert template["x-kubernetes-preserve-unknown-fields"] is True


def test_the_written_files_are_what_the_types_say() -> None:
    checked = subprocess.run(
        [sys.executable, "-m", "tools.generate", "--check"], cwd=ROOT, capture_output=True, text=True, check=False
    )

    assert (checked.returncode, checked.stderr) == (0, "")
