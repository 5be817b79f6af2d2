from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from faulty_server import FaultyServer, Line, Seen, serving

from octarbiter.api import codec
from octarbiter.api.pod import Pod
from octarbiter.api.scheme import PODS
from octarbiter.runtime import client, informer

END = {"k8s.io/initial-events-end": "true"}


def pod(name: str, revision: int, **more: Any) -> dict[str, Any]:
    metadata = {"namespace": "lab", "name": name, "uid": f"uid-{name}", "resourceVersion": str(revision)}
    return {"kind": "Pod", "apiVersion": "v1", "metadata": metadata, **more}


def bookmark(revision: int, **annotations: str) -> dict[str, Any]:
    return {"kind": "Pod", "metadata": {"resourceVersion": str(revision), "annotations": annotations}}


def query(seen: Seen) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(seen.target).query).items()}


Play = Callable[[Line], Any]


class Plays:
    """What the server does, request by request; the informer has `done` when it asks for more than was written."""

    def __init__(self, *plays: Play) -> None:
        self._plays = list(plays)
        self.queries: list[dict[str, str]] = []
        self.done = asyncio.Event()

    async def __call__(self, seen: Seen, line: Line) -> None:
        self.queries.append(query(seen))
        if self._plays:
            await self._plays.pop(0)(line)
        else:
            self.done.set()
            await asyncio.Event().wait()


class Told:
    def __init__(self) -> None:
        self.changes: list[tuple[str, str, str]] = []
        self.unreadable: list[str] = []

    def changed(self, key: str, old: Pod | None, new: Pod | None) -> None:
        def revision(pod_: Pod | None) -> str:
            return pod_.metadata.resource_version if pod_ else "-"

        self.changes.append((key, revision(old), revision(new)))

    def cannot_read(self, key: str, problem: str) -> None:
        self.unreadable.append(key)


@asynccontextmanager
async def informed(server: FaultyServer, **options: Any) -> AsyncIterator[tuple[informer.Informer[Pod], Told]]:
    told = Told()
    async with client.Client(server.connection(), retry_for_s=1.0) as speaking:
        informing = informer.Informer(speaking, PODS, on_change=told.changed, on_unreadable=told.cannot_read, **options)
        task = asyncio.create_task(informing.run())
        try:
            yield informing, told
        finally:
            task.cancel()
            await asyncio.wait([task])


def names(informing: informer.Informer[Pod]) -> set[str]:
    return {found.metadata.name for found in informing.cache}


async def streamed_list(line: Line, *pods: dict[str, Any], revision: int) -> None:
    await line.begin_stream()
    for each in pods:
        await line.event("ADDED", each)
    await line.event("BOOKMARK", bookmark(revision, **END))


def paged_list(*pods: dict[str, Any], revision: int) -> Play:
    async def play(line: Line) -> None:
        await line.answer(200, {"metadata": {"resourceVersion": str(revision)}, "items": pods})

    return play


@pytest.mark.parametrize("cut", [b"", b'{"type":"ADDED","object":{"met'], ids=["between events", "within an event"])
async def test_a_broken_watch_goes_on_after_the_last_event_seen(cut: bytes) -> None:
    async def break_off(line: Line) -> None:
        await streamed_list(line, pod("a", 3), revision=5)
        await line.event("ADDED", pod("b", 8))
        await line.send(b"100\r\n" + cut)
        line.reset()

    async def go_on(line: Line) -> None:
        await line.begin_stream()
        await line.event("ADDED", pod("c", 9))
        await line.end_stream()

    plays = Plays(break_off, go_on)
    async with serving(plays) as server, informed(server) as (informing, told):
        await plays.done.wait()

        assert names(informing) == {"a", "b", "c"}
        assert [asked.get("resourceVersion") for asked in plays.queries] == [None, "8", "9"]
        assert informing.lists == 1
        assert told.changes == [("lab/a", "-", "3"), ("lab/b", "-", "8"), ("lab/c", "-", "9")]


async def test_a_bookmark_moves_the_place_from_which_it_goes_on() -> None:
    async def quiet(line: Line) -> None:
        await streamed_list(line, revision=5)
        await line.event("BOOKMARK", bookmark(70))
        await line.end_stream()

    plays = Plays(quiet)
    async with serving(plays) as server, informed(server) as (informing, _):
        await plays.done.wait()

        assert plays.queries[-1]["resourceVersion"] == "70"
        assert informing.last_revision == 70


async def expired_by_status(line: Line) -> None:
    await line.refuse(410, "Expired")


async def expired_by_event(line: Line) -> None:
    await line.begin_stream()
    await line.event("ERROR", {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"})


async def from_the_future(line: Line) -> None:
    details = {"causes": [{"reason": "ResourceVersionTooLarge"}]}
    await line.begin_stream()
    await line.event("ERROR", {"kind": "Status", "code": 504, "reason": "Timeout", "details": details})


@pytest.mark.parametrize("expired", [expired_by_status, expired_by_event, from_the_future])
@pytest.mark.parametrize("streams", [True, False], ids=["streamed list", "paged list"])
async def test_a_forgotten_past_is_listed_anew_and_only_differences_are_told(expired: Play, streams: bool) -> None:
    before = (pod("same", 1), pod("changed", 2), pod("gone", 3))
    after = (pod("same", 1), pod("changed", 7), pod("new", 8))

    def listing(*pods: dict[str, Any], revision: int) -> Play:
        async def play(line: Line) -> None:
            await streamed_list(line, *pods, revision=revision)
            await line.end_stream()

        return play if streams else paged_list(*pods, revision=revision)

    plays = Plays(listing(*before, revision=5), expired, listing(*after, revision=9))
    async with serving(plays) as server, informed(server, stream_lists=streams) as (informing, told):
        await informing.synced.wait()
        told.changes.clear()
        await plays.done.wait()

        assert names(informing) == {"same", "changed", "new"}
        assert told.changes == [("lab/changed", "2", "7"), ("lab/new", "-", "8"), ("lab/gone", "3", "-")]
        assert informing.lists == 2


async def test_a_list_that_breaks_off_changes_nothing() -> None:
    async def half_a_list(line: Line) -> None:
        await line.begin_stream()
        await line.event("ADDED", pod("a", 1))
        await line.end_stream()

    async def whole(line: Line) -> None:
        await streamed_list(line, pod("a", 1), pod("b", 2), revision=5)
        await line.end_stream()

    plays = Plays(half_a_list, whole)
    async with serving(plays) as server, informed(server) as (informing, told):
        await plays.done.wait()

        assert informing.synced.is_set()
        assert informing.lists == 1
        assert [change[0] for change in told.changes] == ["lab/a", "lab/b"]


async def test_changes_made_while_the_list_is_streamed_belong_to_it() -> None:
    async def lively(line: Line) -> None:
        await line.begin_stream()
        for kind, object_ in [
            ("ADDED", pod("a", 1)),
            ("ADDED", pod("b", 2)),
            ("MODIFIED", pod("a", 6)),
            ("DELETED", pod("b", 7)),
            ("BOOKMARK", bookmark(7)),
            ("BOOKMARK", bookmark(8, **END)),
        ]:
            await line.event(kind, object_)
        await line.end_stream()

    plays = Plays(lively)
    async with serving(plays) as server, informed(server) as (_, told):
        await plays.done.wait()

        assert told.changes == [("lab/a", "-", "6")]


async def test_pages_are_fetched_from_a_server_that_refuses_to_stream_lists() -> None:
    async def refuse(line: Line) -> None:
        await line.refuse(422, "Invalid")

    plays = Plays(refuse, paged_list(pod("a", 1), revision=5))
    async with serving(plays) as server, informed(server) as (informing, _):
        await plays.done.wait()

        assert names(informing) == {"a"}
        assert [asked.get("sendInitialEvents") for asked in plays.queries] == ["true", None, None]
        assert plays.queries[-1]["resourceVersion"] == "5"


async def test_pages_are_fetched_from_a_server_that_does_not_know_how_to_end_a_streamed_list(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(informer, "INITIAL_SILENCE_S", 0.2)

    async def old_server(line: Line) -> None:
        await line.begin_stream()
        await line.event("ADDED", pod("a", 1))
        await asyncio.Event().wait()

    async def behave(seen: Seen, line: Line) -> None:
        await (old_server(line) if "sendInitialEvents" in query(seen) else plays(seen, line))

    plays = Plays(paged_list(pod("a", 1), pod("b", 2), revision=5))
    async with serving(behave) as server, informed(server) as (informing, _):
        await plays.done.wait()

        assert names(informing) == {"a", "b"}


@pytest.mark.parametrize("streams", [True, False], ids=["streamed list", "paged list"])
async def test_one_object_that_cannot_be_read_stops_nothing(streams: bool) -> None:
    unreadable = pod("odd", 2, status=5)

    async def list_and_watch(line: Line) -> None:
        await streamed_list(line, unreadable, pod("a", 1), revision=5)
        await watch(line, begun=True)

    async def watch(line: Line, begun: bool = False) -> None:
        if not begun:
            await line.begin_stream()
        await line.event("MODIFIED", pod("a", 6, status=["?"]))
        await line.event("ADDED", pod("b", 7))
        await line.event("DELETED", pod("a", 8, status=["?"]))
        await line.event("ADDED", {"metadata": 5})
        await line.event("ADDED", pod("c", 9))
        await line.end_stream()

    plays = Plays(list_and_watch) if streams else Plays(paged_list(unreadable, pod("a", 1), revision=5), watch)
    async with serving(plays) as server, informed(server, stream_lists=streams) as (informing, told):
        await plays.done.wait()

        assert names(informing) == {"b", "c"}
        assert told.unreadable == ["lab/odd", "lab/a", ""]
        assert ("lab/a", "1", "-") in told.changes


async def test_what_was_known_of_an_object_stays_when_a_list_holds_it_unreadable() -> None:
    async def known(line: Line) -> None:
        await streamed_list(line, pod("a", 1), revision=5)
        await line.end_stream()

    async def unreadable(line: Line) -> None:
        await streamed_list(line, pod("a", 8, status=5), revision=9)
        await line.end_stream()

    plays = Plays(known, expired_by_status, unreadable)
    async with serving(plays) as server, informed(server) as (informing, _):
        await plays.done.wait()

        assert names(informing) == {"a"}


async def test_nonsense_on_the_wire_is_a_broken_watch() -> None:
    async def nonsense(line: Line) -> None:
        await streamed_list(line, pod("a", 1), revision=5)
        await line.chunk(b"nonsense\n")
        await asyncio.Event().wait()

    plays = Plays(nonsense)
    async with serving(plays) as server, informed(server) as (informing, _):
        await plays.done.wait()

        assert plays.queries[-1]["resourceVersion"] == "5"
        assert names(informing) == {"a"}


async def test_our_own_write_is_told_once_although_the_watch_tells_of_it_too() -> None:
    written = asyncio.Event()

    async def echo(line: Line) -> None:
        await streamed_list(line, revision=5)
        await written.wait()
        await line.event("ADDED", pod("a", 6))
        await line.end_stream()

    plays = Plays(echo)
    async with serving(plays) as server, informed(server) as (informing, told):
        await informing.synced.wait()
        informing.cache.put(codec.from_json(pod("a", 6), Pod))
        written.set()
        await plays.done.wait()

        assert told.changes == [("lab/a", "-", "6")]


async def test_a_list_asked_for_anew_is_begun_after_the_asking() -> None:
    async def first(line: Line) -> None:
        await streamed_list(line, pod("a", 1), revision=5)
        await asyncio.Event().wait()

    async def second(line: Line) -> None:
        await streamed_list(line, pod("b", 7), revision=9)
        await line.end_stream()

    plays = Plays(first, second)
    async with serving(plays) as server, informed(server) as (informing, told):
        await informing.synced.wait()
        await informing.list_anew()

        assert names(informing) == {"b"}
        assert told.changes == [("lab/a", "-", "1"), ("lab/b", "-", "7"), ("lab/a", "1", "-")]


async def test_an_informer_that_is_ended_leaves_no_connection_behind() -> None:
    ended = asyncio.Event()

    async def behave(seen: Seen, line: Line) -> None:
        await streamed_list(line, revision=5)
        try:
            while True:
                await line.event("BOOKMARK", bookmark(6))
        finally:
            ended.set()

    async with serving(behave) as server, client.Client(server.connection()) as speaking:
        informing = informer.Informer(speaking, PODS)
        task = asyncio.create_task(informing.run())
        await informing.synced.wait()
        task.cancel()
        await asyncio.wait([task])
        await ended.wait()
