"""How does the output of a command become its log? Line by line, each with its time; standard library only.

A line is `TIMESTAMP STREAM TAG TEXT`, as `octarbiter.cluster.nodeagent.logs` reads it. Where somebody may be typing,
what is no whole line yet is written as well: a prompt is to be seen before it is answered.
"""

from __future__ import annotations

import contextlib
import os
import time

LONGEST_CHUNK = 16 * 1024
LARGEST_LOG = 10 * 1024 * 1024
ROTATED_LOGS = 4


class Lines:
    """One stream, cut into lines; what is longer than a chunk is written in parts marked P."""

    def __init__(self, stream: str, log: Log, at_once: bool) -> None:
        """`at_once`: nothing waits for the rest of its line."""
        self._stream = stream
        self._log = log
        self._at_once = at_once
        self._rest = b""

    def add(self, data: bytes) -> None:
        *whole, rest = (self._rest + data).split(b"\n")
        for line in whole:
            while len(line) > LONGEST_CHUNK:
                self._write(b"P", line[:LONGEST_CHUNK])
                line = line[LONGEST_CHUNK:]
            self._write(b"F", line)
        while len(rest) > LONGEST_CHUNK:
            self._write(b"P", rest[:LONGEST_CHUNK])
            rest = rest[LONGEST_CHUNK:]
        self._rest = rest
        if self._at_once:
            self.end()

    def end(self) -> None:
        if self._rest:
            self._write(b"P", self._rest)
            self._rest = b""

    def _write(self, tag: bytes, line: bytes) -> None:
        self._log.write(b"%s %s %s %s\n" % (timestamp(), self._stream.encode(), tag, line))


class Log:
    def __init__(self, path: str) -> None:
        self._path = path
        self._open()

    def _open(self) -> None:
        self._fd = os.open(self._path, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
        self._size = os.fstat(self._fd).st_size

    def write(self, line: bytes) -> None:
        if self._size > LARGEST_LOG:
            self._rotate()
        # A full disk costs lines and not the container.
        with contextlib.suppress(OSError):
            self._size += os.write(self._fd, line)

    def _rotate(self) -> None:
        os.close(self._fd)
        for number in range(ROTATED_LOGS - 1, 0, -1):
            with contextlib.suppress(FileNotFoundError):
                os.replace(f"{self._path}.{number}", f"{self._path}.{number + 1}")
        os.replace(self._path, f"{self._path}.1")
        self._open()


def timestamp() -> bytes:
    seconds, nanos = divmod(time.time_ns(), 10**9)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)).encode() + b".%09dZ" % nanos
