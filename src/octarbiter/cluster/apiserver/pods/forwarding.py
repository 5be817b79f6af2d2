"""How does somebody reach the ports of a pod? `pods/portforward`: many connections over one, by SPDY.

For each connection the client opens two streams: one for what is said, both ways, and one for what went wrong. Clients
that know no SPDY name their ports beforehand and have one connection to each (`port_channels`).
"""

from __future__ import annotations

import asyncio
from typing import Final

from aiohttp import web

from octarbiter.api.meta import Json
from octarbiter.cluster.apiserver import status
from octarbiter.cluster.apiserver.pods import log, port_channels, ports, spdy, wires
from octarbiter.cluster.apiserver.pods.kubelet import Kubelet

_PROTOCOL: Final = "portforward.k8s.io"
_TUNNELLED: Final = f"{wires.UPGRADE}+{_PROTOCOL}"
_KINDS: Final = frozenset({"data", "error"})
_MOST_CONNECTIONS: Final = 500


async def serve(request: web.BaseRequest, pod: Json, kubelet: Kubelet | None) -> web.StreamResponse:
    """Raises a refusal (400, 403)."""
    if not pod["spec"].get("nodeName"):
        raise status.bad_request(f"pod {pod['metadata']['name']} does not have a host assigned")
    if kubelet is None:
        raise log.no_kubelet(pod)
    wire: wires.Wire
    offered = wires.websocket_protocols(request)
    if offered is not None and _TUNNELLED not in offered:
        return await port_channels.serve(request, pod, kubelet)
    if offered is not None:
        wire = wires.Tunnel(request, _TUNNELLED)
    elif wires.is_upgrade(request):
        wire = wires.Upgraded(request, _PROTOCOL)
    else:
        raise status.bad_request("Upgrade request required")
    forwarder = _Forwarder(wire, pod, kubelet)
    try:
        await wire.begin()
        await forwarder.run()
    except ConnectionError:
        pass  # the client is gone: there is nobody to tell
    finally:
        await forwarder.close()
    return wire.response


class _Forwarder:
    def __init__(self, wire: wires.Wire, pod: Json, kubelet: Kubelet) -> None:
        self._wire = wire
        self._pod = pod
        self._kubelet = kubelet
        self._frames = spdy.Writer()
        self._incomplete: dict[str, dict[str, int]] = {}
        """Streams of connections of which only one is open, by the client's name for the connection."""
        self._programs: dict[int, asyncio.StreamWriter] = {}
        """Whom to tell what comes on a stream."""
        self._replies: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Until the client is gone."""
        async for frame in spdy.frames(self._wire):
            match frame:
                case spdy.Opened():
                    await self._open(frame)
                case spdy.Sent(stream, data, is_last) if program := self._programs.get(stream):
                    await ports.tell(program, data, is_last=is_last)
                case spdy.Dropped(stream) if program := self._programs.get(stream):
                    program.transport.abort()
                case spdy.Pinged(number):
                    await self._wire.write(self._frames.pong(number))

    async def close(self) -> None:
        for reply in self._replies:
            reply.cancel()
        await asyncio.gather(*self._replies, return_exceptions=True)

    async def _open(self, frame: spdy.Opened) -> None:
        kind, text, name = (frame.headers.get(key, "") for key in ("streamtype", "port", "requestid"))
        port, known = ports.number(text), self._incomplete.get(name, {})
        is_one_too_many = len(self._incomplete) + len(self._programs) >= _MOST_CONNECTIONS and not known
        if port is None or kind not in _KINDS or kind in known or is_one_too_many:
            await self._wire.write(self._frames.refuse(frame.stream))
            return
        await self._wire.write(self._frames.accept(frame.stream))
        streams = self._incomplete.setdefault(name, {})
        streams[kind] = frame.stream
        if len(streams) == len(_KINDS):
            del self._incomplete[name]
            await self._connect(port, **streams)

    async def _connect(self, port: int, *, data: int, error: int) -> None:
        try:
            source, program = await ports.reach(self._kubelet, self._pod, port)
        except ports.Unreached as problem:
            await self._end(data, error, str(problem))
            return
        self._programs[data] = program
        reply = asyncio.create_task(self._reply(source, program, data, error), name=f"port {port}")
        self._replies.add(reply)
        reply.add_done_callback(self._replies.discard)

    async def _reply(self, source: asyncio.StreamReader, program: asyncio.StreamWriter, data: int, error: int) -> None:
        try:
            while piece := await ports.hear(source):
                await self._wire.write(self._frames.data(data, piece))
            await self._end(data, error)
        except ConnectionError:
            pass  # the client is gone
        finally:
            del self._programs[data]
            program.close()

    async def _end(self, data: int, error: int, said: str = "") -> None:
        ends = self._frames.data(data, b"", is_last=True) + self._frames.data(error, said.encode(), is_last=True)
        await self._wire.write(ends)
