"""Ports of pods, as Python clients reach them: over a WebSocket with a channel for each."""

from __future__ import annotations

import asyncio
import socketserver
import ssl
import threading
from collections.abc import Iterator

import aiohttp
import kr8s
import pytest
from embedded_fixture import PODS, refusal, run, shell_pod

from kubernetes import client, config, stream
from octarbiter.testing.cluster import EmbeddedCluster


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(programs=True, services=False) as cluster:
        run(cluster, shell_pod("p", "sleep 10000"), "Running")
        yield cluster


class Greeter(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        for name in self.rfile:
            self.wfile.write(b"hello " + name)


@pytest.fixture
def port() -> Iterator[int]:
    """Where somebody says hello to each line. Pods share the machine's network."""
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Greeter) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


@pytest.fixture
def closed_port() -> int:
    with socketserver.TCPServer(("127.0.0.1", 0), Greeter) as server:
        return server.server_address[1]


def test_the_official_python_client_reaches_a_port(cluster: EmbeddedCluster, port: int, closed_port: int) -> None:
    core = client.CoreV1Api(config.new_client_from_config(str(cluster.kubeconfig)))
    ports = f"{closed_port},{port}"
    forward = stream.portforward(core.connect_get_namespaced_pod_portforward, "p", "default", ports=ports)
    connection = forward.socket(port)
    connection.settimeout(30)
    connection.sendall(b"Ada\n")

    assert connection.makefile("rb").readline() == b"hello Ada\n"
    assert forward.error(closed_port).endswith(f"nobody listens on port {closed_port}")
    forward.close()


async def test_kr8s_reaches_a_port(cluster: EmbeddedCluster, port: int) -> None:
    api = await kr8s.asyncio.api(kubeconfig=str(cluster.kubeconfig))
    pod = await kr8s.asyncio.objects.Pod.get("p", namespace="default", api=api)
    async with pod.portforward(port, local_port="auto") as local:
        reader, writer = await asyncio.open_connection("127.0.0.1", local)
        writer.write(b"Grace\n")
        async with asyncio.timeout(30):
            said = await reader.readline()
        writer.close()

    assert said == b"hello Grace\n"


@pytest.mark.parametrize("ports", ["", "http", "0", "80,65536", ",".join(["80"] * 101)])
async def test_ports_that_cannot_be_are_refused(cluster: EmbeddedCluster, ports: str) -> None:
    url = f"{cluster.url}{PODS}/p/portforward?ports={ports}"
    tls = ssl.create_default_context(cadata=cluster.ca_pem.decode())
    headers = {"Authorization": f"Bearer {cluster.token}"}
    async with aiohttp.ClientSession() as session:
        with pytest.raises(aiohttp.WSServerHandshakeError, match="400"):
            await session.ws_connect(url, protocols=["v4.channel.k8s.io"], headers=headers, ssl=tls)


def test_nobody_is_forwarded_who_does_not_ask_for_it_properly(cluster: EmbeddedCluster) -> None:
    code, told = refusal(cluster, "GET", f"{PODS}/p/portforward?ports=80")

    assert (code, "Upgrade request required" in told) == (400, True)


async def test_whoever_may_only_read_reaches_no_port(cluster: EmbeddedCluster) -> None:
    """A WebSocket begins with a GET, which looks like reading."""
    rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/default"
    rule = {"apiGroups": [""], "resources": ["pods/portforward"], "verbs": ["get"]}
    cluster.request("POST", f"{rbac}/roles", {"metadata": {"name": "reader"}, "rules": [rule]})
    binding = {
        "metadata": {"name": "bob-reads"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "bob"}],
    }
    cluster.request("POST", f"{rbac}/rolebindings", binding)
    tls = ssl.create_default_context(cadata=cluster.ca_pem.decode())
    headers = {"Authorization": f"Bearer {cluster.token}", "Impersonate-User": "bob"}
    url = f"{cluster.url}{PODS}/p/portforward?ports=80"
    async with aiohttp.ClientSession() as session, session.get(url, headers=headers, ssl=tls) as answer:
        told = await answer.json()

    assert (answer.status, told["reason"]) == (403, "Forbidden")
    assert 'cannot create resource "pods/portforward"' in told["message"]
