"""How is a container kept within its limits? By a control group of its own, where the kernel lets us make one.

Root may make them, and so may the user of a session that systemd delegates to; for all others limits are not enforced.
The agent finds out where they can be made (`homes`) and what is to be written into them (`plan`); the supervisor makes
one per run, the command joins it, and it is removed at the end. Both versions of control groups are spoken.
Standard library only.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

Home = tuple[int, str]
"""The version of control groups, and the directory in which ours are made."""
PERIOD_US: Final = 100_000
SHORTEST_QUOTA_US: Final = 1_000
_PREFIX: Final = "octarbiter-"
_SIGNS: Final = {("memory", 1): "memory.limit_in_bytes", ("memory", 2): "memory.max"} | {
    ("cpu", 1): "cpu.cfs_quota_us",
    ("cpu", 2): "cpu.max",
}
"""A file that is there when the controller is."""
_GIVE_UP_S: Final = 2.0


def homes(own: str | None = None, mounts: str | None = None) -> dict[str, Home]:
    """By controller. The arguments: what /proc/self/cgroup and /proc/self/mountinfo say."""
    own = _read("/proc/self/cgroup") if own is None else own
    mounts = _read("/proc/self/mountinfo") if mounts is None else mounts
    paths: dict[str, str] = {}
    for line in own.splitlines():
        _, controllers, path = line.split(":", 2)
        paths |= dict.fromkeys(controllers.split(","), path)
    found: dict[str, Home] = {}
    for line in mounts.splitlines():
        place, _, filesystem = line.partition(" - ")
        root, mountpoint = place.split()[3:5]
        kind, _, options = filesystem.split()[:3]
        for controller in ("memory", "cpu"):
            if kind == "cgroup" and controller in options.split(",") and controller in paths:
                candidates = [_below(mountpoint, root, paths[controller])]
                version = 1
            elif kind == "cgroup2" and "" in paths:
                # A group that has processes of its own cannot share out among groups below it: go up to one that does.
                candidates = _upwards(mountpoint, _below(mountpoint, root, paths[""]))
                version = 2
            else:
                continue
            home = next((each for each in candidates if _can_make(each, _SIGNS[controller, version])), None)
            if home is not None:
                found[controller] = (version, home)
    return found


def _below(mountpoint: str, root: str, path: str) -> str:
    relative = os.path.relpath(path, root)
    return mountpoint if relative == "." or relative.startswith("..") else os.path.join(mountpoint, relative)


def _upwards(top: str, path: str) -> list[str]:
    found = [path]
    while path not in (top, "/"):
        path = os.path.dirname(path)
        found.append(path)
    return found


def _can_make(home: str, sign: str) -> bool:
    trial = os.path.join(home, f"{_PREFIX}{secrets.token_hex(8)}")
    try:
        os.mkdir(trial)
    except OSError:
        return False
    try:
        return all(os.access(os.path.join(trial, name), os.W_OK) for name in (sign, "cgroup.procs"))
    finally:
        os.rmdir(trial)


def plan(found: Mapping[str, Home], memory: int, cpu_milli: int) -> list[dict[str, Any]]:
    """Groups to make: in which directory, and what to write into which of their files. 0: no limit."""
    settings: dict[str, dict[str, str]] = {}
    if memory and "memory" in found:
        version, home = found["memory"]
        files = settings.setdefault(home, {})
        if version == 1:
            # The second is about memory and swap together, and may not be less than the first.
            files |= {"memory.limit_in_bytes": str(memory), "memory.memsw.limit_in_bytes": str(memory)}
        else:
            files |= {"memory.max": str(memory), "memory.swap.max": "0", "memory.oom.group": "1"}
    if cpu_milli and "cpu" in found:
        version, home = found["cpu"]
        quota = max(SHORTEST_QUOTA_US, cpu_milli * PERIOD_US // 1000)
        files = settings.setdefault(home, {})
        if version == 1:
            files |= {"cpu.cfs_period_us": str(PERIOD_US), "cpu.cfs_quota_us": str(quota)}
        else:
            files |= {"cpu.max": f"{quota} {PERIOD_US}"}
    return [{"home": home, "files": files} for home, files in settings.items()]


def make(groups: Iterable[Mapping[str, Any]]) -> list[str]:
    """As planned; the directories of those that could be made."""
    made = []
    name = f"{_PREFIX}{secrets.token_hex(8)}"
    for group in groups:
        directory = os.path.join(group["home"], name)
        with contextlib.suppress(OSError):
            os.mkdir(directory)
            made.append(directory)
            for file, value in group["files"].items():
                with contextlib.suppress(OSError):  # a kernel without swap has no limit for it
                    _write(os.path.join(directory, file), value)
    return made


def join(directories: Iterable[str]) -> None:
    for directory in directories:
        with contextlib.suppress(OSError):
            _write(os.path.join(directory, "cgroup.procs"), "0")


def ran_out_of_memory(directories: Sequence[str]) -> bool:
    """Whether the kernel killed anything in them for the want of memory."""
    files = [os.path.join(each, name) for each in directories for name in ("memory.events", "memory.oom_control")]
    counts = dict(line.split(" ", 1) for file in files for line in _read(file).splitlines() if " " in line)
    return int(counts.get("oom_kill", "0")) > 0


def remove(directories: Iterable[str]) -> None:
    """And whatever is left in them. May be called again."""
    until = time.monotonic() + _GIVE_UP_S
    for directory in directories:
        while os.path.isdir(directory):
            for word in _read(os.path.join(directory, "cgroup.procs")).split():
                with contextlib.suppress(OSError):
                    os.kill(int(word), signal.SIGKILL)
            with contextlib.suppress(OSError):
                os.rmdir(directory)
                break
            if time.monotonic() > until:
                break
            time.sleep(0.01)


def _read(path: str) -> str:
    try:
        with open(path) as file:
            return file.read()
    except OSError:
        return ""


def _write(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)
