"""Whoever misuses the line to a command in a pod is hung up on; the command ends, and the server goes on."""

import asyncio
import contextlib
import logging
import os
import socket
import ssl
import struct
import time
from collections.abc import Iterator

import pytest
from embedded_fixture import PATIENCE_S, PODS, eventually, run, shell_pod

from octarbiter.testing.cluster import EmbeddedCluster

EXEC = f"{PODS}/p/exec?command=cat&stdin=1&stdout=1"
UPGRADE = (
    "Connection: Upgrade",
    "Upgrade: websocket",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
    "Sec-WebSocket-Protocol: v5.channel.k8s.io",
)
TEXT, BINARY, CLOSE, PING, LAST = 1, 2, 8, 9, 0x80


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster(programs=True, services=False) as cluster:
        run(cluster, shell_pod("p", "sleep 10000"), "Running")
        connected(cluster, *UPGRADE)[0].close()  # what is made at the first use stays
        eventually(lambda: commands() == 0)
        eventually(lambda: is_settled(cluster))
        yield cluster


def frame(kind: int, payload: bytes, *, length: int | None = None, masked: bool = True, first: int = LAST) -> bytes:
    """`length`: what it says about itself."""
    claimed = len(payload) if length is None else length
    mark = 0x80 if masked else 0
    if claimed < 126:
        head = bytes([first | kind, mark | claimed])
    elif claimed < 1 << 16:
        head = bytes([first | kind, mark | 126]) + struct.pack("!H", claimed)
    else:
        head = bytes([first | kind, mark | 127]) + struct.pack("!Q", claimed)
    return head + (b"\0\0\0\0" if masked else b"") + payload


ABUSES = {
    "a frame of 2^62 bytes": frame(BINARY, b"\0x", length=1 << 62),
    "a frame of a negative length": frame(BINARY, b"\0x", length=(1 << 64) - 1),
    "a message that is too large": frame(BINARY, b"\0" * (5 << 20)),
    "a message that is too large in pieces": frame(BINARY, b"\0" * (3 << 20), first=0) + frame(0, b"\0" * (3 << 20)),
    "a kind of frame that is none": frame(3, b"\0x"),
    "bits that mean nothing": frame(BINARY, b"\0x", first=LAST | 0x70),
    "a ping that is too long": frame(PING, b"x" * 200),
    "a ping in pieces": frame(PING, b"x", first=0),
    "the end of nothing": frame(0, b"\0x"),
    "a beginning within another": frame(BINARY, b"\0x", first=0) + frame(BINARY, b"\0x"),
    "text that is none": frame(TEXT, b"\0\xff\xfe\xfd"),
    "a farewell of one byte": frame(CLOSE, b"x"),
    "a farewell for no reason": frame(CLOSE, struct.pack("!H", 1)),
    "a farewell that cannot be read": frame(CLOSE, struct.pack("!H", 1000) + b"\xff"),
    "HTTP": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
}
ODDITIES = {
    "a frame without a mask": frame(BINARY, b"\0x", masked=False),
    "an empty message": frame(BINARY, b""),
    "a channel that is none": frame(BINARY, b"\x09x"),
    "a size that is none": frame(BINARY, b"\x04" + b"[" * 10_000),
    "a channel of ours": frame(BINARY, b"\x01x"),
    "the end of another channel": frame(BINARY, b"\xff\x09"),
    "half a frame": frame(BINARY, b"\0x")[:3],
    "thousand pings": frame(PING, b"x") * 1000,
}


def connected(cluster: EmbeddedCluster, *lines: str, path: str = EXEC) -> tuple[ssl.SSLSocket, bytes]:
    """And the first line of the answer."""
    host, _, port = cluster.url.removeprefix("https://").partition(":")
    tls = ssl.create_default_context(cadata=cluster.ca_pem.decode())
    line = tls.wrap_socket(socket.create_connection((host, int(port)), timeout=PATIENCE_S), server_hostname=host)
    head = [f"GET {path} HTTP/1.1", "Host: x", f"Authorization: Bearer {cluster.token}", *lines, "", ""]
    line.sendall("\r\n".join(head).encode())
    answer = b""
    while b"\r\n\r\n" not in answer and (piece := line.recv(4096)):
        answer += piece
    return line, answer.partition(b"\r\n")[0]


def commands() -> int:
    """How many `cat`s this process has started that still run."""
    count = 0
    for entry in os.listdir("/proc"):
        with contextlib.suppress(OSError, ValueError), open(f"/proc/{int(entry)}/cmdline", "rb") as said:
            count += said.read() == b"cat\0" and b"octo-test-" in os.readlink(f"/proc/{entry}/cwd").encode()
    return count


def work(cluster: EmbeddedCluster) -> int:
    """Tasks under way, connections that wait for a request apart."""
    assert cluster._loop is not None
    names = (getattr(task.get_coro(), "__qualname__", "") for task in asyncio.all_tasks(cluster._loop))
    return sum(name != "RequestHandler.start" for name in names)


def is_settled(cluster: EmbeddedCluster) -> bool:
    """The last of its own controllers has begun; there is nothing that says so."""
    before = work(cluster)
    time.sleep(2)
    return work(cluster) == before


@contextlib.contextmanager
def unharmed(cluster: EmbeddedCluster, caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Afterwards nothing goes on that did not before, and nothing was complained about."""
    caplog.set_level(logging.WARNING)
    tasks, programs = work(cluster), commands()
    yield
    eventually(lambda: commands() <= programs)
    eventually(lambda: work(cluster) <= tasks)
    assert cluster.request("GET", f"{PODS}/p")["status"]["phase"] == "Running"
    assert [each for each in caplog.records if each.levelno > logging.WARNING or each.name != "asyncio"] == []


@pytest.mark.parametrize("what", ABUSES)
def test_who_breaks_the_protocol_is_hung_up_on(
    cluster: EmbeddedCluster, caplog: pytest.LogCaptureFixture, what: str
) -> None:
    with unharmed(cluster, caplog):
        line, answer = connected(cluster, *UPGRADE)
        assert b" 101 " in answer
        with contextlib.suppress(ConnectionError, ssl.SSLError):
            line.sendall(ABUSES[what])
            while line.recv(1 << 16):
                pass  # until the server hangs up, or this takes too long
        line.close()


@pytest.mark.parametrize("what", ODDITIES)
def test_what_is_odd_is_borne_and_ends_when_the_client_goes_without_a_word(
    cluster: EmbeddedCluster, caplog: pytest.LogCaptureFixture, what: str
) -> None:
    with unharmed(cluster, caplog):
        line, answer = connected(cluster, *UPGRADE)
        assert b" 101 " in answer
        line.sendall(ODDITIES[what])
        line.close()


@pytest.mark.parametrize(
    "lines",
    [
        (),
        UPGRADE[:2],
        UPGRADE[:4],
        (*UPGRADE[:3], "Sec-WebSocket-Key: short", UPGRADE[4]),
        (*UPGRADE[:2], "Sec-WebSocket-Version: 99", *UPGRADE[3:]),
        (*UPGRADE[:4], "Sec-WebSocket-Protocol: something.else"),
        (UPGRADE[0], "Upgrade: something-else", *UPGRADE[2:]),
        (*UPGRADE, "Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits=99"),
    ],
)
def test_a_line_that_is_asked_for_in_the_wrong_way_is_refused_or_given_plainly(
    cluster: EmbeddedCluster, caplog: pytest.LogCaptureFixture, lines: tuple[str, ...]
) -> None:
    with unharmed(cluster, caplog):
        line, answer = connected(cluster, *lines)
        assert answer.split()[1] in (b"400", b"403", b"426") or (
            b" 101 " in answer and lines[: len(UPGRADE)] == UPGRADE
        )
        line.close()
