"""kill -9 at any instant loses no acknowledged write and never repeats or skips a watch event."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from octarbiter.cluster.store import entries
from octarbiter.cluster.store.entries import Change
from octarbiter.cluster.store.store import Store

KILLS = 15
KEYS = 40

PROGRAM = """
import asyncio, os, pathlib, random, sys
from octarbiter.cluster.store.store import Store

path, watched, keys = pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])

def say(*words):
    os.write(1, (" ".join(str(word) for word in words) + "\\n").encode())

async def write(store):
    while True:
        key = f"/core/pods/default/{random.randrange(keys)}"
        make = lambda revision: f"{key}@{revision}".encode()
        if store.latest(key) and random.random() < 0.3:
            say("acknowledged", await store.delete(key, make, expected=None), key)
        else:
            say("acknowledged", await store.put(key, make, expected=None), key)

async def forget(store):
    while True:
        await store.compact(max(store.horizon, store.revision - 500))
        await asyncio.sleep(0.01)

async def main():
    say("opening", 0)
    store = await Store.open(path, window=50)
    watch = store.watch("/core/pods/", watched)
    writers = [asyncio.create_task(write(store)) for _ in range(8)] + [asyncio.create_task(forget(store))]
    async for changes in watch:
        for change in changes:
            say("watched", change.revision, change.key, change.value.decode(), int(change.deleted))

asyncio.run(main())
"""


def run_and_kill(path: Path, watched: int, dice: random.Random) -> list[list[str]]:
    """What the process said before it was killed."""
    child = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(path), str(watched), str(KEYS)], stdout=subprocess.PIPE
    )
    assert child.stdout is not None
    said = b""
    end = None
    while end is None or time.monotonic() < end:
        heard = os.read(child.stdout.fileno(), 1 << 16)
        assert heard, "the child ended by itself"
        end = end or time.monotonic() + dice.uniform(0, 0.3)
        said += heard
    child.send_signal(signal.SIGKILL)
    said += child.stdout.read()
    child.stdout.close()
    assert child.wait() == -signal.SIGKILL
    return [line.split() for line in said.decode().splitlines()]


async def replayed(store: Store, after: int) -> list[Change]:
    changes: list[Change] = []
    watch = store.watch("", after)
    while after + len(changes) < store.revision:
        changes += await anext(watch)
    watch.close()
    return changes


def test_killing_the_process_loses_nothing_and_repeats_nothing(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    dice = random.Random(4)
    history: list[tuple[str, str, bool]] = []  # of revision 1, 2, ...: as watches told it, across all restarts

    async def look(acknowledged: dict[int, str]) -> None:
        store = await Store.open(path)
        told = await replayed(store, store.horizon)

        # Contiguous, and nothing that was acknowledged is missing.
        assert [change.revision for change in told] == list(range(store.horizon + 1, store.revision + 1))
        assert max(acknowledged, default=0) <= store.revision
        for change in told:
            assert acknowledged.get(change.revision, change.key) == change.key
            assert change.value == f"{change.key}@{change.revision}".encode()
            # What was watched before the kill is what the log says; the rest is what the next watch will say.
            if change.revision <= len(history):
                assert history[change.revision - 1] == (change.key, change.value.decode(), change.deleted)
        assert store.horizon <= len(history) <= store.revision

        # The state is what the log leads to.
        state = {entry.key: entry for entry in await store.list_at("", store.horizon)}
        for change in told:
            assert state.pop(change.key, None) == change.before
            entry = entries.after(change)
            if entry:
                state[change.key] = entry
        assert list(store.list("")) == [state[key] for key in sorted(state)]
        await store.close()

    for _ in range(KILLS):
        acknowledged: dict[int, str] = {}
        for kind, revision, *rest in run_and_kill(path, len(history), dice):
            if kind == "acknowledged":
                acknowledged[int(revision)] = rest[0]
            elif kind == "watched":
                assert int(revision) == len(history) + 1
                history.append((rest[0], rest[1], rest[2] == "1"))
        asyncio.run(look(acknowledged))

    assert len(history) > KILLS
