"""Which processes are left of a container whose supervisor was killed? Those that carry its mark; they are ended.

Every process is held by a pidfd before it is looked at, so the signal reaches what was looked at and nothing else.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Mapping
from typing import Any

from octarbiter.cluster.nodeagent.runtimes import supervisor


def open_process(pid: int, start: int, boot: str) -> int | None:
    """A pidfd of the process that had this pid and began at this time; None: it is gone."""
    if not pid or boot != supervisor.boot():
        return None
    try:
        fd = os.pidfd_open(pid)
    except OSError:
        return None
    with contextlib.suppress(OSError):
        if supervisor.start_of(pid) == start:
            return fd
    os.close(fd)
    return None


def kill(record: Mapping[str, Any], mark: str) -> None:
    if record.get("boot") != supervisor.boot():
        return  # the machine was restarted: nothing is left
    wanted = f"{mark}={record['id']}".encode()
    for name in os.listdir("/proc"):
        if not name.isdecimal() or int(name) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            fd = os.pidfd_open(int(name))
            try:
                with open(f"/proc/{name}/environ", "rb") as file:
                    if wanted in file.read().split(b"\0"):
                        signal.pidfd_send_signal(fd, signal.SIGKILL)
            finally:
                os.close(fd)
