"""Where do a test bed's files live, and who removes them after a run that was killed?

Each bed has one private directory and holds a lock on a file in it for as long as it lives. A directory whose lock is
free has lost its owner: the next bed removes it. Process ids would not do, the kernel uses them again.
"""

import fcntl
import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import TextIO

_PREFIX = "octarbiter-bed-"
# Between making a directory and locking it there is a moment; nobody may take it for abandoned then.
_YOUNG_S = 60


class Scratch:
    def __init__(self) -> None:
        _remove_abandoned()
        self.directory = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=_base()))
        self._lock: TextIO | None = (self.directory / "lock").open("w")
        fcntl.flock(self._lock, fcntl.LOCK_EX)

    def remove(self) -> None:
        if self._lock is not None:
            shutil.rmtree(self.directory, ignore_errors=True)
            self._lock.close()
            self._lock = None


def _base() -> Path:
    chosen = Path(tempfile.gettempdir())
    # The path of a socket has room for 107 bytes; a temporary directory deep in some tree leaves too few of them.
    return chosen if len(bytes(chosen)) < 60 else Path("/tmp")  # noqa: S108


def _remove_abandoned() -> None:
    for directory in _base().glob(f"{_PREFIX}*"):
        try:
            found = directory.lstat()
            if found.st_uid != os.getuid() or time.time() - found.st_mtime < _YOUNG_S or directory.is_symlink():
                continue
            with (directory / "lock").open("a") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(directory, ignore_errors=True)
        except OSError:
            continue
