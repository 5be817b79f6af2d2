"""What the API server wants from whoever runs pods, had from our node agent in the same process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

from octarbiter.api import codec
from octarbiter.api.meta import Json
from octarbiter.cluster.apiserver.pods.kubelet import LogQuery, Output, Size
from octarbiter.cluster.nodeagent.logs import Query
from octarbiter.cluster.nodeagent.pods import Pod
from octarbiter.cluster.nodeagent.runtimes.protocol import Runtime


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

    async def attach(self, pod: Json, container: str, *, stdout: Output | None, stderr: Output | None) -> None:
        readers = [
            _copy(self._read(pod, container, Query(tail_lines=0, follow=True, stream=stream)), output)
            for stream, output in (("stdout", stdout), ("stderr", stderr))
            if output is not None
        ]
        await asyncio.gather(*readers)

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
