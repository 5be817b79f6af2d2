"""A terminal for programs under test: what stands on its screen after all they have written?

It knows the few control sequences that a picture drawn again and again is made of, and fails on any other.
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Mapping, Sequence

PATIENCE_S = 90.0
_CONTROL = re.compile(r"\x1b\[(\?)?([0-9;]*)([A-Za-z])")


class Screen:
    """Also keeps what was scrolled out of it."""

    def __init__(self, columns: int, rows: int) -> None:
        self.columns, self.rows = columns, rows
        self.lines = [""]
        self.row = self.column = 0
        self.cursor_is_shown = True
        self.styles: set[str] = set()
        """Colours and the like that were used."""
        self._rest = ""

    @property
    def text(self) -> str:
        return "\n".join(line.rstrip() for line in self.lines)

    @property
    def visible(self) -> list[str]:
        return [line.rstrip() for line in self.lines[-self.rows :]]

    def write(self, data: str) -> None:
        data = self._rest + data
        at = 0
        while at < len(data):
            character = data[at]
            if character == "\x1b":
                found = _CONTROL.match(data, at)
                if found is None:
                    assert len(data) - at < 20, f"a sequence this terminal does not know: {data[at : at + 20]!r}"
                    break  # the rest of it is still to come
                self._obey(found[1] or "", found[2], found[3])
                at = found.end()
                continue
            self._put(character)
            at += 1
        self._rest = data[at:]

    def _put(self, character: str) -> None:
        if character == "\r":
            self.column = 0
        elif character == "\n":
            self._down()
        else:
            assert character.isprintable(), f"a character this terminal does not know: {character!r}"
            if self.column == self.columns:
                self.column = 0
                self._down()
            line = self.lines[self.row].ljust(self.column)
            self.lines[self.row] = line[: self.column] + character + line[self.column + 1 :]
            self.column += 1

    def _down(self) -> None:
        self.row += 1
        if self.row == len(self.lines):
            self.lines.append("")

    def _obey(self, private: str, arguments: str, command: str) -> None:
        count = int(arguments) if arguments.isdecimal() else 1
        if private:
            assert (arguments, command) in (("25", "l"), ("25", "h")), f"ESC[?{arguments}{command}"
            self.cursor_is_shown = command == "h"
        elif command == "m":
            self.styles.add(arguments)
        elif command == "A":
            self.row = max(0, len(self.lines) - self.rows, self.row - count)  # not above the edge
        elif command == "K":
            assert arguments == "2", f"ESC[{arguments}K"
            self.lines[self.row] = ""
        else:
            raise AssertionError(f"a sequence this terminal does not know: ESC[{arguments}{command}")


class Session:
    """A program at a terminal."""

    def __init__(self, command: Sequence[str], env: Mapping[str, str], *, columns: int, rows: int) -> None:
        self.screen = Screen(columns, rows)
        self.written = ""
        self._master, slave = pty.openpty()
        self.resize(columns, rows)
        self.before = termios.tcgetattr(slave)
        self.process = subprocess.Popen(
            command, env=env, stdin=slave, stdout=slave, stderr=slave, start_new_session=True, preexec_fn=_take
        )
        self._slave = slave

    def resize(self, columns: int, rows: int) -> None:
        self.screen.columns, self.screen.rows = columns, rows
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def until(self, shown: Callable[[Screen], bool]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not shown(self.screen):
            assert self._read(), f"it ended; on the screen is:\n{self.screen.text}"
            assert time.monotonic() < deadline, f"on the screen is:\n{self.screen.text}"

    def type(self, keys: bytes) -> None:
        os.write(self._master, keys)

    def end(self) -> int:
        """The exit code, when it has ended by itself."""
        deadline = time.monotonic() + PATIENCE_S
        while self._read():
            assert time.monotonic() < deadline, f"it does not end; on the screen is:\n{self.screen.text}"
        return self.process.wait(PATIENCE_S)

    @property
    def is_restored(self) -> bool:
        """The terminal is as it was before."""
        return self.screen.cursor_is_shown and termios.tcgetattr(self._slave) == self.before

    def close(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        os.close(self._master)
        os.close(self._slave)

    def _read(self) -> bool:
        """False when the program has ended and all it has written is read."""
        over = self.process.poll() is not None
        ready, _, _ = select.select([self._master], [], [], 0.0 if over else 0.2)
        if ready:
            data = os.read(self._master, 65536).decode(errors="replace")
            self.written += data
            self.screen.write(data)
        return bool(ready) or not over


def _take() -> None:
    """The terminal becomes that of the program's session: Ctrl-C typed there reaches it."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
