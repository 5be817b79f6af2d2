"""Bytes that no client of good will sends get a clear refusal or a hung-up line, and leave nothing behind."""

import asyncio
import contextlib
import gzip
import logging
import random
import re
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from apiserver_fixture import DEFAULT, STRATEGIC, Api, config_map, pod, running

from octarbiter.cluster.apiserver.connections import Bounds
from octarbiter.cluster.store.store import Store

MAPS = f"{DEFAULT}/configmaps"
RANDOM = 500
HURRIED = Bounds(handshake_s=0.5, idle_s=0.5, farewell_s=0.1)
"""So that who leaves something unsaid is soon done with."""
PIECE = b"x" * (1 << 20)


async def opened(api: Api, *, plain: bool = False) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    tls = None if plain else ssl.create_default_context(cadata=api.server.ca_pem.decode())
    return await asyncio.open_connection("127.0.0.1", api.server.port, ssl=tls)


async def answers(api: Api, said: bytes, *, plain: bool = False) -> list[int]:
    """The codes of all that comes back until the server hangs up."""
    reader, writer = await opened(api, plain=plain)
    heard = bytearray()
    with contextlib.suppress(ConnectionError, ssl.SSLError):
        writer.write(said)
        while piece := await reader.read(1 << 16):
            heard += piece
    writer.transport.abort()
    return [int(code) for code in re.findall(rb"HTTP/1\.[01] (\d{3})", heard)]


def request(api: Api, method: str = "GET", path: str = f"{DEFAULT}/pods", *lines: str, body: bytes = b"") -> bytes:
    head = [f"{method} {path} HTTP/1.1", "Host: x", f"Authorization: Bearer {api.server.token}", *lines]
    return "\r\n".join([*head, "", ""]).encode() + body


@asynccontextmanager
async def unharmed(directory: Path, caplog: pytest.LogCaptureFixture) -> AsyncIterator[Api]:
    """A server of which afterwards nothing is left but a store that opens, and no complaint."""
    caplog.set_level(logging.WARNING)
    store = await Store.open(directory / "store")
    async with running(directory, store, bounds=HURRIED) as api:
        assert (await api.ask("GET", "/readyz")).code == 200
        before = asyncio.all_tasks()
        yield api
        assert (await api.ask("GET", "/readyz")).code == 200
        while left := asyncio.all_tasks() - before:
            await asyncio.wait(left)
    await store.close()
    await (await Store.open(directory / "store")).close()
    assert caplog.messages == []


POST = ("POST", MAPS, "Content-Type: application/json")
MALFORMED = {
    "two lengths": lambda api: request(api, *POST, "Content-Length: 2", "Content-Length: 3", body=b"{}x"),
    "length and chunks": lambda api: request(
        api, *POST, "Content-Length: 5", "Transfer-Encoding: chunked", body=b"0\r\n\r\n"
    ),
    "a negative length": lambda api: request(api, *POST, "Content-Length: -1"),
    "a length with a sign": lambda api: request(api, *POST, "Content-Length: +2", body=b"{}"),
    "a length that is none": lambda api: request(api, *POST, "Content-Length: two", body=b"{}"),
    "a chunk without size": lambda api: request(
        api, *POST, "Transfer-Encoding: chunked", body=b"xyz\r\n{}\r\n0\r\n\r\n"
    ),
    "a chunk of a negative size": lambda api: request(
        api, *POST, "Transfer-Encoding: chunked", body=b"-2\r\n{}\r\n0\r\n\r\n"
    ),
    "a chunk larger than its size": lambda api: request(
        api, *POST, "Transfer-Encoding: chunked", body=b"1\r\n{}\r\n0\r\n\r\n"
    ),
    "a chunk of immense size": lambda api: request(
        api, *POST, "Transfer-Encoding: chunked", body=b"f" * 40 + b"\r\n{}"
    ),
    "chunks twice": lambda api: request(
        api, *POST, "Transfer-Encoding: chunked", "Transfer-Encoding: chunked", body=b"0\r\n\r\n"
    ),
    "an unknown encoding": lambda api: request(api, *POST, "Transfer-Encoding: xchunked", body=b"0\r\n\r\n"),
    "a header of a megabyte": lambda api: request(api, "GET", "/api", f"X-Long: {'x' * (1 << 20)}"),
    "ten thousand headers": lambda api: request(api, "GET", "/api", *(f"X-{number}: y" for number in range(10_000))),
    "a path of a megabyte": lambda api: request(api, "GET", "/api/" + "x" * (1 << 20)),
    "a header without a name": lambda api: request(api, "GET", "/api", ": x"),
    "a header without a colon": lambda api: request(api, "GET", "/api", "just words"),
    "a space before the colon": lambda api: request(api, *POST, "Content-Length : 2", body=b"{}"),
    "a folded header": lambda api: request(api, "GET", "/api", "X-Folded: a", " b"),
    "a header with a NUL": lambda api: request(api, "GET", "/api", "X-Nul: a\0b"),
    "lines that end too early": lambda api: request(api).replace(b"\r\n", b"\n"),
    "lines that end in half": lambda api: request(api).replace(b"\r\n", b"\r"),
    "another protocol's preface": lambda api: (
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\x12\x04\0\0\0\0\0" + b"\0" * 18
    ),
    "a version from the future": lambda api: request(api).replace(b"HTTP/1.1", b"HTTP/9.9"),
    "a version that is none": lambda api: request(api).replace(b"HTTP/1.1", b"HTTP/x"),
    "a method with a NUL": lambda api: request(api, "G\0T"),
    "a method that is missing": lambda api: request(api, ""),
    "TLS in TLS": lambda api: b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 500,
}
ODD = {
    "an absolute address": lambda api: request(api, "GET", "https://elsewhere.example/nowhere", "Connection: close"),
    "a tunnel": lambda api: request(api, "CONNECT", "elsewhere.example:443", "Connection: close"),
    "a question to nobody": lambda api: request(api, "OPTIONS", "*", "Connection: close"),
    "no path": lambda api: request(api, "GET", "?watch=true", "Connection: close"),
    "a path with dots": lambda api: request(api, "GET", "/api/v1/../../../etc/passwd", "Connection: close"),
    "a path of escapes": lambda api: request(api, "GET", "/api/v1/%00/%ff/%2e%2e%2f/%", "Connection: close"),
    "a path beyond ASCII": lambda api: request(api, "GET", "/api/v1/\u00e9\u4e2d", "Connection: close"),
    "two hosts": lambda api: request(api, "GET", "/nowhere", "Host: y", "Connection: close"),
    "a hasty upgrade": lambda api: request(api, "GET", "/nowhere", "Connection: Upgrade", "Upgrade: h2c") + b"x" * 1000,
    "an expectation": lambda api: request(api, "GET", "/nowhere", "Expect: the-unexpected", "Connection: close"),
    "a smuggled request": lambda api: request(api, *POST, "Content-Length: 2", body=b"{}" + request(api, "BREW", "/")),
}


@pytest.mark.parametrize("what", MALFORMED)
async def test_what_is_no_http_is_a_bad_request(tmp_path: Path, caplog: pytest.LogCaptureFixture, what: str) -> None:
    async with unharmed(tmp_path, caplog) as api:
        assert await answers(api, MALFORMED[what](api)) == [400]


async def test_a_request_of_the_days_before_headers_is_hung_up_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with unharmed(tmp_path, caplog) as api:
        assert await answers(api, b"GET /api\r\n\r\n") == []


@pytest.mark.parametrize("what", ODD)
async def test_odd_requests_are_refused(tmp_path: Path, caplog: pytest.LogCaptureFixture, what: str) -> None:
    async with unharmed(tmp_path, caplog) as api:
        codes = await answers(api, ODD[what](api))
        assert codes
        assert all(400 <= code < 500 for code in codes), codes


def noise(dice: random.Random) -> bytes:
    """Of random bytes, with some that lead further in."""
    start = dice.choice(
        [b"", b"\x16\x03\x01", b"GET / HTTP/1.1\r\n", b"POST /api HTTP/1.1\r\nContent-Length: 9\r\n\r\n"]
    )
    return start + dice.randbytes(dice.randrange(300))


@pytest.mark.parametrize("plain", [True, False], ids=["instead of TLS", "inside TLS"])
async def test_random_bytes_are_refused_or_hung_up_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, plain: bool
) -> None:
    dice = random.Random(20261116)
    async with unharmed(tmp_path, caplog) as api:

        async def speak(numbers: range) -> set[int]:
            return {code for _ in numbers for code in await answers(api, noise(dice), plain=plain)}

        codes = set().union(*await asyncio.gather(*(speak(range(RANDOM // 25)) for _ in range(25))))
        assert all(400 <= code < 500 for code in codes), codes


async def test_half_a_handshake_is_hung_up_on(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    hello = ssl.create_default_context().wrap_bio(incoming, outgoing, server_hostname="localhost")
    with contextlib.suppress(ssl.SSLWantReadError):
        hello.do_handshake()
    whole = outgoing.read()
    async with unharmed(tmp_path, caplog) as api:
        for said in (whole[:1], whole[:5], whole[: len(whole) // 2], whole, whole + whole, whole[:-1] + b"\xff" * 50):
            assert await answers(api, said, plain=True) == []


def _chunked(pieces: Iterator[bytes]) -> Iterator[bytes]:
    for piece in pieces:
        yield b"%x\r\n%b\r\n" % (len(piece), piece)
    yield b"0\r\n\r\n"


@pytest.mark.parametrize("length", [f"Content-Length: {100 << 20}", "Transfer-Encoding: chunked"])
async def test_a_body_of_a_hundred_megabytes_is_refused_while_it_is_being_sent(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, length: str
) -> None:
    async with unharmed(tmp_path, caplog) as api:
        reader, writer = await opened(api)
        writer.write(request(api, *POST, length))
        pieces = (PIECE for _ in range(100))
        heard = asyncio.ensure_future(reader.readline())
        sent = 0
        with contextlib.suppress(ConnectionError):
            for piece in _chunked(pieces) if "chunked" in length else pieces:
                writer.write(piece)
                await writer.drain()
                sent += len(piece)
        assert b" 413 " in await heard
        assert sent < 50 << 20  # it was not taken to its end
        writer.transport.abort()


def _varint(number: int) -> bytes:
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes([*found, number])


def _message(kind: bytes, raw: bytes) -> bytes:
    """As clients wrap objects: the type, then the object."""
    type_ = b"\x0a\x02v1\x12" + _varint(len(kind)) + kind
    return b"k8s\0\x0a" + _varint(len(type_)) + type_ + b"\x12" + _varint(len(raw)) + raw


def _nested(depth: int) -> bytes:
    """A message whose first field is a message whose first field is a message ..."""
    inner = b""
    for _ in range(depth):
        inner = b"\x0a" + _varint(len(inner)) + inner
    return inner


BOMBS = {
    "gzip": ("application/json", gzip.compress(b"{" + b" " * (50 << 20) + b"}"), "Content-Encoding: gzip"),
    "deep JSON": ("application/json", b'{"a":' * 10_000),
    "whole deep JSON": ("application/json", b'{"a":' * 10_000 + b"1" + b"}" * 10_000),
    "deep YAML": ("application/yaml", b"a: " + b"[" * 10_000 + b"]" * 10_000),
    "deep YAML of maps": ("application/yaml", b"{a: " * 10_000 + b"1" + b"}" * 10_000),
    "YAML that laughs": (
        "application/yaml",
        b"a0: &a0 [x, x, x, x, x, x, x, x, x]\n"
        + b"".join(b"a%d: &a%d [%b]\n" % (n, n, b", ".join([b"*a%d" % (n - 1)] * 9)) for n in range(1, 12)),
    ),
    "YAML that holds itself": ("application/yaml", b"a: &a [*a]\n"),
    "YAML that repeats a long word": (
        "application/yaml",
        b"metadata: {name: a}\nx: &x "
        + b"y" * (1 << 20)
        + b"\ndata: {"
        + b", ".join(b"k%d: *x" % n for n in range(9999))
        + b"}",
    ),
    "a key of a megabyte": ("application/json", b'{"%b": {%b}}' % (PIECE, b", ".join([b'"a": 1'] * 100_000))),
    "a number of a megabyte": ("application/json", b'{"data": ' + b"9" * (1 << 20) + b"}"),
    "protobuf of a huge length": (
        "application/vnd.kubernetes.protobuf",
        b"k8s\0\x0a" + _varint(1 << 62) + b"v1",
    ),
    "protobuf of an endless number": ("application/vnd.kubernetes.protobuf", b"k8s\0\x0a" + b"\xff" * 1000),
    "deep protobuf": ("application/vnd.kubernetes.protobuf", _message(b"ConfigMap", _nested(10_000))),
    "nothing but a mark": ("application/vnd.kubernetes.protobuf", b"k8s\0"),
}


@pytest.mark.parametrize("what", BOMBS)
async def test_bodies_that_would_burst_are_refused(tmp_path: Path, caplog: pytest.LogCaptureFixture, what: str) -> None:
    content_type, body, *lines = BOMBS[what]
    async with unharmed(tmp_path, caplog) as api:
        headers = (f"Content-Type: {content_type}", f"Content-Length: {len(body)}", "Connection: close", *lines)
        codes = await answers(api, request(api, "POST", MAPS, *headers, body=body))
        assert len(codes) == 1
        assert codes[0] in (400, 413, 422)


async def test_no_object_grows_larger_than_a_request_may_be(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Else it could be made as large as the memory, one patch after the other."""
    async with unharmed(tmp_path, caplog) as api:
        await api.create(f"{DEFAULT}/pods", pod("a"))
        codes = []
        for number in range(3):
            condition = {"type": f"T{number}", "status": "True", "message": "x" * (2 << 20)}
            patch = {"status": {"conditions": [condition]}}
            codes.append((await api.ask("PATCH", f"{DEFAULT}/pods/a/status", patch, STRATEGIC)).code)
        assert codes == [200, 413, 413]
        # Also where few bytes stand for many.
        word = b"y" * (1 << 16)
        manifest = b"metadata: {name: b}\nspec: {containers: [{name: c, image: x, args: [&x %b%b]}]}" % (
            word,
            b", *x" * 9999,
        )
        refused = await api.ask("POST", f"{DEFAULT}/pods", manifest, {"Content-Type": "application/yaml"})
        assert refused.code == 400


async def test_no_more_warnings_are_given_than_clients_read(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with unharmed(tmp_path, caplog) as api:
        strange = config_map("a") | {f"unknown{'x' * 100}{number}": 1 for number in range(1000)}
        made = await api.ask("POST", MAPS, strange)
        assert made.code == 201
        warnings = made.headers.getall("Warning")
        assert 10 < len(warnings) < 100
        assert sum(map(len, warnings)) < 8192
