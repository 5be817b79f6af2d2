"""Commands in running containers, over WebSocket: by kubectl, by the official Python client, and by hand."""

from __future__ import annotations

import asyncio
import json
import ssl
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlencode

import aiohttp
import pytest
from embedded_fixture import PATIENCE_S, PODS, eventually, kubectl, refusal, run, shell_pod

from octarbiter.testing.cluster import EmbeddedCluster

SUCCESS = {"metadata": {}, "status": "Success"}


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(programs=True, services=False) as cluster:
        run(cluster, shell_pod("p", "sleep 10000", env=[{"name": "COLOUR", "value": "green"}]), "Running")
        yield cluster


@asynccontextmanager
async def talk(
    cluster: EmbeddedCluster, *command: str, method: str = "GET", protocol: str = "v5.channel.k8s.io", **wishes: str
) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
    query = urlencode([*(("command", word) for word in command), *wishes.items()])
    tls = ssl.create_default_context(cadata=cluster.ca_pem.decode())
    headers = {"Authorization": f"Bearer {cluster.token}"}
    async with (
        aiohttp.ClientSession() as session,
        session.ws_connect(
            f"{cluster.url}{PODS}/p/exec?{query}", method=method, protocols=[protocol], headers=headers, ssl=tls
        ) as socket,
    ):
        yield socket


async def hear(socket: aiohttp.ClientWebSocketResponse) -> dict[int, bytes]:
    """What came on each channel until the server closed the connection."""
    heard: dict[int, list[bytes]] = {}
    async with asyncio.timeout(PATIENCE_S):
        async for message in socket:
            heard.setdefault(message.data[0], []).append(message.data[1:])
    assert socket.close_code == 1000
    return {channel: b"".join(pieces) for channel, pieces in heard.items()}


def verdict(heard: dict[int, bytes]) -> object:
    return json.loads(heard[3])


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("protocol", ["v5.channel.k8s.io", "v4.channel.k8s.io"])
async def test_output_errors_and_verdict_come_on_their_channels(
    cluster: EmbeddedCluster, method: str, protocol: str
) -> None:
    command = ("sh", "-c", "echo $COLOUR; echo bad >&2; exit 3")
    async with talk(cluster, *command, method=method, protocol=protocol, stdout="1", stderr="1") as socket:
        assert socket.protocol == protocol
        heard = await hear(socket)

    assert (heard[1], heard[2]) == (b"green\n", b"bad\n")
    assert verdict(heard) == {
        "metadata": {},
        "status": "Failure",
        "message": "command terminated with non-zero exit code: exit status 3",
        "reason": "NonZeroExitCode",
        "details": {"causes": [{"reason": "ExitCode", "message": "3"}]},
    }


async def test_input_ends_when_the_client_says_so(cluster: EmbeddedCluster) -> None:
    async with talk(cluster, "cat", stdin="1", stdout="1") as socket:
        await socket.send_bytes(b"\x00hello ")
        await socket.send_bytes(b"\x00world")
        await socket.send_bytes(b"\xff\x00")
        heard = await hear(socket)

    assert (heard[1], verdict(heard)) == (b"hello world", SUCCESS)


async def test_a_terminal_has_the_size_of_the_clients(cluster: EmbeddedCluster) -> None:
    async with talk(cluster, "sh", stdin="1", stdout="1", tty="1") as socket:
        await socket.send_bytes(b'\x04{"Width":101,"Height":37}')
        await socket.send_bytes(b"\x04nonsense")
        said = b""
        async with asyncio.timeout(PATIENCE_S):
            while b"37 101" not in said:
                await socket.send_bytes(b"\x00stty size\n")
                said += (await socket.receive_bytes())[1:]
        await socket.send_bytes(b"\x00exit\n")
        heard = await hear(socket)

    assert verdict(heard) == SUCCESS


async def test_errors_that_nobody_asked_for_are_not_taken_for_output(cluster: EmbeddedCluster) -> None:
    async with talk(cluster, "sh", "-c", "echo bad >&2; echo good", stdout="1") as socket:
        heard = await hear(socket)

    assert heard[1] == b"good\n"
    assert 2 not in heard


async def test_a_command_ends_when_its_client_goes_away(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    file = tmp_path / "pid"
    async with talk(cluster, "sh", "-c", f"echo $$ > {file}.new; mv {file}.new {file}; exec sleep 1000", stdout="1"):
        await asyncio.to_thread(eventually, file.exists)
    pid = int(file.read_text())

    await asyncio.to_thread(eventually, lambda: not Path(f"/proc/{pid}").exists())


async def test_a_program_waits_for_a_client_that_does_not_read(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    """It is not buffered: what the program has written stays far below what it wants to write."""
    file = tmp_path / "written"
    script = f"import os\nfor n in range(1, 3001):\n os.write(1, b'x' * 65536); open({str(file)!r}, 'w').write(str(n))"
    async with talk(cluster, "python3", "-c", script, stdout="1") as socket:
        before, seen = -1, 0
        async with asyncio.timeout(PATIENCE_S):
            while seen != before or not seen:
                before = seen
                await asyncio.sleep(0.5)
                seen = int(file.read_text() or before) if file.exists() else 0
        assert seen < 1000
        heard = await hear(socket)

    assert (len(heard[1]), verdict(heard)) == (3000 * 65536, SUCCESS)


@pytest.mark.parametrize(
    ("path", "code", "message"),
    [
        ("p/exec?command=ls", 400, "you must specify at least 1 of stdin, stdout, stderr"),
        ("p/exec?stdout=1", 400, "you must specify at least one command"),
        ("p/exec?command=ls&stdout=1", 400, "Upgrade request required"),
        ("p/exec?command=ls&stdout=1&container=q", 400, "container q is not valid for pod p"),
        ("q/exec?command=ls&stdout=1", 404, 'pods "q" not found'),
    ],
)
def test_what_cannot_be_run_is_refused_before_anything_is_upgraded(
    cluster: EmbeddedCluster, path: str, code: int, message: str
) -> None:
    found, told = refusal(cluster, "GET", f"{PODS}/{path}")

    assert found == code
    assert message in told


def test_no_command_runs_in_a_container_that_has_ended(cluster: EmbeddedCluster) -> None:
    run(cluster, shell_pod("over", "true"), "Succeeded")

    code, told = refusal(cluster, "GET", f"{PODS}/over/exec?command=true&stdout=1")

    assert code == 500
    assert 'container not found ("main")' in told


def test_kubectl_exec_passes_input_output_and_exit_code(cluster: EmbeddedCluster) -> None:
    done = kubectl(cluster, "exec", "-i", "p", "--", "sh", "-c", "cat; echo bad >&2; exit 7", input=b"data" * 100_000)

    assert (done.returncode, done.stdout) == (7, b"data" * 100_000)
    assert b"bad" in done.stderr


def test_kubectl_copies_files_in_and_out(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a").write_bytes(b"a" * 300_000)

    into = kubectl(cluster, "cp", str(tmp_path / "in"), f"p:{tmp_path}/there")
    back = kubectl(cluster, "cp", f"p:{tmp_path}/there/a", str(tmp_path / "back"))

    assert (into.returncode, back.returncode) == (0, 0), into.stderr + back.stderr
    assert (tmp_path / "back").read_bytes() == b"a" * 300_000


def test_kubectl_attach_shows_what_comes_from_now_on(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    script = f"until [ -e {gate} ]; do echo tick; sleep 0.1; done; echo last"
    run(cluster, shell_pod("ticks", script), "Running")
    opened = threading.Timer(1.5, gate.touch)
    opened.start()
    done = kubectl(cluster, "attach", "ticks")
    opened.join()

    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith(b"last\n")


def test_kubectl_attach_passes_on_what_is_typed(cluster: EmbeddedCluster) -> None:
    run(cluster, shell_pod("reader", "cat; echo end >&2", stdin=True, stdinOnce=True), "Running")
    done = kubectl(cluster, "attach", "-i", "reader", input=b"data\n" * 50_000)

    assert done.returncode == 0, done.stderr
    assert done.stdout == b"data\n" * 50_000
    assert b"end\n" in done.stderr


def test_the_official_python_client_streams(cluster: EmbeddedCluster) -> None:
    client = pytest.importorskip("kubernetes.client")
    config = pytest.importorskip("kubernetes.config")
    stream = pytest.importorskip("kubernetes.stream")
    core = client.CoreV1Api(config.new_client_from_config(str(cluster.kubeconfig)))
    socket = stream.stream(
        core.connect_get_namespaced_pod_exec,
        "p",
        "default",
        command=["sh", "-c", "read line; echo got $line; exit 4"],
        stdin=True,
        stdout=True,
        stderr=True,
        tty=False,
        _preload_content=False,
    )
    socket.write_stdin("this\n")
    until = time.monotonic() + PATIENCE_S
    said = ""
    while socket.is_open() and time.monotonic() < until:
        socket.update(timeout=1)
        said += socket.read_stdout() if socket.peek_stdout() else ""

    assert (said, socket.returncode) == ("got this\n", 4)
