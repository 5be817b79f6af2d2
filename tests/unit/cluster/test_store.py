"""What whoever writes to the store and reads from it can rely on."""

from __future__ import annotations

import asyncio
import resource
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path

import pytest

from octarbiter.cluster.store import errors, log
from octarbiter.cluster.store.entries import Change, Entry
from octarbiter.cluster.store.store import Store

A, B, C = "/core/pods/default/a", "/core/pods/default/b", "/core/pods/other/c"
PODS = "/core/pods/"


def value(text: str) -> Callable[[int], bytes]:
    return lambda revision: f"{text}@{revision}".encode()


async def write(store: Store, key: str, text: str = "x") -> int:
    return await store.put(key, value(text), expected=None)


def values(listed: Sequence[Entry]) -> list[str]:
    return [entry.value.decode() for entry in listed]


async def settle() -> None:
    """Lets every task that can run do so."""
    for _ in range(5):
        await asyncio.sleep(0)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture(params=["on disk", "in memory"])
async def store(request: pytest.FixtureRequest, path: Path) -> AsyncIterator[Store]:
    opened = await Store.open(path if request.param == "on disk" else None)
    yield opened
    await opened.close()


class Gate:
    """Holds the writing thread back while it is shut, and remembers what the thread did."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.open.set()
        self.disk_is_full_for = 0  # batches
        self.jobs: list[str] = []
        self.batches: list[int] = []


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    gate = Gate()
    append, compact = log.Log.append, log.Log.compact

    def gated_append(self: log.Log, changes: Sequence[Change]) -> None:
        gate.open.wait(30)
        gate.jobs.append("append")
        gate.batches.append(len(changes))
        gate.disk_is_full_for -= 1
        with full_disk() if gate.disk_is_full_for >= 0 else nullcontext():
            append(self, changes)

    def noted_compact(self: log.Log, before: int) -> int:
        gate.jobs.append("compact")
        return compact(self, before)

    monkeypatch.setattr(log.Log, "append", gated_append)
    monkeypatch.setattr(log.Log, "compact", noted_compact)
    yield gate
    gate.open.set()


@contextmanager
def full_disk() -> Iterator[None]:
    """No file of this process may grow."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


# --- writing


async def test_a_write_is_there_when_it_returns(store: Store) -> None:
    revision = await store.put(A, value("a"), expected=0)

    assert revision == store.revision == 1
    assert store.get(A) == store.latest(A) == Entry(A, b"a@1", revision=1, created=1)


async def test_revisions_are_given_out_at_once_and_nothing_is_seen_before_it_is_durable(gate: Gate, path: Path) -> None:
    store = await Store.open(path)
    gate.open.clear()
    watch = store.watch(PODS, after=0)
    writers = [asyncio.create_task(write(store, key)) for key in (A, B, C)]
    await settle()

    coming = [store.latest(key) for key in (A, B, C)]
    assert coming == [Entry(key, f"x@{n}".encode(), n, n) for n, key in enumerate((A, B, C), 1)]
    assert (store.revision, store.list(PODS), store.get(A), watch.position) == (0, [], None, 0)
    assert not any(writer.done() for writer in writers)

    gate.open.set()
    assert await asyncio.gather(*writers) == [1, 2, 3]
    assert (store.revision, store.list(PODS)) == (3, coming)
    await store.close()


async def test_while_one_batch_is_written_the_next_gathers(gate: Gate, path: Path) -> None:
    store = await Store.open(path)
    gate.open.clear()
    first = [asyncio.create_task(write(store, f"{PODS}first/{n}")) for n in range(3)]
    await settle()
    second = [asyncio.create_task(write(store, f"{PODS}second/{n}")) for n in range(200)]
    await settle()
    gate.open.set()
    await asyncio.gather(*first, *second)

    assert gate.batches == [3, 200]
    await store.close()


async def test_an_expectation_is_checked_against_what_is_on_its_way(store: Store) -> None:
    first = asyncio.create_task(store.put(A, value("first"), expected=0))
    await asyncio.sleep(0)
    with pytest.raises(errors.Conflict) as conflict:
        await store.put(A, value("second"), expected=0)
    assert conflict.value.current == Entry(A, b"first@1", 1, 1)

    assert await store.put(A, value("third"), expected=1) == 2
    assert await first == 1
    assert store.get(A) == Entry(A, b"third@2", revision=2, created=1)


@pytest.mark.parametrize("expected", [0, 1, 3])
async def test_a_wrong_expectation_changes_nothing(store: Store, expected: int) -> None:
    await write(store, A)
    await write(store, A)
    for change in (store.put, store.delete):
        with pytest.raises(errors.Conflict, match="is at revision 2") as conflict:
            await change(A, value("wrong"), expected=expected)
        assert conflict.value.current == store.get(A)

    assert (store.revision, values(store.list(""))) == (2, ["x@2"])


@pytest.mark.parametrize("expected", [None, 0, 7])
async def test_what_does_not_exist_cannot_be_deleted(store: Store, expected: int | None) -> None:
    with pytest.raises(errors.Conflict, match="does not exist") as conflict:
        await store.delete(A, value("gone"), expected=expected)

    assert (conflict.value.current, store.revision) == (None, 0)


async def test_a_key_that_is_made_again_is_a_new_one(store: Store) -> None:
    await write(store, A)
    assert await store.delete(A, value("gone"), expected=1) == 2
    assert store.get(A) is store.latest(A) is None
    await store.put(A, value("again"), expected=0)
    await write(store, A, "more")

    assert store.get(A) == Entry(A, b"more@4", revision=4, created=3)


async def test_a_value_that_cannot_be_made_costs_no_revision(store: Store) -> None:
    def fail(revision: int) -> bytes:
        raise ValueError(revision)

    with pytest.raises(ValueError, match="1"):
        await store.put(A, fail, expected=None)

    assert store.latest(A) is None
    assert await write(store, B) == 1


@pytest.mark.parametrize("key", ["", "/", "/core/pods", "core/pods/default/a", "/a/b/\ud800", "/a/b/\U0010ffff"])
async def test_a_bad_key_is_refused_before_it_can_spoil_the_batch(store: Store, key: str) -> None:
    with pytest.raises(ValueError):
        await write(store, key)

    assert await write(store, A) == 1


async def test_a_writer_that_is_cancelled_has_written(gate: Gate, path: Path) -> None:
    store = await Store.open(path)
    gate.open.clear()
    writer = asyncio.create_task(write(store, A))
    gathered = asyncio.create_task(write(store, B))
    await settle()
    late = asyncio.create_task(write(store, C))
    await settle()
    for task in (writer, late):
        task.cancel()
    await settle()
    assert [store.latest(key) is not None for key in (A, B, C)] == [True] * 3
    gate.open.set()
    assert await gathered == 2
    await store.close()

    store = await Store.open(path)
    assert values(store.list(PODS)) == ["x@1", "x@2", "x@3"]
    await store.close()


# --- a disk that refuses


async def test_a_full_disk_fails_what_was_on_its_way_and_what_was_decided_on_it(gate: Gate, path: Path) -> None:
    store = await Store.open(path)
    await write(store, A, "kept")
    watch = store.watch(PODS, after=1)
    gate.open.clear()
    writing = [asyncio.create_task(write(store, key)) for key in (A, B)]
    await settle()
    gathering = [asyncio.create_task(store.put(A, value("decided"), expected=2)), asyncio.create_task(write(store, C))]
    await settle()
    gate.disk_is_full_for = 1
    gate.open.set()
    refusals = await asyncio.gather(*writing, *gathering, return_exceptions=True)

    assert [type(refusal) for refusal in refusals] == [errors.WriteFailed] * 4
    assert str(path) in str(refusals[0])
    assert (store.revision, values(store.list(""))) == (1, ["kept@1"])
    assert [store.latest(key) for key in (A, B, C)] == [store.get(A), None, None]

    # Whoever still holds what was undone cannot write on top of it: its revision is never given out again.
    again = await write(store, A, "again")
    assert again > 5
    with pytest.raises(errors.Conflict):
        await store.put(A, value("stale"), expected=2)
    assert [change.revision for change in await anext(watch)] == [again]
    await store.close()

    store = await Store.open(path)
    assert (store.revision, values(store.list(""))) == (again, [f"again@{again}"])
    assert values(await store.list_at("", 1)) == ["kept@1"]
    await store.close()


# --- reading


async def test_lists_are_in_the_order_of_keys_and_hold_what_begins_with_the_prefix(store: Store) -> None:
    keys = ["/a/b/n/x", "/a/b-c/n/x", "/a/b/n/y", "/a/b/m/z", "/a/bb/n/x", "/a/b/n2/x", "/b/b/n/x"]
    for key in keys:
        await write(store, key)

    for prefix in ("", "/", "/a/", "/a/b", "/a/b/", "/a/b/n", "/a/b/n/", "/a/b/n/x", "/a/c/", "/c/"):
        found = [entry.key for entry in store.list(prefix)]
        assert found == sorted(key for key in keys if key.startswith(prefix)), prefix


@pytest.mark.parametrize("window", [1, 100])
async def test_the_past_can_be_listed(path: Path, window: int) -> None:
    store = await Store.open(path, window=window)
    past = [store.list(PODS)]
    for number in range(4):
        for key in (A, B, "/core/nodes/-/n", C):
            await write(store, key, str(number))
            past.append(store.list(PODS))
        await store.delete(B, value("gone"), expected=None)
        past.append(store.list(PODS))

    assert [await store.list_at(PODS, revision) for revision in range(store.revision + 1)] == past
    with pytest.raises(errors.Future, match="revision 21 is in the future"):
        await store.list_at(PODS, store.revision + 1)
    await store.close()


# --- forgetting


async def test_compaction_forgets_the_past_and_nothing_else(path: Path) -> None:
    store = await Store.open(path)
    for key in (A, B, C, A, A):
        await write(store, key)
    await store.delete(B, value("gone"), expected=None)
    await write(store, C)
    past = {revision: await store.list_at("", revision) for revision in (5, 6, 7)}
    await store.compact(5)

    for _ in range(2):
        assert (store.horizon, store.revision) == (5, 7)
        assert {revision: await store.list_at("", revision) for revision in (5, 6, 7)} == past
        for ask in (store.list_at("", 4), _first(store, 4)):
            with pytest.raises(errors.Compacted, match="revision 4 is too old: history begins at revision 5"):
                await ask
        await store.close()
        store = await Store.open(path)

    await store.compact(7)
    await store.compact(3)  # the horizon does not go back
    for _ in range(2):
        assert (store.horizon, store.list("")) == (7, past[7])
        await store.close()
        store = await Store.open(path)
    await store.close()
    with closing(sqlite3.connect(path)) as file:
        assert file.execute("SELECT revision FROM log").fetchall() == [(5,), (7,)]


async def _first(store: Store, after: int) -> Sequence[Change]:
    return await anext(store.watch("", after))


async def test_the_present_stays_where_it_is_when_the_last_change_is_compacted_away(path: Path) -> None:
    store = await Store.open(path)
    await write(store, A)
    await store.delete(A, value("gone"), expected=None)
    await store.compact(2)
    await store.close()

    store = await Store.open(path)
    assert (store.revision, store.horizon, store.list("")) == (2, 2, [])
    assert await write(store, A) == 3
    await store.close()


async def test_the_future_cannot_be_compacted(store: Store) -> None:
    with pytest.raises(errors.Future):
        await store.compact(1)


async def test_writers_take_turns_with_compaction(gate: Gate, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "STRETCH", 10)
    store = await Store.open(path)
    await asyncio.gather(*(write(store, A, str(number)) for number in range(100)))
    gate.jobs.clear()
    compaction = asyncio.create_task(store.compact(100))
    await settle()
    await write(store, B)
    assert not compaction.done()
    await compaction

    assert gate.jobs.count("compact") == 10
    assert gate.jobs.index("append") < 3
    await store.close()


# --- the end


async def test_closing_writes_what_is_on_its_way_and_refuses_the_rest(path: Path) -> None:
    store = await Store.open(path)
    writers = [asyncio.create_task(write(store, key)) for key in (A, B)]
    await asyncio.sleep(0)
    await store.close()
    assert await asyncio.gather(*writers) == [1, 2]

    for ask in (write(store, C), store.compact(1), _first(store, 0)):
        with pytest.raises(errors.Closed):
            await ask
    await store.close()
    store = await Store.open(path)
    assert [entry.key for entry in store.list("")] == [A, B]
    await store.close()
