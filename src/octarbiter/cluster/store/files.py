"""Is this file ours, whole, and nobody else's?

Until all three are certain nothing is written to it. A file that fails is left as it is, with a sentence that says
what is wrong with it and what to do.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from octarbiter.cluster.store.errors import InUse, Unusable

APPLICATION = int.from_bytes(b"octo")
"""Marks the file as ours; `file` and `sqlite3` show it, too."""

SCHEMA = 1

TABLES = """
CREATE TABLE log (
    revision INTEGER PRIMARY KEY,
    before INTEGER NOT NULL,
    created INTEGER NOT NULL,
    deleted INTEGER NOT NULL,
    key TEXT NOT NULL,
    value BLOB NOT NULL
);
CREATE TABLE position (revision INTEGER NOT NULL, horizon INTEGER NOT NULL);
INSERT INTO position VALUES (0, 0);
"""
"""`before` is the revision of the key's previous row, 0 if there is none. The value comes last: whoever looks for the
other columns does not have to read past it. `position` is needed because compaction may drop the last row."""

MARKS = f"PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {SCHEMA};"

CONSISTENT = """
SELECT count(*) = 1 AND min(0 <= horizon AND horizon <= revision AND revision >= newest)
FROM position, (SELECT coalesce(max(revision), 0) AS newest FROM log)
"""

LOCK_WAIT_S = 1.0
"""Somebody may be looking into the file; and a lock that was let go of is held for a moment more by a program that its
last holder was just starting."""
LOCK_PAUSE_S = 0.05

ASIDE = "move it aside to begin anew, or restore it from a backup"


@contextlib.contextmanager
def explained(path: Path) -> Iterator[None]:
    """Whatever the system or SQLite says about the file becomes a sentence."""
    try:
        yield
    except OSError as error:
        raise Unusable(
            path, f"cannot be used: {error.strerror or error}", "look at its path and permissions"
        ) from error
    except sqlite3.DatabaseError as error:
        match error.sqlite_errorcode & 0xFF:  # the rest says more about the same
            case sqlite3.SQLITE_BUSY:
                raise in_use(path) from error
            case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB | sqlite3.SQLITE_ERROR:  # the last: a table is missing
                raise Unusable(path, f"is damaged or not a store of octarbiter ({error})", ASIDE) from error
            case _:
                do = "look at its path, its permissions and the disk"
                raise Unusable(path, f"cannot be used: {error}", do) from error


def in_use(path: Path) -> InUse:
    return InUse(path, "is in use by another process", "stop that one first, or choose another file")


def lock(path: Path) -> int:
    """The descriptor that holds the lock. It is the kernel's: whoever is killed lets go of it.

    A file of its own, before anything else is touched. SQLite's lock, which is taken later, keeps out whoever comes by
    another path.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(path.with_name(path.name + ".lock"), os.O_RDWR | os.O_CREAT, 0o600)
    deadline = time.monotonic() + LOCK_WAIT_S
    try:
        while not _is_locked(descriptor):
            if time.monotonic() > deadline:
                raise in_use(path)
            time.sleep(LOCK_PAUSE_S)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _is_locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def create(path: Path) -> None:
    """Made under another name and moved: a file of this name is whole, whenever we are killed."""
    for leftover in (path.with_name(path.name + ending) for ending in ("-wal", "-journal")):
        if leftover.exists():  # SQLite would take it for a part of the new file
            do = "put the file back where it was, or move that one aside to begin anew"
            raise Unusable(path, f"is missing, but {leftover.name} is there", do)
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)  # 0600, and so is what SQLite adds
    os.close(descriptor)
    try:
        with contextlib.closing(sqlite3.connect(name, isolation_level=None)) as database:
            database.execute("PRAGMA journal_mode = WAL")
            database.executescript(f"BEGIN; {TABLES} {MARKS} COMMIT;")
        os.rename(name, path)
    except BaseException:
        os.unlink(name)
        raise
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def examine(path: Path) -> None:
    """Refuses what is not ours, too new or damaged; reads only."""
    if not path.is_file():
        raise Unusable(path, "is not a file", "choose another path")
    with contextlib.closing(
        sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=LOCK_WAIT_S)
    ) as database:
        (application,) = database.execute("PRAGMA application_id").fetchone()
        if application != APPLICATION:
            raise Unusable(path, "is not a store of octarbiter", "choose another file")
        (schema,) = database.execute("PRAGMA user_version").fetchone()
        if schema > SCHEMA:
            raise Unusable(
                path,
                f"was written by a newer octarbiter (its format is {schema}, this one knows {SCHEMA})",
                "use that one, or choose another file",
            )
        (verdict,) = database.execute("PRAGMA quick_check(1)").fetchone()
        if verdict != "ok":
            raise Unusable(path, f"is damaged ({verdict})", ASIDE)
        consistent = database.execute(CONSISTENT).fetchone()
        if consistent != (1,):
            raise Unusable(path, "is damaged (its log and its position disagree)", ASIDE)
