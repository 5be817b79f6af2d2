"""Who may keep a connection open, and who has to go when there are too many?

A connection costs memory before anybody has said who they are, so their number is bounded. When one more comes, the one
that is needed least is cut off: first those who have not shown who they are, then those who ask nothing, each time the
one that has been like that for longest. A connection that is answering a request is never taken away; as requests that
may last for ever (watches, logs, commands in pods) are bounded, too, there are always places left for those that end
soon. So whatever one client does, another one still gets in.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import resource
import socket
import ssl
from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec
from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from octarbiter.cluster.apiserver import status

log = logging.getLogger(__name__)

_WAITING_AT_THE_DOOR: Final = 1024
"""Connections that the kernel keeps until we take them."""
_BREATH_S: Final = 0.1
"""After no connection could be taken: one that is cut off meanwhile needs a moment to be gone."""
_EXHAUSTED: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_FILES: Final = 8192
"""What the limit on open files is raised to. Not higher: pods inherit it, and some programs walk over all of it."""
_OTHER_FILES: Final = 512
"""What connections leave to the store, the programs in pods and their logs."""
_FEWEST: Final = 64
_COME_BACK_S: Final = 1


class Bounds(msgspec.Struct, frozen=True):
    most_open: int = 1000
    """Connections. Each needs about 300 KB, most of it a buffer that asyncio gives to TLS."""
    most_streams: int = 750
    """Requests that may last for ever."""
    handshake_s: float = 10.0
    idle_s: float = 90.0
    """Without a request, or until one has been said to the end of its head."""
    farewell_s: float = 2.0
    """What a client gets to answer our good-bye."""


class Connection:
    """One that is open."""

    __slots__ = ("_greeting", "known", "protocol", "requests", "since")

    def __init__(self, protocol: web.RequestHandler, now: float) -> None:
        self.protocol = protocol
        self.since = now
        """It was made, or its last request was answered."""
        self.known = False
        """Somebody has shown who they are."""
        self.requests = 0
        """Being answered just now."""
        self._greeting: asyncio.Task[None] | None = None

    def greet(self, greeting: asyncio.Task[None]) -> None:
        self._greeting = greeting

    def cut(self) -> None:
        """At once: whoever does not listen would not take part in a farewell either."""
        if self.protocol.transport is not None:
            self.protocol.transport.abort()
        elif self._greeting is not None:
            self._greeting.cancel()


def least_needed(connections: Iterable[Connection]) -> Connection | None:
    """None if every one is answering a request."""
    resting = (each for each in connections if not each.requests)
    return min(resting, key=lambda each: (each.known, each.since), default=None)


class Server(web.Server):
    """aiohttp's server, and the door in front of it."""

    def __init__(self, handle: Any, bounds: Bounds, tls: ssl.SSLContext, **options: Any) -> None:
        super().__init__(
            handle,
            handler_cancellation=True,
            keepalive_timeout=bounds.idle_s,
            access_log=None,
            logger=_without_strangers_faults(),
            **options,
        )
        self._bounds = bounds
        self._tls = tls
        self._most = min(bounds.most_open, _places())
        self._most_streams = min(bounds.most_streams, self._most * 3 // 4)
        self._open: dict[web.RequestHandler, Connection] = {}
        self._streams = 0
        self._room = asyncio.Event()
        self._listener: socket.socket | None = None
        self._accepting: asyncio.Task[None] | None = None
        self._greetings: set[asyncio.Task[None]] = set()

    async def listen(self, host: str, port: int) -> int:
        """The port, if it was left open. Raises OSError."""
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._listener = socket.create_server((host, port), family=family, backlog=_WAITING_AT_THE_DOOR)
        self._listener.setblocking(False)
        self._accepting = asyncio.create_task(self._accept(self._listener), name="accept")
        return int(self._listener.getsockname()[1])

    async def close(self, timeout_s: float) -> None:
        """What is being answered gets that long to end."""
        tasks = [*self._greetings, *([self._accepting] if self._accepting is not None else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._listener is not None:
            self._listener.close()
        self.pre_shutdown()
        await self.shutdown(timeout_s)

    @contextlib.contextmanager
    def answering(self, request: web.BaseRequest) -> Iterator[None]:
        """Its connection is not taken away meanwhile."""
        connection = self._open.get(request.protocol)
        if connection is None:  # cut off a moment ago
            yield
            return
        connection.requests += 1
        try:
            yield
        finally:
            connection.requests -= 1
            connection.since = self._loop.time()
            self._room.set()

    def knows(self, request: web.BaseRequest) -> None:
        """Who sends it has shown who they are."""
        if connection := self._open.get(request.protocol):
            connection.known = True

    @contextlib.contextmanager
    def streaming(self) -> Iterator[None]:
        """For a request that may last for ever. Raises a refusal (429)."""
        if self._streams >= self._most_streams:
            raise status.too_many_requests("too many watches, logs and commands are open", _COME_BACK_S)
        self._streams += 1
        try:
            yield
        finally:
            self._streams -= 1

    def connection_lost(self, handler: web.RequestHandler, exc: BaseException | None = None) -> None:
        super().connection_lost(handler, exc)
        self._forget(handler)

    async def _accept(self, listener: socket.socket) -> None:
        told = False
        while True:
            try:
                made, _ = await self._loop.sock_accept(listener)
            except OSError as problem:
                if problem.errno in _EXHAUSTED:
                    self._make_room()
                if not told:
                    log.warning("no connection can be taken", extra={"why": str(problem), "open": len(self._open)})
                    told = True
                await asyncio.sleep(_BREATH_S)
                continue
            told = False
            while len(self._open) >= self._most and not self._make_room():
                self._room.clear()
                await self._room.wait()
            self._welcome(made)
            # A crowd at the door must not keep those waiting who are inside.
            await asyncio.sleep(0)

    def _welcome(self, made: socket.socket) -> None:
        protocol = self()
        connection = self._open[protocol] = Connection(protocol, self._loop.time())
        greeting = asyncio.create_task(self._greet(made, protocol), name="greet")
        self._greetings.add(greeting)
        greeting.add_done_callback(self._greetings.discard)
        connection.greet(greeting)

    async def _greet(self, made: socket.socket, protocol: web.RequestHandler) -> None:
        try:
            await self._loop.connect_accepted_socket(
                lambda: protocol,
                made,
                ssl=self._tls,
                ssl_handshake_timeout=self._bounds.handshake_s,
                ssl_shutdown_timeout=self._bounds.farewell_s,
            )
        except OSError:
            self._forget(protocol)  # something else than TLS, or gone: there is nobody to tell
        except asyncio.CancelledError:
            self._forget(protocol)
            raise

    def _make_room(self) -> bool:
        connection = least_needed(self._open.values())
        if connection is None:
            return False
        self._forget(connection.protocol)
        connection.cut()
        return True

    def _forget(self, protocol: web.RequestHandler) -> None:
        if self._open.pop(protocol, None) is not None:
            self._room.set()


def _places() -> int:
    """How many connections the limit on open files allows, after raising it as far as it may be."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return _FILES
    wanted = _FILES if hard == resource.RLIM_INFINITY else min(_FILES, hard)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        soft = wanted
    return max(soft - _OTHER_FILES, _FEWEST)


def _without_strangers_faults() -> logging.Logger:
    """A request that is none is answered with 400; that is no news, and no fault of ours to be shown with a trace."""
    http = log.getChild("http")
    http.addFilter(_is_ours)
    return http


def _is_ours(record: logging.LogRecord) -> bool:
    return not (record.exc_info and isinstance(record.exc_info[1], HttpProcessingError))
