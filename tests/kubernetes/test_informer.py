"""The informer against a real API server, through what happens to real ones."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import itertools
import json
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
import pytest

from octarbiter.api import codec, errors
from octarbiter.api.core_kinds import ConfigMap
from octarbiter.api.scheme import CONFIGMAPS
from octarbiter.runtime import answers, client, informer, kubeconfig
from octarbiter.testing.kubernetes.bed import Testbed
from octarbiter.testing.kubernetes.controlplane import ControlPlane

both_ways = pytest.mark.parametrize("streams", [True, False], ids=["streamed list", "paged list"])


class Informed:
    """An informer at work, and what it told."""

    def __init__(self, connection: kubeconfig.Connection, namespace: str, **options: Any) -> None:
        self.verbs: list[str] = []
        self.told: list[tuple[str, str | None, str | None]] = []
        self._changed = asyncio.Event()
        self.client = client.Client(connection, observer=lambda verb, *_: self.verbs.append(verb))
        options = {"field_selector": "metadata.name!=kube-root-ca.crt", "page_size": 3, **options}
        self.informer = informer.Informer(self.client, CONFIGMAPS, namespace=namespace, on_change=self._hear, **options)

    def _hear(self, key: str, old: ConfigMap | None, new: ConfigMap | None) -> None:
        self.told.append((key.split("/")[1], old and old.data.get("a"), new and new.data.get("a")))
        self._changed.set()

    def held(self) -> dict[str, str]:
        return {found.metadata.name: found.data["a"] for found in self.informer.cache}

    async def until(self, is_so: Callable[[dict[str, str]], bool]) -> None:
        while not is_so(self.held()):
            self._changed.clear()
            await self._changed.wait()

    async def holds(self, **expected: str) -> None:
        await self.until(lambda held: held == expected)


@contextlib.asynccontextmanager
async def informed(connection: kubeconfig.Connection, namespace: str, **options: Any) -> AsyncIterator[Informed]:
    made = Informed(connection, namespace, **options)
    async with made.client:
        task = asyncio.create_task(made.informer.run())
        try:
            await made.informer.synced.wait()
            yield made
        finally:
            task.cancel()
            await asyncio.wait([task])


def path(namespace: str, name: str = "") -> str:
    return f"/api/v1/namespaces/{namespace}/configmaps/{name}".rstrip("/")


def create(control_plane: ControlPlane, namespace: str, name: str, value: str, **metadata: Any) -> None:
    body = {"metadata": {"name": name, **metadata}, "data": {"a": value}}
    control_plane.request("POST", path(namespace), body)


def change(control_plane: ControlPlane, namespace: str, name: str, value: str) -> None:
    control_plane.request("PATCH", path(namespace, name), {"data": {"a": value}}, "application/merge-patch+json")


def delete(control_plane: ControlPlane, namespace: str, name: str) -> None:
    control_plane.request("DELETE", path(namespace, name))


@both_ways
async def test_what_is_there_and_what_happens_then_is_known(bed: Testbed, namespace: str, streams: bool) -> None:
    server = bed.control_plane
    for number in range(7):
        create(server, namespace, f"c{number}", "1")

    async with informed(kubeconfig.load(str(server.kubeconfig)), namespace, stream_lists=streams) as seen:
        assert seen.held() == {f"c{number}": "1" for number in range(7)}
        assert ("list" in seen.verbs) is not streams
        seen.told.clear()

        create(server, namespace, "new", "1")
        change(server, namespace, "c0", "2")
        for number in range(1, 7):
            delete(server, namespace, f"c{number}")
        await seen.holds(new="1", c0="2")

        assert seen.told == [
            ("new", None, "1"),
            ("c0", "1", "2"),
            *((f"c{number}", "1", None) for number in range(1, 7)),
        ]
        assert seen.informer.lists == 1


@both_ways
async def test_what_no_longer_matches_the_selector_is_gone(bed: Testbed, namespace: str, streams: bool) -> None:
    server = bed.control_plane
    create(server, namespace, "c", "1", labels={"team": "red"})
    options = {"label_selector": "team=red", "field_selector": "", "stream_lists": streams}

    async with informed(kubeconfig.load(str(server.kubeconfig)), namespace, **options) as seen:
        await seen.holds(c="1")
        relabel = {"metadata": {"labels": {"team": "blue"}}}
        server.request("PATCH", path(namespace, "c"), relabel, "application/merge-patch+json")

        await seen.holds()


async def test_our_own_writes_are_known_at_once_and_told_once(bed: Testbed, namespace: str) -> None:
    async with informed(kubeconfig.load(str(bed.control_plane.kubeconfig)), namespace) as seen:
        made = await seen.client.create(CONFIGMAPS, namespace, {"metadata": {"name": "c"}, "data": {"a": "1"}})
        seen.informer.cache.put(made)
        assert seen.held() == {"c": "1"}

        create(bed.control_plane, namespace, "later", "1")
        await seen.holds(c="1", later="1")
        assert seen.told == [("c", None, "1"), ("later", None, "1")]

        left = await seen.client.delete(CONFIGMAPS, namespace, "c")
        assert left is None
        seen.informer.cache.remove(made.metadata.key, made.metadata.uid)
        assert seen.held() == {"later": "1"}


class Cable:
    """Between the client and the server, so that it can be pulled out."""

    def __init__(self, connection: kubeconfig.Connection) -> None:
        self._to = urlsplit(connection.server)
        self._connection = connection
        self._pipes: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._port = 0

    async def plug_in(self) -> kubeconfig.Connection:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self._port)
        self._port = self._server.sockets[0].getsockname()[1]
        return msgspec.structs.replace(self._connection, server=f"https://127.0.0.1:{self._port}")

    async def pull_out(self) -> None:
        self._server.close()
        for pipe in self._pipes:
            pipe.transport.abort()
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there_reader, there = await asyncio.open_connection(self._to.hostname, self._to.port)
        self._pipes |= {writer, there}
        for source, target in ((reader, there), (there_reader, writer)):
            task = asyncio.create_task(self._pump(source, target))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _pump(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        try:
            while data := await source.read(65536):
                target.write(data)
                await target.drain()
        except ConnectionError:
            pass
        finally:
            target.close()


async def test_after_a_cut_connection_it_goes_on_without_a_new_list(bed: Testbed, namespace: str) -> None:
    server = bed.control_plane
    create(server, namespace, "kept", "1")
    create(server, namespace, "gone", "1")
    cable = Cable(kubeconfig.load(str(server.kubeconfig)))

    async with informed(await cable.plug_in(), namespace) as seen:
        await cable.pull_out()
        change(server, namespace, "kept", "2")
        delete(server, namespace, "gone")
        create(server, namespace, "new", "1")
        seen.told.clear()
        await cable.plug_in()
        await seen.holds(kept="2", new="1")

        assert seen.told == [("kept", "1", "2"), ("gone", "1", None), ("new", None, "1")]
        assert seen.informer.lists == 1
        await cable.pull_out()


@pytest.fixture(scope="module")
def own(programs: None) -> Iterator[ControlPlane]:
    """A control plane that may be stopped without disturbing anybody, and that forgets as etcd does."""
    flags = ["--feature-gates=ListFromCacheSnapshot=false"]
    with ControlPlane(controller_manager=False, scheduler=False, apiserver_flags=flags) as control_plane:
        yield control_plane


def restart(control_plane: ControlPlane) -> None:
    control_plane.stop_apiserver()
    control_plane.start_apiserver()
    with contextlib.suppress(OSError):
        control_plane.request("GET", "/version")  # the bed's own kept connection ended with the old server


@both_ways
async def test_what_the_server_has_forgotten_is_found_by_a_new_list(own: ControlPlane, streams: bool) -> None:
    """A restarted server remembers no event from before its start: it answers 410 to who left before."""
    namespace = own.create_namespace()
    for name in ("same", "kept", "gone", "again"):
        create(own, namespace, name, "1")
    cable = Cable(kubeconfig.load(str(own.kubeconfig)))

    async with informed(await cable.plug_in(), namespace, stream_lists=streams) as seen:
        await cable.pull_out()
        change(own, namespace, "kept", "2")
        delete(own, namespace, "gone")
        delete(own, namespace, "again")
        create(own, namespace, "again", "1")
        create(own, namespace, "new", "1")
        await asyncio.to_thread(restart, own)
        seen.told.clear()
        await cable.plug_in()
        await seen.until(lambda held: held.keys() == {"same", "kept", "again", "new"} and held["kept"] == "2")

        assert seen.informer.lists == 2
        assert sorted(seen.told, key=str) == sorted(
            [("kept", "1", "2"), ("gone", "1", None), ("again", "1", None), ("again", None, "1"), ("new", None, "1")],
            key=str,
        )
        await cable.pull_out()


async def test_a_list_whose_past_is_compacted_between_pages_is_begun_anew(own: ControlPlane) -> None:
    namespace = own.create_namespace()
    for number in range(5):
        create(own, namespace, f"c{number}", "1")
    codes: list[int] = []

    def forget_after_the_first_page(verb: str, resource: str, code: int) -> None:
        codes.append(code)
        if len(codes) == 1:
            delete(own, namespace, "c0")
            create(own, namespace, "late", "1")
            newest = own.request("GET", path(namespace))["metadata"]["resourceVersion"]
            compact(own.directory / "etcd.sock", newest)

    connection = kubeconfig.load(str(own.kubeconfig))
    async with client.Client(connection, observer=forget_after_the_first_page) as speaking:
        whole = await speaking.list_raw(CONFIGMAPS, namespace, page_size=2)

    names = sorted(codec.decode(item, codec.ObjectWithMeta).metadata.name for item in whole.items)
    assert codes == [200, 410, 200]
    assert names == ["c1", "c2", "c3", "c4", "late"]


def compact(etcd: Path, revision: str) -> None:
    """Makes etcd forget everything before this revision."""
    connection = http.client.HTTPConnection("etcd")
    connection.sock = socket.socket(socket.AF_UNIX)
    connection.sock.connect(str(etcd))
    connection.request("POST", "/v3/kv/compaction", json.dumps({"revision": revision, "physical": True}))
    answer = connection.getresponse()
    assert answer.status == 200, answer.read()
    connection.close()


@both_ways
async def test_it_ends_up_with_the_server_s_state_while_the_server_is_restarted(
    own: ControlPlane, streams: bool
) -> None:
    namespace = own.create_namespace()
    writing, restarted = asyncio.Event(), asyncio.Event()

    async with informed(kubeconfig.load(str(own.kubeconfig)), namespace, stream_lists=streams) as seen:

        async def write() -> None:
            """Creates, changes and deletes on and on; an answer that is lost is found out by trying again."""
            for number in itertools.count():
                if number == 50:
                    writing.set()
                if number % 25 == 0 and restarted.is_set():
                    return
                name = f"c{number % 25}"
                try:
                    if number % 3 == 0:
                        await seen.client.delete(CONFIGMAPS, namespace, name)
                        continue
                    kind = {"apiVersion": "v1", "kind": "ConfigMap"}
                    body = {**kind, "metadata": {"name": name}, "data": {"a": str(number)}}
                    written = await seen.client.apply(CONFIGMAPS, namespace, name, body, field_manager="test")
                    seen.informer.cache.put(written)
                except errors.NotFound:
                    pass
                except errors.Retry as problem:
                    if problem.status.reason != answers.ANSWER_LOST:
                        raise

        async with asyncio.TaskGroup() as group:
            group.create_task(write())
            await writing.wait()
            await asyncio.to_thread(restart, own)
            restarted.set()

        truth = {
            found.metadata.name: found.data["a"]
            for found in await seen.client.list(CONFIGMAPS, namespace)
            if found.metadata.name != "kube-root-ca.crt"
        }
        await seen.until(lambda held: held == truth)
        replayed: dict[str, str] = {}
        for name, old, new in seen.told:
            assert replayed.pop(name, None) == old
            if new is not None:
                replayed[name] = new
        assert replayed == truth
