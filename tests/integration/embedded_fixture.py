"""A whole embedded cluster, real kubectl where this machine has one, and waiting for what a pod becomes."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from typing import Any

import pytest

from octarbiter.testing.cluster import EmbeddedCluster
from octarbiter.testing.kubernetes import build
from octarbiter.testing.kubernetes.connection import ApiError

Json = dict[str, Any]
PODS = "/api/v1/namespaces/default/pods"
PATIENCE_S = 60.0


def kubectl(
    cluster: EmbeddedCluster, *words: str, input: bytes = b"", token: str = ""
) -> subprocess.CompletedProcess[bytes]:
    program = build.find("kubectl")
    if program is None:
        pytest.skip("this machine has no kubectl")
    argv = [str(program), f"--kubeconfig={cluster.kubeconfig}", *([f"--token={token}"] if token else []), *words]
    return subprocess.run(
        argv, input=input, capture_output=True, timeout=PATIENCE_S, check=False, env={"HOME": "/nonexistent"}
    )


def shell_pod(name: str, script: str, **container: Any) -> Json:
    """Runs the script once."""
    main = {"name": "main", "image": "none", "command": ["sh", "-c", script], **container}
    spec = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 0, "containers": [main]}
    return {"metadata": {"name": name}, "spec": spec}


def run(cluster: EmbeddedCluster, pod: Json, *phases: str) -> Json:
    """Creates the pod and waits until it is in one of the phases."""
    cluster.request("POST", PODS, pod)
    return wait(cluster, pod["metadata"]["name"], *phases)


def wait(cluster: EmbeddedCluster, name: str, *phases: str) -> Json:
    seen: Json = {}

    def arrived() -> bool:
        seen.update(cluster.request("GET", f"{PODS}/{name}"))
        return seen["status"]["phase"] in phases

    eventually(arrived)
    return seen


def eventually(is_true: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE_S
    while not is_true():
        assert time.monotonic() < until, "it did not come true"
        time.sleep(0.05)


def refusal(cluster: EmbeddedCluster, method: str, path: str, body: Any = None) -> tuple[int, str]:
    with pytest.raises(ApiError) as caught:
        cluster.request(method, path, body)
    return caught.value.status, str(caught.value)
