"""What did a container say? Reading the logs that supervisors write, also of pods that are gone.

A line of a log file is `TIMESTAMP STREAM TAG TEXT`: the time in RFC 3339 with nanoseconds, stdout or stderr, F for a
line that is complete and P for a part of one. Older files of the same run end in `.1` (the newest of them) to `.4`.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec

from octarbiter.cluster.nodeagent.places import Places, safe
from octarbiter.cluster.nodeagent.pods import Container

ROTATED: Final = 4
BLOCK: Final = 65536
LOOK_AGAIN_S: Final = 0.1
LONGEST_MESSAGE: Final = 4096
FALLBACK_BYTES: Final = 2048
FALLBACK_LINES: Final = 80
KEPT_PODS: Final = 500
"""Pods that are gone, whose logs can still be read."""


class Query(msgspec.Struct, frozen=True, kw_only=True):
    """As the API server is asked."""

    tail_lines: int | None = None
    since: datetime | None = None
    timestamps: bool = False
    limit_bytes: int | None = None
    follow: bool = False
    look_again_s: float = LOOK_AGAIN_S
    """While it is followed."""
    stream: str = ""
    """stdout or stderr; empty: both."""


def find(places: Places, namespace: str, pod: str, container: str, *, uid: str = "", previous: bool = False) -> Path:
    """The log of the last run, or of the one before. Without a UID, of the latest pod of that name.

    Raises LookupError with a sentence for people.
    """
    try:
        name = "_".join((safe(namespace), safe(pod), safe(uid) if uid else "*"))
        candidates = [path for path in places.logs.glob(name) if (path / safe(container)).is_dir()]
    except ValueError as problem:
        raise LookupError(str(problem)) from problem
    if not candidates:
        raise LookupError(f'there are no logs of container "{container}" in pod "{pod}"')
    directory = max(candidates, key=lambda path: path.stat().st_mtime_ns) / container
    attempts = sorted(int(path.stem) for path in directory.glob("*.log"))
    if previous and len(attempts) < 2:
        raise LookupError(f'previous terminated container "{container}" in pod "{pod}" not found')
    return directory / f"{attempts[-2 if previous else -1]}.log"


async def read(path: Path, query: Query, is_over: Callable[[], bool]) -> AsyncIterator[bytes]:
    """Pieces of the log as the program wrote it. `is_over`: nothing more will be written; ends a `follow`."""
    left = query.limit_bytes
    async for line in _lines(path, query, is_over):
        piece = _shown(line, query)
        if piece is None:
            continue
        if left is not None:
            piece = piece[:left]
            left -= len(piece)
        if piece:
            yield piece
        if left == 0:
            return


def _shown(line: bytes, query: Query) -> bytes | None:
    stamp, _, rest = line.partition(b" ")
    stream, _, rest = rest.partition(b" ")
    tag, _, text = rest.partition(b" ")
    if query.since is not None and stamp < _stamp(query.since):
        return None
    if query.stream and stream != query.stream.encode():
        return None
    shown = text if tag == b"P" else text + b"\n"
    return stamp + b" " + shown if query.timestamps else shown


def _stamp(at: datetime) -> bytes:
    """Comparable with those in the log, which all have the same length."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f").encode() + b"000Z"


async def _lines(path: Path, query: Query, is_over: Callable[[], bool]) -> AsyncIterator[bytes]:
    older, skipped = _start(path, query.tail_lines)
    for file in older:
        for line in _whole_lines(file, skipped):
            yield line
        skipped = 0
        await asyncio.sleep(0)
    with _opened(path) as opened:
        opened.seek(skipped)
        rest = b""
        while True:
            over = is_over()  # asked before the read: what is written until then is seen
            rotated = _was_rotated(path, opened.fileno())  # so is this, for the same reason
            while block := opened.read(BLOCK):
                *whole, rest = (rest + block).split(b"\n")
                for line in whole:
                    yield line
                await asyncio.sleep(0)
            if rotated:
                opened.reopen()
            elif not query.follow or over:
                return
            else:
                await asyncio.sleep(query.look_again_s)


class _opened:
    """A file that may be replaced by a new one of the same name."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> _opened:
        self._file = self._path.open("rb")
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def reopen(self) -> None:
        self._file.close()
        self._file = self._path.open("rb")

    def seek(self, offset: int) -> None:
        self._file.seek(offset)

    def read(self, size: int) -> bytes:
        return self._file.read(size)

    def fileno(self) -> int:
        return self._file.fileno()


def _was_rotated(path: Path, fd: int) -> bool:
    try:
        return os.stat(path).st_ino != os.fstat(fd).st_ino
    except FileNotFoundError:
        return False


def _start(path: Path, tail_lines: int | None) -> tuple[list[Path], int]:
    """Older files to read, the oldest first, and where to begin in the first file that is read."""
    rotated = [path.with_name(f"{path.name}.{number}") for number in range(1, ROTATED + 1)]
    older = [file for file in rotated if file.exists()]
    if tail_lines is None:
        return older[::-1], 0
    if tail_lines == 0:
        return [], path.stat().st_size
    for number, file in enumerate([path, *older]):
        found, offset = _tail(file, tail_lines)
        if offset is not None:
            return older[:number][::-1], offset
        tail_lines -= found
    return older[::-1], 0


def _tail(path: Path, lines: int) -> tuple[int, int | None]:
    """How many of the wanted lines end in the file, and where they begin: right after an earlier line. None, if it has
    no such line: the first of them may have begun in an older file."""
    found, end = 0, path.stat().st_size
    after = b""
    with path.open("rb") as file:
        while end > 0:
            begin = max(0, end - BLOCK)
            file.seek(begin)
            data = file.read(end - begin) + after
            first = 0 if begin == 0 else data.find(b"\n") + 1
            if first == 0 and begin > 0:
                after, end = data, begin
                continue
            starts = [first]
            while (newline := data.find(b"\n", starts[-1])) >= 0 and newline + 1 < len(data):
                starts.append(newline + 1)
            for at in reversed(starts):
                if _is_end(data, at) and (found := found + 1) > lines:
                    return lines, begin + data.find(b"\n", at) + 1
            after, end = data[:first], begin
    return found, None


def _is_end(data: bytes, at: int) -> bool:
    """Whether the record at this place completes a line."""
    words = data[at : at + 64].split(b" ", 3)
    return len(words) > 2 and words[2] == b"F"


def _whole_lines(path: Path, offset: int) -> Iterator[bytes]:
    try:
        with path.open("rb") as file:
            file.seek(offset)
            for line in file:
                yield line.rstrip(b"\n")
    except FileNotFoundError:
        return  # rotated away while we read


def termination_message(container: Container, file: Path, log: Path, exit_code: int) -> str:
    message = _last_bytes(file, LONGEST_MESSAGE, from_start=True)
    if not message and exit_code != 0 and container.termination_message_policy == "FallbackToLogsOnError":
        query = Query()
        lines = _last_bytes(log, 4 * FALLBACK_BYTES).split(b"\n")[-FALLBACK_LINES - 1 :]
        message = b"".join(_shown(line, query) or b"" for line in lines if line.count(b" ") >= 3)[-FALLBACK_BYTES:]
    return message.decode(errors="replace")


def _last_bytes(path: Path, size: int, from_start: bool = False) -> bytes:
    try:
        with path.open("rb") as file:
            if not from_start:
                file.seek(max(0, os.fstat(file.fileno()).st_size - size))
            return file.read(size)
    except OSError:
        return b""


def remove(path: Path) -> None:
    for file in (path, *(path.with_name(f"{path.name}.{number}") for number in range(1, ROTATED + 1))):
        file.unlink(missing_ok=True)


def prune(places: Places) -> None:
    """Forget the logs of pods that are gone the longest, beyond so many."""
    gone = [path for path in places.logs.iterdir() if not (places.pods / path.name.rpartition("_")[2]).exists()]
    gone.sort(key=lambda path: path.stat().st_mtime_ns, reverse=True)
    for path in gone[KEPT_PODS:]:
        shutil.rmtree(path, ignore_errors=True)
