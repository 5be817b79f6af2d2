"""What do a client and a program in a pod say to each other, whatever carries it?

Input, output, errors, the size of a terminal, and at the end the verdict, each on a channel of its own. Nothing is
buffered without bounds: a program whose output nobody reads waits, and so does a client whose input nobody reads.
"""

from __future__ import annotations

import abc
import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Final

import msgspec
from aiohttp import web

from octarbiter.cluster.apiserver.pods.kubelet import Output, Size

STDIN, STDOUT, STDERR, ERROR, RESIZE = 0, 1, 2, 3, 4
_MOST_WAITING: Final = 4
"""Messages of input that the program has not read."""
_LARGEST_TERMINAL: Final = 65535


class Wish(msgspec.Struct, frozen=True):
    container: str
    stdin: bool
    stdout: bool
    stderr: bool
    tty: bool


class Conversation(abc.ABC):
    def __init__(self, wish: Wish) -> None:
        self._wish = wish
        self._input: asyncio.Queue[bytes] = asyncio.Queue(_MOST_WAITING)
        self._sizes: asyncio.Queue[Size] = asyncio.Queue(1)
        self._has_more_input = wish.stdin

    @property
    @abc.abstractmethod
    def response(self) -> web.StreamResponse:
        """The answer to the request that this began with."""

    @abc.abstractmethod
    async def begin(self) -> None:
        """Raises ConnectionError where the client is gone or speaks another language."""

    @abc.abstractmethod
    async def listen(self) -> None:
        """Until the client is gone."""

    @abc.abstractmethod
    async def say(self, channel: int, data: bytes) -> None:
        """Raises ConnectionError where the client is gone."""

    @abc.abstractmethod
    async def conclude(self, verdict: bytes) -> None:
        """After nobody listens any more."""

    async def hear(self, channel: int, data: bytes) -> None:
        if channel == STDIN and data and self._has_more_input:
            await self._input.put(data)
        elif channel == RESIZE and self._wish.tty and (size := _size(data)):
            with contextlib.suppress(asyncio.QueueEmpty):
                self._sizes.get_nowait()  # only the last one counts
            self._sizes.put_nowait(size)

    async def end_input(self) -> None:
        if self._has_more_input:
            self._has_more_input = False
            await self._input.put(b"")

    async def input(self) -> AsyncIterator[bytes]:
        while data := await self._input.get():
            yield data

    async def sizes(self) -> AsyncIterator[Size]:
        while True:
            yield await self._sizes.get()

    def output(self, channel: int, wanted: bool) -> Output:
        async def send(data: bytes) -> None:
            if wanted:
                await self.say(channel, data)

        return send


def _size(data: bytes) -> Size | None:
    """None where it is not one."""
    try:
        found = msgspec.json.decode(data, type=dict[str, int])
    except msgspec.MsgspecError:
        return None
    size = found.get("Width", 0), found.get("Height", 0)
    return size if all(0 < each <= _LARGEST_TERMINAL for each in size) else None
