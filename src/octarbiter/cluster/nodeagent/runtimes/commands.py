"""How is a command run in a container that runs already? For probes, hooks, and people (`kubectl exec`)."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import pty
import signal
import struct
import subprocess
import termios
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Final

from octarbiter.cluster.nodeagent.runtimes import launch, records
from octarbiter.cluster.nodeagent.runtimes.protocol import Answer, Output, Size

LONGEST_OUTPUT: Final = 10 * 1024
BLOCK: Final = 65536
LAST_WORDS_S: Final = 1.0
"""For output still in the pipes when the command has ended; what it left in the background may hold them open."""


async def answer(directory: Path, command: Sequence[str], timeout_s: float) -> Answer:
    """Of a probe or hook: passed if it exits with 0 in time."""
    said = bytearray()

    async def keep(data: bytes) -> None:
        said.extend(data[: LONGEST_OUTPUT - len(said)])

    try:
        async with asyncio.timeout(timeout_s):
            code = await execute(directory, command, stdout=keep, stderr=keep)
    except TimeoutError:
        return Answer(False, f"the command did not end within {timeout_s:g} s")
    except OSError as problem:
        return Answer(False, str(problem))
    text = said.decode(errors="replace").strip()
    return Answer(code == 0, text or ("" if code == 0 else f"exit code {code}"))


async def execute(
    directory: Path,
    command: Sequence[str],
    *,
    stdout: Output,
    stderr: Output | None = None,
    stdin: AsyncIterator[bytes] | None = None,
    tty: bool = False,
    sizes: AsyncIterator[Size] | None = None,
) -> int:
    """The exit code, 128+n after a signal. `directory`: of the run. Cancelled, it kills the command."""
    master = -1
    if tty:
        master, slave = pty.openpty()
        ends = (slave, slave, slave)
    else:
        ends = (
            subprocess.PIPE if stdin else subprocess.DEVNULL,
            subprocess.PIPE,
            subprocess.PIPE if stderr else subprocess.STDOUT,
        )
    try:
        process = subprocess.Popen(  # noqa: ASYNC220 - it does not wait for the process
            launch.entry(directory, command),
            env={},
            start_new_session=True,
            bufsize=0,
            stdin=ends[0],
            stdout=ends[1],
            stderr=ends[2],
        )
    finally:
        if tty:
            os.close(slave)
    readers, feeders = [], []
    if tty:
        readers.append(_pump(os.fdopen(master, "rb", 0, closefd=False), stdout))
        if stdin is not None:
            feeders.append(feed(os.fdopen(os.dup(master), "wb", 0), stdin))
        if sizes is not None:
            feeders.append(_resize(master, sizes))
    else:
        assert process.stdout is not None
        readers.append(_pump(process.stdout, stdout))
        if stderr is not None and process.stderr is not None:
            readers.append(_pump(process.stderr, stderr))
        if stdin is not None and process.stdin is not None:
            feeders.append(feed(process.stdin, stdin))
    reading = [asyncio.create_task(reader) for reader in readers]
    feeding = [asyncio.create_task(feeder) for feeder in feeders]
    try:
        await ended(process)
        await asyncio.wait(reading, timeout=LAST_WORDS_S)
        code = process.wait()
        return 128 - code if code < 0 else code
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # not reaped yet, so the group is its own
            process.wait()
        for task in (*reading, *feeding):
            task.cancel()
        await asyncio.gather(*reading, *feeding, return_exceptions=True)
        if tty:
            os.close(master)


async def ended(process: subprocess.Popen[bytes]) -> None:
    """Without a thread to wait in."""
    fd = os.pidfd_open(process.pid)
    try:
        await records.readable(fd)
    finally:
        os.close(fd)


async def _pump(pipe: object, output: Output) -> None:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), pipe)
    try:
        with contextlib.suppress(OSError):  # a terminal whose other side was closed
            while data := await reader.read(BLOCK):
                await output(data)
    finally:
        transport.close()


async def feed(pipe: object, source: AsyncIterator[bytes]) -> None:
    """Until the source ends, or nobody reads from the pipe any more; then the pipe is closed."""
    loop = asyncio.get_running_loop()
    transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, pipe)
    writer = asyncio.StreamWriter(transport, protocol, None, loop)
    try:
        with contextlib.suppress(OSError):  # it does not want to hear more
            async for data in source:
                writer.write(data)
                await writer.drain()
    finally:
        transport.close()


async def _resize(master: int, sizes: AsyncIterator[Size]) -> None:
    async for columns, rows in sizes:
        fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
