"""How does a client without SPDY reach ports of a pod? By a WebSocket with two channels for each: data and errors.

The ports are named in the request. On each channel the server first says which port it belongs to; then there is one
connection to each. So do the Python clients.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from aiohttp import WSMsgType, web

from octarbiter.api.meta import Json
from octarbiter.cluster.apiserver import options, status
from octarbiter.cluster.apiserver.pods import ports, wires
from octarbiter.cluster.apiserver.pods.kubelet import Kubelet

_PROTOCOLS: Final = ("v4.channel.k8s.io",)
_MOST_PORTS: Final = 100
"""A channel is one byte."""


async def serve(request: web.BaseRequest, pod: Json, kubelet: Kubelet) -> web.StreamResponse:
    """Raises a refusal (400)."""
    wanted = _ports(request.query)
    socket = web.WebSocketResponse(
        protocols=_PROTOCOLS, compress=False, max_msg_size=wires.LARGEST_MESSAGE, timeout=wires.FAREWELL_S
    )
    await socket.prepare(request)
    programs: dict[int, asyncio.StreamWriter] = {}
    tasks: list[asyncio.Task[None]] = []
    try:
        for channel, port in enumerate(wanted):
            data, error = 2 * channel, 2 * channel + 1
            for each in (data, error):
                await socket.send_bytes(bytes([each]) + port.to_bytes(2, "little"))
            try:
                source, programs[data] = await ports.reach(kubelet, pod, port)
            except ports.Unreached as problem:
                await socket.send_bytes(bytes([error]) + str(problem).encode())
                continue
            tasks.append(asyncio.create_task(_reply(socket, data, source), name=f"port {port}"))
        if tasks:
            listening = asyncio.create_task(_listen(socket, programs), name="port input")
            either: set[asyncio.Future[Any]] = {asyncio.gather(*tasks), listening}
            tasks.append(listening)
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
    except ConnectionError:
        pass  # the client is gone: there is nobody to tell
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for program in programs.values():
            program.close()
    return socket


async def _reply(socket: web.WebSocketResponse, channel: int, source: asyncio.StreamReader) -> None:
    while piece := await ports.hear(source):
        await socket.send_bytes(bytes([channel]) + piece)


async def _listen(socket: web.WebSocketResponse, programs: dict[int, asyncio.StreamWriter]) -> None:
    """Until the client is gone."""
    async for message in socket:
        if message.type is not WSMsgType.BINARY:
            return
        if message.data and (program := programs.get(message.data[0])):
            await ports.tell(program, message.data[1:])


def _ports(query: options.Query) -> list[int]:
    found = []
    for text in (each for texts in query.getall("ports", []) for each in texts.split(",")):
        port = ports.number(text)
        if port is None:
            raise status.bad_request(f'unable to parse "{text}" as a port')
        found.append(port)
    if not 0 < len(found) <= _MOST_PORTS:
        raise status.bad_request(f'query parameter "ports" must name 1 to {_MOST_PORTS} ports')
    return found
