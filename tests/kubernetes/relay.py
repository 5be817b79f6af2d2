"""A way to an API server that can be closed for a while, and opened again at the same address."""

import asyncio
import contextlib
import threading
from collections.abc import Coroutine
from typing import Any

PATIENCE_S = 30.0


class Relay:
    """Has a thread of its own. What is said passes through it unread."""

    def __init__(self, target_port: int) -> None:
        self._target = target_port
        self.port = 0
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="relay", daemon=True)
        self._thread.start()

    def open(self) -> None:
        self._do(self._listen())

    def close(self) -> None:
        """Connections that are open break off."""
        self._do(self._stop())

    def end(self) -> None:
        self.close()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE_S)

    def _do(self, deed: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(deed, self._loop).result(PATIENCE_S)

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._pass_on, "127.0.0.1", self.port, reuse_address=True)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _stop(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        for writer in list(self._open):
            writer.transport.abort()

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", self._target)
        both = {writer, back}
        self._open |= both
        copies = [asyncio.create_task(_copy(*pair)) for pair in ((reader, back), (there, writer))]
        await asyncio.wait(copies, return_when=asyncio.FIRST_COMPLETED)
        self._open -= both
        for copy in copies:
            copy.cancel()
        await asyncio.gather(*copies, return_exceptions=True)
        for end in both:
            end.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
