"""Which files are served, and what happens to those that are not."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from octarbiter.cluster.store import errors, files, log
from octarbiter.cluster.store.entries import Change
from octarbiter.cluster.store.store import Store

KEY = "/core/secrets/default/s"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "store.db"


async def fill(path: Path, count: int = 200) -> None:
    store = await Store.open(path)
    for number in range(count):
        await store.put(f"{KEY}{number}", lambda revision: bytes(500), expected=0)
    await store.close()


def bytes_of(directory: Path) -> dict[str, bytes]:
    found = [file for file in directory.iterdir() if file.is_file() and file.suffix != ".lock"]
    return {file.name: file.read_bytes() for file in found if not file.name.endswith("-shm")}


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


async def refused(path: Path, says: str) -> None:
    """It is refused, with these words and its name, and nothing about it changes."""
    before = bytes_of(path.parent)
    with pytest.raises(errors.Unusable, match=says) as refusal:
        await Store.open(path)

    assert str(path) in str(refusal.value)
    assert "; " in str(refusal.value), "it says what to do"
    assert {name: content for name, content in bytes_of(path.parent).items() if name in before} == before


async def test_nobody_else_can_read_what_is_kept(path: Path) -> None:
    store = await Store.open(path)
    await store.put(KEY, lambda revision: b"secret", expected=0)

    names = {file.name for file in path.parent.iterdir()}
    assert {"store.db", "store.db-wal", "store.db.lock"} <= names
    assert {mode(file) for file in path.parent.iterdir()} == {0o600}
    assert mode(path.parent) == 0o700
    await store.close()

    os.chmod(path, 0o644)
    await (await Store.open(path)).close()
    assert mode(path) == 0o600


async def test_a_file_is_served_once(path: Path) -> None:
    store = await Store.open(path)
    with pytest.raises(errors.InUse, match="in use by another process"):
        await Store.open(path)
    await store.put(KEY, lambda revision: b"", expected=0)
    program = (
        "import asyncio, pathlib, sys\n"
        "from octarbiter.cluster.store.store import Store\n"
        "asyncio.run(Store.open(pathlib.Path(sys.argv[1])))"
    )
    command = [sys.executable, "-c", program, str(path)]
    second = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, timeout=60)
    assert f"{path} is in use by another process; stop that one first" in second.stderr
    await store.close()

    store = await Store.open(path)
    assert store.revision == 1
    await store.close()


async def test_two_that_start_at_once_do_not_both_create_the_file(path: Path) -> None:
    first = files.lock(path)
    with pytest.raises(errors.InUse):
        await Store.open(path)
    os.close(first)

    assert bytes_of(path.parent) == {}


async def test_a_file_is_served_once_by_whatever_path_it_is_reached(path: Path, tmp_path: Path) -> None:
    store = await Store.open(path)
    (tmp_path / "link.db").hardlink_to(path)
    with pytest.raises(errors.InUse):
        await Store.open(tmp_path / "link.db")
    await store.close()


def test_every_commit_waits_for_the_disk(path: Path) -> None:
    disk = log.Log(path)
    disk.open()
    settings = ("journal_mode", "synchronous", "locking_mode", "wal_autocheckpoint")
    found = [disk._opened().execute(f"PRAGMA {setting}").fetchone()[0] for setting in settings]
    disk.close()

    full = 2
    assert found == ["wal", full, "exclusive", 8000]


def test_a_batch_that_fails_halfway_leaves_nothing_behind(path: Path) -> None:
    disk = log.Log(path)
    disk.open()
    first, second = (Change(KEY, b"", revision, deleted=False, before=None) for revision in (1, 2))
    with pytest.raises(sqlite3.IntegrityError):
        disk.append([first, first])
    assert disk.changes("", 0, 10) == []
    disk.append([first, second])

    assert disk.changes("", 0, 10) == [first, second]
    disk.close()


async def test_no_other_program_can_write_to_a_file_that_is_served(path: Path) -> None:
    store = await Store.open(path)
    with closing(sqlite3.connect(path, timeout=0)) as other, pytest.raises(sqlite3.OperationalError, match="locked"):
        other.execute("DELETE FROM log")
    await store.close()


def text(path: Path) -> None:
    path.write_text("my diary\n" * 1000)


def empty(path: Path) -> None:
    path.touch()


def other_database(path: Path) -> None:
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("CREATE TABLE log (revision INTEGER PRIMARY KEY)")


@pytest.mark.parametrize("make", [text, empty, other_database])
async def test_a_foreign_file_is_refused_and_left_alone(path: Path, make: Callable[[Path], None]) -> None:
    path.parent.mkdir()
    make(path)
    await refused(path, "not a store of octarbiter")


async def test_a_path_that_cannot_be_a_file_is_refused(path: Path) -> None:
    os.makedirs(path)
    await refused(path, "is not a file")
    blocked = path.parent / "file"
    text(blocked)
    with pytest.raises(errors.Unusable, match=r"cannot be used: .*(Not a directory|File exists)"):
        await Store.open(blocked / "store.db")


async def test_a_newer_file_is_refused_and_left_alone(path: Path) -> None:
    await fill(path)
    with closing(sqlite3.connect(path)) as database:
        database.execute(f"PRAGMA user_version = {files.SCHEMA + 1}")
    await refused(path, "written by a newer octarbiter")


def cut_short(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def overwrite(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(path.stat().st_size // 2 & ~4095)
        file.write(b"\xa5" * 4096)


def lose_the_position(path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("DELETE FROM position")


def set_the_position_back(path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("UPDATE position SET revision = revision - 1")


def drop_the_log(path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("DROP TABLE log")


@pytest.mark.parametrize("damage", [cut_short, overwrite, lose_the_position, set_the_position_back, drop_the_log])
async def test_a_damaged_file_is_refused_and_left_alone(path: Path, damage: Callable[[Path], None]) -> None:
    await fill(path)
    damage(path)
    await refused(path, "damaged")


async def test_damage_to_the_past_is_noticed_at_the_start_too(path: Path) -> None:
    store = await Store.open(path)
    for _ in range(20):
        await store.put(KEY, lambda revision: bytes(50_000), expected=None)
    await store.close()
    overwrite(path)
    await refused(path, "damaged")


async def test_what_a_killed_process_left_beside_a_damaged_file_is_left_alone_too(path: Path, tmp_path: Path) -> None:
    await fill(path)
    store = await Store.open(path)
    await store.put(KEY, lambda revision: b"only in the write-ahead log", expected=0)
    copy = tmp_path / "copy"
    copy.mkdir()
    for name in ("store.db", "store.db-wal"):
        shutil.copy(path.parent / name, copy)
    await store.close()
    overwrite(copy / "store.db")

    await refused(copy / "store.db", "damaged")
    assert b"only in the write-ahead log" in (copy / "store.db-wal").read_bytes()


async def test_the_rest_of_a_file_that_was_removed_is_left_alone(path: Path) -> None:
    os.mkdir(path.parent)
    text(path.with_name("store.db-wal"))
    await refused(path, "is missing, but store.db-wal is there")


async def test_a_lock_that_is_let_go_of_in_a_moment_is_waited_for(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.parent.mkdir()
    held = files.lock(path)
    monkeypatch.setattr(files.time, "sleep", lambda _: os.close(held))

    await (await Store.open(path)).close()


async def test_after_a_refusal_the_file_can_be_replaced_and_opened(path: Path) -> None:
    path.parent.mkdir()
    text(path)
    await refused(path, "not a store")
    os.unlink(path)
    await (await Store.open(path)).close()


async def test_a_start_that_cannot_create_its_file_leaves_nothing_behind(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "TABLES", "nonsense;")
    with pytest.raises(errors.Unusable):
        await Store.open(path)

    assert [file.name for file in path.parent.iterdir()] == ["store.db.lock"]
