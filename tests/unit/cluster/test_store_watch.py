"""What whoever watches the store can rely on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from octarbiter.cluster.store import errors, log
from octarbiter.cluster.store.entries import Change, Entry
from octarbiter.cluster.store.store import Store
from octarbiter.cluster.store.watch import Watch

PODS, NODES = "/core/pods/", "/core/nodes/"
A, B, NODE = f"{PODS}default/a", f"{PODS}other/b", f"{NODES}-/n"


def stamped(revision: int) -> bytes:
    return str(revision).encode()


async def write(store: Store, *keys: str) -> None:
    await asyncio.gather(*(store.put(key, stamped, expected=None) for key in keys))


async def seen(watch: Watch, count: int) -> list[int]:
    """The next revisions."""
    revisions: list[int] = []
    async with asyncio.timeout(30):
        while len(revisions) < count:
            revisions += [change.revision for change in await anext(watch)]
    return revisions


@pytest.fixture
async def store() -> AsyncIterator[Store]:
    opened = await Store.open(None)
    yield opened
    await opened.close()


async def test_a_change_tells_what_was_before(store: Store) -> None:
    watch = store.watch(PODS, after=0)
    await write(store, A)
    await write(store, A)
    await store.delete(A, stamped, expected=2)
    await write(store, A)

    told = [change for _ in range(4) for change in await anext(watch)]
    assert told == [
        Change(A, b"1", 1, deleted=False, before=None),
        Change(A, b"2", 2, deleted=False, before=Entry(A, b"1", 1, 1)),
        Change(A, b"3", 3, deleted=True, before=Entry(A, b"2", 2, 1)),
        Change(A, b"4", 4, deleted=False, before=None),
    ]


@pytest.mark.parametrize("reopened", [False, True])
async def test_history_reads_the_same_from_memory_and_from_the_log(tmp_path: Path, reopened: bool) -> None:
    store = await Store.open(tmp_path / "store.db", window=1 if reopened else 1000)
    live = store.watch("", after=0)
    for _ in range(20):
        await write(store, A, B, NODE)
        await store.delete(B, stamped, expected=None)
    told = [change for _ in range(40) for change in await anext(live)]
    if reopened:
        await store.close()
        store = await Store.open(tmp_path / "store.db")

    assert [change.revision for change in told] == list(range(1, 81))
    for prefix in ("", "/core/", PODS, f"{PODS}other/", A):
        for after in (0, 1, 39, 79):
            wanted = [change for change in told if change.revision > after and change.key.startswith(prefix)]
            watch = store.watch(prefix, after)
            replayed: list[Change] = []
            while len(replayed) < len(wanted):
                replayed += await anext(watch)
            assert replayed == wanted
    await store.close()


async def test_between_replay_and_live_there_is_no_gap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "STRETCH", 3)
    store = await Store.open(tmp_path / "store.db", window=5)
    await write(store, *[A] * 50)
    watches = [store.watch(PODS, after) for after in range(0, 50, 7)]
    reading = [asyncio.create_task(seen(watch, 100 - watch.position)) for watch in watches]
    for _ in range(50):
        await write(store, A)

    assert await asyncio.gather(*reading) == [list(range(after + 1, 101)) for after in range(0, 50, 7)]
    await store.close()


async def test_a_watch_gets_what_begins_with_its_prefix(store: Store) -> None:
    prefixes = ["", "/", "/core/", "/core/pod", PODS, f"{PODS}default/", A, NODES, "/batch/jobs/"]
    keys = [A, B, NODE, "/core/podtemplates/default/a", "/batch/jobs/default/a", f"{PODS}default/ab"]
    watches = [store.watch(prefix, after=0) for prefix in prefixes]
    await write(store, *keys)

    for prefix, watch in zip(prefixes, watches, strict=True):
        assert [change.key for change in await anext(watch)] == [key for key in keys if key.startswith(prefix)]
        assert watch.position == store.revision


async def test_everybody_who_watches_the_same_is_handed_the_same_list(store: Store) -> None:
    watches = [store.watch(prefix, after=0) for prefix in (PODS, f"{PODS}default/") for _ in range(3)]
    await write(store, A, A, B, NODE)
    lists = [await anext(watch) for watch in watches]

    assert [len(changes) for changes in lists] == [3] * 3 + [2] * 3
    assert all(changes is lists[0] for changes in lists[:3])
    assert all(changes is lists[3] for changes in lists[3:])


async def test_the_past_before_the_horizon_and_the_future_cannot_be_watched(store: Store) -> None:
    await write(store, A, A, A)
    await store.compact(2)

    with pytest.raises(errors.Compacted):
        store.watch(PODS, after=1)
    with pytest.raises(errors.Future):
        store.watch(PODS, after=4)
    assert await seen(store.watch(PODS, after=2), 1) == [3]


async def test_a_watch_that_is_overtaken_by_the_horizon_is_told_so(tmp_path: Path) -> None:
    store = await Store.open(tmp_path / "store.db", window=1)
    await write(store, *[A] * 10)
    watch = store.watch(PODS, after=2)
    await store.compact(5)

    with pytest.raises(errors.Compacted):
        await anext(watch)
    await store.close()


async def test_a_watch_that_is_not_read_is_cut_off_and_the_others_are_not() -> None:
    store = await Store.open(None, backlog=10)
    idle, reading = store.watch(PODS, after=0), store.watch(PODS, after=0)
    for number in range(1, 13):
        await write(store, A)
        assert await seen(reading, 1) == [number]
        assert idle.position == 0

    with pytest.raises(errors.TooSlow, match=PODS):
        await anext(idle)
    assert not idle._portions, "it holds on to nothing"
    await store.close()


async def test_a_watch_of_large_values_is_cut_off_sooner(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("octarbiter.cluster.store.watch.BACKLOG_BYTES", 1000)
    idle = store.watch(PODS, after=0)
    for _ in range(3):
        await store.put(A, lambda revision: bytes(400), expected=None)

    with pytest.raises(errors.TooSlow):
        await anext(idle)


async def test_whoever_has_read_everything_is_not_slow_however_much_comes_at_once() -> None:
    store = await Store.open(None, backlog=10)
    watch = store.watch(PODS, after=0)
    await write(store, *[A] * 100)

    assert await seen(watch, 100) == list(range(1, 101))
    await store.close()


async def test_large_values_shorten_what_is_kept_in_memory_but_not_what_can_be_replayed(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("octarbiter.cluster.store.history.WINDOW_BYTES", 1000)
    for _ in range(20):
        await store.put(A, lambda revision: bytes(300), expected=None)

    assert store._history.start >= 17
    assert await seen(store.watch(PODS, after=0), 20) == list(range(1, 21))


async def test_a_reader_that_is_cancelled_can_read_on(tmp_path: Path) -> None:
    store = await Store.open(tmp_path / "store.db", window=1)
    await write(store, *[A] * 10)
    for after, count in ((0, 10), (10, 1)):  # in the middle of a replay, and while waiting
        watch = store.watch(PODS, after)
        reader = asyncio.create_task(seen(watch, 1))
        await asyncio.sleep(0)
        reader.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reader
        if not after:
            assert await seen(watch, count) == list(range(1, 11))
        else:
            await write(store, A)
            assert await seen(watch, count) == [11]
    await store.close()


async def test_closing_a_watch_ends_its_reader_and_nobody_holds_on_to_it(store: Store) -> None:
    watch = store.watch(PODS, after=0)
    reader = asyncio.create_task(_all_of(watch))
    await write(store, A)
    watch.close()
    watch.close()
    await write(store, A)

    assert await reader in ([], [1])
    assert store._hub._groups == {}


async def _all_of(watch: Watch) -> list[int]:
    return [change.revision async for changes in watch for change in changes]


async def test_closing_the_store_cuts_off_its_watches(tmp_path: Path) -> None:
    store = await Store.open(tmp_path / "store.db", window=1)
    await write(store, *[A] * 5)
    live, behind = store.watch(PODS, after=5), store.watch(PODS, after=0)
    reader = asyncio.create_task(anext(live))
    await asyncio.sleep(0)
    await store.close()

    for asked in (reader, anext(live), anext(behind)):
        with pytest.raises(errors.Closed):
            await asked


async def test_a_bookmark_never_runs_ahead_of_the_reader(tmp_path: Path) -> None:
    store = await Store.open(tmp_path / "store.db", window=1)
    await write(store, A, *[NODE] * 9)
    behind, live = store.watch(PODS, after=0), store.watch(PODS, after=10)
    assert (behind.position, live.position) == (0, 10)
    await write(store, NODE, A)
    assert live.position == 10
    await anext(live)
    assert live.position == 12
    await write(store, NODE)
    assert live.position == 13

    assert await seen(behind, 2) == [1, 12]
    assert behind.position == 13
    await store.close()
