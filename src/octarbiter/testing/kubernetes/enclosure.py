"""How can a kubelet and a container runtime live on a person's machine and leave no trace on it?

An enclosure is one process with a process, mount and network namespace of its own; everything of the node is started
inside. The kernel then does the cleaning: when that first process ends, each process inside is killed, container
shims that detached themselves included, and with the last of them go the mounts and the network. Looking for
leftovers by name or pid could miss some, or hit a stranger.

The first process ends when its standard input does. Only its owner holds the other end, so it also ends when the
owner is killed. The kernel then leaves a directory (see `scratch`) and empty cgroups, which `sweep` removes.

The enclosure is joined to the machine by one veth pair and to nothing else: 10.201.N.1 is the machine, 10.201.N.2 the
node, the upper half of 10.201.N.0/24 is for pods, and there is no default route.
"""

import contextlib
import ipaddress
import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from octarbiter.testing.kubernetes import scratch

_NAME = "octarbiter-node"
_NETWORKS = tuple(ipaddress.IPv4Network("10.201.0.0/16").subnets(new_prefix=24))
_UNSHARE = ("unshare", "--mount", "--pid", "--net", "--fork", "--kill-child", "--mount-proc")
_CGROUPS = Path("/sys/fs/cgroup")
_FIRST_PROCESS = Path(__file__).with_name("enclosure.sh")


class Enclosure:
    """`directory` is seen from both sides and lies on disk; `private`, inside it, only from inside and in memory."""

    def __init__(self) -> None:
        """Make one; to have it gone, `close` it or end. OSError says in words what the machine does not allow."""
        self._scratch = scratch.Scratch()
        self.directory = self._scratch.directory
        self.private = self.directory / "private"
        self.private.mkdir()
        self.cgroup = f"/{_NAME}-{self.directory.name.rpartition('-')[2]}"
        self._first: subprocess.Popen[str] | None = None
        self._link: str | None = None
        try:
            self._first = self._start()
            self._first_pid = int(Path(f"/proc/{self._first.pid}/task/{self._first.pid}/children").read_text())
            self._link, network = _join(self._first_pid)
            self.machine_address, self.node_address = str(network[1]), str(network[2])
            self.pod_network = list(network.subnets(1))[1]
            self._assign(network)
        except BaseException:
            self.close()
            raise

    def command(self, *arguments: str | Path) -> list[str]:
        """The command line that runs `arguments` inside. Not `ip netns exec`: that hides the cgroups."""
        nsenter = shutil.which("nsenter") or "nsenter"
        return [nsenter, f"--target={self._first_pid}", "--mount", "--pid", "--net", "--", *map(str, arguments)]

    @property
    def environment(self) -> Mapping[str, str]:
        """For what runs inside for long. No proxy: all it may speak to is on this machine."""
        return {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": str(self.private),
            "TMPDIR": str(self.private),
        }

    def run(self, *arguments: str | Path) -> str:
        return _run(*self.command(*arguments))

    def close(self) -> None:
        """May be called again. When it returns, no process, mount, link, cgroup or file of the enclosure is left."""
        if self._first is not None:
            for pipe in (self._first.stdin, self._first.stdout):
                assert pipe is not None
                pipe.close()
            try:
                self._first.wait(timeout=10)
            except subprocess.TimeoutExpired:
                self._first.kill()
                self._first.wait()
            self._first = None
        if self._link is not None:
            # The kernel removes it a little after the last process; gone already is as good.
            subprocess.run(["ip", "link", "delete", self._link], check=False, capture_output=True)
            self._link = None
        _remove_cgroups(self.cgroup)
        self._scratch.remove()

    def _start(self) -> subprocess.Popen[str]:
        complaints = self.directory / "first-process.log"
        with open(complaints, "w") as log:
            first = subprocess.Popen(
                [*_UNSHARE, "sh", str(_FIRST_PROCESS), str(self.directory), self.cgroup],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                # Ctrl-C is for the owner alone.
                start_new_session=True,
            )
        assert first.stdout is not None
        if first.stdout.readline() != "ready\n":
            first.kill()
            first.communicate()
            raise OSError(f"cannot make the namespaces of a node: {complaints.read_text().strip()}")
        return first

    def _assign(self, network: ipaddress.IPv4Network) -> None:
        assert self._link is not None
        _run("ip", "address", "add", f"{network[1]}/30", "dev", self._link)
        _run("ip", "link", "set", self._link, "up")
        self.run("ip", "address", "add", f"{network[2]}/30", "dev", "eth0")
        self.run("ip", "link", "set", "eth0", "up")
        _run("ip", "route", "add", str(self.pod_network), "via", str(network[2]))


def impossible() -> str | None:
    """Why this machine allows no enclosure, in one sentence, or None."""
    if os.geteuid() != 0:
        return "a real node needs root (namespaces, mounts and cgroups); run the tests as root"
    try:
        _run(*_UNSHARE, "true")
    except OSError as problem:
        return f"a real node needs mount, pid and network namespaces, which this machine refuses: {problem}"
    return None


def sweep() -> None:
    """Remove the cgroups of enclosures that ended because their owner was killed."""
    alive = {_cgroup_of(entry) for entry in Path("/proc").iterdir() if entry.name.isdigit()}
    for group in _cgroups(f"{_NAME}-*"):
        if f"/{group.name}" not in alive:
            _remove_cgroups(f"/{group.name}")


def _join(inside_pid: int) -> tuple[str, ipaddress.IPv4Network]:
    taken = _networks_in_use()
    for number, network in enumerate(_NETWORKS):
        if any(network.overlaps(other) for other in taken):
            continue
        link = f"octo{number}"
        try:
            # Two names on one machine cannot be equal, so this also settles who has the network.
            _run("ip", "link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", str(inside_pid))
        except OSError as problem:
            if "exists" in str(problem):
                continue
            raise
        return link, network
    raise OSError("no free network for a node in 10.201.0.0/16: `ip route` shows who holds them")


def _networks_in_use() -> list[ipaddress.IPv4Network]:
    routes = json.loads(_run("ip", "-json", "-4", "route", "show", "table", "all"))
    names = {route["dst"] for route in routes} - {"default"}
    # Wide routes (a tunnel's 10.0.0.0/8) are no obstacle: ours are narrower and win.
    return [network for name in names if (network := ipaddress.IPv4Network(name)).prefixlen >= 16]


def _cgroup_of(process: Path) -> str | None:
    """The cgroup of the enclosure this is the first process of; None for any other process."""
    try:
        arguments = (process / "cmdline").read_text(errors="replace").split("\0")
    except OSError:
        return None
    return arguments[-2] if len(arguments) > 4 and Path(arguments[-4]).name == _FIRST_PROCESS.name else None


def _cgroups(pattern: str) -> list[Path]:
    """In the one hierarchy of cgroup v2, or in each of v1's."""
    return [*_CGROUPS.glob(pattern), *_CGROUPS.glob(f"*/{pattern}")]


def _remove_cgroups(name: str) -> None:
    for top in _cgroups(name.removeprefix("/")):
        for group, _, _ in os.walk(top, topdown=False):
            # Somebody else may be sweeping, too.
            with contextlib.suppress(FileNotFoundError):
                os.rmdir(group)


def _run(*command: str | Path) -> str:
    done = subprocess.run([*map(str, command)], check=False, capture_output=True, text=True)
    if done.returncode != 0:
        raise OSError(f"`{' '.join(map(str, command))}` failed ({done.returncode}): {done.stderr.strip()}")
    return done.stdout
