"""Commands in running containers and their ports, over SPDY, as old kubectls ask for them: here by hand."""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
import struct
import zlib
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import pytest
from embedded_fixture import PATIENCE_S, PODS, eventually, run, shell_pod

from octarbiter.cluster.apiserver.pods import spdy
from octarbiter.testing.cluster import EmbeddedCluster

SUCCESS = {"metadata": {}, "status": "Success"}


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(programs=True, services=False) as cluster:
        run(cluster, shell_pod("p", "sleep 10000"), "Running")
        yield cluster


class Client:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, answer: str) -> None:
        self.answer = answer
        self._reader = reader
        self._writer = writer
        self._frames = spdy.frames(reader)
        self._headers = zlib.compressobj(zdict=spdy.DICTIONARY)
        self._names: dict[int, str] = {}

    def open(self, *names: str, **headers: str) -> None:
        for name in names:
            stream = 2 * len(self._names) + 1
            self._names[stream] = name
            named = {"streamtype": name, **headers}
            words = [word.encode() for pair in named.items() for word in pair]
            block = struct.pack("!I", len(named)) + b"".join(struct.pack("!I", len(word)) + word for word in words)
            block = self._headers.compress(block) + self._headers.flush(zlib.Z_SYNC_FLUSH)
            self.send_control(1, struct.pack("!IIH", stream, 0, 0) + block)

    def send_control(self, kind: int, body: bytes) -> None:
        self._writer.write(struct.pack("!HHI", 0x8003, kind, len(body)) + body)

    def send(self, name: str, data: bytes, *, is_last: bool = False) -> None:
        self.send_on(next(stream for stream, known in self._names.items() if known == name), data, is_last=is_last)

    def send_on(self, stream: int, data: bytes, *, is_last: bool = False) -> None:
        self._writer.write(spdy.Writer().data(stream, data, is_last=is_last))

    async def drain(self) -> None:
        await self._writer.drain()

    async def frame(self) -> spdy.Frame:
        async with asyncio.timeout(PATIENCE_S):
            return await anext(self._frames)

    async def hear(self) -> dict[str, bytes]:
        """What came on each stream until the server had ended all of them."""
        heard: dict[str, list[bytes]] = {name: [] for name in self._names.values()}
        unfinished = set(self._names)
        while unfinished:
            frame = await self.frame()
            assert isinstance(frame, spdy.Sent)
            heard[self._names[frame.stream]].append(frame.data)
            unfinished -= {frame.stream} if frame.is_last else set()
        return {name: b"".join(pieces) for name, pieces in heard.items()}


@asynccontextmanager
async def talk(
    cluster: EmbeddedCluster,
    *command: str,
    protocol: str = "v4.channel.k8s.io",
    subresource: str = "exec",
    **wishes: str,
) -> AsyncIterator[Client]:
    address = urlsplit(cluster.url)
    tls = ssl.create_default_context(cadata=cluster.ca_pem.decode())
    reader, writer = await asyncio.open_connection(address.hostname, address.port, ssl=tls)
    query = urlencode([*(("command", word) for word in command), *wishes.items()])
    lines = [
        f"POST {PODS}/p/{subresource}?{query} HTTP/1.1",
        f"Host: {address.netloc}",
        f"Authorization: Bearer {cluster.token}",
        "Connection: Upgrade",
        "Upgrade: SPDY/3.1",
        f"X-Stream-Protocol-Version: {protocol}",
        "X-Stream-Protocol-Version: channel.k8s.io",
        "Content-Length: 0",
    ]
    try:
        writer.write("\r\n".join([*lines, "", ""]).encode())
        async with asyncio.timeout(PATIENCE_S):
            answer = await reader.readuntil(b"\r\n\r\n")
        yield Client(reader, writer, answer.decode())
    finally:
        writer.close()


async def test_output_errors_and_verdict_come_on_their_streams(cluster: EmbeddedCluster) -> None:
    async with talk(cluster, "sh", "-c", "echo good; echo bad >&2; exit 3", stdout="1", stderr="1") as client:
        assert client.answer.startswith("HTTP/1.1 101 ")
        assert "X-Stream-Protocol-Version: v4.channel.k8s.io\r\n" in client.answer
        client.open("error", "stdout", "stderr")
        heard = await client.hear()

    assert (heard["stdout"], heard["stderr"]) == (b"good\n", b"bad\n")
    verdict = json.loads(heard["error"])
    assert (verdict["reason"], verdict["details"]["causes"]) == (
        "NonZeroExitCode",
        [{"reason": "ExitCode", "message": "3"}],
    )


async def test_input_ends_with_its_stream(cluster: EmbeddedCluster) -> None:
    async with talk(cluster, "cat", stdin="1", stdout="1") as client:
        client.open("error", "stdin", "stdout")
        client.send("stdin", b"hello ")
        client.send("stdin", b"world", is_last=True)
        heard = await client.hear()

    assert (heard["stdout"], json.loads(heard["error"])) == (b"hello world", SUCCESS)


async def test_much_is_said_both_ways_while_the_other_side_is_slow(cluster: EmbeddedCluster) -> None:
    much = bytes(range(256)) * 32 * 1024
    async with talk(cluster, "sh", "-c", "sleep 0.5; cat", stdin="1", stdout="1") as client:
        client.open("error", "stdin", "stdout")
        for start in range(0, len(much), 1024 * 1024):
            client.send("stdin", much[start : start + 1024 * 1024])
        client.send("stdin", b"", is_last=True)
        await asyncio.sleep(0.5)
        heard = await client.hear()

    assert heard["stdout"] == much


async def test_a_client_waits_for_a_program_that_does_not_read(cluster: EmbeddedCluster) -> None:
    """It is not buffered: far less is taken from the client than it wants to say."""
    async with talk(cluster, "sleep", "1000", stdin="1") as client:
        client.open("error", "stdin")
        taken = 0
        with contextlib.suppress(TimeoutError):
            while taken < 200:
                client.send("stdin", bytes(1024 * 1024))
                async with asyncio.timeout(1):
                    await client.drain()
                taken += 1

    assert taken < 50


async def test_a_program_waits_for_a_client_that_does_not_read(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    file = tmp_path / "written"
    script = f"import os\nfor n in range(1, 3001):\n os.write(1, b'x' * 65536); open({str(file)!r}, 'w').write(str(n))"
    async with talk(cluster, "python3", "-c", script, stdout="1") as client:
        client.open("error", "stdout")
        before, seen = -1, 0
        async with asyncio.timeout(PATIENCE_S):
            while seen != before or not seen:
                before = seen
                await asyncio.sleep(0.5)
                seen = int(file.read_text() or before) if file.exists() else 0
        assert seen < 1000
        heard = await client.hear()

    assert len(heard["stdout"]) == 3000 * 65536


async def test_a_terminal_has_the_size_of_the_clients(cluster: EmbeddedCluster) -> None:
    script = "until stty size | grep '37 101'; do sleep 0.1; done"
    async with talk(cluster, "sh", "-c", script, stdout="1", tty="1") as client:
        client.open("error", "stdout", "resize")
        client.send("resize", b'{"Width":101,"Height":37}\n')
        heard = await client.hear()

    assert heard["stdout"].endswith(b"37 101\r\n")


async def test_who_asks_whether_the_server_is_there_is_answered(cluster: EmbeddedCluster) -> None:
    async with talk(cluster, "sleep", "1000", stdout="1") as client:
        client.open("error", "stdout")
        client.send_control(6, struct.pack("!I", 41))

        assert await client.frame() == spdy.Pinged(41)


async def test_a_stream_that_was_not_announced_is_refused(cluster: EmbeddedCluster) -> None:
    async with talk(cluster, "sleep", "1000", stdout="1") as client:
        client.open("error", "stderr")

        assert await client.frame() == spdy.Dropped(3)


async def test_nothing_runs_for_a_client_that_does_not_open_its_streams(
    cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    file = tmp_path / "ran"
    async with talk(cluster, "touch", str(file), stdout="1") as client:
        client.open("error")
        client.send_control(7, bytes(8))
        with pytest.raises(StopAsyncIteration):
            await client.frame()

    assert not file.exists()


async def test_a_command_ends_when_its_client_goes_away(cluster: EmbeddedCluster, tmp_path: Path) -> None:
    file = tmp_path / "pid"
    script = f"echo $$ > {file}.new; mv {file}.new {file}; exec sleep 1000"
    async with talk(cluster, "sh", "-c", script, stdout="1") as client:
        client.open("error", "stdout")
        await asyncio.to_thread(eventually, file.exists)
    pid = int(file.read_text())

    await asyncio.to_thread(eventually, lambda: not Path(f"/proc/{pid}").exists())


async def test_a_client_that_speaks_no_spdy_is_cut_off(cluster: EmbeddedCluster) -> None:
    async with talk(cluster, "sleep", "1000", stdout="1") as client:
        client.send_control(1, b"nonsense")

        with pytest.raises(StopAsyncIteration):
            await client.frame()


async def test_an_unknown_version_of_the_protocol_is_refused(cluster: EmbeddedCluster) -> None:
    async with talk(cluster, "true", protocol="v3.channel.k8s.io", stdout="1") as client:
        assert client.answer.startswith("HTTP/1.1 403 ")


@asynccontextmanager
async def greeter() -> AsyncIterator[int]:
    """Says hello to whoever says his name; the port where it does."""

    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"hello " + await reader.read())
        writer.close()

    server = await asyncio.start_server(greet, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


def forwarding(cluster: EmbeddedCluster) -> AbstractAsyncContextManager[Client]:
    return talk(cluster, protocol="portforward.k8s.io", subresource="portforward")


async def test_a_port_is_reached(cluster: EmbeddedCluster) -> None:
    async with greeter() as port, forwarding(cluster) as client:
        client.open("error", "data", port=str(port), requestid="0")
        client.send("data", b"Ada", is_last=True)
        heard = await client.hear()

    assert heard == {"error": b"", "data": b"hello Ada"}


async def test_two_connections_to_a_port_do_not_mix(cluster: EmbeddedCluster) -> None:
    async with greeter() as port, forwarding(cluster) as client:
        for kind in ("error", "data"):
            for request in ("0", "1"):
                client.open(kind, port=str(port), requestid=request)
        client.send_on(5, b"Ada", is_last=True)
        client.send_on(7, b"Grace", is_last=True)
        said = {5: b"", 7: b""}
        unfinished = {1, 3, 5, 7}
        while unfinished:
            frame = await client.frame()
            assert isinstance(frame, spdy.Sent)
            unfinished -= {frame.stream} if frame.is_last else set()
            if frame.data:
                said[frame.stream] += frame.data

    assert said == {5: b"hello Ada", 7: b"hello Grace"}


async def test_a_port_where_nobody_listens_is_named(cluster: EmbeddedCluster) -> None:
    async with greeter() as port:
        pass
    async with forwarding(cluster) as client:
        client.open("error", "data", port=str(port), requestid="0")
        heard = await client.hear()

    assert heard["data"] == b""
    assert f"error forwarding port {port} to pod p, uid ".encode() in heard["error"]
    assert heard["error"].endswith(f": nobody listens on port {port}".encode())


@pytest.mark.parametrize("port", ["0", "65536", "http", ""])
async def test_what_is_no_port_is_refused(cluster: EmbeddedCluster, port: str) -> None:
    async with forwarding(cluster) as client:
        client.open("error", port=port, requestid="0")

        assert await client.frame() == spdy.Dropped(1)
