"""`octo logs` of real containers. The pods are made by the tests, labelled as the controller labels them."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from octo_runner import Octo, job, with_crds

from octarbiter.api import scheme
from octarbiter.cli.exits import Exit
from octarbiter.testing.kubernetes.bed import Testbed

pytestmark = pytest.mark.xdist_group("real-node")


@pytest.fixture
def octo(real_bed: Testbed) -> Iterator[Octo]:
    plane = with_crds(real_bed).control_plane
    name = plane.create_namespace()
    yield Octo(plane, name)
    plane.request("DELETE", scheme.NAMESPACES.path(name=name))


def start(octo: Octo, uid: str, index: int, attempt: int, script: str, until: str, **spec: Any) -> str:
    name = f"demo-worker-0-{attempt}-{index}"
    labels = {"octopus.openi.pcl.cn/taskset-uid": uid, "PodTaskRole": "worker", "PodTaskIndex": str(index)}
    side = {"name": "side", "image": "busybox", "command": ["sh", "-c", "echo from the side"]}
    main = {"name": "main", "image": "busybox", "command": ["sh", "-c", script], **spec.pop("main", {})}
    body = {
        "metadata": {"name": name, "labels": labels},
        "spec": {"restartPolicy": "Never", "containers": [main, side], **spec},
    }
    octo.plane.request("POST", scheme.PODS.path(octo.namespace), body)
    octo.plane.kubectl("wait", "-n", octo.namespace, f"pod/{name}", f"--for={until}", "--timeout=120s")
    return name


ENDED = "jsonpath={.status.containerStatuses[?(@.name=='main')].state.terminated}"


def test_lines_of_several_replicas_begin_with_their_names(octo: Octo) -> None:
    uid = octo.create(job())["metadata"]["uid"]
    for index in (0, 1):
        start(octo, uid, index, 0, f"echo one {index}; echo two {index}", ENDED)
    both = octo("logs", "demo")
    one = octo("logs", "demo", "--role", "worker", "--index", "1", "--tail", "1")
    side = octo("logs", "demo", "--index", "0", "--container", "side")
    timed = octo("logs", "demo", "--index", "0", "--timestamps")

    assert both.stdout == "worker-0: one 0\nworker-0: two 0\nworker-1: one 1\nworker-1: two 1\n"
    assert one.stdout == "two 1\n"
    assert side.stdout == "from the side\n"
    assert re.fullmatch(r"\d{4}-\S+Z one 0\n\d{4}-\S+Z two 0\n", timed.stdout)


def test_the_replica_whose_pod_is_gone_does_not_hide_the_others(octo: Octo) -> None:
    uid = octo.create(job())["metadata"]["uid"]
    start(octo, uid, 0, 0, "echo here", ENDED)
    said = octo("logs", "demo")

    assert said.stdout == "worker-0: here\n"
    assert said.stderr == "worker-1 has no pod yet\n"
    assert said.exit_code == Exit.OK


def test_following_goes_on_with_the_next_pod_of_a_retried_replica_until_the_end(octo: Octo) -> None:
    uid = octo.create(job())["metadata"]["uid"]
    start(octo, uid, 0, 0, "echo first; exit 1", ENDED)
    with octo.running("logs", "-f", "demo", "--index", "0") as following:
        assert following.stdout is not None
        assert following.stdout.readline() == "first\n"
        start(octo, uid, 0, 1, "echo second", ENDED)
        assert following.stdout.readline() == "second\n"
        octo.set_status("demo", state="Succeeded")
        rest, told = following.communicate(timeout=60)

    assert (rest, told, following.returncode) == ("", "", Exit.OK)


def test_the_container_before_a_restart_can_still_be_read(octo: Octo) -> None:
    uid = octo.create(job())["metadata"]["uid"]
    script = "if [ -e /kept/x ]; then echo again; sleep 1000; fi; touch /kept/x; echo before; exit 1"
    main = {"volumeMounts": [{"name": "kept", "mountPath": "/kept"}]}
    restarted = "jsonpath={.status.containerStatuses[?(@.name=='main')].restartCount}=1"
    volumes = [{"name": "kept", "emptyDir": {}}]
    start(octo, uid, 0, 0, script, restarted, main=main, volumes=volumes, restartPolicy="OnFailure")

    assert octo("logs", "demo", "--index", "0", "--previous").stdout == "before\n"
