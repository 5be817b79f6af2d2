"""How does another command get into a running container? It takes on its environment, its root and its directory.

Run beside the agent, as the supervisor is; needs the standard library only.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import sys
import termios

from octarbiter.cluster.nodeagent.runtimes import cgroups, namespaces, supervisor


def main(directory: str, *command: str) -> None:
    os.chdir(directory)
    if os.isatty(0):
        with contextlib.suppress(OSError):
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)  # ours now: Ctrl-C typed into it reaches the command
    with open("spawn.json", "rb") as file:
        spawn = json.load(file)
    with open("record.json", "rb") as file:
        record = json.load(file)
    cgroups.join(record.get("groups", ()))
    try:
        if spawn["mounts"]:
            is_user = os.readlink("/proc/self/ns/user") != os.readlink(f"/proc/{record['pid']}/ns/user")
            # Looked at when its namespaces are open: then they are those of the process that was recorded.
            namespaces.join(record["pid"], is_user, lambda: supervisor.start_of(record["pid"]) == record["start"])
        os.chdir(spawn["cwd"])
        os.execvpe(command[0], list(command), spawn["env"])  # noqa: S606
    except FileNotFoundError as problem:
        sys.stderr.write(f"cannot run {command[0]!r}: {problem.strerror}\n")
        sys.exit(127)
    except OSError as problem:
        sys.stderr.write(f"cannot run {command[0]!r}: {problem}\n")
        sys.exit(126)
