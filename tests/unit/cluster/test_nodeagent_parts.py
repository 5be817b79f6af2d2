"""Scripts of pretended pods, addresses, alarms, nodes, probes over the network."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nodeagent_builders import container, moment, pod

from octarbiter.api import codec
from octarbiter.cluster.nodeagent import handlers, news, nodes
from octarbiter.cluster.nodeagent.addresses import Addresses
from octarbiter.cluster.nodeagent.alarms import Alarms
from octarbiter.cluster.nodeagent.pods import Handler
from octarbiter.cluster.nodeagent.runtimes import script
from octarbiter.cluster.nodeagent.runtimes.pretend import PretendRuntime
from octarbiter.cluster.nodeagent.runtimes.protocol import Place
from octarbiter.testing.kubernetes import fakepods

PLACE = Place("127.0.0.1", "127.64.0.1")


def plan(command: str = "", name: str = "web", env: list[dict[str, str]] | None = None, **notes: str) -> script.Script:
    annotations = {f"fake.octarbiter/{key.replace('_', '-')}": value for key, value in notes.items()}
    one = container(command=["sh", "-c", command], env=env or [])
    return script.of(pod([one], metadata={"name": name, "annotations": annotations}))


@pytest.mark.parametrize(
    ("command", "seconds"),
    [("sleep 5", 5), ("sleep 1m; sleep 0.5", 60.5), ("exit 3", 0), ("serve", None), ("sleeping", None)],
)
def test_the_duration_is_read_from_the_command(command: str, seconds: float | None) -> None:
    assert plan(command).duration == (None if seconds is None else timedelta(seconds=seconds))


@pytest.mark.parametrize(
    ("told", "seconds"), [("500ms", 0.5), ("1m30s", 90), ("forever", None), ("1s,2s", 2), ("9s/1s,2s", 2)]
)
def test_the_duration_may_be_told(told: str, seconds: float | None) -> None:
    made = plan("sleep 77", "job-0-1-1", duration=told)

    assert made.duration == (None if seconds is None else timedelta(seconds=seconds))


@pytest.mark.parametrize(
    ("told", "name", "code"),
    [
        ("1,1,0", "x-0-0-0", 1),
        ("1,1,0", "x-0-2-0", 0),
        ("1,1,0", "x-0-7-0", 0),
        ("1,0/0", "x-0-0-1", 0),
        ("1;1,0/0", "x-0-1-0", 1),
        ("1;1,0/0", "x-1-1-0", 0),
        ("5", "anything", 5),
    ],
)
def test_the_exit_code_may_be_told_by_attempt_and_index(told: str, name: str, code: int) -> None:
    assert plan("exit 9", name, exit_code=told).exit_code == code


def test_the_last_exit_of_the_command_counts_and_variables_are_put_in() -> None:
    assert plan("exit 1; exit ${CODE}", env=[{"name": "CODE", "value": "4"}]).exit_code == 4


def test_the_annotations_are_those_of_the_fake_nodes() -> None:
    names = {fakepods.DURATION, fakepods.EXIT_CODE, fakepods.MESSAGE, fakepods.LINGERS, fakepods.STUCK, fakepods.SILENT}

    assert names == {script.PREFIX + key for key in ("duration", "exit-code", "message", "lingers", "stuck", "silent")}


def test_a_stuck_pod_falls_silent_when_it_is_deleted() -> None:
    notes = {"fake.octarbiter/stuck": "true"}
    gone = {"annotations": notes, "deletionTimestamp": moment(0)}

    assert not script.is_silent(pod(metadata={"annotations": notes}))
    assert script.is_silent(pod(metadata=gone))
    assert script.is_silent(pod(metadata={"annotations": {"fake.octarbiter/silent": "true"}}))


async def told_by(runtime: PretendRuntime, kind: type[news.Event], begin: Any) -> Any:
    heard: asyncio.Future[news.Event] = asyncio.get_running_loop().create_future()

    def listen(uid: str, event: news.Event) -> None:
        if isinstance(event, kind) and not heard.done():
            heard.set_result(event)

    runtime.attach(listen)
    await begin()
    async with asyncio.timeout(30):
        return await heard


async def test_a_pretended_container_ends_as_told() -> None:
    notes = {"fake.octarbiter/duration": "1ms", "fake.octarbiter/exit-code": "3", "fake.octarbiter/message": "bye"}
    one, runtime = pod(metadata={"annotations": notes}), PretendRuntime()
    ended = await told_by(runtime, news.ContainerEnded, lambda: runtime.start(one, "main", 0, PLACE))

    assert (ended.outcome.exit_code, ended.outcome.reason, ended.outcome.message) == (3, "Error", "bye")


@pytest.mark.parametrize(("signal", "code"), [("SIGTERM", 143), ("SIGKILL", 137)])
async def test_a_pretended_container_obeys_signals(signal: str, code: int) -> None:
    one, runtime = pod([container(command=["serve"])]), PretendRuntime()
    await runtime.start(one, "main", 0, PLACE)

    async def send() -> None:
        runtime.send_signal(one, "main", 0, signal)

    assert (await told_by(runtime, news.ContainerEnded, send)).outcome.exit_code == code


async def test_a_pretended_container_is_found_again_from_what_was_reported_of_it() -> None:
    notes = {"fake.octarbiter/duration": "10s", "fake.octarbiter/exit-code": "3"}
    started = datetime.now(UTC) - timedelta(seconds=60)
    id_ = f"pretend://u-1/main/{int(started.timestamp() * 1000)}"
    running = {"name": "main", "containerID": id_, "restartCount": 2, "state": {"running": {"startedAt": started}}}
    one = pod(metadata={"annotations": notes}, status={"containerStatuses": [running]})
    runtime = PretendRuntime()

    async def find() -> None:
        (run,) = await runtime.known(one)
        assert (run.attempt, run.id, run.outcome) == (2, id_, None)

    ended = await told_by(runtime, news.ContainerEnded, find)
    assert (ended.attempt, ended.outcome.exit_code) == (2, 3)


@given(st.lists(st.text("abcdef", min_size=1), unique=True, max_size=50))
def test_no_two_pods_have_one_address(uids: list[str]) -> None:
    addresses = Addresses()
    given_ = [addresses.give(uid) for uid in uids]

    assert len(set(given_)) == len(uids)
    assert all(address.startswith("127.") for address in given_)
    assert given_ == [addresses.give(uid) for uid in uids]


def test_a_pod_keeps_the_address_it_was_reported_with_unless_it_is_taken() -> None:
    addresses = Addresses()

    assert addresses.give("a", "127.64.1.1") == "127.64.1.1"
    assert addresses.give("b", "127.64.1.1") != "127.64.1.1"
    addresses.take_back("a")
    assert addresses.give("c", "127.64.1.1") == "127.64.1.1"


async def test_alarms_ring_in_order_once_each_and_only_the_last_one_set() -> None:
    rung: list[str] = []
    done = asyncio.Event()

    def ring(key: str) -> None:
        rung.append(key)
        if key == "last":
            done.set()

    alarms: Alarms[str] = Alarms(ring)
    now = datetime.now(UTC)
    alarms.set("moved", now)
    alarms.set("moved", now + timedelta(milliseconds=30))
    alarms.set("gone", now + timedelta(milliseconds=5))
    alarms.cancel("gone")
    alarms.set("last", now + timedelta(milliseconds=40))
    alarms.set("first", now + timedelta(milliseconds=10))
    async with asyncio.timeout(30):
        await done.wait()

    assert rung == ["first", "moved", "last"]
    assert len(alarms) == 0


def test_a_node_says_what_the_scheduler_must_know(tmp_path: Path) -> None:
    capacity = nodes.machine_capacity(tmp_path) | {"nvidia.com/gpu": "4"}
    made = nodes.object_of(nodes.NodeSettings(name="n1", capacity=capacity, labels={"a": "b"}), moment(0))

    assert set(made["status"]["allocatable"]) == {"cpu", "memory", "ephemeral-storage", "pods", "nvidia.com/gpu"}
    assert made["metadata"]["labels"]["kubernetes.io/hostname"] == "n1"
    assert [c["type"] for c in made["status"]["conditions"]] == [
        "MemoryPressure",
        "DiskPressure",
        "PIDPressure",
        "Ready",
    ]


def test_a_node_condition_remembers_since_when_it_holds() -> None:
    settings = nodes.NodeSettings(name="n1", capacity={})
    since = {"Ready": ("True", moment(0)), "DiskPressure": ("True", moment(0))}
    made = {c["type"]: c["lastTransitionTime"] for c in nodes.status_of(settings, since, moment(9))["conditions"]}

    assert (made["Ready"], made["DiskPressure"]) == ("2026-01-01T00:00:00Z", "2026-01-01T00:00:09Z")


@asynccontextmanager
async def web(answer: bytes) -> AsyncIterator[int]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


def handler(**fields: Any) -> Handler:
    return codec.from_json(fields, Handler)


@pytest.mark.parametrize(("code", "passed"), [(200, True), (302, True), (404, False), (500, False)])
async def test_an_http_probe_passes_below_400(code: int, passed: bool) -> None:
    async with web(f"HTTP/1.1 {code} X\r\nContent-Length: 2\r\n\r\nok".encode()) as port:
        spec = pod([container(ports=[{"name": "web", "containerPort": port}])]).spec.containers[0]
        answer = await handlers.act(spec, handler(httpGet={"path": "/healthz", "port": "web"}), "127.0.0.1", 30)

    assert answer.passed == passed


async def test_a_tcp_probe_passes_where_somebody_listens() -> None:
    spec = pod().spec.containers[0]
    async with web(b"") as port:
        assert (await handlers.act(spec, handler(tcpSocket={"port": port}), "127.0.0.1", 30)).passed
    assert not (await handlers.act(spec, handler(tcpSocket={"port": port}), "127.0.0.1", 30)).passed


async def test_a_probe_that_cannot_be_understood_fails_with_a_sentence() -> None:
    spec = pod().spec.containers[0]

    assert "no port named" in (await handlers.act(spec, handler(tcpSocket={"port": "web"}), "127.0.0.1", 30)).output
    assert "nothing to do" in (await handlers.act(spec, handler(), "127.0.0.1", 30)).output
