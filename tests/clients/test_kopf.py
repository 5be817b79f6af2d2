"""An operator of the kopf framework, as its users write them: it sees a new object, does its part and says so."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kubernetes import client, config, watch
from octarbiter.testing.cluster import EmbeddedCluster

pytest.importorskip("kopf")

GROUP = "operators.example.org"
OPERATOR = """
import kopf


@kopf.on.create("operators.example.org", "v1", "greetings")
def greet(spec, patch, logger, **_):
    logger.info("somebody to greet")
    patch.status["text"] = f"hello {spec['whom']}"


@kopf.on.field("operators.example.org", "v1", "greetings", field="spec.whom")
def renamed(old, new, patch, **_):
    if old is not None:
        patch.status["text"] = f"hello {new}, no longer {old}"


@kopf.on.delete("operators.example.org", "v1", "greetings")
def part(**_):
    pass
"""
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "spec": {"type": "object", "required": ["whom"], "properties": {"whom": {"type": "string"}}},
        "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    },
}
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"greetings.{GROUP}"},
    "spec": {
        "group": GROUP,
        "scope": "Namespaced",
        "names": {"plural": "greetings", "singular": "greeting", "kind": "Greeting"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": SCHEMA},
                "subresources": {"status": {}},
            }
        ],
    },
}


@pytest.fixture
def operator(cluster: EmbeddedCluster, namespace: str, tmp_path: Path) -> Iterator[Path]:
    """Runs while the test does; the file is its log."""
    cluster.request("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", DEFINITION)
    program = tmp_path / "operator.py"
    program.write_text(OPERATOR)
    log = tmp_path / "operator.log"
    argv = [sys.executable, "-m", "kopf", "run", "--standalone", f"--namespace={namespace}", "--log-format=json"]
    environment = {"KUBECONFIG": str(cluster.kubeconfig), "HOME": str(tmp_path), "PATH": ""}
    with log.open("w") as output:
        process = subprocess.Popen([*argv, str(program)], env=environment, stdout=output, stderr=subprocess.STDOUT)
    try:
        yield log
    finally:
        process.terminate()
        process.wait()


def test_an_operator_reacts_to_creation_change_and_deletion(
    cluster: EmbeddedCluster, namespace: str, operator: Path
) -> None:
    """That the text changes shows that its handler ran; that the object goes, that its finalizer was taken away."""
    with config.new_client_from_config(str(cluster.kubeconfig)) as api:
        objects = client.CustomObjectsApi(api)
        place = (GROUP, "v1", namespace, "greetings")
        body = {"apiVersion": f"{GROUP}/v1", "kind": "Greeting", "metadata": {"name": "first"}, "spec": {"whom": "Ada"}}
        objects.create_namespaced_custom_object(*place, body)
        told: list[str | None] = []
        watching = watch.Watch()
        for event in watching.stream(objects.list_namespaced_custom_object, *place, timeout_seconds=30):
            text = event["object"].get("status", {}).get("text")
            if event["type"] == "DELETED":
                watching.stop()
                told.append(None)
            elif text and text not in told:
                told.append(text)
                if len(told) == 1:
                    objects.patch_namespaced_custom_object(*place, "first", {"spec": {"whom": "Grace"}})
                else:
                    objects.delete_namespaced_custom_object(*place, "first")

    assert told == ["hello Ada", "hello Grace, no longer Ada", None], operator.read_text()
