"""However many come, and whatever they leave unsaid, the API server keeps its memory and still answers."""

import asyncio
import contextlib
import itertools
import os
import resource
import ssl
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest
from apiserver_fixture import DEFAULT, Api, config_map, running

from octarbiter.cluster.apiserver import connections, handlers
from octarbiter.cluster.apiserver.connections import Bounds

CROWD = 10_000
MOST_GROWTH_BYTES = 600 << 20
"""Without a bound it would be 3 GB."""
FEW = Bounds(most_open=20, most_streams=15)

COMERS = """
import resource, socket, ssl, sys
port, count, what = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
_, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
tls = ssl._create_unverified_context()
held = []
while len(held) < count:
    made = socket.create_connection(("127.0.0.1", port))
    try:
        if what == "half a handshake":
            made.sendall(b"\\x16\\x03\\x01\\x02\\x00\\x01\\x00\\x01\\xfc\\x03\\x03")
        elif what == "half a request":
            made = tls.wrap_socket(made)
            made.sendall(b"GET /api HTTP/1.1\\r\\nHost: x\\r\\nX-Long: ")
        elif what == "a question":
            made = tls.wrap_socket(made)
            made.sendall(b"GET /healthz HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n")
            made.recv(1000)
    except OSError:
        pass  # cut off already
    held.append(made)
print("here", flush=True)
sys.stdin.read()
"""


@asynccontextmanager
async def crowd(api: Api, count: int, what: str) -> AsyncIterator[None]:
    """They come, and stay."""
    command = [sys.executable, "-c", COMERS, str(api.server.port), str(count), what]
    child = await asyncio.create_subprocess_exec(
        *command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    assert child.stdin is not None
    assert child.stdout is not None
    try:
        assert await child.stdout.readline() == b"here\n"
        yield
    finally:
        child.stdin.close()
        await child.wait()


async def opened(api: Api) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    tls = ssl.create_default_context(cadata=api.server.ca_pem.decode())
    return await asyncio.open_connection("127.0.0.1", api.server.port, ssl=tls)


async def asked(api: Api, path: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter, int]:
    """On a connection of its own, which stays open."""
    reader, writer = await opened(api)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {api.server.token}\r\n\r\n".encode())
    line = await reader.readline()
    return reader, writer, int(line.split()[1])


def memory() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.parametrize(
    ("count", "what"),
    [(CROWD, "nothing"), (3000, "half a handshake"), (1200, "half a request"), (1200, "a question")],
)
def test_a_crowd_that_stays_costs_bounded_memory_and_keeps_nobody_out(tmp_path: Path, count: int, what: str) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if 0 <= hard < count + 100:
        pytest.skip(f"no process here may have {count} connections")

    async def story() -> None:
        async with running(tmp_path) as api:
            assert (await api.ask("GET", f"{DEFAULT}/pods")).code == 200
            before = memory()
            async with crowd(api, count, what):
                _, writer, code = await asked(api, f"{DEFAULT}/pods")
                assert code == 200
                assert memory() - before < MOST_GROWTH_BYTES
                writer.close()
            _, writer, code = await asked(api, f"{DEFAULT}/pods")
            assert code == 200
            writer.close()

    asyncio.run(story())


async def test_watches_are_bounded_and_leave_room_for_questions(tmp_path: Path) -> None:
    async with running(tmp_path, bounds=FEW) as api:
        watches = [await asked(api, f"{DEFAULT}/pods?watch=true") for _ in range(FEW.most_streams)]
        assert [code for _, _, code in watches] == [200] * FEW.most_streams
        refused = await api.ask("GET", f"{DEFAULT}/pods?watch=true")
        assert (refused.code, refused.reason, refused.headers["Retry-After"]) == (429, "TooManyRequests", "1")
        await api.create(f"{DEFAULT}/configmaps", config_map("a"))
        watches.pop()[1].close()

        async def again() -> int:
            _, writer, code = await asked(api, f"{DEFAULT}/pods?watch=true")
            writer.close()
            return code

        while await again() != 200:
            pass  # the server learns a moment later that one is gone
        for _, writer, _ in watches:
            writer.close()


async def test_who_has_rested_longest_makes_room_and_who_is_answered_stays(tmp_path: Path) -> None:
    async with running(tmp_path, bounds=FEW) as api:
        watch, its_writer, code = await asked(api, f"{DEFAULT}/configmaps?watch=true")
        assert code == 200
        resting = [await asked(api, f"{DEFAULT}/pods") for _ in range(FEW.most_open - 1)]
        stranger, its_other_writer = await opened(api)
        await api.create(f"{DEFAULT}/configmaps", config_map("a"))

        # The two who came last took the places of the first who rests and of the stranger.
        await asyncio.wait_for(resting[0][0].read(), 20)
        with contextlib.suppress(ConnectionError):
            assert await asyncio.wait_for(stranger.read(), 20) == b""
        while b"ADDED" not in await asyncio.wait_for(watch.readline(), 20):
            pass
        _, last, _ = resting[-1]
        last.write(f"GET /version HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {api.server.token}\r\n\r\n".encode())
        assert b'"gitVersion"' in await asyncio.wait_for(resting[-1][0].readuntil(b'"gitVersion"'), 20)
        for writer in (its_writer, its_other_writer, *(each[1] for each in resting)):
            writer.close()


async def test_who_does_not_finish_its_handshake_is_cut_off(tmp_path: Path) -> None:
    async with running(tmp_path, bounds=Bounds(handshake_s=0.2)) as api:
        reader, writer = await asyncio.open_connection("127.0.0.1", api.server.port)
        writer.write(b"\x16\x03\x01")
        with contextlib.suppress(ConnectionError):
            assert await reader.read() == b""
        writer.close()


@pytest.mark.parametrize(("said", "more"), [(b"", b""), (b"GET /api HTTP/1.1\r\nHost: x\r\nX-Slow: ", b"x")])
async def test_who_does_not_finish_its_request_is_cut_off_also_while_it_goes_on_talking(
    tmp_path: Path, said: bytes, more: bytes
) -> None:
    async with running(tmp_path, bounds=Bounds(idle_s=0.3, farewell_s=0.1)) as api:
        reader, writer = await opened(api)
        writer.write(said)
        over = asyncio.ensure_future(reader.read())
        with contextlib.suppress(ConnectionError):
            while not over.done():
                writer.write(more)
                await asyncio.wait({over}, timeout=0.01)
            assert await over == b""
        writer.close()


async def test_a_body_that_comes_too_slowly_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handlers, "BODY_TIMEOUT_S", 0.3)
    async with running(tmp_path) as api:
        for length in ("Content-Length: 1000", "Transfer-Encoding: chunked"):
            reader, writer = await opened(api)
            head = f"POST {DEFAULT}/configmaps HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {api.server.token}\r\n"
            writer.write(f"{head}Content-Type: application/json\r\n{length}\r\n\r\n".encode())
            answer = asyncio.ensure_future(reader.read())
            with contextlib.suppress(ConnectionError):
                while not answer.done():
                    writer.write(b"1\r\n \r\n" if "chunked" in length else b" ")
                    await asyncio.wait({answer}, timeout=0.02)
                assert b" 400 " in await answer
            writer.close()


async def test_a_watcher_that_never_reads_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handlers, "STALLED_S", 0.3)
    async with running(tmp_path, bounds=Bounds(farewell_s=0.1)) as api:
        await api.create(f"{DEFAULT}/configmaps", config_map("a"))
        before = len(asyncio.all_tasks())
        _, writer, code = await asked(api, f"{DEFAULT}/configmaps?watch=true")
        assert code == 200
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        number = 0
        while len(asyncio.all_tasks()) > before:  # of the watch, nothing is left
            await api.create(f"{DEFAULT}/configmaps", config_map(f"c-{number}", k="x" * 500_000))
            number += 1
        writer.transport.abort()


@contextlib.contextmanager
def few_files(count: int) -> Iterator[None]:
    """This process may open that many more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken = {int(each) for each in os.listdir("/proc/self/fd")}
    free = (number for number in itertools.count() if number not in taken)
    resource.setrlimit(resource.RLIMIT_NOFILE, (next(itertools.islice(free, count, None)), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def test_a_server_that_runs_out_of_files_says_so_and_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with running(tmp_path) as api:
        with few_files(20):
            async with crowd(api, 100, "nothing"):
                # Who asks is in the same process, and may find no file left, either, until the server has made room.
                while True:
                    with contextlib.suppress(OSError):
                        _, writer, code = await asked(api, "/readyz")
                        break
                    await asyncio.sleep(0)
                assert code == 200
                writer.close()
        assert "no connection can be taken" in caplog.messages


def test_strangers_leave_before_those_who_rest_and_nobody_who_is_answered() -> None:
    class Seen(msgspec.Struct):
        known: bool
        since: float
        requests: int = 0

    old, fresh = Seen(False, 5), Seen(False, 6)
    rested, busy = Seen(True, 1), Seen(True, 0, requests=1)
    everybody = [busy, rested, fresh, old]
    left = []
    while (found := connections.least_needed(everybody)) is not None:  # type: ignore[arg-type]
        left.append(found)
        everybody.remove(found)  # type: ignore[arg-type]
    assert left == [old, fresh, rested]
    assert everybody == [busy]
