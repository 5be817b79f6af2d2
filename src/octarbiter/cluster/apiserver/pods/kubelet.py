"""What must somebody who runs pods be able to do for the API server?

On a real cluster the server asks the kubelet of the pod's node, over HTTPS; here whoever composes the cluster hands one
over that knows all nodes. Pods are named by their objects, as they are stored.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from datetime import datetime
from typing import Protocol

import msgspec

from octarbiter.api.meta import Json

Output = Callable[[bytes], Awaitable[None]]
"""Returns when there is room for more."""
Size = tuple[int, int]
"""Columns and rows of a terminal."""


class LogQuery(msgspec.Struct, frozen=True, kw_only=True):
    container: str
    follow: bool = False
    """Until the container has ended."""
    previous: bool = False
    """Of the run before the last one."""
    since: datetime | None = None
    timestamps: bool = False
    tail_lines: int | None = None
    limit_bytes: int | None = None


class Kubelet(Protocol):
    """All raise LookupError, with a sentence for people, at once or not at all."""

    def logs(self, pod: Json, query: LogQuery) -> AsyncIterator[bytes]: ...

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
        """One more command in a running container; its exit code. Cancelled, it ends the command."""
        ...

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
        """What the container says from now on, until it ends, and what it is told; without an output, until all is
        told."""
        ...

    async def connect(self, pod: Json, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """With the program that listens there. Raises OSError, too."""
        ...
