"""Where does the process runtime keep what it knows?

    ROOT/pods/UID/pod.json                              the pod as it was prepared
    ROOT/pods/UID/volumes/NAME/
    ROOT/pods/UID/containers/NAME/work/                 the working directory, where none is asked for
    ROOT/pods/UID/containers/NAME/runs/ATTEMPT/         spawn.json record.json exit.json lock control termination-log
    ROOT/logs/NAMESPACE_POD_UID/CONTAINER/ATTEMPT.log   stay when the pod is gone

All of it for the owner's eyes only: environments and Secrets are in it.
"""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Iterator
from pathlib import Path

from octarbiter.cluster.nodeagent.pods import Pod

_SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,252}")


class Places:
    def __init__(self, root: Path) -> None:
        self.root = root.absolute()
        for directory in (self.root, self.pods, self.logs):
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.chmod(directory, 0o700)

    def claim(self) -> int:
        """For one agent at a time, until the answer is closed or the agent is dead. Raises RuntimeError."""
        fd = os.open(self.root / "agent.lock", os.O_CREAT | os.O_RDWR, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            raise RuntimeError(f"another agent works in {self.root}: end it first, or use another directory") from None
        return fd

    @property
    def pods(self) -> Path:
        return self.root / "pods"

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    def pod(self, uid: str) -> Path:
        return self.pods / safe(uid)

    def volumes(self, uid: str) -> Path:
        return self.pod(uid) / "volumes"

    def work(self, uid: str, container: str) -> Path:
        return self.pod(uid) / "containers" / safe(container) / "work"

    def runs(self, uid: str, container: str) -> Path:
        return self.pod(uid) / "containers" / safe(container) / "runs"

    def run(self, uid: str, container: str, attempt: int) -> Path:
        return self.runs(uid, container) / str(attempt)

    def pod_logs(self, pod: Pod) -> Path:
        meta = pod.metadata
        return self.logs / "_".join(map(safe, (meta.namespace, meta.name, meta.uid)))

    def log(self, pod: Pod, container: str, attempt: int) -> Path:
        return self.pod_logs(pod) / safe(container) / f"{attempt}.log"

    def attempts(self, uid: str, container: str) -> Iterator[int]:
        """Runs there are records of, in order."""
        directory = self.runs(uid, container)
        if directory.is_dir():
            yield from sorted(int(entry.name) for entry in directory.iterdir() if entry.name.isdecimal())


def safe(name: str) -> str:
    """Names come from the API, which allows no others; but here they become paths."""
    if not _SAFE.fullmatch(name):
        raise ValueError(f"{name!r} cannot be the name of a directory")
    return name
