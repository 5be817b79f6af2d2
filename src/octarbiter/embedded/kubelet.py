"""What the API server wants from whoever runs pods, had from our node agent in the same process."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence

from octarbiter.api import codec
from octarbiter.api.meta import Json
from octarbiter.cluster.apiserver.pods.kubelet import LogQuery, Output, Size
from octarbiter.cluster.nodeagent.logs import Query
from octarbiter.cluster.nodeagent.pods import Pod
from octarbiter.cluster.nodeagent.runtimes.protocol import Runtime

_FROM_NOW_ON = {
    # Somebody looks at it while it is said.
    stream: Query(tail_lines=0, follow=True, look_again_s=0.02, stream=stream)
    for stream in ("stdout", "stderr")
}

_LOOPBACK = "127.0.0.1"


class AgentKubelet:
    """Until there is a runtime, nothing runs."""

    def __init__(self) -> None:
        self.runtime: Runtime | None = None

    def logs(self, pod: Json, query: LogQuery) -> AsyncIterator[bytes]:
        wanted = Query(
            tail_lines=query.tail_lines,
            since=query.since,
            timestamps=query.timestamps,
            limit_bytes=query.limit_bytes,
            follow=query.follow,
        )
        return self._read(pod, query.container, wanted, previous=query.previous)

    async def execute(
        self,
        pod: Json,
        container: str,
        command: Sequence[str],
        *,
        stdout: Output,
        stderr: Output | None = None,
        stdin: AsyncIterator[bytes] | None = None,
        tty: bool = False,
        sizes: AsyncIterator[Size] | None = None,
    ) -> int:
        known = codec.from_json(pod, Pod)
        return await self._running.execute(
            known, container, command, stdout=stdout, stderr=stderr, stdin=stdin, tty=tty, sizes=sizes
        )

    async def attach(
        self,
        pod: Json,
        container: str,
        *,
        stdout: Output | None = None,
        stderr: Output | None = None,
        stdin: AsyncIterator[bytes] | None = None,
        sizes: AsyncIterator[Size] | None = None,
    ) -> None:
        readers = [
            _copy(self._read(pod, container, _FROM_NOW_ON[stream]), output)
            for stream, output in (("stdout", stdout), ("stderr", stderr))
            if output is not None
        ]
        typing = self._running.type_into(codec.from_json(pod, Pod), container, stdin, sizes)
        if not readers:
            await typing
            return
        beside = asyncio.create_task(typing, name="input")
        try:
            await asyncio.gather(*readers)
        finally:
            beside.cancel()
            await asyncio.gather(beside, return_exceptions=True)

    async def connect(self, pod: Json, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if not self._running.is_real:
            raise LookupError("nobody listens: its programs are pretended")
        # Programs share the machine's network: one listens at the address of its pod, at the first, or at all of them.
        for address in (pod["status"].get("podIP") or _LOOPBACK, _LOOPBACK):
            with contextlib.suppress(ConnectionRefusedError):
                return await asyncio.open_connection(address, port)
        raise LookupError(f"nobody listens on port {port}")

    @property
    def _running(self) -> Runtime:
        if self.runtime is None:
            raise LookupError("the node is not ready yet: try again")
        return self.runtime

    def _read(self, pod: Json, container: str, query: Query, *, previous: bool = False) -> AsyncIterator[bytes]:
        meta = pod["metadata"]
        return self._running.read_logs(
            meta["namespace"], meta["name"], container, query, uid=meta["uid"], previous=previous
        )


async def _copy(source: AsyncIterator[bytes], output: Output) -> None:
    async for piece in source:
        await output(piece)
