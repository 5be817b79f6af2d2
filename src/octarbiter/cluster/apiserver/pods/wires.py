"""What carries the frames of SPDY? The client's connection itself, after the request; or messages of a WebSocket."""

from __future__ import annotations

import asyncio
from typing import Any, Final, Protocol, cast

from aiohttp import WSMsgType, web

from octarbiter.cluster.apiserver import status

UPGRADE: Final = "SPDY/3.1"
_VERSION: Final = "X-Stream-Protocol-Version"
_MOST_READ_AHEAD: Final = 64 * 1024
LARGEST_MESSAGE: Final = 4 * 1024 * 1024
FAREWELL_S: Final = 2.0
"""How long a client may take to go when all is said."""


class Wire(Protocol):
    @property
    def response(self) -> web.StreamResponse:
        """The answer to the request that this began with."""
        ...

    async def begin(self) -> None: ...

    async def readexactly(self, n: int) -> bytes: ...

    async def write(self, data: bytes) -> None:
        """Returns when there is room for more. Raises ConnectionError where the client is gone."""
        ...


class Upgraded:
    """The connection goes on as SPDY."""

    def __init__(self, request: web.BaseRequest, protocol: str) -> None:
        """Raises a refusal (403)."""
        offered = [each.strip() for line in request.headers.getall(_VERSION, []) for each in line.split(",")]
        if protocol not in offered:
            said = f"unable to upgrade: unable to negotiate protocol: client supports {offered}, server {protocol}"
            raise status.Failure(403, "Forbidden", said)
        self._request = request
        headers = {"Connection": "Upgrade", "Upgrade": UPGRADE, _VERSION: protocol}
        self._response = web.StreamResponse(status=101, headers=headers)
        self._response.force_close()
        self._source = asyncio.StreamReader(_MOST_READ_AHEAD)

    @property
    def response(self) -> web.StreamResponse:
        return self._response

    async def begin(self) -> None:
        if self._request.transport is None:
            raise ConnectionError("the client is gone")
        self._source.set_transport(self._request.transport)
        # Before the answer: what the client sends next is no HTTP any more.
        self._request.protocol.set_parser(cast(Any, self))
        await self._response.prepare(self._request)

    def feed_data(self, data: bytes) -> tuple[bool, bytes]:
        """Called with what has come."""
        self._source.feed_data(data)
        return False, b""

    def feed_eof(self) -> None:
        self._source.feed_eof()

    async def readexactly(self, n: int) -> bytes:
        return await self._source.readexactly(n)

    async def write(self, data: bytes) -> None:
        await self._response.write(data)

    async def until_gone(self) -> None:
        """The client goes when it has read all."""
        try:
            async with asyncio.timeout(FAREWELL_S):
                while await self._source.read(_MOST_READ_AHEAD):
                    pass
        except (TimeoutError, ConnectionError):
            pass


class Tunnel:
    """The bytes that a connection would carry come in messages, cut anywhere."""

    def __init__(self, request: web.BaseRequest, protocol: str) -> None:
        self._request = request
        self._socket = web.WebSocketResponse(
            protocols=(protocol,), compress=False, max_msg_size=LARGEST_MESSAGE, timeout=FAREWELL_S
        )
        self._buffer = bytearray()

    @property
    def response(self) -> web.StreamResponse:
        return self._socket

    async def begin(self) -> None:
        await self._socket.prepare(self._request)

    async def readexactly(self, n: int) -> bytes:
        while len(self._buffer) < n:
            message = await self._socket.receive()
            if message.type is not WSMsgType.BINARY:
                raise asyncio.IncompleteReadError(bytes(self._buffer), n)
            self._buffer += message.data
        found = bytes(self._buffer[:n])
        del self._buffer[:n]
        return found

    async def write(self, data: bytes) -> None:
        await self._socket.send_bytes(data)


def is_upgrade(request: web.BaseRequest) -> bool:
    return request.headers.get("Upgrade", "").lower() == UPGRADE.lower()


def websocket_protocols(request: web.BaseRequest) -> list[str] | None:
    """Those that the client offers; None if it wants no WebSocket."""
    if request.headers.get("Upgrade", "").lower() != "websocket":
        return None
    return [each.strip() for each in request.headers.get("Sec-WebSocket-Protocol", "").split(",")]
