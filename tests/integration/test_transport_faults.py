from __future__ import annotations

import asyncio
import os
import socket
import ssl
import tempfile
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path

import pytest
from faulty_server import FaultyServer, Line, Seen, serving

import octarbiter
from octarbiter.api import errors
from octarbiter.api.scheme import PODS
from octarbiter.runtime import answers, client, credentials, requests, transport
from octarbiter.testing.kubernetes import certificates

POD = {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "p", "uid": "u1", "resourceVersion": "7"}}
READ = requests.get(PODS, "lab", "p")
WRITES = [
    requests.create(PODS, "lab", POD),
    requests.merge_patch(PODS, "lab", "p", {"a": 1}),
    requests.replace(PODS, "lab", "p", POD),
    requests.delete(PODS, "lab", "p"),
]
by_method = pytest.mark.parametrize("write", WRITES, ids=lambda request: request.method)


async def good(seen: Seen, line: Line) -> None:
    await line.answer(200, POD)


def first(count: int, badly: Callable[[Seen, Line], object]) -> Callable[[Seen, Line], object]:
    """So many requests are treated badly, the others well."""
    left = [count]

    async def behave(seen: Seen, line: Line) -> None:
        left[0] -= 1
        await (badly if left[0] >= 0 else good)(seen, line)  # type: ignore[misc]

    return behave


async def reset(seen: Seen, line: Line) -> None:
    line.reset()


async def half_an_answer(seen: Seen, line: Line) -> None:
    await line.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")
    line.reset()


async def silence(seen: Seen, line: Line) -> None:
    await asyncio.Event().wait()


def busy(code: int, reason: str = "", **headers: str) -> Callable[[Seen, Line], object]:
    async def refuse(seen: Seen, line: Line) -> None:
        await line.refuse(code, reason, **headers)

    return refuse


@by_method
@pytest.mark.parametrize("fault", [reset, half_an_answer], ids=["reset", "half an answer"])
@pytest.mark.parametrize("kept", [False, True], ids=["new connection", "kept connection"])
async def test_a_write_whose_answer_is_lost_is_sent_once_and_told(
    write: requests.Request, fault: Callable[[Seen, Line], object], kept: bool
) -> None:
    async def behave(seen: Seen, line: Line) -> None:
        await (good if seen.method == "GET" else fault)(seen, line)  # type: ignore[misc]

    async with serving(behave) as server, client.Client(server.connection()) as speaking:
        if kept:
            await speaking.send(READ, bytes)
        with pytest.raises(errors.Retry) as raised:
            await speaking.send(write, bytes)

    assert raised.value.status.reason == answers.ANSWER_LOST
    assert [seen.method for seen in server.seen] == ["GET"] * kept + [write.method]
    assert server.connections == 1


@by_method
async def test_a_write_that_is_not_answered_in_time_is_told_as_lost(write: requests.Request) -> None:
    async with serving(silence) as server, client.Client(server.connection(), timeout_s=0.2) as speaking:
        with pytest.raises(errors.Retry, match=r"no answer in time|[Tt]imeout") as raised:
            await speaking.send(write, bytes)

    assert raised.value.status.reason == answers.ANSWER_LOST
    assert len(server.seen) == 1


@pytest.mark.parametrize(
    "fault", [reset, half_an_answer, busy(500), busy(502), busy(503)], ids=["reset", "half", "500", "502", "503"]
)
async def test_a_read_is_repeated_until_it_is_answered(fault: Callable[[Seen, Line], object]) -> None:
    async with serving(first(2, fault)) as server, client.Client(server.connection()) as speaking:
        pod = await speaking.get(PODS, "lab", "p")

    assert pod.metadata.uid == "u1"


@pytest.mark.parametrize(("write", "code"), list(zip(WRITES, [429, 429, 503, 503], strict=True)))
async def test_any_request_is_repeated_when_the_server_says_when_and_not_before(
    write: requests.Request, code: int
) -> None:
    at: list[float] = []

    async def behave(seen: Seen, line: Line) -> None:
        at.append(asyncio.get_running_loop().time())
        await (good(seen, line) if len(at) > 1 else line.refuse(code, Retry_After="1"))

    async with serving(behave) as server, client.Client(server.connection()) as speaking:
        await speaking.send(write, bytes)

    assert len(at) == 2
    assert at[1] - at[0] >= 1.0


async def test_who_is_asked_to_wait_too_long_leaves_it_to_the_caller() -> None:
    async with (
        serving(busy(429, Retry_After="60")) as server,
        client.Client(server.connection(), retry_for_s=5.0) as speaking,
    ):
        with pytest.raises(errors.Retry) as raised:
            await speaking.get(PODS, "lab", "p")

    assert raised.value.after == 60.0
    assert len(server.seen) == 1


@by_method
async def test_a_write_that_failed_inside_the_server_is_not_repeated(write: requests.Request) -> None:
    async with serving(busy(500, "InternalError")) as server, client.Client(server.connection()) as speaking:
        with pytest.raises(errors.Retry):
            await speaking.send(write, bytes)

    assert len(server.seen) == 1


@by_method
async def test_a_request_waits_for_a_server_that_is_not_there_yet(write: requests.Request) -> None:
    server, tried = FaultyServer(good), asyncio.Event()
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        server.port = reserved.getsockname()[1]
    async with client.Client(server.connection(), observer=lambda *_: tried.set()) as speaking:
        sending = asyncio.create_task(speaking.send(write, bytes))
        await tried.wait()
        await server.start(server.port)
        await sending
    await server.stop()

    assert len(server.seen) == 1


async def test_a_server_that_stays_away_is_told_with_its_address() -> None:
    connection = FaultyServer(good).connection()
    async with client.Client(connection, retry_for_s=0.0) as speaking:
        with pytest.raises(errors.Retry, match="cannot reach the API server http://127") as raised:
            await speaking.get(PODS, "lab", "p")

    assert raised.value.status.reason == answers.UNREACHABLE


async def test_a_rotated_token_is_taken_up_when_the_old_one_is_refused(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("old")

    async def behave(seen: Seen, line: Line) -> None:
        if seen.headers["authorization"] == "Bearer new":
            await line.answer(200, POD)
        else:
            await line.refuse(401, "Unauthorized")

    async with (
        serving(behave) as server,
        client.Client(server.connection(credentials.Direct(token_file=token))) as speaking,
    ):
        with pytest.raises(errors.Unauthorized):
            await speaking.get(PODS, "lab", "p")
        token.write_text("new")
        await asyncio.gather(*(speaking.send(write, bytes) for write in WRITES))


async def test_a_redirect_is_not_followed() -> None:
    async def elsewhere(seen: Seen, line: Line) -> None:
        await line.answer(302, b"", Location="/elsewhere")

    async with serving(elsewhere) as server, client.Client(server.connection()) as speaking:
        with pytest.raises(errors.ApiError, match="HTTP 302"):
            await speaking.get(PODS, "lab", "p")

    assert len(server.seen) == 1


async def test_every_exchange_is_counted_with_its_outcome() -> None:
    told: list[tuple[str, str, int]] = []

    def observe(verb: str, resource: str, code: int) -> None:
        told.append((verb, resource, code))

    behave = first(1, busy(503))
    async with serving(behave) as server, client.Client(server.connection(), observer=observe) as speaking:
        await speaking.get(PODS, "lab", "p")
        await speaking.merge_patch(PODS, "lab", "p", {}, subresource="status")

    assert told == [("get", "pods", 503), ("get", "pods", 200), ("patch", "pods/status", 200)]


async def test_the_server_learns_who_speaks_and_that_nothing_need_be_packed() -> None:
    async with serving(good) as server, client.Client(server.connection()) as speaking:
        await speaking.get(PODS, "lab", "p")

    headers = server.seen[0].headers
    assert headers["user-agent"] == f"octarbiter/{octarbiter.__version__}"
    assert headers["accept"] == "application/json"
    assert "accept-encoding" not in headers


async def test_no_more_requests_are_under_way_than_allowed_and_streams_do_not_count() -> None:
    under_way = [0, 0]

    async def behave(seen: Seen, line: Line) -> None:
        if "watch" in seen.target:
            await line.begin_stream()
            await line.chunk(b"x\n")
            await asyncio.Event().wait()
        under_way[0] += 1
        under_way[1] = max(under_way)
        await asyncio.sleep(0)
        under_way[0] -= 1
        await line.answer(200, POD)

    async with serving(behave) as server, client.Client(server.connection(), concurrency=3) as speaking:
        streams = [speaking.stream_lines(requests.watch(PODS)) for _ in range(5)]
        assert [await anext(stream) for stream in streams] == [b"x"] * 5
        await asyncio.gather(*(speaking.get(PODS, "lab", f"p{number}") for number in range(20)))
        for stream in streams:
            await stream.aclose()

    assert under_way[1] <= 3


async def read_all(
    server: FaultyServer, silence_s: float | None = None, into: list[bytes] | None = None
) -> list[bytes]:
    lines = [] if into is None else into
    async with (
        client.Client(server.connection()) as speaking,
        aclosing(speaking.stream_lines(requests.watch(PODS), silence_s=silence_s)) as stream,
    ):
        async for line in stream:
            lines.append(line)
    return lines


async def test_lines_arrive_whole_however_they_were_cut() -> None:
    async def behave(seen: Seen, line: Line) -> None:
        await line.begin_stream()
        for piece in (b"one\ntw", b"o", b"\n", b"\nthree\nfour"):
            await line.chunk(piece)
        await line.end_stream()

    async with serving(behave) as server:
        assert await read_all(server) == [b"one", b"two", b"", b"three", b"four"]


@pytest.mark.parametrize("size", [10, 100_000, 9_000_000])
async def test_a_line_may_be_as_long_as_an_object_can_be(size: int) -> None:
    async def behave(seen: Seen, line: Line) -> None:
        await line.begin_stream()
        await line.chunk(b"x" * size + b"\ny\n")
        await line.end_stream()

    async with serving(behave) as server:
        assert [len(line) for line in await read_all(server)] == [size, 1]


async def test_a_line_without_end_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "LONGEST_LINE", 1_000_000)

    async def behave(seen: Seen, line: Line) -> None:
        await line.begin_stream()
        while True:
            await line.chunk(b"x" * 100_000)

    async with serving(behave) as server:
        with pytest.raises(errors.Retry, match="a line is longer than"):
            await read_all(server)


@pytest.mark.parametrize("cut", [b"", b"half a li"])
async def test_a_stream_that_breaks_is_told_and_half_a_line_is_not_passed_on(cut: bytes) -> None:
    lines: list[bytes] = []

    async def behave(seen: Seen, line: Line) -> None:
        await line.begin_stream()
        await line.chunk(b"one\n" + cut)
        line.reset()

    async with serving(behave) as server:
        with pytest.raises(errors.Retry):
            await read_all(server, into=lines)

    assert b"half a li" not in lines


async def test_a_stream_that_falls_silent_is_given_up() -> None:
    async def behave(seen: Seen, line: Line) -> None:
        await line.begin_stream()
        await asyncio.Event().wait()

    async with serving(behave) as server:
        with pytest.raises(errors.Retry):
            await read_all(server, silence_s=0.1)


async def test_a_refused_stream_is_told_like_any_refusal() -> None:
    async with serving(busy(410, "Expired")) as server:
        with pytest.raises(errors.Gone):
            await read_all(server)


async def test_a_list_whose_next_page_has_expired_is_begun_anew_in_one_piece() -> None:
    async def behave(seen: Seen, line: Line) -> None:
        if "continue" in seen.target:
            return await line.refuse(410, "Expired")
        if "limit" in seen.target:
            return await line.answer(200, {"metadata": {"continue": "more"}, "items": [POD]})
        return await line.answer(200, {"metadata": {"resourceVersion": "9"}, "items": [POD, POD, POD]})

    async with serving(behave) as server, client.Client(server.connection()) as speaking:
        pods = await speaking.list(PODS, "lab")

    assert len(pods) == 3


class Tls:
    def __init__(self, directory: Path) -> None:
        self.authority = certificates.Authority(directory)
        certificate, key = self.authority.issue_server("server", ["127.0.0.1"])
        self.context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(self.authority.file))
        self.context.load_cert_chain(certificate, key)


async def test_a_server_of_another_authority_is_refused_before_anything_is_told_to_it(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other = certificates.Authority(tmp_path / "other")
    tls = Tls(tmp_path)
    identity = credentials.Direct(headers=credentials.bearer("secret"))
    async with (
        serving(good, tls.context) as server,
        client.Client(server.connection(identity, ca_pem=other.pem)) as speaking,
    ):
        with pytest.raises(errors.ApiError, match=r"is not trusted(.|\n)*certificate-authority") as raised:
            await speaking.get(PODS, "lab", "p")

    assert not isinstance(raised.value, errors.Retry)
    assert server.seen == []


async def test_a_client_certificate_is_shown_and_its_key_left_on_no_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    tls = Tls(tmp_path)
    tls.context.verify_mode = ssl.CERT_REQUIRED
    certificate, key = (path.read_bytes() for path in tls.authority.issue_client("ada", "ada"))
    identity = credentials.Direct(certificate=certificate, key=key)
    async with (
        serving(good, tls.context) as server,
        client.Client(server.connection(identity, ca_pem=tls.authority.pem)) as speaking,
    ):
        await speaking.get(PODS, "lab", "p")

    assert os.listdir(scratch) == []


async def test_a_certificate_that_does_not_fit_its_key_is_told(tmp_path: Path) -> None:
    tls = Tls(tmp_path)
    certificate = tls.authority.issue_client("ada", "ada")[0].read_bytes()
    key = tls.authority.issue_client("bob", "bob")[1].read_bytes()
    connection = FaultyServer(good, tls.context).connection(
        credentials.Direct(certificate=certificate, key=key), ca_pem=tls.authority.pem
    )
    async with client.Client(connection) as speaking:
        with pytest.raises(errors.Refused, match="client-certificate"):
            await speaking.get(PODS, "lab", "p")
