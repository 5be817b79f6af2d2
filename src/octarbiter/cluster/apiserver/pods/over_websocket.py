"""How is a conversation carried by a WebSocket? Each message begins with the number of its channel.

In version 5 of the protocol a client can also say that it has no more input.
"""

from __future__ import annotations

from typing import Final

from aiohttp import WSMsgType, web

from octarbiter.cluster.apiserver import status
from octarbiter.cluster.apiserver.pods import conversation, wires
from octarbiter.cluster.apiserver.pods.conversation import ERROR, STDERR, STDIN, STDOUT, Wish

PROTOCOLS: Final = ("v5.channel.k8s.io", "v4.channel.k8s.io")
_CLOSE: Final = 255


class Conversation(conversation.Conversation):
    def __init__(self, request: web.BaseRequest, wish: Wish) -> None:
        """Raises a refusal (400)."""
        super().__init__(wish)
        if not any(each in PROTOCOLS for each in wires.websocket_protocols(request) or ()):
            raise status.bad_request(f"unable to upgrade: the protocols here are {', '.join(PROTOCOLS)}")
        self._request = request
        self._socket = web.WebSocketResponse(
            protocols=PROTOCOLS, compress=False, max_msg_size=wires.LARGEST_MESSAGE, timeout=wires.FAREWELL_S
        )

    @property
    def response(self) -> web.StreamResponse:
        return self._socket

    async def begin(self) -> None:
        await self._socket.prepare(self._request)
        wish = self._wish
        # An empty message: some clients wait for one before they say anything.
        await self.say(STDOUT if wish.stdout else STDERR if wish.stderr else ERROR, b"")

    async def listen(self) -> None:
        async for message in self._socket:
            if message.type is WSMsgType.TEXT:
                data = message.data.encode()
            elif message.type is WSMsgType.BINARY:
                data = message.data
            else:
                return
            if data[:2] == bytes([_CLOSE, STDIN]):
                await self.end_input()
            elif data:
                await self.hear(data[0], data[1:])

    async def say(self, channel: int, data: bytes) -> None:
        await self._socket.send_bytes(bytes([channel]) + data)

    async def conclude(self, verdict: bytes) -> None:
        await self.say(ERROR, verdict)
        await self._socket.close(code=1000)
