"""How is a program started, watched and ended so that nothing of it survives us?

Each child asks the kernel for SIGKILL when its parent dies (PR_SET_PDEATHSIG), so not even a SIGKILL of the test run
leaves servers behind. The request is made by a trampoline, a few lines of Python that then become the program, and
not by `preexec_fn`, which is unsafe in a process with threads. The kernel means the *thread* that started the child
when it says parent, so all children are started by one thread that lives as long as the process.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

_STARTER = ThreadPoolExecutor(max_workers=1, thread_name_prefix="octarbiter-starter")
# 1 is PR_SET_PDEATHSIG, 9 is SIGKILL. If the parent died before the request, its signal never comes: ask once more.
_TRAMPOLINE = """
import ctypes, os, sys
ctypes.CDLL(None).prctl(1, 9, 0, 0, 0)
if os.getppid() != int(sys.argv[1]): os._exit(1)
os.execv(sys.argv[2], sys.argv[2:])
"""


class StartFailed(Exception):
    """A program did not become ready; the message holds the end of its log."""


class Process:
    """One child with its output in a log file. `start` may be called again after `stop`; the log is appended to."""

    def __init__(
        self,
        name: str,
        argv: Sequence[str],
        log: Path,
        *,
        env: Mapping[str, str] | None = None,
        directory: Path | None = None,
    ) -> None:
        self.name = name
        self.log = log
        self._argv = list(argv)
        self._env = env
        self._directory = directory
        self._child: subprocess.Popen[bytes] | None = None
        self._peak_bytes = 0

    @property
    def pid(self) -> int | None:
        return self._child.pid if self._child and self.is_alive else None

    @property
    def is_alive(self) -> bool:
        return self._child is not None and self._child.poll() is None

    @property
    def peak_bytes(self) -> int:
        """The most memory it ever held, also after its end."""
        self._measure()
        return self._peak_bytes

    def start(self) -> None:
        if self.is_alive:
            raise StartFailed(f"{self.name} is already running")
        # Not chmod afterwards: a server may print a secret before we get to it.
        descriptor = os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        trampoline = [sys.executable, "-I", "-S", "-c", _TRAMPOLINE, str(os.getpid()), *self._argv]
        try:
            # A session of its own: Ctrl-C goes to us alone, and we take our children down in order.
            self._child = _STARTER.submit(
                subprocess.Popen,
                trampoline,
                stdin=subprocess.DEVNULL,
                stdout=descriptor,
                stderr=descriptor,
                env=self._env,
                cwd=self._directory,
                start_new_session=True,
            ).result()
        finally:
            os.close(descriptor)

    def wait(self, timeout_s: float) -> int | None:
        """Its exit code, or None if it still runs after that time."""
        if self._child is None:
            raise StartFailed(f"{self.name} was not started")
        try:
            return self._child.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return None

    def wait_until_ready(self, probe: Callable[[], bool], timeout_s: float = 60.0) -> None:
        deadline = time.monotonic() + timeout_s
        while not probe():
            if not self.is_alive:
                code = self._child.returncode if self._child else None
                raise StartFailed(f"{self.name} ended with exit code {code}; the end of {self.log}:\n{tail(self.log)}")
            if time.monotonic() > deadline:
                raise StartFailed(
                    f"{self.name} was not ready after {timeout_s:.0f} s; the end of {self.log}:\n{tail(self.log)}"
                )
            time.sleep(0.05)

    def stop(self, grace_s: float = 10.0) -> None:
        if self._child is None:
            return
        self._measure()
        if self.is_alive:
            self._child.send_signal(signal.SIGTERM)
            if self.wait(grace_s) is None:
                self._child.kill()
        self._child.wait()

    def _measure(self) -> None:
        if self._child is None:
            return
        try:
            status = Path(f"/proc/{self._child.pid}/status").read_text()
        except OSError:
            return
        for line in status.splitlines():
            if line.startswith("VmHWM:"):
                self._peak_bytes = max(self._peak_bytes, int(line.split()[1]) * 1024)


def tail(log: Path, lines: int = 30) -> str:
    try:
        with log.open("rb") as handle:
            handle.seek(0, os.SEEK_END)
            handle.seek(max(0, handle.tell() - 64 * 1024))
            return "\n".join(handle.read().decode(errors="replace").splitlines()[-lines:])
    except OSError as problem:
        return f"({problem})"
