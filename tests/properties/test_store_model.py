"""Whatever is written, watched, forgotten and reopened in whatever order: the store is what an obvious model says.

The model is the list of all changes. Everything else follows from it.
"""

from __future__ import annotations

import asyncio
import resource
import shutil
import tempfile
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar
from unittest import mock

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from octarbiter.cluster.store import entries, errors, log
from octarbiter.cluster.store.entries import Change, Entry
from octarbiter.cluster.store.store import Store
from octarbiter.cluster.store.watch import Watch

T = TypeVar("T")

KEYS = ["/core/pods/a/x", "/core/pods/a/y", "/core/pods/b/x", "/core/podtemplates/a/x", "/batch/jobs/a/x"]
PREFIXES = ["", "/core/", "/core/pod", "/core/pods/", "/core/pods/a/", "/core/pods/a/x", "/batch/jobs/", "/none/at/all"]

keys, prefixes, fractions = st.sampled_from(KEYS), st.sampled_from(PREFIXES), st.floats(0, 1)


class Model:
    def __init__(self) -> None:
        self.changes: list[Change] = []
        self.horizon = 0
        self.given = 0

    @property
    def revision(self) -> int:
        return self.changes[-1].revision if self.changes else 0

    def at(self, revision: int) -> dict[str, Entry]:
        state: dict[str, Entry] = {}
        for change in self.changes:
            if change.revision > revision:
                break
            state.pop(change.key, None)
            entry = entries.after(change)
            if entry:
                state[change.key] = entry
        return state

    def listed(self, prefix: str, revision: int) -> list[Entry]:
        return [entry for key, entry in sorted(self.at(revision).items()) if key.startswith(prefix)]

    def told(self, prefix: str, after: int) -> list[Change]:
        return [change for change in self.changes if change.revision > after and change.key.startswith(prefix)]

    def change(self, key: str, value: bytes, deleted: bool, expected: int | None) -> Change | None:
        """None: a conflict."""
        before = self.at(self.revision).get(key)
        if expected not in (None, before.revision if before else 0) or (deleted and before is None):
            return None
        self.given += 1
        self.changes.append(Change(key, value, self.given, deleted, before))
        return self.changes[-1]


class Reader:
    """A watch, and what it has told."""

    def __init__(self, watch: Watch, after: int) -> None:
        self.watch, self.after, self.told = watch, after, list[Change]()


class StoreMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp(prefix="octarbiter-store-"))
        self.path: Path | None = self.directory / "store.db"
        self.loop = asyncio.new_event_loop()
        self.model = Model()
        self.readers: list[Reader] = []
        self.short_stretches = mock.patch.object(log, "STRETCH", 3)
        self.short_stretches.start()

    def run(self, story: Coroutine[Any, Any, T]) -> T:
        async def in_time() -> T:
            async with asyncio.timeout(30):
                return await story

        return self.loop.run_until_complete(in_time())

    @initialize(on_disk=st.booleans(), window=st.integers(1, 6))
    def open(self, on_disk: bool, window: int) -> None:
        self.path = self.path if on_disk else None
        self.window = window
        self.store = self.run(Store.open(self.path, window=window))

    def teardown(self) -> None:
        self.short_stretches.stop()
        if hasattr(self, "store"):
            self.run(self.store.close())
        self.loop.close()
        shutil.rmtree(self.directory)

    def past(self, fraction: float) -> int:
        return round(self.model.horizon + fraction * (self.model.revision - self.model.horizon))

    @rule(
        wishes=st.lists(
            st.tuples(keys, st.booleans(), st.sampled_from(["any", "right", "right", "absent", "wrong"])), max_size=6
        )
    )
    def write(self, wishes: list[tuple[str, bool, str]]) -> None:
        """All at once: they share a batch, and later ones are decided on earlier ones that are not durable yet."""
        decided: list[Change | None] = []
        asked: list[Coroutine[Any, Any, int]] = []
        for key, deleted, expectation in wishes:
            now = self.model.at(self.model.revision).get(key)
            expected = {"any": None, "right": now.revision if now else 0, "absent": 0, "wrong": 10**6}[expectation]
            value = f"{key} {self.model.given + 1}".encode()
            decided.append(self.model.change(key, value, deleted, expected))
            verb = self.store.delete if deleted else self.store.put
            asked.append(verb(key, lambda revision, key=key: f"{key} {revision}".encode(), expected=expected))  # type: ignore[misc]

        answers = self.run(self.gathered(asked))

        for change, answer in zip(decided, answers, strict=True):
            assert isinstance(answer, errors.Conflict) if change is None else answer == change.revision

    @precondition(lambda self: self.path is not None)
    @rule(wishes=st.lists(keys, min_size=1, max_size=4))
    def write_to_a_full_disk(self, wishes: list[str]) -> None:
        """Nothing comes of it, but the revisions are used up."""
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
        try:
            asked = [self.store.put(key, lambda revision: b"lost", expected=None) for key in wishes]
            answers = self.run(self.gathered(asked))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        self.model.given += len(wishes)

        assert [type(answer) for answer in answers] == [errors.WriteFailed] * len(wishes)

    async def gathered(self, asked: list[Coroutine[Any, Any, int]]) -> list[int | BaseException]:
        return await asyncio.gather(*asked, return_exceptions=True)

    @rule(prefix=prefixes, fraction=fractions)
    def look_back(self, prefix: str, fraction: float) -> None:
        revision = self.past(fraction)
        assert list(self.run(self.store.list_at(prefix, revision))) == self.model.listed(prefix, revision)

    @rule(prefix=prefixes, fraction=fractions)
    def watch(self, prefix: str, fraction: float) -> None:
        after = self.past(fraction)
        self.readers.append(Reader(self.store.watch(prefix, after), after))

    @precondition(lambda self: self.readers)
    @rule(data=st.data(), portions=st.integers(1, 3))
    def read(self, data: st.DataObject, portions: int) -> None:
        self.advance(data.draw(st.sampled_from(self.readers)), portions)

    def advance(self, reader: Reader, portions: int) -> None:
        """Reads on, but never waits for what will not come."""
        wanted = self.model.told(reader.watch.prefix, reader.after)
        for _ in range(portions):
            if len(reader.told) == len(wanted):
                return
            position = reader.watch.position
            try:
                changes = self.run(anext(reader.watch))
            except errors.Compacted:
                assert position < self.model.horizon
                self.readers.remove(reader)
                return
            assert changes
            reader.told += changes
            assert reader.told == wanted[: len(reader.told)]
            assert reader.watch.position >= reader.told[-1].revision

    @rule(fraction=fractions)
    def compact(self, fraction: float) -> None:
        before = round(fraction * self.model.revision)
        self.model.horizon = max(before, self.model.horizon)  # it never goes back
        self.run(self.store.compact(before))

    @precondition(lambda self: self.path is not None)
    @rule()
    def reopen(self) -> None:
        """Readers resume where they were."""
        self.model.given = self.model.revision
        self.run(self.store.close())
        self.store = self.run(Store.open(self.path, window=self.window))
        for reader in list(self.readers):
            position = reader.watch.position
            if position < self.model.horizon:
                with pytest.raises(errors.Compacted):
                    self.store.watch(reader.watch.prefix, position)
                self.readers.remove(reader)
            else:
                reader.watch = self.store.watch(reader.watch.prefix, position)

    @rule(prefix=prefixes, beyond=st.integers(1, 3))
    def ask_for_what_cannot_be_told(self, prefix: str, beyond: int) -> None:
        with pytest.raises(errors.Future):
            self.store.watch(prefix, self.model.revision + beyond)
        with pytest.raises(errors.Future):
            self.run(self.store.list_at(prefix, self.model.revision + beyond))
        if self.model.horizon:
            with pytest.raises(errors.Compacted):
                self.store.watch(prefix, self.model.horizon - 1)
            with pytest.raises(errors.Compacted):
                self.run(self.store.list_at(prefix, self.model.horizon - 1))

    @invariant()
    def the_present_is_the_models(self) -> None:
        if not hasattr(self, "store"):
            return
        assert (self.store.revision, self.store.horizon) == (self.model.revision, self.model.horizon)
        state = self.model.at(self.model.revision)
        assert {key: self.store.get(key) for key in KEYS} == {key: state.get(key) for key in KEYS}
        assert {key: self.store.latest(key) for key in KEYS} == {key: state.get(key) for key in KEYS}
        for prefix in PREFIXES:
            assert list(self.store.list(prefix)) == self.model.listed(prefix, self.model.revision)


TestStore = StoreMachine.TestCase
TestStore.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
