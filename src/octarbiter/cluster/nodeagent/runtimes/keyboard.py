"""Where does what is typed to a container wait until its command reads it? In a FIFO, and then in a pipe or terminal.

Whoever attaches writes into the FIFO `stdin` in the run's directory. The supervisor holds both of its ends, so neither
a restart of the agent nor the end of an attachment is the end of the input. After `once` it keeps no end for writing:
the input ends with the last of those that are attached then, however they end, and nobody can come after them.

Nothing is read that there is no room for: who types faster than the command reads has to wait. Standard library only.
"""

from __future__ import annotations

import contextlib
import os
import select

FIFO = "stdin"
BLOCK = 4096


class Keyboard:
    def __init__(self, sink: int, poll: select.poll) -> None:
        """`sink`: what the command's input is read from; ours from now on."""
        os.mkfifo(FIFO, 0o600)
        self._source = os.open(FIFO, os.O_RDONLY | os.O_NONBLOCK)
        self._keeper = os.open(FIFO, os.O_WRONLY)
        self._sink = sink
        self._poll = poll
        self._waiting = b""
        os.set_blocking(sink, False)
        poll.register(self._source, select.POLLIN)

    def owns(self, fd: int) -> bool:
        return fd in (self._source, self._sink)

    def once(self) -> None:
        """Those who are attached are the last."""
        if self._keeper >= 0:
            os.unlink(FIFO)
            os.close(self._keeper)
            self._keeper = -1

    def turn(self, fd: int) -> None:
        """There is something to read, or room to write."""
        try:
            if fd == self._source:
                self._waiting = os.read(self._source, BLOCK)
                if not self._waiting:
                    self.close()  # a terminal stays: only its keyboard is gone
                    return
                self._poll.unregister(self._source)
                self._poll.register(self._sink, select.POLLOUT)
            self._waiting = self._waiting[os.write(self._sink, self._waiting) :]
        except BlockingIOError:
            return
        except OSError:
            self.close()  # the command does not want to hear more
            return
        if not self._waiting:
            self._poll.unregister(self._sink)
            self._poll.register(self._source, select.POLLIN)

    def close(self) -> None:
        """May be called again."""
        self.once()
        for fd in {self._source, self._sink} - {-1}:
            with contextlib.suppress(KeyError):
                self._poll.unregister(fd)
            os.close(fd)
        self._source = self._sink = -1
