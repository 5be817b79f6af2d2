"""kubectl and kinds that were defined a moment ago."""

import re
from pathlib import Path
from typing import Any

import pytest
from kubectl_runner import Kubectl

from octarbiter.testing.cluster import EmbeddedCluster

GADGETS: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "gadgets.clients.example.org"},
    "spec": {
        "group": "clients.example.org",
        "scope": "Namespaced",
        "names": {"plural": "gadgets", "singular": "gadget", "kind": "Gadget", "shortNames": ["gg"]},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "required": ["replicas"],
                                "properties": {
                                    "replicas": {"type": "integer", "maximum": 9, "description": "How many."},
                                    "colour": {"type": "string", "default": "grey"},
                                },
                                "x-kubernetes-validations": [{"rule": "self.replicas != 3", "message": "not three"}],
                            },
                            "status": {"type": "object", "properties": {"replicas": {"type": "integer"}}},
                        },
                    }
                },
                "subresources": {
                    "status": {},
                    "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"},
                },
                "additionalPrinterColumns": [{"name": "Wanted", "type": "integer", "jsonPath": ".spec.replicas"}],
            }
        ],
    },
}


@pytest.fixture(scope="session")
def defined(programs: dict[str, Path], cluster: EmbeddedCluster, home: Path) -> None:
    kubectl = Kubectl(programs["kubectl"], cluster.kubeconfig, home, "default")
    kubectl("create", "-f", "-", input=GADGETS)
    kubectl("wait", "--for=condition=Established", "crd/gadgets.clients.example.org", "--timeout=30s")


@pytest.fixture
def custom(defined: None, kubectl: Kubectl) -> Kubectl:
    """Where there are gadgets."""
    return kubectl


def gadget(**spec: object) -> dict[str, object]:
    return {"apiVersion": "clients.example.org/v1", "kind": "Gadget", "metadata": {"name": "g"}, "spec": spec}


def test_a_custom_object_is_created_shown_edited_and_patched(custom: Kubectl) -> None:
    assert custom("apply", "-f", "-", input=gadget(replicas=1)) == "gadget.clients.example.org/g created"
    assert custom("apply", "-f", "-", input=gadget(replicas=1)) == "gadget.clients.example.org/g unchanged"
    assert [line.split() for line in custom("get", "gg").splitlines()] == [["NAME", "WANTED"], ["g", "1"]]
    assert re.search(r"Spec:\n +Colour: +grey\n +Replicas: +1\n", custom("describe", "gadget", "g"))
    custom("edit", "gadget", "g", editor="sed -i s/grey/blue/")
    custom("patch", "gadget", "g", "--type=merge", "-p", '{"spec":{"replicas":2}}')
    assert custom.json("get", "gadget", "g")["spec"] == {"replicas": 2, "colour": "blue"}


def test_a_custom_object_is_explained(custom: Kubectl) -> None:
    explained = custom("explain", "gadget.spec.replicas")

    assert "KIND:       Gadget" in explained
    assert "How many." in explained


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        (
            {"replicas": 10},
            'The Gadget "g" is invalid: spec.replicas: Invalid value: 10: spec.replicas in body should be less than or '
            "equal to 9",
        ),
        ({"replicas": 3}, 'The Gadget "g" is invalid: spec: Invalid value: not three'),
        (
            {},
            'The Gadget "g" is invalid: \n* spec.replicas: Required value\n* <nil>: Invalid value: null: some '
            "validation rules were not checked because the object was invalid; correct the existing errors to complete "
            "validation",
        ),
        (
            {"replicas": 1, "size": 2},
            'Error from server (BadRequest): error when creating "STDIN": Gadget in version "v1" cannot be handled as '
            'a Gadget: strict decoding error: unknown field "spec.size"',
        ),
    ],
)
def test_a_custom_object_against_its_schema_is_refused(custom: Kubectl, spec: dict[str, object], said: str) -> None:
    assert custom.refusal("create", "-f", "-", input=gadget(**spec)) == said


def test_scale_sets_the_replicas_of_a_custom_object_and_of_a_deployment(custom: Kubectl) -> None:
    custom("create", "-f", "-", input=gadget(replicas=1))
    custom("create", "deployment", "d", "--image=busybox")

    assert custom("scale", "gadget", "g", "--replicas=5") == "gadget.clients.example.org/g scaled"
    assert custom("get", "gg").splitlines()[1].split() == ["g", "5"]
    assert custom("scale", "deployment", "d", "--replicas=3", "--current-replicas=1") == "deployment.apps/d scaled"
    assert custom("get", "deployment", "d", "-o=jsonpath={.spec.replicas}") == "3"
    assert custom.refusal("scale", "deployment", "d", "--replicas=4", "--current-replicas=9") == (
        "error: Expected replicas to be 9, was 3"
    )
