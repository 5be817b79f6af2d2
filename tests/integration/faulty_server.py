"""A server that behaves as badly as it is told to, on the level of bytes.

It knows nothing of Kubernetes: what an API server means by its answers is tested against a real one. Here is tested
what a real one does too rarely: half an answer, a connection reset, silence.
"""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from octarbiter.runtime import credentials
from octarbiter.runtime.kubeconfig import Connection


@dataclass(frozen=True)
class Seen:
    method: str
    target: str
    headers: dict[str, str]
    body: bytes
    connection: int
    """Which connection it came on, counted from 1."""


class Line:
    """The way back to the client."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer

    async def send(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def answer(self, code: int, body: Any = None, **headers: str) -> None:
        data = body if isinstance(body, bytes) else json.dumps(body if body is not None else {}).encode()
        lines = [f"HTTP/1.1 {code} X", f"Content-Length: {len(data)}"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        await self.send("\r\n".join(lines).encode() + b"\r\n\r\n" + data)

    async def refuse(self, code: int, reason: str = "", **headers: str) -> None:
        await self.answer(code, {"kind": "Status", "code": code, "reason": reason, "message": reason}, **headers)

    async def begin_stream(self) -> None:
        await self.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")

    async def chunk(self, data: bytes) -> None:
        await self.send(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    async def event(self, kind: str, object_: dict[str, Any]) -> None:
        await self.chunk(json.dumps({"type": kind, "object": object_}).encode() + b"\n")

    async def end_stream(self) -> None:
        await self.send(b"0\r\n\r\n")

    def reset(self) -> None:
        self._writer.transport.abort()


Behaviour = Callable[[Seen, Line], Awaitable[None]]


class FaultyServer:
    def __init__(self, behaviour: Behaviour, tls: ssl.SSLContext | None = None) -> None:
        self._behaviour = behaviour
        self._tls = tls
        self.seen: list[Seen] = []
        self.connections = 0
        self.port = 0

    async def start(self, port: int = 0) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", port, ssl=self._tls)
        self.port = self._server.sockets[0].getsockname()[1]

    def connection(self, identity: credentials.Credentials | None = None, ca_pem: bytes = b"") -> Connection:
        scheme = "https" if self._tls else "http"
        return Connection(
            server=f"{scheme}://127.0.0.1:{self.port}", credentials=identity or credentials.Direct(), ca_pem=ca_pem
        )

    async def stop(self) -> None:
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        number = self.connections
        try:
            while not writer.is_closing():
                seen = await _request(reader, number)
                self.seen.append(seen)
                await self._behaviour(seen, Line(writer))
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


async def _request(reader: asyncio.StreamReader, number: int) -> Seen:
    head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    method, target, _ = head[0].split(" ")
    headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in head[1:] if line)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Seen(method, target, headers, body, number)


@asynccontextmanager
async def serving(behaviour: Behaviour, tls: ssl.SSLContext | None = None) -> AsyncIterator[FaultyServer]:
    server = FaultyServer(behaviour, tls)
    await server.start()
    try:
        yield server
    finally:
        await server.stop()
