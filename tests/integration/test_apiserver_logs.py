"""What containers said, through the API of the embedded cluster and through kubectl."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.client import HTTPSConnection
from pathlib import Path
from ssl import create_default_context
from urllib.parse import urlsplit

import pytest
from embedded_fixture import PODS, eventually, kubectl, refusal, run, shell_pod

from octarbiter.testing.cluster import EmbeddedCluster

COUNTING = "for i in 1 2 3 4 5; do echo line $i; done"


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(programs=True, services=False) as cluster:
        run(cluster, shell_pod("counts", COUNTING), "Succeeded")
        yield cluster


def answer(cluster: EmbeddedCluster, path: str) -> tuple[int, str | None, bytes]:
    url = urlsplit(cluster.url)
    tls = create_default_context(cadata=cluster.ca_pem.decode())
    connection = HTTPSConnection(url.hostname or "", url.port, context=tls, timeout=60)
    connection.request("GET", path, headers={"Authorization": f"Bearer {cluster.token}"})
    response = connection.getresponse()
    found = response.status, response.getheader("Content-Type"), response.read()
    connection.close()
    return found


def test_a_log_is_plain_text_as_the_program_wrote_it(cluster: EmbeddedCluster) -> None:
    expected = b"".join(b"line %d\n" % number for number in range(1, 6))

    assert answer(cluster, f"{PODS}/counts/log") == (200, "text/plain", expected)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("tailLines=2", b"line 4\nline 5\n"),
        ("tailLines=0", b""),
        ("limitBytes=9", b"line 1\nli"),
        ("sinceTime=2999-01-01T00:00:00Z", b""),
        ("sinceTime=1999-01-01T00:00:00Z&tailLines=1", b"line 5\n"),
        ("follow=true&tailLines=1", b"line 5\n"),
        ("container=main&insecureSkipTLSVerifyBackend=true&tailLines=1", b"line 5\n"),
    ],
)
def test_a_part_of_a_log_can_be_asked_for(cluster: EmbeddedCluster, query: str, expected: bytes) -> None:
    assert answer(cluster, f"{PODS}/counts/log?{query}")[2] == expected


def test_lines_carry_their_times_on_request(cluster: EmbeddedCluster) -> None:
    text = answer(cluster, f"{PODS}/counts/log?timestamps=true&tailLines=1")[2].decode()
    stamp, _, line = text.partition(" ")

    assert (len(stamp), stamp[-1], line) == (30, "Z", "line 5\n")


@pytest.mark.parametrize(
    ("path", "code", "message"),
    [
        ("nobody/log", 404, 'pods "nobody" not found'),
        ("counts/log?container=other", 400, "container other is not valid for pod counts"),
        ("counts/log?previous=true", 400, 'previous terminated container "main" in pod "counts" not found'),
        ("counts/log?tailLines=x", 400, 'strconv.ParseInt: parsing "x": invalid syntax'),
        ("counts/log?sinceTime=x", 400, 'parsing time "x"'),
        ("counts/log?tailLines=-1", 422, "tailLines: Invalid value: -1: must be greater than or equal to 0"),
        ("counts/log?limitBytes=0", 422, "limitBytes: Invalid value: 0: must be greater than 0"),
        ("counts/log?sinceSeconds=0", 422, "sinceSeconds: Invalid value: 0: must be greater than 0"),
        ("counts/log?sinceSeconds=1&sinceTime=2000-01-01T00:00:00Z", 422, "at most one of `sinceTime`"),
    ],
)
def test_what_cannot_be_shown_is_said_in_the_words_of_kubernetes(
    cluster: EmbeddedCluster, path: str, code: int, message: str
) -> None:
    found, told = refusal(cluster, "GET", f"{PODS}/{path}")

    assert found == code
    assert message in told


def test_one_of_several_containers_must_be_named(cluster: EmbeddedCluster) -> None:
    pod = shell_pod("several", "true")
    pod["spec"]["containers"].append({**pod["spec"]["containers"][0], "name": "other"})
    pod["spec"]["initContainers"] = [{**pod["spec"]["containers"][0], "name": "first"}]
    cluster.request("POST", PODS, pod)

    code, told = refusal(cluster, "GET", f"{PODS}/several/log")

    assert code == 400
    assert "a container name must be specified for pod several, choose one of: [first main other]" in told


def test_a_pod_without_a_node_has_an_empty_log(cluster: EmbeddedCluster) -> None:
    pod = shell_pod("homeless", "true")
    pod["spec"]["nodeSelector"] = {"nowhere": "true"}
    cluster.request("POST", PODS, pod)

    assert answer(cluster, f"{PODS}/homeless/log") == (204, None, b"")


def test_a_container_that_has_not_begun_says_what_it_waits_for(cluster: EmbeddedCluster) -> None:
    pod = shell_pod("waits", "true", envFrom=[{"configMapRef": {"name": "missing"}}])
    run(cluster, pod, "Pending")
    waits = 'container "main" in pod "waits" is waiting to start: CreateContainerConfigError'

    eventually(lambda: waits in answer(cluster, f"{PODS}/waits/log")[2].decode().replace("\\", ""))
    assert answer(cluster, f"{PODS}/waits/log")[0] == 400


def test_the_run_before_can_be_asked_for(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    pod = shell_pod("restarts", f"if [ -e {mark} ]; then echo second; sleep 1000; fi; touch {mark}; echo first; exit 1")
    pod["spec"]["restartPolicy"] = "Always"
    run(cluster, pod, "Running")
    eventually(lambda: answer(cluster, f"{PODS}/restarts/log")[2] == b"second\n")

    # The status, which says that there was a run before, may come a moment after its first words.
    eventually(lambda: answer(cluster, f"{PODS}/restarts/log?previous=true")[2] == b"first\n")
    cluster.request("DELETE", f"{PODS}/restarts", {"gracePeriodSeconds": 0})


def test_following_ends_with_the_container_and_misses_nothing(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    pod = shell_pod("talks", f"echo before; while [ ! -e {gate} ]; do sleep 0.05; done; seq 1 20000; echo after")
    run(cluster, pod, "Running", "Succeeded")
    heard: list[bytes] = []
    reader = threading.Thread(target=lambda: heard.append(answer(cluster, f"{PODS}/talks/log?follow=true")[2]))
    reader.start()
    gate.touch()
    reader.join(60)

    numbers = b"".join(b"%d\n" % number for number in range(1, 20001))
    assert heard == [b"before\n" + numbers + b"after\n"]


def test_kubectl_shows_logs(cluster: EmbeddedCluster) -> None:
    done = kubectl(cluster, "logs", "-f", "counts", "--tail=1")

    assert (done.returncode, done.stdout) == (0, b"line 5\n"), done.stderr


def test_discovery_tells_of_logs_and_commands(cluster: EmbeddedCluster) -> None:
    rows = {row["name"]: row["verbs"] for row in cluster.request("GET", "/api/v1")["resources"]}

    assert json.dumps([rows["pods/log"], rows["pods/exec"], rows["pods/attach"]]) == json.dumps(
        [["get"], ["create", "get"], ["create", "get"]]
    )
