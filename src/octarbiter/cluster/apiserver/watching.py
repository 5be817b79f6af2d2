"""What does a watcher get to see, in which order, and when does it end?

The present state first if it was asked for, then every change once, in the store's order. What enters a selector is
ADDED, what leaves it DELETED, whatever really happened. An event is encoded once for everybody who sees it the same way
and written together with the others that came with it.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Callable, Hashable, Iterator, Sequence
from datetime import datetime
from typing import Final, TypeVar

import msgspec

from octarbiter.api.meta import Json
from octarbiter.cluster.apiserver import listing, objects, options, rendering, status, tables
from octarbiter.cluster.apiserver.catalogue import Served
from octarbiter.cluster.apiserver.negotiation import Form, View
from octarbiter.cluster.store.entries import Change, Entry
from octarbiter.cluster.store.errors import Compacted, Future, StoreError
from octarbiter.cluster.store.store import Store
from octarbiter.cluster.store.watch import Watch

_BOOKMARK_EVERY_S: Final = 60.0
_LAST_BOOKMARK_S: Final = 2.0
"""Before the end, so that whoever comes back finds little to catch up with."""
_SHORTEST_S, _LONGEST_S = 1800.0, 3600.0
"""Of a watch that names no time; drawn, so that watchers do not come back all at once."""
_CHUNK_BYTES: Final = 256 * 1024
_REMEMBERED: Final = 512
"""Encodings kept for the next watcher; they all come within a moment."""

INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"

T = TypeVar("T")
Batch = tuple[str, bytes, int, int, int]


class Memory:
    """What was encoded a moment ago."""

    def __init__(self) -> None:
        self._kept: dict[Hashable, object] = {}

    def recall(self, key: Hashable, make: Callable[[], T]) -> T:
        found = self._kept.get(key)
        if found is None:
            found = self._kept[key] = make()
            if len(self._kept) > _REMEMBERED:
                del self._kept[next(iter(self._kept))]
        return found  # type: ignore[return-value]


class Request(msgspec.Struct, frozen=True, kw_only=True):
    served: Served
    namespace: str
    wanted: options.Listing
    form: Form
    include: tables.Include


class Watching:
    """All watches of a server."""

    def __init__(self, store: Store, clock: Callable[[], datetime]) -> None:
        self._store = store
        self._clock = clock
        self._memory = Memory()
        self._open: set[Watch] = set()

    def close(self) -> None:
        """Every watch ends as if its time were up."""
        for watch in list(self._open):
            watch.close()

    async def stream(self, request: Request) -> AsyncGenerator[bytes, None]:
        """Pieces of the answer's body, each of whole lines. Raises refusals before the first piece."""
        wanted, resource = request.wanted, request.served.resource
        prefix = resource.prefix(listing.narrowed(resource, request.namespace, wanted.fields))
        asked = options.revision(wanted.resource_version)
        present = self._store.revision
        shows_state = wanted.initial_events or (not asked and wanted.initial_events is None)
        painter = _Painter(request, self._memory, self._clock)
        try:
            # State and changes are taken in one step of the event loop: nothing can fall between them.
            watch = self._store.watch(prefix, present if shows_state or not asked else asked)
            if asked > present:
                raise Future(asked, present)
        except Compacted as compacted:
            yield painter.error(status.too_old(compacted.asked, compacted.horizon))
            return
        except Future as future:
            yield painter.error(status.version_too_large(future.asked, future.present))
            return
        self._open.add(watch)
        try:
            if shows_state:
                for piece in painter.state(self._store.list(prefix)):
                    yield piece
            if wanted.initial_events and wanted.bookmarks:
                yield painter.bookmark(present, end_of_state=True)
            async for piece in self._live(watch, painter, wanted):
                yield piece
        finally:
            self._open.discard(watch)
            watch.close()

    async def _live(self, watch: Watch, painter: _Painter, wanted: options.Listing) -> AsyncGenerator[bytes, None]:
        clock = asyncio.get_running_loop().time
        timeout = wanted.timeout_s or random.uniform(_SHORTEST_S, _LONGEST_S)  # noqa: S311
        end = clock() + timeout
        bookmark_at = _next_bookmark(clock(), end) if wanted.bookmarks else end
        while True:
            try:
                async with asyncio.timeout_at(min(bookmark_at, end)):
                    changes = await anext(watch)
            except TimeoutError:
                if clock() >= end:
                    return
                yield painter.bookmark(watch.position)
                bookmark_at = _next_bookmark(clock(), end)
                continue
            except Compacted as compacted:
                yield painter.error(status.too_old(compacted.asked, compacted.horizon))
                return
            except (StopAsyncIteration, StoreError):
                # Closed, or too slow: whoever comes back is told where to go on, or to list again.
                return
            if piece := painter.changes(watch.prefix, changes):
                yield piece


def _next_bookmark(now: float, end: float) -> float:
    last = end - _LAST_BOOKMARK_S
    return min(now + _BOOKMARK_EVERY_S, last) if now < last else end


class _Painter:
    """Events as one watcher wants to see them."""

    def __init__(self, request: Request, memory: Memory, clock: Callable[[], datetime]) -> None:
        self._served = request.served
        self._resource = request.served.resource
        self._wanted = request.wanted
        self._form = request.form
        self._include = request.include
        self._memory = memory
        self._clock = clock
        self._head = objects.head(self._resource)
        self._selects = bool(request.wanted.labels or request.wanted.fields)
        self._told_columns = False

    def state(self, entries: Sequence[Entry]) -> Iterator[bytes]:
        pieces: list[bytes] = []
        size = 0
        for entry in entries:
            if self._selects and not listing.is_chosen(entry.value, self._resource, self._wanted):
                continue
            piece = self._event(b"ADDED", rendering.current(entry.value, self._served, entry.revision))
            pieces.append(piece)
            size += len(piece)
            if size > _CHUNK_BYTES:
                yield b"".join(pieces)
                pieces, size = [], 0
        if pieces:
            yield b"".join(pieces)

    def changes(self, prefix: str, changes: Sequence[Change]) -> bytes:
        if self._selects or self._form.view is not View.WHOLE:
            return b"".join(piece for change in changes if (piece := self._chosen(change)))
        batch: Batch = (prefix, self._head, changes[0].revision, changes[-1].revision, len(changes))
        return self._memory.recall(batch, lambda: b"".join(self._plain(change) for change in changes))

    def bookmark(self, revision: int, *, end_of_state: bool = False) -> bytes:
        metadata: Json = {"resourceVersion": str(revision)}
        if end_of_state:
            metadata["annotations"] = {INITIAL_EVENTS_END: "true"}
        obj: Json = {"kind": self._resource.kind, "apiVersion": self._resource.api_version, "metadata": metadata}
        if self._form.view is View.TABLE:
            obj = rendering.table([], self._served, self._form, self._include, self._clock(), metadata, headers=False)
        elif self._form.view is not View.WHOLE:
            obj |= {"kind": "PartialObjectMetadata", "apiVersion": f"meta.k8s.io/{self._form.version}"}
        return _line(b"BOOKMARK", objects.encode(obj))

    def error(self, failure: status.Failure) -> bytes:
        return _line(b"ERROR", objects.encode(failure.status))

    def _plain(self, change: Change) -> bytes:
        return self._event(_name_of(change), change.value)

    def _chosen(self, change: Change) -> bytes:
        if not self._selects:
            return self._plain(change)
        was = change.before is not None and self._is_chosen(change.before.revision, change.before.value)
        if change.deleted:
            return self._event(b"DELETED", change.value) if was else b""
        is_ = self._is_chosen(change.revision, change.value)
        if is_:
            return self._event(b"MODIFIED" if was else b"ADDED", change.value, change.revision)
        if not was or change.before is None:
            return b""
        # As it was when it was last seen, with the revision at which it left.
        left = objects.loaded(change.before.value, self._resource)
        return self._event(b"DELETED", objects.stamped(left, self._resource, change.revision))

    def _is_chosen(self, revision: int, value: bytes) -> bool:
        seen = self._memory.recall(
            (revision, self._resource.selectable), lambda: objects.glimpser(self._resource.selectable)(value)
        )
        return self._wanted.labels.matches(seen.labels) and self._wanted.fields.matches(seen.field)

    def _event(self, name: bytes, value: bytes, revision: int = 0) -> bytes:
        if self._form.view is View.WHOLE:
            if revision:
                key = (revision, name, self._head)
                return self._memory.recall(key, lambda: _line(name, objects.shown(value, self._resource)))
            return _line(name, objects.shown(value, self._resource))
        if self._form.view is View.TABLE:
            obj = objects.loaded(value, self._resource)
            list_meta = {"resourceVersion": obj["metadata"].get("resourceVersion", "")}
            shown = rendering.table(
                [obj],
                self._served,
                self._form,
                self._include,
                self._clock(),
                list_meta,
                headers=not self._told_columns,
            )
            self._told_columns = True
            return _line(name, objects.encode(shown))
        return _line(name, objects.encode(rendering.metadata_only(value, self._form)))


def _name_of(change: Change) -> bytes:
    if change.deleted:
        return b"DELETED"
    return b"ADDED" if change.before is None else b"MODIFIED"


def _line(name: bytes, obj: bytes) -> bytes:
    return b"".join((b'{"type":"', name, b'","object":', obj, b"}\n"))
