"""Starts and ends a cluster on this machine, as a process of its own.

It is the same for `octo up`, which leaves it running, and for `octo run`, which has one for itself: that one ends when
the pipe to its caller closes, so nothing outlives a caller that was killed.
"""

from __future__ import annotations

import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from octarbiter.cli import exits, pretending

START_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 45.0
"""Longer than the grace that pods have by default."""
LOG_LINES = 20
KUBECONFIG = "kubeconfig"
LOG = "cluster.log"
PROCESS = "process.json"


class Process(msgspec.Struct, frozen=True):
    """Who runs the cluster; `began` tells a process from a later one of the same number."""

    pid: int
    began: str

    @property
    def is_alive(self) -> bool:
        return began(self.pid) == self.began


class Order(msgspec.Struct, frozen=True):
    """What a process that is to be a cluster is told."""

    directory: Path
    settings: pretending.Settings
    ready_fd: int | None = None
    """Written to when the cluster answers."""
    until_closed: bool = False
    """It ends when its standard input does."""


def home() -> Path:
    """Where the cluster of `octo up` lives."""
    data = os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
    return Path(os.environ.get("OCTO_HOME") or f"{data}/octarbiter") / "cluster"


def began(pid: int) -> str:
    """Empty, if there is no such process, or only its remains that nobody has collected yet."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in ("Z", "X") else fields[19]


def running(directory: Path) -> Process | None:
    try:
        found = msgspec.json.decode((directory / PROCESS).read_bytes(), type=Process)
    except (OSError, msgspec.DecodeError):
        return None
    return found if found.is_alive else None


def start(directory: Path, settings: pretending.Settings, *, until_closed: bool) -> subprocess.Popen[bytes]:
    """Returns when the cluster answers. `until_closed`: it ends when its standard input does."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    heard, told = os.pipe()
    order = Order(directory, settings, told, until_closed)
    command = [sys.executable, "-m", "octarbiter.cli.serving", msgspec.json.encode(order, enc_hook=str).decode()]
    log = os.open(directory / LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE if until_closed else subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=[told],
            start_new_session=True,
        )
    finally:
        os.close(log)
        os.close(told)
    try:
        _wait_until_ready(heard, directory)
    except BaseException:
        process.terminate()
        process.wait(STOP_TIMEOUT_S)
        raise
    finally:
        os.close(heard)
    return process


def _wait_until_ready(heard: int, directory: Path) -> None:
    ready, _, _ = select.select([heard], [], [], START_TIMEOUT_S)
    if ready and os.read(heard, 16):
        return
    lines = (directory / LOG).read_text(errors="replace").splitlines()[-LOG_LINES:]
    told = "ended" if ready else f"does not answer after {START_TIMEOUT_S:.0f} s"
    raise exits.Failure(exits.Exit.REFUSED, "\n".join([f"the cluster {told}; its last words:", *lines]))


def stop(directory: Path) -> bool:
    """False, if none is up."""
    found = running(directory)
    if found is None:
        return False
    with suppress(ProcessLookupError):
        handle = os.pidfd_open(found.pid)
        try:
            if not found.is_alive:  # it ended, and its number was given away, before we had the handle
                return True
            signal.pidfd_send_signal(handle, signal.SIGTERM)
            gone, _, _ = select.select([handle], [], [], STOP_TIMEOUT_S)
            if not gone:
                raise exits.Failure(
                    exits.Exit.TIMEOUT, f"process {found.pid} does not end; its log is {directory / LOG}"
                )
        finally:
            os.close(handle)
    return True


@contextmanager
def private(settings: pretending.Settings, *, keep: bool) -> Iterator[Path]:
    """The kubeconfig of a cluster that is there for this run only; kept, it is that of `octo up`."""
    if keep:
        if running(home()) is not None:
            told = f"a cluster is up already; run it there: export KUBECONFIG={home() / KUBECONFIG}"
            raise exits.Failure(exits.Exit.REFUSED, told)
        start(home(), settings, until_closed=False)
        yield home() / KUBECONFIG
        return
    directory = Path(tempfile.mkdtemp(prefix="octo-run-"))
    try:
        process = start(directory, settings, until_closed=True)
        try:
            yield directory / KUBECONFIG
        finally:
            _end(process)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.stdin is not None:
        process.stdin.close()
    try:
        process.wait(STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
