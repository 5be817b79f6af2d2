"""How do volumes appear at their mount paths, without root and without an image? In a mount namespace of their own.

The container sees this machine's files, with its volumes among them. The new root is a tmpfs in which every entry of
`/` is bound; where a mount path does not exist, the directory that should hold it is replaced in the same way, so
nothing is ever created on the machine itself. Needs root, or user namespaces; inside the latter the user keeps its own
id and all others look like nobody, so setuid programs have no effect. Standard library only.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Callable, Mapping, Sequence

CLONE_NEWNS = 0x00020000
CLONE_NEWUSER = 0x10000000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC = 1, 2, 4, 8
MS_REMOUNT, MS_NOATIME, MS_NODIRATIME = 32, 1024, 2048
MS_BIND, MS_REC = 4096, 16384
MS_UNBINDABLE, MS_PRIVATE = 1 << 17, 1 << 18
MS_RELATIME = 1 << 21

_KEPT = {
    os.ST_NOSUID: MS_NOSUID,
    os.ST_NODEV: MS_NODEV,
    os.ST_NOEXEC: MS_NOEXEC,
    os.ST_NOATIME: MS_NOATIME,
    os.ST_NODIRATIME: MS_NODIRATIME,
    os.ST_RELATIME: MS_RELATIME,
}

_libc = ctypes.CDLL(None, use_errno=True)


def leave() -> None:
    """Into namespaces of our own. Raises OSError where the kernel does not allow it."""
    uid, gid = os.geteuid(), os.getegid()
    if uid != 0 or _libc.unshare(CLONE_NEWNS) != 0:
        _checked(_libc.unshare(CLONE_NEWUSER | CLONE_NEWNS), "user namespaces")
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"{uid} {uid} 1")
        _write("/proc/self/gid_map", f"{gid} {gid} 1")
    _mount(None, "/", None, MS_REC | MS_PRIVATE)


def main() -> None:
    """Run as a program, to see whether it works: there is no way back."""
    leave()


def change_root(root: str, mounts: Sequence[Mapping[str, object]]) -> None:
    """Make `root`, an empty directory, the root of what this process sees, with each mount's source at its target."""
    _mount("tmpfs", root, "tmpfs", MS_NOSUID, "mode=755")
    # Or the binding of the directory that contains it would bind all of it again.
    _mount(None, root, None, MS_UNBINDABLE)
    tree = _Tree(root)
    for mount in mounts:
        tree.add(str(mount["source"]), str(mount["target"]), bool(mount["readOnly"]))
    os.chroot(root)
    os.chdir("/")


def join(pid: int, user_namespace: bool, is_still_the_same: Callable[[], bool]) -> None:
    """Into the namespaces and the root of a process."""
    root = os.open(f"/proc/{pid}/root", os.O_RDONLY | os.O_DIRECTORY)
    wanted = [("user", CLONE_NEWUSER)] if user_namespace else []
    wanted.append(("mnt", CLONE_NEWNS))
    opened = [(os.open(f"/proc/{pid}/ns/{kind}", os.O_RDONLY), flag) for kind, flag in wanted]
    if not is_still_the_same():
        raise ProcessLookupError("the container has ended")
    for fd, flag in opened:
        _checked(_libc.setns(fd, flag), "setns")
    os.fchdir(root)
    os.chroot(".")


class _Tree:
    def __init__(self, root: str) -> None:
        self._root = root
        self._ours = {root}
        """Directories of tmpfs, in which we may make entries."""
        self._volumes: list[str] = []
        self._bind_entries("/", root)

    def add(self, source: str, target: str, read_only: bool) -> None:
        place = self._place(os.path.realpath(target), os.path.isdir(source))
        _mount(source, place, None, MS_BIND | MS_REC)
        if read_only:
            flags = os.statvfs(place).f_flag
            kept = sum(flag for bit, flag in _KEPT.items() if flags & bit)
            _mount(None, place, None, MS_BIND | MS_REMOUNT | MS_RDONLY | kept)
        self._volumes.append(place)

    def _place(self, target: str, is_directory: bool) -> str:
        current, host = self._root, "/"
        parts = target.strip("/").split("/")
        for number, part in enumerate(parts):
            below = os.path.join(current, part)
            if not os.path.lexists(below):
                self._make_ours(current, host)
                if number < len(parts) - 1 or is_directory:
                    os.mkdir(below, 0o755)
                    if not self._is_in_volume(below):
                        self._ours.add(below)
                else:
                    os.close(os.open(below, os.O_CREAT | os.O_WRONLY, 0o644))
            current, host = below, os.path.join(host, part)
        return current

    def _make_ours(self, directory: str, host: str) -> None:
        if directory in self._ours or self._is_in_volume(directory):
            return
        _mount("tmpfs", directory, "tmpfs", MS_NOSUID, "mode=755")
        self._ours.add(directory)
        self._bind_entries(host, directory)

    def _is_in_volume(self, path: str) -> bool:
        return any(path == volume or path.startswith(volume + "/") for volume in self._volumes)

    def _bind_entries(self, host: str, directory: str) -> None:
        for entry in os.scandir(host):
            place = os.path.join(directory, entry.name)
            # One entry that cannot be bound is missing; the others are there.
            with contextlib.suppress(OSError):
                if entry.is_symlink():
                    os.symlink(os.readlink(entry.path), place)
                    continue
                if entry.is_dir(follow_symlinks=False):
                    os.mkdir(place)
                else:
                    os.close(os.open(place, os.O_CREAT | os.O_WRONLY, 0o600))
                _mount(entry.path, place, None, MS_BIND | MS_REC)


def _mount(source: str | None, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    words = (None if word is None else os.fsencode(word) for word in (source, target, kind))
    answer = _libc.mount(*words, ctypes.c_ulong(flags), None if data is None else data.encode())
    _checked(answer, f"mount at {target}")


def _checked(answer: int, what: str) -> None:
    if answer != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def _write(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)
