"""How many durable writes per second does the store take, beside SQLite alone, and what does watching cost?

    python benchmarks/store.py [--seconds 1]

*raw* is the same rows, in transactions of as many as there are writers, by a bare loop on the same disk: no asyncio,
no state, no watches. *fan-out* hands 2,000 changes to 200 watches and counts until the last has read the last;
*start* opens a file of 50,000 entries.
"""

from __future__ import annotations

import argparse
import asyncio
import sqlite3
import tempfile
import time
from contextlib import closing
from pathlib import Path

from octarbiter.cluster.store import files, log
from octarbiter.cluster.store.store import Store
from octarbiter.cluster.store.watch import Watch

VALUE = b"x" * 1500
WATCHES, CHANGES = 200, 2000
ENTRIES = 50_000


def make(revision: int) -> bytes:
    return VALUE


def raw(path: Path, writers: int, seconds: float) -> float:
    files.create(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        for setting in (
            "locking_mode = EXCLUSIVE",
            "synchronous = FULL",
            f"wal_autocheckpoint = {log.CHECKPOINT_PAGES}",
        ):
            database.execute(f"PRAGMA {setting}")
        written, begin = 0, time.perf_counter()
        while time.perf_counter() < begin + seconds:
            database.execute("BEGIN IMMEDIATE")
            database.executemany(
                "INSERT INTO log VALUES (?, 0, 0, 0, ?, ?)",
                [(written + n + 1, f"/core/pods/default/{written + n}", VALUE) for n in range(writers)],
            )
            database.execute("UPDATE position SET revision = ?", (written + writers,))
            database.execute("COMMIT")
            written += writers
        return written / (time.perf_counter() - begin)


async def puts(path: Path, writers: int, seconds: float) -> float:
    store = await Store.open(path)
    begin = time.perf_counter()

    async def write(writer: int) -> int:
        written = 0
        while time.perf_counter() < begin + seconds:
            await store.put(f"/core/pods/default/{writer}-{written}", make, expected=0)
            written += 1
        return written

    written = sum(await asyncio.gather(*(write(writer) for writer in range(writers))))
    elapsed = time.perf_counter() - begin
    await store.close()
    return written / elapsed


async def fan_out(path: Path, watches: int) -> float:
    """Seconds until everybody has read everything."""
    store = await Store.open(path)

    async def read(watch: Watch) -> None:
        count = 0
        while count < CHANGES:
            count += len(await anext(watch))

    readers = [asyncio.create_task(read(store.watch("/core/pods/", after=0))) for _ in range(watches)]
    numbers = iter(range(CHANGES))

    async def write() -> None:
        for number in numbers:
            await store.put(f"/core/pods/default/{number}", make, expected=0)

    await asyncio.sleep(0)
    begin = time.perf_counter()
    await asyncio.gather(*readers, *(write() for _ in range(50)))
    elapsed = time.perf_counter() - begin
    await store.close()
    return elapsed


async def start(path: Path) -> float:
    store = await Store.open(path)
    for first in range(0, ENTRIES, 5000):
        names = (f"/core/pods/default/{number}" for number in range(first, first + 5000))
        await asyncio.gather(*(store.put(name, make, expected=0) for name in names))
    await store.close()
    begin = time.perf_counter()
    store = await Store.open(path)
    elapsed = time.perf_counter() - begin
    await store.close()
    return elapsed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=1.0, help="of each measurement of writes")
    seconds = parser.parse_args().seconds
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        for writers in (1, 10, 200):
            limit = raw(place / f"raw-{writers}.db", writers, seconds)
            ours = asyncio.run(puts(place / f"puts-{writers}.db", writers, seconds))
            print(f"{writers:4} writers: {ours:8,.0f} durable puts/s, raw {limit:8,.0f}, ratio {ours / limit:.2f}")
        alone, watched = (asyncio.run(fan_out(place / f"fan-{watches}.db", watches)) for watches in (1, WATCHES))
        extra = (watched - alone) / (CHANGES * (WATCHES - 1)) * 1e6
        print(
            f"fan-out: {CHANGES} changes to 1 watch {alone:.2f} s, to {WATCHES} watches {watched:.2f} s, "
            f"{extra:.2f} us per change and watch"
        )
        print(f"start with {ENTRIES:,} entries: {asyncio.run(start(place / 'start.db')):.2f} s")


if __name__ == "__main__":
    main()
