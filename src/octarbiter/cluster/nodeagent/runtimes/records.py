"""How are the small files in a run's directory read and written, and who may begin a run?"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

LARGEST: Final = 2**22


def write(path: Path, content: bytes) -> None:
    """All of it or nothing."""
    fresh = path.with_name(f"{path.name}.new")
    fd = os.open(fresh, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
    with os.fdopen(fd, "wb") as file:
        file.write(content)
    fresh.replace(path)


def read(path: Path) -> dict[str, Any] | None:
    """None: not there, or nothing we wrote."""
    try:
        with path.open("rb") as file:
            found = json.loads(file.read(LARGEST))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


@contextlib.contextmanager
def locked(directory: Path) -> Iterator[bool]:
    """Whether nobody supervises this run; as long as we are in here, nobody can begin to."""
    fd = os.open(directory / "lock", os.O_CREAT | os.O_RDWR, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        alone = True
    except BlockingIOError:
        alone = False
    try:
        yield alone
    finally:
        os.close(fd)


async def readable(fd: int) -> None:
    """Of a pidfd: the process has ended."""
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()

    def note() -> None:
        if not ready.done():
            ready.set_result(None)

    loop.add_reader(fd, note)
    try:
        await ready
    finally:
        loop.remove_reader(fd)
