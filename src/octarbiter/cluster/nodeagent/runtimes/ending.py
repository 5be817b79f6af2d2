"""How is everything brought down when the cluster itself goes, and nothing is to stay behind?"""

from __future__ import annotations

import asyncio
import contextlib
import os
from pathlib import Path
from typing import Final

from octarbiter.cluster.nodeagent.places import Places
from octarbiter.cluster.nodeagent.runtimes import records

PATIENCE_S: Final = 15.0


def tell(directory: Path, word: str) -> None:
    """The supervisor of a run; signals, too, so that no other process can ever be meant."""
    with contextlib.suppress(OSError):  # it is gone, or just going: then the agent is told
        fd = os.open(directory / "control", os.O_WRONLY | os.O_NONBLOCK)
        try:
            os.write(fd, f"{word}\n".encode())
        finally:
            os.close(fd)


async def kill_all(places: Places) -> list[Path]:
    """Returns when nothing runs any more; or else what still did after a while."""
    left = [path for path in places.pods.glob("*/containers/*/runs/*") if not (path / "exit.json").exists()]
    deadline = asyncio.get_running_loop().time() + PATIENCE_S
    while left := [path for path in left if not _is_over(path)]:
        for path in left:
            tell(path, "SIGKILL")
        if asyncio.get_running_loop().time() > deadline:
            break
        await asyncio.sleep(0.02)
    return left


def _is_over(directory: Path) -> bool:
    with records.locked(directory) as alone:
        if alone:
            (directory / "void").touch()
    return alone
