"""How does somebody talk with a program in a pod? `pods/exec` and `pods/attach`, over a WebSocket or over SPDY.

The verdict is a Status and comes last. When the client goes away, the command is ended.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web

from octarbiter.api.meta import Json
from octarbiter.cluster.apiserver import objects, options, status
from octarbiter.cluster.apiserver.pods import containers, log, over_spdy, over_websocket, wires
from octarbiter.cluster.apiserver.pods.conversation import STDERR, STDOUT, Conversation, Wish
from octarbiter.cluster.apiserver.pods.kubelet import Kubelet

Work = Callable[[Conversation], Awaitable[int]]


async def execute(request: web.BaseRequest, pod: Json, kubelet: Kubelet | None) -> web.StreamResponse:
    command = request.query.getall("command", [])
    if not command:
        raise status.bad_request("you must specify at least one command for the container")
    wish, kubelet = _checked(request, pod, kubelet)

    async def run(talk: Conversation) -> int:
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

    async def join(talk: Conversation) -> int:
        await kubelet.attach(
            pod,
            wish.container,
            stdout=talk.output(STDOUT, True) if wish.stdout else None,
            stderr=talk.output(STDERR, True) if wish.stderr else None,
            stdin=talk.input() if wish.stdin else None,
            sizes=talk.sizes() if wish.tty else None,
        )
        return 0

    return await _converse(request, wish, join)


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
    return wish, kubelet


async def _converse(request: web.BaseRequest, wish: Wish, work: Work) -> web.StreamResponse:
    talk = _conversation(request, wish)
    tasks: list[asyncio.Future[Any]] = []
    try:
        await talk.begin()
        working = asyncio.ensure_future(work(talk))
        listening = asyncio.create_task(talk.listen(), name="exec input")
        tasks += [working, listening]
        await asyncio.wait({working, listening}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)
            await talk.conclude(objects.encode(_verdict(working)))
    except ConnectionError:
        pass  # the client is gone: there is nobody to tell
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return talk.response


def _conversation(request: web.BaseRequest, wish: Wish) -> Conversation:
    if wires.websocket_protocols(request) is not None:
        return over_websocket.Conversation(request, wish)
    if wires.is_upgrade(request):
        return over_spdy.Conversation(request, wish)
    raise status.bad_request("Upgrade request required")


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
