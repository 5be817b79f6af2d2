"""How does the cache stay true? List once, then follow the watch, through everything that may happen to it.

A server that can streams the list through the watch (WatchList); from another it is fetched in pages. A watch that
ends goes on at the last revision seen; one whose past the server has forgotten (410) is begun anew by a list, of which
only the differences reach the handlers. One object that cannot be read stops nothing: what was known of it stays.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import aclosing
from typing import Final, Generic, TypeVar

import msgspec

from octarbiter.api import codec, errors
from octarbiter.api.meta import Object, Status
from octarbiter.api.scheme import Resource
from octarbiter.runtime import answers, backoff, requests
from octarbiter.runtime import cache as caches
from octarbiter.runtime.client import PAGE_SIZE, Client

FIRST_PAUSE_S: Final = 0.2
LONGEST_PAUSE_S: Final = 5.0
SHORTEST_WATCH_S: Final = 240
LONGEST_WATCH_S: Final = 480
"""Watches are ended by the server after a random time between these, so that they do not all begin anew at once."""
INITIAL_SILENCE_S: Final = 15.0
"""A server that pauses so long in the middle of a streamed list does not know how to stream one."""
INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"

T = TypeVar("T", bound=Object)
OnUnreadable = Callable[[str, str], None]
"""Is told the key of an object (empty if not even that can be read) and what is wrong with it."""

log = logging.getLogger(__name__)


class Informer(Generic[T]):
    def __init__(
        self,
        client: Client,
        resource: Resource[T],
        *,
        namespace: str = "",
        label_selector: str = "",
        field_selector: str = "",
        indexes: Mapping[str, caches.IndexFunction[T]] | None = None,
        on_change: caches.OnChange[T] | None = None,
        on_unreadable: OnUnreadable | None = None,
        stream_lists: bool = True,
        page_size: int = PAGE_SIZE,
    ) -> None:
        """Empty `namespace`: all of them. `stream_lists`: try WatchList first."""
        self.resource = resource
        self.cache: caches.Cache[T] = caches.Cache(indexes, on_change)
        self.synced = asyncio.Event()
        self.lists = 0
        """How often everything was listed; more than once means that the server had forgotten what we missed."""
        self._client = client
        self._namespace = namespace
        self._label_selector = label_selector
        self._field_selector = field_selector
        self._on_unreadable = on_unreadable
        self._stream_lists = stream_lists
        self._page_size = page_size
        self._pauses = backoff.Backoff(FIRST_PAUSE_S, LONGEST_PAUSE_S)
        self._list_pauses = backoff.Backoff(FIRST_PAUSE_S, LONGEST_PAUSE_S)
        self._must_list = True
        self._following: asyncio.Task[None] | None = None

    @property
    def last_revision(self) -> int:
        """Everything up to here is in the cache."""
        return self.cache.revision

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            before, after = self.cache.revision, 0.0
            following = self._following = asyncio.create_task(self._follow())
            try:
                await asyncio.wait({following})
                if following.cancelled():
                    continue  # to list anew
                following.result()
                if self.cache.revision > before:
                    continue  # the server ended the watch in its own good time
            except errors.ApiError as problem:
                if _has_forgotten(problem):
                    # The server is there again: how long it was away is no reason to wait.
                    self._must_list = True
                    self._pauses.reset()
                    after = self._list_pauses.next_pause()
                elif isinstance(problem, errors.Retry):
                    after = problem.after
                log.warning(
                    "the watch broke, trying again",
                    extra={"resource": self.resource.plural, "revision": self.cache.revision, "error": str(problem)},
                )
            finally:
                following.cancel()
                await asyncio.wait({following})  # it gives its connection back
            await asyncio.sleep(self._pauses.next_pause(after))

    async def list_anew(self) -> None:
        """Returns when the cache holds everything as it was at some moment after the call. `run` must be running."""
        self._must_list = True
        self.synced.clear()
        if self._following is not None:
            self._following.cancel()
        await self.synced.wait()

    async def _follow(self) -> None:
        """One connection's worth of watching, after a list if one is due."""
        if self._must_list and self._stream_lists:
            try:
                await self._watch(initial=True)
            except (errors.Invalid, _CannotStream) as problem:
                self._stream_lists = False
                log.info(
                    "the server does not stream lists, fetching pages",
                    extra={"resource": self.resource.plural, "error": str(problem)},
                )
            else:
                return
        if self._must_list:
            await self._list()
        await self._watch(initial=False)

    async def _list(self) -> None:
        whole = await self._client.list_raw(
            self.resource,
            self._namespace,
            label_selector=self._label_selector,
            field_selector=self._field_selector,
            page_size=self._page_size,
        )
        listed = _Listed[T]()
        for item in whole.items:
            self._add(listed, item)
        self._replace(listed, int(whole.metadata.resource_version))

    async def _watch(self, initial: bool) -> None:
        timeout_s = random.randint(SHORTEST_WATCH_S, LONGEST_WATCH_S)  # noqa: S311
        request = requests.watch(
            self.resource,
            self._namespace,
            label_selector=self._label_selector,
            field_selector=self._field_selector,
            resource_version="" if initial else str(self.cache.revision),
            send_initial_events=initial,
            timeout_s=timeout_s,
        )
        async with aclosing(self._client.stream_lines(request, silence_s=timeout_s + 30.0)) as lines:
            if initial:
                await self._take_initial(lines)
            async for line in lines:
                self._take(_event(line))
                self._pauses.reset()
                self._list_pauses.reset()

    async def _take_initial(self, lines: AsyncIterator[bytes]) -> None:
        """The present state as ADDED events, among them perhaps changes made meanwhile, up to a certain bookmark."""
        listed = _Listed[T]()
        while True:
            try:
                async with asyncio.timeout(INITIAL_SILENCE_S):
                    event = _event(await anext(lines))
            except StopAsyncIteration:
                raise _broken("the streamed list ended before it was complete") from None
            except TimeoutError:
                raise _CannotStream(f"nothing came for {INITIAL_SILENCE_S} s") from None
            if event.type in ("ADDED", "MODIFIED"):
                self._add(listed, event.object)
            else:
                metadata = answers.decoded(event.object, codec.ObjectWithMeta, self.resource.plural).metadata
                if event.type == "DELETED":
                    listed.discard(metadata.key)
                elif INITIAL_EVENTS_END in metadata.annotations:
                    self._replace(listed, int(metadata.resource_version))
                    return

    def _add(self, listed: _Listed[T], item: msgspec.Raw) -> None:
        try:
            seen = codec.decode(item, self.resource.type)
            caches.revision_of(seen.metadata)
        except (msgspec.MsgspecError, ValueError) as problem:
            listed.unreadable.add(self._report(item, problem))
        else:
            listed.objects[seen.metadata.key] = seen

    def _replace(self, listed: _Listed[T], revision: int) -> None:
        self.cache.replace(listed.objects.values(), revision, listed.unreadable)
        self._must_list = False
        self.lists += 1
        self.synced.set()

    def _take(self, event: codec.WatchEvent) -> None:
        try:
            if event.type in ("ADDED", "MODIFIED"):
                self.cache.changed(codec.decode(event.object, self.resource.type))
            elif event.type == "DELETED":
                self.cache.deleted(codec.decode(event.object, codec.ObjectWithMeta).metadata)
            elif event.type == "BOOKMARK":
                self.cache.reached(caches.revision_of(codec.decode(event.object, codec.ObjectWithMeta).metadata))
        except (msgspec.MsgspecError, ValueError) as problem:
            self._report(event.object, problem)

    def _report(self, item: msgspec.Raw, problem: Exception) -> str:
        """Its key, if that at least can be read."""
        try:
            key = codec.decode(item, codec.ObjectWithMeta).metadata.key
        except msgspec.MsgspecError:
            key = ""
        log.warning(
            "an object cannot be read and is passed over",
            extra={"resource": self.resource.plural, "key": key, "error": str(problem)},
        )
        if self._on_unreadable is not None:
            self._on_unreadable(key, str(problem))
        return key


class _Listed(Generic[T]):
    """A list under construction."""

    def __init__(self) -> None:
        self.objects: dict[str, T] = {}
        self.unreadable: set[str] = set()

    def discard(self, key: str) -> None:
        self.objects.pop(key, None)
        self.unreadable.discard(key)


class _CannotStream(Exception):
    pass


def _event(line: bytes) -> codec.WatchEvent:
    try:
        event = codec.decode(line, codec.WatchEvent)
        if event.type != "ERROR":
            return event
        status = codec.decode(event.object, Status)
    except msgspec.MsgspecError as problem:
        raise _broken(f"the watch sent what is no event: {problem}") from problem
    raise errors.from_status(status)


def _broken(message: str) -> errors.Retry:
    return errors.Retry(Status(reason=answers.ANSWER_LOST, message=message))


def _has_forgotten(problem: errors.ApiError) -> bool:
    """It no longer has the past we ask for, or not yet the future we have seen (a restored backup)."""
    causes = problem.status.details.causes
    return isinstance(problem, errors.Gone) or any(cause.reason == "ResourceVersionTooLarge" for cause in causes)
