"""How do requests reach the API server, and what if they do not?

What is certainly not done is tried again here, for a while: refused by a busy server, or never sent. What may have been
done is not: a write whose answer was lost raises `Retry` with reason `answers.ANSWER_LOST`, because only the caller
knows how to find out (read it again, by name and UID). Reads are repeated freely.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from typing import Any, Final

import aiohttp
import yarl
from multidict import CIMultiDict

import octarbiter
from octarbiter.api import errors
from octarbiter.runtime import answers, backoff, tls
from octarbiter.runtime import clock as clocks
from octarbiter.runtime.credentials import Identity
from octarbiter.runtime.kubeconfig import Connection
from octarbiter.runtime.requests import Request

FIRST_PAUSE_S: Final = 0.1
LONGEST_PAUSE_S: Final = 5.0
CONNECT_TIMEOUT_S: Final = 10.0
READ_BUFFER: Final = 2**22
LONGEST_LINE: Final = 2**25
"""Of a stream. The server stores no object above 1.5 MiB; as JSON it may be some times that."""

Observer = Callable[[str, str, int], None]
"""Is told verb, resource and status code (0: no answer) of each exchange."""


class Transport:
    def __init__(
        self,
        connection: Connection,
        *,
        concurrency: int,
        timeout_s: float,
        retry_for_s: float,
        observer: Observer | None,
        clock: clocks.Clock,
    ) -> None:
        self._connection = connection
        self._timeout = _timeout(total=timeout_s)
        self._retry_for_s = retry_for_s
        self._observer = observer
        self._clock = clock
        self._slots = asyncio.Semaphore(concurrency)
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=60, socket_factory=_socket),
            cookie_jar=aiohttp.DummyCookieJar(),
            read_bufsize=READ_BUFFER,
            skip_auto_headers=("Accept-Encoding",),  # packing costs both sides more than the network does
        )
        self._identity = Identity()
        self._tls: ssl.SSLContext | None = None
        self._headers: dict[tuple[str, str], CIMultiDict[str]] = {}
        self._always: dict[str, Any] = {"allow_redirects": False}
        if connection.tls_server_name:
            self._always["server_hostname"] = connection.tls_server_name
        if connection.proxy:
            self._always["proxy"] = connection.proxy

    async def close(self) -> None:
        await self._session.close()

    async def send(self, request: Request, timeout_s: float | None = None) -> bytes:
        timeout = self._timeout if timeout_s is None else _timeout(total=timeout_s)
        pauses: backoff.Backoff | None = None
        until = 0.0
        while True:
            try:
                return await self._exchange(request, timeout)
            except errors.Retry as problem:
                if not answers.may_repeat(request, problem):
                    raise
                now = self._clock.monotonic()
                if pauses is None:
                    pauses, until = backoff.Backoff(FIRST_PAUSE_S, LONGEST_PAUSE_S), now + self._retry_for_s
                pause = pauses.next_pause(problem.after)
                if now + pause > until:
                    raise
            await asyncio.sleep(pause)

    async def stream_lines(self, request: Request, silence_s: float | None) -> AsyncGenerator[bytes, None]:
        response = await self._open(request, _timeout(sock_read=silence_s))
        try:
            async with response:
                await _raise_refusal(request, response)
                async for line in _lines(response.content):
                    yield line
        except (aiohttp.ClientError, OSError) as problem:
            raise answers.lost(request, problem) from problem

    async def _exchange(self, request: Request, timeout: aiohttp.ClientTimeout) -> bytes:
        async with self._slots:
            response = await self._open(request, timeout)
            try:
                async with response:
                    await _raise_refusal(request, response)
                    return await response.read()
            except (aiohttp.ClientError, OSError) as problem:
                raise answers.lost(request, problem) from problem

    async def _open(self, request: Request, timeout: aiohttp.ClientTimeout) -> aiohttp.ClientResponse:
        """An answer of which only the head has been read. 401 only where there are no better credentials."""
        credentials = self._connection.credentials
        identity = await credentials.identity()
        response = await self._start(request, timeout, identity)
        if response.status == 401 and await self._renewed(identity, response):
            response = await self._start(request, timeout, await credentials.identity())
        return response

    async def _renewed(self, refused: Identity, response: aiohttp.ClientResponse) -> bool:
        renewed = True
        try:
            renewed = await self._connection.credentials.renew(refused)
        finally:
            if renewed:
                response.close()
        return renewed

    async def _start(
        self, request: Request, timeout: aiohttp.ClientTimeout, identity: Identity
    ) -> aiohttp.ClientResponse:
        if identity is not self._identity:
            self._adopt(identity)
        url = yarl.URL(self._connection.server + request.target, encoded=True)
        code = 0
        try:
            response = await self._session.request(
                request.method,
                url,
                headers=self._headers_for(request),
                data=request.body or None,
                timeout=timeout,
                ssl=self._tls or True,
                middlewares=_NO_REPETITION if request.method in ("PUT", "DELETE") else None,
                **self._always,
            )
            code = response.status
            return response
        except aiohttp.ClientConnectorCertificateError as problem:
            raise answers.untrusted(self._connection.server, problem) from problem
        except (aiohttp.ClientConnectorError, aiohttp.ClientHttpProxyError, aiohttp.ConnectionTimeoutError) as problem:
            raise answers.unreachable(self._connection.server, problem) from problem
        except (aiohttp.ClientError, OSError, _Broken) as problem:
            raise answers.lost(request, problem) from problem
        finally:
            if self._observer is not None:
                self._observer(request.verb, request.resource, code)

    def _adopt(self, identity: Identity) -> None:
        before = self._identity
        if self._tls is None or (identity.certificate, identity.key) != (before.certificate, before.key):
            self._tls = tls.client_context(self._connection, identity)
        self._identity = identity
        self._headers.clear()

    def _headers_for(self, request: Request) -> CIMultiDict[str]:
        kinds = (request.accept, request.content_type)
        headers = self._headers.get(kinds)
        if headers is None:
            headers = CIMultiDict(self._identity.headers)
            headers["User-Agent"] = f"octarbiter/{octarbiter.__version__}"
            headers["Accept"] = request.accept
            if request.content_type:
                headers["Content-Type"] = request.content_type
            self._headers[kinds] = headers
        return headers


class _Broken(Exception):
    """The connection broke under a PUT or a DELETE."""


async def _no_repetition(request: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    """aiohttp repeats PUT and DELETE on its own when a kept connection breaks; it does so only for its own errors."""
    try:
        return await send(request)
    except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError):
        raise
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as problem:
        raise _Broken(str(problem)) from problem


_NO_REPETITION = (_no_repetition,)


async def _raise_refusal(request: Request, response: aiohttp.ClientResponse) -> None:
    if response.status >= 300:
        retry_after = response.headers.get("Retry-After", "")
        raise answers.error(request, response.status, retry_after, await response.read())


def _timeout(total: float | None = None, sock_read: float | None = None) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(total=total, sock_read=sock_read, sock_connect=CONNECT_TIMEOUT_S)


def _socket(address: Any) -> socket.socket:
    """Notices within a minute that the other side is gone: a silent watch is the normal case, not a sign of it."""
    family, kind, protocol, _, _ = address
    made = socket.socket(family, kind, protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (
        ("TCP_KEEPIDLE", 20),
        ("TCP_KEEPINTVL", 10),
        ("TCP_KEEPCNT", 3),
        ("TCP_USER_TIMEOUT", 60_000),
    ):
        if hasattr(socket, option):  # not every system has them all
            made.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
    return made


async def _lines(content: aiohttp.StreamReader) -> AsyncIterator[bytes]:
    """In whole buffers and not by `readline`: bursts of events are split in one go."""
    begun: list[bytes] = []
    size = 0
    while chunk := await content.readany():
        first, *rest = chunk.split(b"\n")
        begun.append(first)
        size += len(first)
        if rest:
            yield b"".join(begun)
            for line in rest[:-1]:
                yield line
            begun, size = [rest[-1]], len(rest[-1])
        if size > LONGEST_LINE:
            raise aiohttp.ClientPayloadError(f"a line is longer than {LONGEST_LINE} bytes")
    if size:
        yield b"".join(begun)
