"""How is a whole Kubernetes had in one step, inside a test or beside a person's terminal?

`Testbed` is one, for as long as a `with` block lasts. `up` starts one that stays when the caller has gone: a supervisor
process (this module, run) holds the bed and takes it down when told to by `down`, or when any part of it ends. The
supervisor holds a lock while it lives, so "is it running?" is never guessed from a process id.
"""

import argparse
import contextlib
import dataclasses
import fcntl
import json
import os
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import FrameType, TracebackType
from typing import NoReturn, Self, TextIO

from octarbiter.testing.kubernetes import build, certificates, controlplane, fakenodes, node, processes

# Linux' struct flock: kind, whence, start, length, pid.
_FLOCK = "hhqqi4x"


class Testbed:
    """A control plane with `fake_nodes` fake nodes and, if asked for and possible here, a real one.

    A real node that is not possible is left out with one line on `stream` (stderr); `left_out` says so, too.
    """

    __test__ = False  # pytest takes every class called Test... for tests

    def __init__(
        self,
        *,
        fake_nodes: int = 5,
        resources: Mapping[str, str] | None = None,
        real_node: bool = False,
        fsync: bool = False,
        stream: TextIO | None = None,
    ) -> None:
        self._count = fake_nodes
        self._resources = resources
        self._wants_real_node = real_node
        self._fsync = fsync
        self._stream = stream or sys.stderr
        self._stack = contextlib.ExitStack()
        self.left_out: str | None = None
        self.real_node: node.RealNode | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        if self._wants_real_node and (problem := node.RealNode.unavailable()):
            self.left_out = problem
            print(f"LEFT OUT: {problem}", file=self._stream, flush=True)
        with contextlib.ExitStack() as stack:
            build.ensure(self._programs(), self._stream)
            address, names = "127.0.0.1", list[str]()
            if self._wants_real_node and not self.left_out:
                self.real_node = stack.enter_context(node.RealNode())
                address, names = self.real_node.bind_address, [self.real_node.name]
            self.control_plane = stack.enter_context(
                controlplane.ControlPlane(
                    bind_address=address, node_names=names, fsync=self._fsync, stream=self._stream
                )
            )
            self.fake_nodes = stack.enter_context(
                fakenodes.FakeNodes(self.control_plane, self._count, resources=self._resources)
            )
            if self.real_node:
                self.real_node.start(self.control_plane)
                # Before the control plane, which its pods and kubelet would otherwise miss.
                stack.callback(self.real_node.stop)
            self._stack = stack.pop_all()

    def stop(self) -> None:
        self._stack.close()

    def _programs(self) -> list[str]:
        return [name for name in build.PROGRAMS if name != "kubelet" or (self._wants_real_node and not self.left_out)]


@dataclasses.dataclass(frozen=True, slots=True)
class Status:
    """What a person needs to know of the bed that is up."""

    pid: int
    since: str
    url: str
    kubeconfig: str
    nodes: list[str]
    left_out: str | None
    components: dict[str, int]


class NotUp(Exception):
    """The bed did not come up, is up already, or is not ours to take down."""


def up(
    *,
    fake_nodes: int = 5,
    resources: Mapping[str, str] | None = None,
    real_node: bool = False,
    stream: TextIO | None = None,
) -> Status:
    """Start a bed that outlives this process. What it says while it starts (it may have to build) goes to `stream`."""
    stream = stream or sys.stderr
    if found := status():
        raise NotUp(f"a test bed is up already, since {found.since}: `octo testbed down` ends it")
    home = _home()
    arguments = [
        f"--fake-nodes={fake_nodes}",
        *(f"--resource={name}={count}" for name, count in (resources or {}).items()),
    ]
    arguments += ["--real-node"] if real_node else []
    with (home / "log").open("w") as log, (home / "log").open() as heard:
        supervisor = subprocess.Popen(
            [sys.executable, "-m", __name__, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=home,
            start_new_session=True,
        )
        try:
            while True:
                ended = supervisor.poll()
                stream.write(heard.read())
                stream.flush()
                if found := status():
                    return found
                if ended is not None:
                    raise NotUp(f"the test bed did not come up:\n{processes.tail(home / 'log')}")
                time.sleep(0.1)
        except KeyboardInterrupt:
            supervisor.terminate()
            supervisor.wait()
            raise


def down() -> bool:
    """Take down what `up` started; False if there was nothing. Returns when all of it has ended."""
    pid = _holder()
    if pid is None:
        return False
    if pid < 1:
        raise NotUp("the test bed was started outside of this container and can only be taken down there")
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)
    with _lock_file() as lock:
        fcntl.lockf(lock, fcntl.LOCK_EX)
    return True


def status() -> Status | None:
    """The bed that is up and ready, if there is one."""
    pid = _holder()
    try:
        found = Status(**json.loads((_home() / "state.json").read_text()))
    except FileNotFoundError:
        return None
    # Of a supervisor that was killed the state stays behind.
    return found if found.pid == pid else None


def _home() -> Path:
    home = build.cache_home() / "testbed"
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    return home


def _lock_file() -> TextIO:
    return (_home() / "lock").open("a+")


def _holder() -> int | None:
    """The process that holds the lock. The kernel knows, and forgets it in the moment the process ends."""
    question = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
    with _lock_file() as lock:
        kind, _, _, _, pid = struct.unpack(_FLOCK, fcntl.fcntl(lock, fcntl.F_GETLK, question))
    return None if kind == fcntl.F_UNLCK else int(pid)


def _supervise(fake_nodes: int, resources: Mapping[str, str], real_node: bool) -> None:
    home = _home()
    with _lock_file() as lock:
        try:
            fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise NotUp("a test bed is up already, or comes up just now") from None
        signal.signal(signal.SIGTERM, _leave)
        state, kubeconfig = home / "state.json", home / "kubeconfig"
        try:
            with Testbed(fake_nodes=fake_nodes, resources=resources, real_node=real_node) as bed:
                # In a place that stays the same, so that a shell's KUBECONFIG is right for the next bed as well.
                certificates.write_secret(kubeconfig, bed.control_plane.kubeconfig.read_bytes())
                _write(state, _status_of(bed, kubeconfig))
                _watch(bed)
        finally:
            state.unlink(missing_ok=True)
            kubeconfig.unlink(missing_ok=True)


def _leave(number: int, frame: FrameType | None) -> NoReturn:
    # Once is enough; a second signal must not break off the cleaning up.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.exit(0)


def _watch(bed: Testbed) -> None:
    components = bed.control_plane.pids
    while components.keys() == bed.control_plane.pids.keys():
        time.sleep(1)
    ended = components.keys() - bed.control_plane.pids.keys()
    for name in ended:
        print(f"{name} has ended; the end of what it said:\n{bed.control_plane.logs(name)[-2000:]}", flush=True)


def _status_of(bed: Testbed, kubeconfig: Path) -> Status:
    nodes = bed.control_plane.request("GET", "/api/v1/nodes")["items"]
    return Status(
        pid=os.getpid(),
        since=time.strftime("%Y-%m-%d %H:%M:%S"),
        url=bed.control_plane.url,
        kubeconfig=str(kubeconfig),
        nodes=[found["metadata"]["name"] for found in nodes],
        left_out=bed.left_out,
        components=bed.control_plane.pids,
    )


def _write(file: Path, found: Status) -> None:
    unfinished = file.with_suffix(".new")
    unfinished.write_text(json.dumps(dataclasses.asdict(found)))
    os.replace(unfinished, file)


def main() -> None:
    parser = argparse.ArgumentParser(description="Hold a Kubernetes test bed until told to end it (SIGTERM).")
    parser.add_argument("--fake-nodes", type=int, default=5)
    parser.add_argument("--resource", action="append", default=[], metavar="NAME=COUNT")
    parser.add_argument("--real-node", action="store_true")
    chosen = parser.parse_args()
    resources = dict(pair.split("=", 1) for pair in chosen.resource)
    try:
        _supervise(chosen.fake_nodes, resources, chosen.real_node)
    except (NotUp, build.Unavailable, processes.StartFailed, OSError) as problem:
        sys.exit(f"{problem}")


if __name__ == "__main__":
    main()
