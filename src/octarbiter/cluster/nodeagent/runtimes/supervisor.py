"""Who is the parent of a container's processes? This, run beside the agent; it needs the standard library only.

It outlives the agent, so that no exit and no line of output is lost while the agent is away:

- It holds `lock` while it lives, and starts nothing in a directory that has a `void` or a `record.json`.
- It forks the command, writes `record.json` to the disk, and only then lets the command begin. So what has no record
  has never run, whoever is killed whenever.
- It writes stdout and stderr to the log, a timestamp before each line, and rotates it.
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
import sys
import time
from typing import Any, NoReturn

from octarbiter.cluster.nodeagent.runtimes import namespaces

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
LONGEST_CHUNK = 16 * 1024
LARGEST_LOG = 10 * 1024 * 1024
ROTATED_LOGS = 4
LAST_WORDS_S = 10.0
"""For what does not die at once, and for output still in the pipes."""
CANNOT_START = 128


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
        out, err, go, fail = (os.pipe() for _ in range(4))
        pid = self._pid = os.fork()
        if pid == 0:
            self._become(go, out[1], err[1], fail[1])
        for end in (out[1], err[1], go[0], fail[1]):
            os.close(end)
        record = {
            "id": self._spawn["id"],
            "pid": pid,
            "start": start_of(pid),
            "supervisor": os.getpid(),
            "supervisorStart": start_of(os.getpid()),
            "boot": boot(),
            "at": time.time(),
        }
        write("record.json", record)
        os.write(go[1], b"!")
        os.close(go[1])
        problem = os.read(fail[0], 4096)  # ends when the command begins, which closes it
        os.close(fail[0])
        for stream, fd in (("stdout", out[0]), ("stderr", err[0])):
            os.set_blocking(fd, False)
            self._streams[fd] = Lines(stream, self._log)
            self._poll.register(fd, select.POLLIN)
        return problem.decode(errors="replace")

    def _become(self, go: tuple[int, int], out: int, err: int, fail: int) -> NoReturn:
        try:
            os.setsid()
            self._libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            os.close(go[1])
            if not os.read(go[0], 1):
                os._exit(CANNOT_START)  # the supervisor died before it could record us
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(out, 1)
            os.dup2(err, 2)
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
                for name in os.read(fd, 4096).decode(errors="replace").split():
                    self._pass_on(name)
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
        write("exit.json", {"exitCode": 128 - code if code < 0 else code, "signal": max(0, -code), "at": finished_at})

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
        if data:
            self._streams[fd].add(data)
            return
        self._poll.unregister(fd)
        os.close(fd)
        self._streams.pop(fd).end()


class Lines:
    """One stream, cut into lines; what is longer than a chunk is written in parts marked P."""

    def __init__(self, stream: str, log: Log) -> None:
        self._stream = stream
        self._log = log
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


def timestamp() -> bytes:
    seconds, nanos = divmod(time.time_ns(), 10**9)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)).encode() + b".%09dZ" % nanos


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
