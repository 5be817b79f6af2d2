"""Every change, in order, on disk: a SQLite file. Blocking, and at home in one thread.

The log is the state, too: the rows that no later row replaced are what exists now. So there is nothing that could
disagree with the log, each value is written once, and a write is an append.

Without a path the same database lives in memory.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path

from octarbiter.cluster.store import entries, files
from octarbiter.cluster.store.entries import Change, Entry

CHECKPOINT_PAGES = 8000
"""Rarely: what changes often is copied into the file once instead of many times."""

STRETCH = 1000
"""Revisions that are read or compacted in one go, so that writers never wait for long."""

EXISTING = """
SELECT key, value, revision, created FROM log
WHERE NOT deleted AND revision NOT IN (SELECT before FROM log WHERE before > 0)
"""

CHANGES = """
SELECT now.key, now.value, now.revision, now.deleted, past.value, past.revision, past.created
FROM log AS now LEFT JOIN log AS past ON past.revision = now.before
WHERE now.revision > ? AND now.revision <= ? AND now.key >= ? AND now.key < ?
ORDER BY now.revision
"""


class Log:
    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.revision = 0
        self.horizon = 0
        self._lock: int | None = None
        self._database: sqlite3.Connection | None = None

    @property
    def name(self) -> str:
        return str(self.path or "memory")

    def open(self) -> list[Entry]:
        """What exists."""
        with self._explained():
            if self.path is None:
                self._database = sqlite3.connect(":memory:", isolation_level=None)
                self._database.executescript(files.TABLES)
            else:
                self._lock = files.lock(self.path)
                if not os.path.lexists(self.path):
                    files.create(self.path)
                files.examine(self.path)
                os.chmod(self.path, 0o600)
                self._database = sqlite3.connect(self.path, isolation_level=None)
                # Nobody else may write, and SQLite need not look whether somebody did.
                self._database.execute("PRAGMA locking_mode = EXCLUSIVE")
                self._database.execute("PRAGMA synchronous = FULL")
                self._database.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
            self.revision, self.horizon = self._database.execute("SELECT revision, horizon FROM position").fetchone()
            return [Entry(*row) for row in self._database.execute(EXISTING)]

    def append(self, changes: Sequence[Change]) -> None:
        """All or nothing; on the disk when it returns."""
        revision = changes[-1].revision
        with self._transaction() as database:
            database.executemany(
                "INSERT INTO log (revision, before, created, deleted, key, value) VALUES (?, ?, ?, ?, ?, ?)",
                [
                    (
                        change.revision,
                        change.before.revision if change.before else 0,
                        change.created,
                        change.deleted,
                        change.key,
                        change.value,
                    )
                    for change in changes
                ],
            )
            database.execute("UPDATE position SET revision = ?", (revision,))
        self.revision = revision

    def changes(self, prefix: str, after: int, until: int) -> list[Change]:
        with self._explained():
            rows = self._opened().execute(CHANGES, (after, until, prefix, prefix + entries.LAST))
            return [
                Change(
                    key,
                    value,
                    revision,
                    bool(deleted),
                    Entry(key, old_value, old_revision, created) if old_revision else None,
                )
                for key, value, revision, deleted, old_value, old_revision, created in rows
            ]

    def compact(self, before: int) -> int:
        """Moves the horizon towards `before` by a stretch and returns it.

        The row that each change replaced goes, and deletions go: what remains at and below the horizon is exactly
        what existed there.
        """
        reached = min(before, self.horizon + STRETCH)
        if reached <= self.horizon:
            return self.horizon
        with self._transaction() as database:
            stretch = (self.horizon, reached)
            database.execute(
                "DELETE FROM log WHERE revision IN (SELECT before FROM log WHERE revision > ? AND revision <= ?)",
                stretch,
            )
            database.execute("DELETE FROM log WHERE revision > ? AND revision <= ? AND deleted", stretch)
            database.execute("UPDATE position SET horizon = ?", (reached,))
        self.horizon = reached
        return reached

    def close(self) -> None:
        if self._database is not None:
            self._database.close()
            self._database = None
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _opened(self) -> sqlite3.Connection:
        assert self._database is not None
        return self._database

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        database = self._opened()
        try:
            database.execute("BEGIN IMMEDIATE")
            yield database
            database.execute("COMMIT")
        finally:
            if database.in_transaction:
                database.execute("ROLLBACK")

    def _explained(self) -> contextlib.AbstractContextManager[None]:
        return files.explained(self.path) if self.path else contextlib.nullcontext()
