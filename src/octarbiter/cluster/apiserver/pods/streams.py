"""How does somebody talk with a program in a pod? `pods/exec` and `pods/attach` over one WebSocket.

Each message begins with the number of its channel: input, output, errors, the verdict, the size of the terminal. In
version 5 of the protocol a client can also say that it has no more input. The verdict is a Status and comes last.

Nothing is buffered without bounds: a program whose output nobody reads waits, and so does a client whose input nobody
reads. When the client goes away, the command is ended.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final

import msgspec
from aiohttp import WSMsgType, web

from octarbiter.api.meta import Json
from octarbiter.cluster.apiserver import objects, options, status
from octarbiter.cluster.apiserver.pods import containers, log
from octarbiter.cluster.apiserver.pods.kubelet import Kubelet, Output, Size

PROTOCOLS: Final = ("v5.channel.k8s.io", "v4.channel.k8s.io")
STDIN, STDOUT, STDERR, ERROR, RESIZE, CLOSE = 0, 1, 2, 3, 4, 255
_MOST_WAITING: Final = 4
"""Messages of input that the program has not read."""
_LARGEST_MESSAGE: Final = 4 * 1024 * 1024
_LARGEST_TERMINAL: Final = 65535
_FAREWELL_S: Final = 2.0


class Wish(msgspec.Struct, frozen=True):
    container: str
    stdin: bool
    stdout: bool
    stderr: bool
    tty: bool


Work = Callable[["_Conversation"], Awaitable[int]]


async def execute(request: web.BaseRequest, pod: Json, kubelet: Kubelet | None) -> web.StreamResponse:
    command = request.query.getall("command", [])
    if not command:
        raise status.bad_request("you must specify at least one command for the container")
    wish, kubelet = _checked(request, pod, kubelet)

    async def run(talk: _Conversation) -> int:
        return await kubelet.execute(
            pod,
            wish.container,
            command,
            stdout=talk.output(STDOUT, wish.stdout),
            # A terminal has one output; elsewhere errors that nobody wants must not be taken for output.
            stderr=None if wish.tty else talk.output(STDERR, wish.stderr),
            stdin=talk.input() if wish.stdin else None,
            tty=wish.tty,
            sizes=talk.sizes() if wish.tty else None,
        )

    return await _converse(request, wish, run)


async def attach(request: web.BaseRequest, pod: Json, kubelet: Kubelet | None) -> web.StreamResponse:
    wish, kubelet = _checked(request, pod, kubelet)
    if wish.stdin:
        raise status.bad_request(
            f'container "{wish.container}" takes no input on this node: a command that does can be run in it with exec'
        )

    async def listen(talk: _Conversation) -> int:
        stdout = talk.output(STDOUT, True) if wish.stdout else None
        stderr = talk.output(STDERR, True) if wish.stderr else None
        await kubelet.attach(pod, wish.container, stdout=stdout, stderr=stderr)
        return 0

    return await _converse(request, wish, listen)


def _checked(request: web.BaseRequest, pod: Json, kubelet: Kubelet | None) -> tuple[Wish, Kubelet]:
    query = request.query
    container = containers.chosen(pod, query.get("container", ""))
    if not pod["spec"].get("nodeName"):
        raise status.bad_request(f"pod {pod['metadata']['name']} does not have a host assigned")
    if kubelet is None:
        raise log.no_kubelet(pod)
    stdin, stdout, stderr, tty = (options.is_true(query.get(name)) for name in ("stdin", "stdout", "stderr", "tty"))
    wish = Wish(container, stdin, stdout, stderr and not tty, tty)
    if not (wish.stdin or wish.stdout or wish.stderr):
        raise status.bad_request("you must specify at least 1 of stdin, stdout, stderr")
    if not containers.is_running(pod, container):
        raise status.internal(f'unable to upgrade connection: container not found ("{container}")')
    if request.headers.get("Upgrade", "").lower() != "websocket":
        raise status.bad_request("Upgrade request required")
    offered = [each.strip() for each in request.headers.get("Sec-WebSocket-Protocol", "").split(",")]
    if not any(each in PROTOCOLS for each in offered):
        raise status.bad_request(f"unable to upgrade: the protocols here are {', '.join(PROTOCOLS)}")
    return wish, kubelet


async def _converse(request: web.BaseRequest, wish: Wish, work: Work) -> web.StreamResponse:
    socket = web.WebSocketResponse(
        protocols=PROTOCOLS, compress=False, max_msg_size=_LARGEST_MESSAGE, timeout=_FAREWELL_S
    )
    await socket.prepare(request)
    talk = _Conversation(socket, wish)
    # An empty message: some clients wait for one before they say anything.
    await socket.send_bytes(bytes([STDOUT if wish.stdout else STDERR if wish.stderr else ERROR]))
    working = asyncio.ensure_future(work(talk))
    listening = asyncio.create_task(talk.listen(), name="exec input")
    try:
        await asyncio.wait({working, listening}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            await socket.send_bytes(bytes([ERROR]) + objects.encode(_verdict(working)))
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)
            await socket.close(code=1000)
    except ConnectionError:
        pass  # the client is gone: there is nobody to tell
    finally:
        working.cancel()
        listening.cancel()
        await asyncio.gather(working, listening, return_exceptions=True)
    return socket


def _verdict(working: asyncio.Future[int]) -> Json:
    try:
        code = working.result()
    except (LookupError, OSError) as problem:
        said = problem.args[0] if isinstance(problem, LookupError) else str(problem)
        return status.internal(f"error executing command in container: {said}").status
    if code == 0:
        return {"metadata": {}, "status": "Success"}
    return {
        "metadata": {},
        "status": "Failure",
        "message": f"command terminated with non-zero exit code: exit status {code}",
        "reason": "NonZeroExitCode",
        "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]},
    }


class _Conversation:
    def __init__(self, socket: web.WebSocketResponse, wish: Wish) -> None:
        self._socket = socket
        self._wish = wish
        self._input: asyncio.Queue[bytes] = asyncio.Queue(_MOST_WAITING)
        self._sizes: asyncio.Queue[Size] = asyncio.Queue(1)
        self._has_more_input = wish.stdin

    async def listen(self) -> None:
        """Until the client is gone."""
        async for message in self._socket:
            if message.type is WSMsgType.TEXT:
                data = message.data.encode()
            elif message.type is WSMsgType.BINARY:
                data = message.data
            else:
                return
            if data:
                await self._hear(data[0], data[1:])

    async def _hear(self, channel: int, data: bytes) -> None:
        if channel == STDIN and data and self._has_more_input:
            await self._input.put(data)
        elif channel == CLOSE and data[:1] == bytes([STDIN]) and self._has_more_input:
            self._has_more_input = False
            await self._input.put(b"")
        elif channel == RESIZE and self._wish.tty and (size := _size(data)):
            with contextlib.suppress(asyncio.QueueEmpty):
                self._sizes.get_nowait()  # only the last one counts
            self._sizes.put_nowait(size)

    async def input(self) -> AsyncIterator[bytes]:
        while data := await self._input.get():
            yield data

    async def sizes(self) -> AsyncIterator[Size]:
        while True:
            yield await self._sizes.get()

    def output(self, channel: int, wanted: bool) -> Output:
        head = bytes([channel])

        async def send(data: bytes) -> None:
            if wanted:
                await self._socket.send_bytes(head + data)

        return send


def _size(data: bytes) -> Size | None:
    """None where it is not one."""
    try:
        found = msgspec.json.decode(data, type=dict[str, int])
    except msgspec.MsgspecError:
        return None
    size = found.get("Width", 0), found.get("Height", 0)
    return size if all(0 < each <= _LARGEST_TERMINAL for each in size) else None
