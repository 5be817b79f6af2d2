"""How does what somebody types reach a container that runs already? See `keyboard` for the other side."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator
from pathlib import Path

from octarbiter.cluster.nodeagent.runtimes import commands, ending, keyboard, supervisor
from octarbiter.cluster.nodeagent.runtimes.protocol import Size


async def type_into(
    directory: Path, stdin: AsyncIterator[bytes] | None, sizes: AsyncIterator[Size] | None, *, once: bool
) -> None:
    """Returns when there is no more to tell. `directory`: of the run. `once`: the command's input ends with ours."""
    resizing = asyncio.create_task(_resize(directory, sizes)) if sizes is not None else None
    try:
        if stdin is not None:
            await _feed(directory, stdin, once)
        elif resizing is not None:
            await resizing
    finally:
        if resizing is not None:
            resizing.cancel()
            await asyncio.gather(resizing, return_exceptions=True)


async def _feed(directory: Path, stdin: AsyncIterator[bytes], once: bool) -> None:
    with contextlib.suppress(OSError):
        fd = os.open(directory / keyboard.FIFO, os.O_WRONLY | os.O_NONBLOCK)
        if once:
            ending.tell(directory, supervisor.ONCE)  # when ours is open: the input must not end before it begins
        await commands.feed(os.fdopen(fd, "wb", 0), stdin)
    async for _ in stdin:
        pass  # the command reads no input, or no more of it: it is lost, as on a real node


async def _resize(directory: Path, sizes: AsyncIterator[Size]) -> None:
    async for columns, rows in sizes:
        ending.tell(directory, f"{supervisor.SIZE}{columns}x{rows}")
