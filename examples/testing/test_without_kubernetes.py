# examples/testing/test_without_kubernetes.py
import os
import subprocess
from pathlib import Path

from octarbiter.testing.cluster import EmbeddedCluster

MY_JOB = Path(__file__).with_name("my-job.yaml")


def test_my_job_succeeds(octarbiter_cluster: EmbeddedCluster, octarbiter_namespace: str) -> None:
    environment = {**os.environ, "KUBECONFIG": str(octarbiter_cluster.kubeconfig)}
    namespace = f"--namespace={octarbiter_namespace}"

    def octo(*arguments: str) -> int:
        return subprocess.run(["octo", *arguments], env=environment).returncode

    assert octo("submit", namespace, f"--filename={MY_JOB}") == 0
    assert octo("wait", namespace, "my-job", "--for=running") == 0
    path = f"/api/v1/namespaces/{octarbiter_namespace}/pods/my-job-worker-0-0-0"
    octarbiter_cluster.request("DELETE", path)
    assert octo("wait", namespace, "my-job") == 0
