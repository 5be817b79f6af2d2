"""How are probes and hooks carried out that ask over the network, or only wait?

Commands are the runtime's business. A `grpc` probe passes when the port accepts a connection: the health protocol
itself would need a library of its own.
"""

from __future__ import annotations

import asyncio

import aiohttp

from octarbiter.cluster.nodeagent.pods import Container, Handler, HttpGet, Port
from octarbiter.cluster.nodeagent.runtimes.protocol import Answer

LONGEST_OUTPUT = 10 * 1024


async def act(container: Container, handler: Handler, address: str, timeout_s: float) -> Answer:
    try:
        async with asyncio.timeout(timeout_s):
            if handler.http_get is not None:
                return await _http(container, handler.http_get, address)
            if handler.tcp_socket is not None:
                return await _connect(handler.tcp_socket.host or address, port(container, handler.tcp_socket.port))
            if handler.grpc is not None:
                return await _connect(address, handler.grpc.port)
            if handler.sleep is not None:
                await asyncio.sleep(handler.sleep.seconds)
                return Answer(True)
    except TimeoutError:
        return Answer(False, f"no answer within {timeout_s:g} s")
    except (OSError, aiohttp.ClientError, ValueError) as problem:
        return Answer(False, str(problem) or type(problem).__name__)
    return Answer(False, "nothing to do is given: use exec, httpGet, tcpSocket, grpc or (in hooks) sleep")


def port(container: Container, wanted: Port) -> int:
    if isinstance(wanted, int) or wanted.isdecimal():
        return int(wanted)
    for offered in container.ports:
        if offered.name == wanted:
            return offered.container_port
    raise ValueError(f'container "{container.name}" has no port named "{wanted}"')


async def _http(container: Container, get: HttpGet, address: str) -> Answer:
    number, scheme = port(container, get.port), get.scheme.lower()
    path = get.path if get.path.startswith("/") else f"/{get.path}"
    url = f"{scheme}://{get.host or address}:{number}{path}"
    headers = {"User-Agent": "kube-probe/octarbiter", "Accept": "*/*"} | {h.name: h.value for h in get.http_headers}
    # The certificate is whatever the container has; the kubelet does not look at it either.
    connector = aiohttp.TCPConnector(ssl=False, force_close=True)
    async with (
        aiohttp.ClientSession(connector=connector) as session,
        session.get(url, headers=headers, allow_redirects=False) as response,
    ):
        body = await response.content.read(LONGEST_OUTPUT)
        if 200 <= response.status < 400:
            return Answer(True, body.decode(errors="replace"))
        return Answer(False, f"HTTP probe failed with statuscode: {response.status}")


async def _connect(host: str, number: int) -> Answer:
    _, writer = await asyncio.open_connection(host, number)
    writer.close()
    return Answer(True)
