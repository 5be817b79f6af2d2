"""Who is the parent of a container's processes? This, run beside the agent; it needs the standard library only.

It outlives the agent, so that no exit and no line of output is lost while the agent is away:

- It holds `lock` while it lives, and starts nothing in a directory that has a `void` or a `record.json`.
- It forks the command, writes `record.json` to the disk, and only then lets the command begin. So what has no record
  has never run, whoever is killed whenever.
- It writes stdout and stderr to the log, a timestamp before each line, and rotates it.
- It holds the command's input or terminal, where it has one (`keyboard`).
- It passes on the signals named in the FIFO `control` to the command's process group; SIGKILL to all descendants.
- When the command ends, so does everything it started, also what left its process group; then comes `exit.json`.

When the supervisor itself is killed, the kernel kills the command.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import resource
import select
import signal
import struct
import sys
import termios
import time
from typing import Any, NoReturn

from octarbiter.cluster.nodeagent.runtimes import cgroups, namespaces
from octarbiter.cluster.nodeagent.runtimes.keyboard import Keyboard
from octarbiter.cluster.nodeagent.runtimes.transcript import Lines, Log

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
LAST_WORDS_S = 10.0
"""For what does not die at once, and for output still in the pipes."""
CANNOT_START = 128
ONCE = "ONCE"
"""In `control`: the command's input ends with who is attached now."""
SIZE = "SIZE:"
"""In `control`: the terminal has so many columns and rows now, as 80x24."""


def main(directory: str) -> None:
    os.chdir(directory)
    lock = os.open("lock", os.O_CREAT | os.O_RDWR, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        sys.exit("another supervisor is at work here")
    if os.path.exists("void") or os.path.exists("record.json"):
        sys.exit("this run is over, or was given up before it began")
    with open("spawn.json", "rb") as file:
        spawn: dict[str, Any] = json.load(file)
    Supervisor(spawn).run()


class Supervisor:
    def __init__(self, spawn: dict[str, Any]) -> None:
        self._spawn = spawn
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._log = Log(spawn["log"])
        self._poll = select.poll()
        self._streams: dict[int, Lines] = {}
        self._keyboard: Keyboard | None = None
        self._terminal = -1

    def run(self) -> None:
        # Ctrl-C at the agent's terminal and the like are meant for others.
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        self._libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self._wake = _child_alarm()
        os.mkfifo("control", 0o600)
        # For writing, too: without any writer the FIFO would always be at its end.
        self._control = os.open("control", os.O_RDWR | os.O_NONBLOCK)
        problem = self._start()
        if problem:
            os.waitpid(self._pid, 0)
            cgroups.remove(self._groups)
            write("exit.json", {"exitCode": CANNOT_START, "problem": problem, "at": time.time()})
            _answer("failed")
            return
        _answer("started")
        for fd in (self._wake, self._control):
            self._poll.register(fd, select.POLLIN)
        while not self._turn():
            pass
        self._end()

    def _start(self) -> str:
        """What went wrong; empty: it runs."""
        self._groups = cgroups.make(self._spawn["groups"])
        ends = self._ends()
        go, fail = os.pipe(), os.pipe()
        pid = self._pid = os.fork()
        if pid == 0:
            self._become(go, ends, fail[1])
        for end in {*ends, go[0], fail[1]}:
            os.close(end)
        record = {
            "id": self._spawn["id"],
            "pid": pid,
            "start": start_of(pid),
            "supervisor": os.getpid(),
            "supervisorStart": start_of(os.getpid()),
            "boot": boot(),
            "groups": self._groups,
            "at": time.time(),
        }
        write("record.json", record)
        os.write(go[1], b"!")
        os.close(go[1])
        problem = os.read(fail[0], 4096)  # ends when the command begins, which closes it
        os.close(fail[0])
        return problem.decode(errors="replace")

    def _ends(self) -> tuple[int, int, int]:
        """The command's input, output and errors; the other ends are ours to read and write."""
        if self._spawn["tty"]:
            self._terminal, theirs = os.openpty()
            self._listen("stdout", os.dup(self._terminal))
            if self._spawn["stdin"]:
                self._keyboard = Keyboard(os.dup(self._terminal), self._poll)
            return theirs, theirs, theirs
        (out, their_out), (err, their_err) = os.pipe(), os.pipe()
        self._listen("stdout", out)
        self._listen("stderr", err)
        if not self._spawn["stdin"]:
            return os.open(os.devnull, os.O_RDONLY), their_out, their_err
        their_input, sink = os.pipe()
        self._keyboard = Keyboard(sink, self._poll)
        return their_input, their_out, their_err

    def _listen(self, stream: str, fd: int) -> None:
        os.set_blocking(fd, False)
        self._streams[fd] = Lines(stream, self._log, at_once=self._spawn["tty"] or self._spawn["stdin"])
        self._poll.register(fd, select.POLLIN)

    def _become(self, go: tuple[int, int], ends: tuple[int, int, int], fail: int) -> NoReturn:
        try:
            os.setsid()
            self._libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            os.close(go[1])
            if not os.read(go[0], 1):
                os._exit(CANNOT_START)  # the supervisor died before it could record us
            cgroups.join(self._groups)
            for number, end in enumerate(ends):
                os.dup2(end, number)
            if self._spawn["tty"]:
                fcntl.ioctl(0, termios.TIOCSCTTY, 0)
            for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
                with contextlib.suppress(OSError, ValueError):
                    signal.signal(number, signal.SIG_DFL)
            enter(self._spawn)
        except BaseException as problem:
            os.write(fail, f"{problem.__class__.__name__}: {problem}".encode())
        os._exit(CANNOT_START)

    def _turn(self) -> bool:
        """Whether the command has ended."""
        for fd, _ in self._poll.poll():
            if fd in self._streams:
                self._take_output(fd)
            elif fd == self._control:
                for word in os.read(fd, 4096).decode(errors="replace").split():
                    self._obey(word)
            elif self._keyboard is not None and self._keyboard.owns(fd):
                self._keyboard.turn(fd)
            else:
                os.read(fd, 4096)
        return self._has_ended()

    def _has_ended(self) -> bool:
        """Reaps orphans that became ours, but not the command: while it is a zombie, its group cannot be another's."""
        while True:
            try:
                seen = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return True
            if seen is None:
                return False
            if seen.si_pid == self._pid:
                return True
            os.waitpid(seen.si_pid, 0)

    def _obey(self, word: str) -> None:
        if word == ONCE and self._keyboard is not None:
            self._keyboard.once()
        elif word.startswith(SIZE) and self._terminal >= 0:
            columns, _, rows = word.removeprefix(SIZE).partition("x")
            with contextlib.suppress(ValueError, OSError, struct.error):
                size = struct.pack("HHHH", int(rows), int(columns), 0, 0)
                fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, size)
        else:
            self._pass_on(word)

    def _pass_on(self, name: str) -> None:
        number = getattr(signal, name, None)
        if isinstance(number, signal.Signals):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._pid, number)
            if number == signal.SIGKILL:
                self._kill_descendants()

    def _kill_descendants(self) -> None:
        """Whoever left the group is a child of ours as soon as its parents are dead."""
        for pid in children_of(os.getpid()):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def _end(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._pid, signal.SIGKILL)
        _, status = os.waitpid(self._pid, 0)
        finished_at = time.time()
        deadline = time.monotonic() + LAST_WORDS_S
        while self._children_left() and time.monotonic() < deadline:
            self._kill_descendants()
            time.sleep(0.005)
        self._drain(deadline)
        code = os.waitstatus_to_exitcode(status)
        ended = {"exitCode": 128 - code if code < 0 else code, "signal": max(0, -code), "at": finished_at}
        ended["outOfMemory"] = cgroups.ran_out_of_memory(self._groups)
        cgroups.remove(self._groups)
        write("exit.json", ended)

    def _children_left(self) -> bool:
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return False
        return True

    def _drain(self, deadline: float) -> None:
        self._poll.unregister(self._wake)
        self._poll.unregister(self._control)
        if self._keyboard is not None:
            self._keyboard.close()
        while self._streams and time.monotonic() < deadline:
            for fd, _ in self._poll.poll(100):
                self._take_output(fd)
        for lines in self._streams.values():
            lines.end()

    def _take_output(self, fd: int) -> None:
        try:
            data = os.read(fd, 65536)
        except BlockingIOError:
            return
        except OSError:
            data = b""  # a terminal says so at its end
        if data:
            self._streams[fd].add(data)
            return
        self._poll.unregister(fd)
        os.close(fd)
        self._streams.pop(fd).end()


def enter(spawn: dict[str, Any]) -> NoReturn:
    """Become the command. Raises when that is not possible."""
    if spawn["memory"]:
        resource.setrlimit(resource.RLIMIT_DATA, (spawn["memory"], spawn["memory"]))
    os.umask(0o022)
    if spawn["mounts"]:
        os.mkdir("root", 0o700)
        root = os.path.abspath("root")
        namespaces.leave()
        namespaces.change_root(root, spawn["mounts"])
    try:
        os.chdir(spawn["cwd"])
    except OSError as problem:
        raise OSError(f"working directory {spawn['cwd']}: {problem.strerror}") from problem
    os.execvpe(spawn["argv"][0], spawn["argv"], spawn["env"])  # noqa: S606


def write(name: str, content: dict[str, Any]) -> None:
    """All of it or nothing, and on the disk when this returns."""
    fd = os.open(f"{name}.new", os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
    os.write(fd, json.dumps(content).encode())
    os.fsync(fd)
    os.close(fd)
    os.replace(f"{name}.new", name)
    directory = os.open(".", os.O_RDONLY)
    os.fsync(directory)
    os.close(directory)


def start_of(pid: int) -> int:
    """When the process began, in clock ticks since the machine did: with it, a pid is not mistaken for another's."""
    with open(f"/proc/{pid}/stat", "rb") as file:
        return int(file.read().rpartition(b")")[2].split()[19])


def boot() -> str:
    with open("/proc/sys/kernel/random/boot_id") as file:
        return file.read().strip()


def children_of(pid: int) -> list[int]:
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return [int(word) for word in file.read().split()]


def _child_alarm() -> int:
    """Readable whenever a child has ended."""
    readable, writable = os.pipe()
    for fd in (readable, writable):
        os.set_blocking(fd, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(writable, warn_on_full_buffer=False)
    return readable


def _answer(word: str) -> None:
    with contextlib.suppress(OSError):  # the agent may be gone by now
        os.write(1, word.encode())
    os.dup2(os.open(os.devnull, os.O_RDWR), 1)
