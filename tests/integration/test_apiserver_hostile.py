"""Whatever is thrown at it, the API server answers with a clear status or hangs up, and goes on."""

import asyncio
import json
import random
import ssl
from pathlib import Path
from urllib.parse import quote

import pytest
from apiserver_fixture import DEFAULT, MERGE, Api, config_map, pod, running

from octarbiter.cluster.store.store import Store

REQUESTS = 5000
CHANGES = 300
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "BREW")
TYPES = (
    "application/json",
    "application/yaml",
    "application/merge-patch+json",
    "application/json-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
    "application/vnd.kubernetes.protobuf",
    "text/plain",
    "",
)
WORDS = (
    "api",
    "apis",
    "v1",
    "apps",
    "batch",
    "pods",
    "nodes",
    "namespaces",
    "default",
    "configmaps",
    "jobs",
    "a",
    "log",
)
PARAMETERS = (
    "watch",
    "limit",
    "continue",
    "resourceVersion",
    "labelSelector",
    "fieldSelector",
    "dryRun",
    "timeoutSeconds",
)
VALUES = ("", "0", "1", "-1", "true", "All", "a=b", "a in (", "metadata.name=x", "9" * 40, "\x00", "é", "..", "%")


def target(dice: random.Random) -> str:
    path = "/" + "/".join(
        dice.choice([*WORDS, quote(dice.choice(VALUES), safe="")]) for _ in range(dice.randrange(1, 8))
    )
    # A watch that goes on for ever is right, and takes too long.
    pairs = [f"{dice.choice(PARAMETERS)}={quote(dice.choice(VALUES))}" for _ in range(dice.randrange(4))]
    return f"{path}?{'&'.join([*pairs, 'timeoutSeconds=0'])}"


def body(dice: random.Random) -> bytes:
    match dice.randrange(5):
        case 0:
            return b""
        case 1:
            return dice.randbytes(dice.randrange(200))
        case 2:
            return b"k8s\x00" + dice.randbytes(dice.randrange(60))
        case 3:
            whole = json.dumps(pod("a") if dice.random() < 0.5 else config_map("a", k="v")).encode()
            cut = dice.randrange(len(whole))
            return whole[:cut] + dice.randbytes(dice.randrange(3)) + whole[cut + dice.randrange(4) :]
        case _:
            return json.dumps(
                dice.choice([None, 1, "x", [], [[]], {"metadata": 1}, {"spec": {"containers": 3}}])
            ).encode()


def test_five_thousand_senseless_requests_are_all_answered_and_none_is_a_crash(tmp_path: Path) -> None:
    async def story() -> None:
        dice = random.Random(20261116)
        store = await Store.open(tmp_path / "store")
        async with running(tmp_path, store) as api:
            before = len(asyncio.all_tasks())

            async def ask(numbers: list[int]) -> list[tuple[int, str]]:
                found = []
                for _ in numbers:
                    method, path, content = dice.choice(METHODS), target(dice), body(dice)
                    headers = {"Content-Type": dice.choice(TYPES)}
                    if dice.random() < 0.1:
                        headers["Accept"] = dice.choice([*TYPES, "*/*", "application/json;as=Table;v=v1;g=meta.k8s.io"])
                    answer = await api.ask(method, path, content, headers)
                    found.append((answer.code, f"{method} {path} {headers} {content!r}"))
                return found

            answers = await asyncio.gather(*(ask([0] * (REQUESTS // 20)) for _ in range(20)))
            assert [told for each in answers for code, told in each if code >= 500] == []
            assert (await api.ask("GET", "/readyz")).code == 200
            await asyncio.sleep(0)
            assert len(asyncio.all_tasks()) <= before + 50  # kept connections, and no work left behind
        await store.close()
        await (await Store.open(tmp_path / "store")).close()

    asyncio.run(story())


def test_a_body_that_is_too_large_is_refused(tmp_path: Path) -> None:
    async def story() -> None:
        async with running(tmp_path) as api:
            for size in (4 << 20, 100 << 20):
                reader, writer = await opened(api)
                head = f"POST {DEFAULT}/configmaps HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {api.server.token}\r\n"
                writer.write(f"{head}Content-Type: application/json\r\nContent-Length: {size}\r\n\r\n{{".encode())
                assert b" 413 " in await asyncio.wait_for(reader.readline(), 20)
                writer.close()

    asyncio.run(story())


@pytest.mark.parametrize("text", ["[" * 10_000, '{"a":' * 10_000, '{"data":' + "[" * 10_000])
def test_json_nested_ten_thousand_deep_is_refused(tmp_path: Path, text: str) -> None:
    async def story() -> None:
        async with running(tmp_path) as api:
            await api.create(f"{DEFAULT}/configmaps", config_map("a"))
            assert (await api.ask("POST", f"{DEFAULT}/configmaps", text.encode())).code == 400
            assert (await api.ask("PATCH", f"{DEFAULT}/configmaps/a", text.encode(), MERGE)).code == 400

    asyncio.run(story())


def test_a_watcher_that_does_not_read_is_cut_off_and_nobody_else_notices(tmp_path: Path) -> None:
    async def story() -> None:
        store = await Store.open(None, backlog=20)
        async with running(tmp_path, store) as api:
            reader, writer = await opened(api)
            head = f"GET {DEFAULT}/configmaps?watch=true HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
            writer.write(f"{head}Authorization: Bearer {api.server.token}\r\n\r\n".encode())
            assert b" 200 " in await asyncio.wait_for(reader.readline(), 20)
            writer.transport.pause_reading()  # type: ignore[attr-defined]
            for number in range(CHANGES):
                await api.create(f"{DEFAULT}/configmaps", config_map(f"c-{number}", k="x" * 100_000))
            assert (await api.ask("GET", f"{DEFAULT}/configmaps/c-{CHANGES - 1}")).code == 200
            writer.transport.resume_reading()  # type: ignore[attr-defined]
            # What had been sent by then, and an end: the rest was not kept for it.
            seen = (await asyncio.wait_for(reader.read(), 30)).count(b'"type":"ADDED"')
            assert seen < CHANGES
            writer.close()
        await store.close()

    asyncio.run(story())


async def opened(api: Api) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    tls = ssl.create_default_context(cadata=api.server.ca_pem.decode())
    return await asyncio.open_connection("127.0.0.1", api.server.port, ssl=tls)
