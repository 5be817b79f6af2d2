"""What is the state of a key, what was it, and how does it change?

Decisions are made in the event loop, at once and in order: a write is checked against what is on its way to the disk
and gets its revision there. One thread writes; while it writes one batch, the next gathers, so however many wait share
one fsync. Nobody sees a change (`get`, `list`, watches, the writer's own answer) before it is durable.

A batch that the disk refuses takes everything with it that was on its way, because that was decided on top of it.
Revisions are not given out twice in the life of a process, so whoever decided on something undone meets a Conflict.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar, TypeVarTuple

from octarbiter.cluster.store import entries, errors, history, log, state, watch
from octarbiter.cluster.store.entries import Change, Entry

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

Batch = list[tuple[Change, "asyncio.Future[int]"]]
"""Changes and those who wait for them."""


class Store:
    """Belongs to one event loop and is not thread-safe. Made by `open`."""

    def __init__(
        self, disk: log.Log, thread: ThreadPoolExecutor, existing: Sequence[Entry], window: int, backlog: int
    ) -> None:
        self._disk = disk
        self._thread = thread
        self._loop = asyncio.get_running_loop()
        self._state = state.State(existing)
        self._history = history.History(disk.revision, disk.horizon, self._replay, window)
        self._hub = watch.Hub(self._history, backlog)
        self._given = disk.revision  # the last revision that was given out
        self._coming: dict[str, Change] = {}  # the last change of each key that is on its way
        self._gathering: Batch = []
        self._writing = False
        self._quiet = asyncio.Event()  # nothing is on its way
        self._quiet.set()
        self._closed = False

    @classmethod
    async def open(cls, path: Path | None, *, window: int = history.WINDOW, backlog: int = watch.BACKLOG) -> Store:
        """None: in memory only. Raises Unusable, InUse.

        `window`: changes kept in memory for watches that resume. `backlog`: changes that may wait for a watch's reader.
        """
        disk = log.Log(path)
        thread = ThreadPoolExecutor(1, "store")
        try:
            existing = await asyncio.get_running_loop().run_in_executor(thread, disk.open)
            return cls(disk, thread, existing, window, backlog)
        except BaseException:
            thread.submit(disk.close)
            thread.shutdown(wait=False)
            raise

    @property
    def revision(self) -> int:
        """The last that is durable."""
        return self._history.revision

    @property
    def horizon(self) -> int:
        """The oldest revision that can be told of; what was before it was compacted away."""
        return self._history.horizon

    def get(self, key: str) -> Entry | None:
        return self._state.get(key)

    def latest(self, key: str) -> Entry | None:
        """With what is on its way to the disk: the base of read-modify-write."""
        change = self._coming.get(key)
        return self._state.get(key) if change is None else entries.after(change)

    def list(self, prefix: str) -> Sequence[Entry]:
        """In the order of their keys."""
        return self._state.list(prefix)

    async def list_at(self, prefix: str, revision: int) -> Sequence[Entry]:
        """As `list` was at that revision. Raises Compacted, Future.

        The present with everything undone that happened since: whoever asks for a past mostly asks for a recent one.
        """
        self._history.check(revision)
        present = self.list(prefix)
        start = self._history.start
        newer = [c for c in self._history.recent(max(revision, start)) if c.key.startswith(prefix)]
        if not newer and start <= revision:
            return present
        past = {entry.key: entry for entry in present}
        _undo(past, newer)
        while start > revision:
            until, start = start, max(revision, start - log.STRETCH)
            _undo(past, await self._history.older(prefix, start, until))
        return [past[key] for key in sorted(past)]

    async def put(self, key: str, make: Callable[[int], bytes], *, expected: int | None) -> int:
        """The revision, when it is durable. Raises Conflict, WriteFailed, Closed.

        `make(revision)` gives the value and is called at once. `expected`: the revision of `latest`; 0: the key must
        not exist; None: whatever it is. Whoever is cancelled while waiting has written nevertheless.
        """
        return await self._change(key, make, expected, deleted=False)

    async def delete(self, key: str, make: Callable[[int], bytes], *, expected: int | None) -> int:
        """As `put`. `make` gives the last state as watchers shall see it. Conflict also if there is nothing."""
        return await self._change(key, make, expected, deleted=True)

    def watch(self, prefix: str, after: int) -> watch.Watch:
        """Every change of the prefix after that revision. Raises Compacted, Future, Closed."""
        self._check_open()
        return self._hub.watch(prefix, after)

    async def compact(self, before: int) -> None:
        """Forgets what was before that revision; what existed then stays. Raises Future, WriteFailed, Closed."""
        if before > self.revision:
            raise errors.Future(before, self.revision)
        # Raised first: who reads the log meanwhile must learn that something may be missing from it.
        self._history.horizon = max(before, self._history.horizon)
        try:
            while await self._in_thread(self._disk.compact, before) < before:
                pass
        except sqlite3.Error as error:
            raise errors.WriteFailed(self._disk.name, error) from error

    async def close(self) -> None:
        """What is on its way is written; watches are cut off."""
        if self._closed:
            return
        self._closed = True
        await self._quiet.wait()
        self._hub.close()
        await self._loop.run_in_executor(self._thread, self._disk.close)
        self._thread.shutdown()

    async def _change(self, key: str, make: Callable[[int], bytes], expected: int | None, *, deleted: bool) -> int:
        self._check_open()
        _check_key(key)
        before = self.latest(key)
        if (deleted and before is None) or (expected is not None and expected != (before.revision if before else 0)):
            raise errors.Conflict(key, expected, before)
        revision = self._given + 1
        change = Change(key, make(revision), revision, deleted, before)
        self._given = revision
        self._coming[key] = change
        waiter: asyncio.Future[int] = self._loop.create_future()
        self._gathering.append((change, waiter))
        self._quiet.clear()
        if not self._writing and len(self._gathering) == 1:
            self._loop.call_soon(self._write)  # not at once: everybody who can run now comes along
        return await waiter

    def _write(self) -> None:
        if self._writing:
            return
        if not self._gathering:
            self._quiet.set()
            return
        batch, self._gathering = self._gathering, []
        self._writing = True
        changes = [change for change, _ in batch]

        def done(job: Future[None]) -> None:
            self._loop.call_soon_threadsafe(self._written, batch, changes, job.exception())

        self._thread.submit(self._disk.append, changes).add_done_callback(done)

    def _written(self, batch: Batch, changes: Sequence[Change], error: BaseException | None) -> None:
        self._writing = False
        if error is None:
            self._keep(changes)
        else:
            batch = batch + self._gathering
            self._gathering = []
            self._coming.clear()
        for change, waiter in batch:
            if waiter.done():  # its writer was cancelled
                continue
            if error is None:
                waiter.set_result(change.revision)
            else:
                waiter.set_exception(errors.WriteFailed(self._disk.name, error))
        self._loop.call_soon(self._write)  # after those who were woken: they come along

    def _keep(self, changes: Sequence[Change]) -> None:
        for change in changes:
            self._state.apply(change)
            if self._coming[change.key] is change:
                del self._coming[change.key]
        self._history.append(changes)
        self._hub.publish(changes)

    async def _replay(self, prefix: str, after: int, until: int) -> Sequence[Change]:
        return await self._in_thread(self._disk.changes, prefix, after, until)

    async def _in_thread(self, function: Callable[[*Ts], T], *args: *Ts) -> T:
        self._check_open()
        return await self._loop.run_in_executor(self._thread, function, *args)

    def _check_open(self) -> None:
        if self._closed:
            raise errors.Closed


def _undo(past: dict[str, Entry], changes: Sequence[Change]) -> None:
    for change in reversed(changes):
        if change.before is None:
            del past[change.key]
        else:
            past[change.key] = change.before


def _check_key(key: str) -> None:
    """Here, because in the writing thread a bad key would take the whole batch with it."""
    key.encode()
    if not key.startswith("/") or not entries.resource_of(key) or entries.LAST in key:
        raise ValueError(f"{key!r} is not a key: it must look like /group/plural/namespace/name")
