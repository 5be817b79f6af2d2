"""How is a conversation carried by SPDY? The client opens a stream for each channel, then it begins.

So speak kubectl up to 1.29, and later ones where a WebSocket is not to be had.
"""

from __future__ import annotations

import asyncio
from typing import Final

from aiohttp import web

from octarbiter.cluster.apiserver.pods import conversation, spdy, wires
from octarbiter.cluster.apiserver.pods.conversation import ERROR, RESIZE, STDERR, STDIN, STDOUT, Wish

_PROTOCOL: Final = "v4.channel.k8s.io"
_CHANNELS: Final = {"error": ERROR, "stdin": STDIN, "stdout": STDOUT, "stderr": STDERR, "resize": RESIZE}
_PATIENCE_S: Final = 30.0
"""Until a client has opened its streams."""


class Conversation(conversation.Conversation):
    def __init__(self, request: web.BaseRequest, wish: Wish) -> None:
        """Raises a refusal (403)."""
        super().__init__(wish)
        self._wire = wires.Upgraded(request, _PROTOCOL)
        self._frames = spdy.frames(self._wire)
        self._writer = spdy.Writer()
        wishes = {ERROR: True, STDIN: wish.stdin, STDOUT: wish.stdout, STDERR: wish.stderr, RESIZE: wish.tty}
        self._awaited = {channel for channel, is_wished in wishes.items() if is_wished}
        self._channels: dict[int, int] = {}
        """By the number of the stream."""

    @property
    def response(self) -> web.StreamResponse:
        return self._wire.response

    async def begin(self) -> None:
        await self._wire.begin()
        try:
            async with asyncio.timeout(_PATIENCE_S):
                while self._awaited and (frame := await anext(self._frames, None)):
                    await self._take(frame)
        except TimeoutError:
            raise spdy.Broken("the client did not open its streams in time") from None
        if self._awaited:
            raise spdy.Broken("the client went before it had opened its streams")

    async def listen(self) -> None:
        async for frame in self._frames:
            await self._take(frame)

    async def _take(self, frame: spdy.Frame) -> None:
        match frame:
            case spdy.Opened():
                await self._welcome(frame)
            case spdy.Sent(stream, data, is_last) if (channel := self._channels.get(stream)) is not None:
                await self.hear(channel, data)
                if is_last and channel == STDIN:
                    await self.end_input()
            case spdy.Dropped(stream):
                if self._channels.pop(stream, None) == STDIN:
                    await self.end_input()
            case spdy.Pinged(number):
                await self._wire.write(self._writer.pong(number))

    async def _welcome(self, frame: spdy.Opened) -> None:
        channel = _CHANNELS.get(frame.headers.get("streamtype", ""))
        if channel not in self._awaited:
            await self._wire.write(self._writer.refuse(frame.stream))
            return
        self._awaited.remove(channel)
        self._channels[frame.stream] = channel
        await self._wire.write(self._writer.accept(frame.stream))
        if frame.is_last and channel == STDIN:
            await self.end_input()

    async def say(self, channel: int, data: bytes) -> None:
        stream = next((each for each, carried in self._channels.items() if carried == channel), None)
        if stream is not None:
            await self._wire.write(self._writer.data(stream, data))

    async def conclude(self, verdict: bytes) -> None:
        last = {channel: verdict if channel == ERROR else b"" for channel in self._channels.values()}
        ends = (self._writer.data(stream, last[channel], is_last=True) for stream, channel in self._channels.items())
        await self._wire.write(b"".join(ends))
        await self._wire.until_gone()
