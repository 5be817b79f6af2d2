"""How is a program that listens on a port of a pod reached, told something, and heard?"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Final

from octarbiter.api.meta import Json
from octarbiter.cluster.apiserver.pods.kubelet import Kubelet

_PATIENCE_S: Final = 10.0
"""Until a program has accepted a connection."""
_PIECE: Final = 64 * 1024


class Unreached(Exception):
    """The message is for the client."""


async def reach(kubelet: Kubelet, pod: Json, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Raises Unreached."""
    try:
        async with asyncio.timeout(_PATIENCE_S):
            return await kubelet.connect(pod, port)
    except (OSError, LookupError) as problem:
        why = problem.args[0] if isinstance(problem, LookupError) else str(problem) or "nobody answers"
        meta = pod["metadata"]
        raise Unreached(f"error forwarding port {port} to pod {meta['name']}, uid {meta['uid']}: {why}") from None


async def hear(source: asyncio.StreamReader) -> bytes:
    """Nothing at the end, also where the program cut the connection off."""
    try:
        return await source.read(_PIECE)
    except OSError:
        return b""


async def tell(program: asyncio.StreamWriter, data: bytes, *, is_last: bool = False) -> None:
    # One that does not listen any more is no mistake: whoever hears it sees its end.
    with contextlib.suppress(OSError):
        program.write(data)
        if is_last:
            program.write_eof()
        await program.drain()


def number(text: str) -> int | None:
    """None where it is no port."""
    is_number = text.isascii() and text.isdigit() and len(text) <= 5
    return int(text) if is_number and 0 < int(text) < 65536 else None
