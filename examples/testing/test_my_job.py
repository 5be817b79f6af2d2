# examples/testing/test_my_job.py
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from octarbiter.testing.kubernetes import bed

MY_JOB = Path(__file__).with_name("my-job.yaml")

Octo = Callable[..., int]


@pytest.fixture(scope="session")
def testbed() -> Iterator[bed.Testbed]:
    with bed.Testbed(fake_nodes=3) as testbed:
        yield testbed


@pytest.fixture(scope="session")
def octo(testbed: bed.Testbed) -> Iterator[Octo]:
    """The command, pointed at the test bed, with a controller behind it; answers the exit code."""
    environment = {**os.environ, "KUBECONFIG": str(testbed.control_plane.kubeconfig)}

    def octo(*arguments: str) -> int:
        return subprocess.run(["octo", *arguments], env=environment).returncode

    assert octo("install", "--crds-only", "--apply") == 0
    controller = subprocess.Popen(["octo", "controller", "--health-address="], env=environment)
    yield octo
    controller.terminate()
    controller.wait()


def test_my_job_succeeds_though_one_worker_is_evicted_and_another_fails(testbed: bed.Testbed, octo: Octo) -> None:
    plane = testbed.control_plane
    namespace = plane.create_namespace()

    assert octo("submit", f"--namespace={namespace}", f"--filename={MY_JOB}") == 0
    plane.kubectl("wait", f"--namespace={namespace}", "--for=create", "pod/my-job-worker-0-0-0")
    testbed.fake_nodes.evict(namespace, "my-job-worker-0-0-0")
    assert octo("wait", f"--namespace={namespace}", "my-job") == 0
