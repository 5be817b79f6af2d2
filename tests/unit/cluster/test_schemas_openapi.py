"""OpenAPI documents: what kubectl looks for in them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from octarbiter.cluster.apiserver import kinds
from octarbiter.cluster.apiserver.schemas import openapi

Json = dict[str, Any]

CRD: Json = {
    "metadata": {"name": "foos.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "foos", "kind": "Foo"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "description": "A foo.",
                        "properties": {"spec": {"type": "object", "properties": {"bar": {"type": "string"}}}},
                    }
                },
            },
            {"name": "v2", "served": False, "storage": False},
        ],
    },
}


def document(api_version: str, *crds: Json) -> Json:
    found: Json = json.loads(openapi.document(api_version, crds))
    return found


def operations(found: Json) -> Iterator[tuple[str, str, Json]]:
    for path, methods in found["paths"].items():
        for method, operation in methods.items():
            if method != "parameters":
                yield path, method, operation


API_VERSIONS = sorted({row.api_version for row in kinds.BUILT_IN})


@pytest.mark.parametrize("api_version", API_VERSIONS)
def test_every_reference_is_answered_in_the_same_document(api_version: str) -> None:
    found = document(api_version)
    text = json.dumps(found)

    referred = {part.split('"')[0] for part in text.split('"#/components/schemas/')[1:]}

    assert referred <= found["components"]["schemas"].keys()
    assert found["paths"]


def test_every_resource_that_can_be_patched_says_that_it_understands_field_validation() -> None:
    documents = {api_version: document(api_version) for api_version in API_VERSIONS}
    for row in kinds.BUILT_IN:
        if "patch" not in row.verbs:
            continue
        wanted = {"group": row.group, "version": row.version, "kind": row.kind}
        patches = [
            operation
            for _, method, operation in operations(documents[row.api_version])
            if method == "patch" and operation["x-kubernetes-group-version-kind"] == wanted
        ]

        assert patches, row
        for patch in patches:
            assert "fieldValidation" in [parameter["name"] for parameter in patch["parameters"]]
            assert "application/strategic-merge-patch+json" in patch["requestBody"]["content"]


def test_explain_finds_kind_and_description_of_a_resource() -> None:
    found = document("batch/v1")
    kind = found["paths"]["/apis/batch/v1/namespaces/{namespace}/jobs"]["get"]["x-kubernetes-group-version-kind"]
    job = next(
        s for s in found["components"]["schemas"].values() if kind in s.get("x-kubernetes-group-version-kind", [])
    )

    assert "Job represents" in job["description"]


def test_a_custom_kind_is_described_by_its_definition() -> None:
    found = document("example.com/v1", CRD)
    foo = found["components"]["schemas"]["com.example.v1.Foo"]

    assert foo["description"] == "A foo."
    assert set(foo["properties"]) == {"apiVersion", "kind", "metadata", "spec"}
    assert foo["x-kubernetes-group-version-kind"] == [{"group": "example.com", "version": "v1", "kind": "Foo"}]
    assert "/apis/example.com/v1/namespaces/{namespace}/foos/{name}/status" in found["paths"]


def test_custom_kinds_do_not_claim_to_understand_strategic_patches() -> None:
    patches = [operation for _, method, operation in operations(document("example.com/v1", CRD)) if method == "patch"]

    assert patches
    assert all("application/strategic-merge-patch+json" not in patch["requestBody"]["content"] for patch in patches)


def test_versions_that_are_not_served_are_not_described() -> None:
    assert document("example.com/v2", CRD)["paths"] == {}


def test_a_document_is_always_the_same() -> None:
    assert openapi.document("v1", []) == openapi.document("v1", [])
