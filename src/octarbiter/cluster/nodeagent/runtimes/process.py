"""How do containers run as processes of this user?

Each run of a container has a directory (`places`) and a supervisor (`supervisor`) that outlives the agent. What is true
about a run is read from its directory: `exit.json` there: it ended; the lock held: it runs; a record, but nobody holds
the lock: its supervisor was killed, and it with it; no record: it has never run. So a new agent knows as much as the
old one did, and starts nothing twice.

Limits: images are not pulled, the command must exist on this machine; there is no isolation beyond mounts; limits of
CPU and memory are enforced where control groups can be made (`cgroups`), elsewhere those of memory only, and only for
pods annotated `node.octarbiter/memory-limits: enforced` (an rlimit: allocations fail, nothing is OOM-killed);
containers share the network of the machine, so ports must differ.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import secrets
import shutil
import subprocess
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec

from octarbiter.api import codec, errors
from octarbiter.cluster.nodeagent import environment, handlers, logs, news, volumes
from octarbiter.cluster.nodeagent.places import Places
from octarbiter.cluster.nodeagent.pods import Container, Handler, Pod
from octarbiter.cluster.nodeagent.runtimes import (
    attaching,
    cgroups,
    commands,
    ending,
    launch,
    outcomes,
    plans,
    records,
    strays,
)
from octarbiter.cluster.nodeagent.runtimes.protocol import Answer, Listener, NotPrepared, Output, Place, Size
from octarbiter.cluster.nodeagent.sources import Sources

STARTS_AT_ONCE: Final = 8
START_TIMEOUT_S: Final = 60.0
KEPT_RUNS: Final = 2
"""Of a container, with their logs: this one and the one before."""


class ProcessRuntime:
    scheme = "process"
    is_real = True

    def __init__(
        self,
        root: Path,
        sources: Sources,
        inherited: Mapping[str, str] | None = None,
        groups: Mapping[str, cgroups.Home] | None = None,
    ) -> None:
        """`inherited`: the environment of which a few variables reach the containers; by default our own. `groups`:
        where control groups can be made; by default where the kernel lets us."""
        self.places = Places(root)
        self._claim = self.places.claim()
        self._sources = sources
        self.can_mount = subprocess.run(launch.namespaces(), env={}, capture_output=True).returncode == 0
        """Volumes appear at their mount paths."""
        inherited = os.environ if inherited is None else inherited
        found = cgroups.homes() if groups is None else groups
        self._plans = plans.Plans(self.places, sources, inherited, self.scheme, self.can_mount, found)
        self._listener: Listener = lambda uid, event: None
        self._starts = asyncio.Semaphore(STARTS_AT_ONCE)
        self._watched: dict[int, subprocess.Popen[bytes] | None] = {}  # by pidfd; None: an earlier agent's child
        self._runs: dict[tuple[str, str, int], int] = {}  # which are watched

    def attach(self, listener: Listener) -> None:
        self._listener = listener

    def changed(self, pod: Pod) -> None:
        """A process has what it was started with."""

    def is_silent(self, pod: Pod) -> bool:
        return False

    # What was before.

    async def remembered(self) -> Sequence[Pod]:
        found = []
        for directory in self.places.pods.iterdir():
            with contextlib.suppress(OSError, msgspec.MsgspecError):
                found.append(codec.decode((directory / "pod.json").read_bytes(), Pod))
        return found

    async def known(self, pod: Pod) -> Sequence[news.Run]:
        found = []
        for container in (*pod.spec.init_containers, *pod.spec.containers):
            for attempt in list(self.places.attempts(pod.metadata.uid, container.name)):
                run = await self._find(pod, container, attempt)
                if run is not None:
                    found.append(run)
        return found

    async def _find(self, pod: Pod, container: Container, attempt: int) -> news.Run | None:
        """None: it never began, and never will."""
        directory = self.places.run(pod.metadata.uid, container.name, attempt)
        deadline = asyncio.get_running_loop().time() + START_TIMEOUT_S
        while True:
            record, ended = records.read(directory / "record.json"), records.read(directory / "exit.json")
            if ended is not None:
                return self._run(container, attempt, record, self._outcome(pod, container, attempt, ended))
            with records.locked(directory) as alone:
                if alone:
                    if record is None and not (directory / "record.json").exists():
                        (directory / "void").touch()  # for a supervisor that is only now beginning
                        break
                    if not (directory / "exit.json").exists():
                        strays.kill(record or {}, plans.MARK)
                        return self._run(container, attempt, record, outcomes.lost())
                    continue
            if record is not None and self._watch(pod, container, attempt, record):
                return self._run(container, attempt, record, None)
            if asyncio.get_running_loop().time() > deadline:
                raise TimeoutError(f"the supervisor of {directory} neither begins nor ends")
            await asyncio.sleep(0.01)  # it is about to begin, or to end
        directory.rename(directory.with_name(f"void-{secrets.token_hex(4)}"))
        return None

    def _run(
        self, container: Container, attempt: int, record: dict[str, Any] | None, outcome: news.Outcome | None
    ) -> news.Run:
        record = record or {}
        started_at = datetime.fromtimestamp(record["at"], UTC) if "at" in record else None
        return news.Run(container.name, attempt, record.get("id", ""), started_at, outcome)

    # Starting.

    async def prepare(self, pod: Pod, place: Place) -> None:
        uid = pod.metadata.uid
        try:
            self.places.volumes(uid).mkdir(mode=0o700, parents=True, exist_ok=True)
            records.write(self.places.pod(uid) / "pod.json", codec.encode(pod))
            await volumes.make(pod, place, self.places.volumes(uid), self._sources)
        except (OSError, ValueError) as problem:
            raise NotPrepared(str(problem)) from problem

    async def start(self, pod: Pod, container: str, attempt: int, place: Place) -> None:
        async with self._starts:
            spec = pod.container(container)
            try:
                spawn = await self._plans.make(pod, spec, attempt, place)
            except (environment.Missing, errors.ApiError, errors.Refused, OSError, ValueError) as problem:
                self._tell(pod, news.ConfigurationFailed(container, attempt, str(problem)))
                return
            if not spawn["argv"]:
                self._tell(pod, outcomes.start_error(container, attempt, spawn["id"], plans.no_command(spec)))
                return
            await self._begin(pod, spec, attempt, spawn)

    async def _begin(self, pod: Pod, spec: Container, attempt: int, spawn: dict[str, Any]) -> None:
        directory = self.places.run(pod.metadata.uid, spec.name, attempt)
        try:
            directory.mkdir(mode=0o700, parents=True)  # one that exists is a start that happened: never again
            (directory / "termination-log").touch(mode=0o600)
            records.write(directory / "spawn.json", json.dumps(spawn).encode())
            Path(spawn["log"]).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._forget_old_runs(pod, spec, attempt)
            process = subprocess.Popen(  # noqa: ASYNC220 - it does not wait for the process
                launch.supervisor(directory),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={},
                start_new_session=True,
            )
        except OSError as problem:
            self._tell(pod, outcomes.start_error(spec.name, attempt, spawn["id"], str(problem)))
            return
        try:
            word = await _answer(process)
            if not word:
                process.kill()  # it hangs, or is dead: nothing is to begin any more
        finally:
            fd = os.pidfd_open(process.pid)
            record = records.read(directory / "record.json")
            if record is not None:
                at = datetime.fromtimestamp(record["at"], UTC)
                if word == b"started":
                    self._tell(pod, news.ContainerStarted(spec.name, attempt, spawn["id"], at))
            self._watch_fd(fd, pod, spec, attempt, process)

    def _forget_old_runs(self, pod: Pod, spec: Container, attempt: int) -> None:
        for old in list(self.places.attempts(pod.metadata.uid, spec.name)):
            if old <= attempt - KEPT_RUNS:
                shutil.rmtree(self.places.run(pod.metadata.uid, spec.name, old), ignore_errors=True)
                logs.remove(self.places.log(pod, spec.name, old))

    # Watching.

    def _watch(self, pod: Pod, container: Container, attempt: int, record: dict[str, Any]) -> bool:
        """Whether the supervisor that an earlier agent started is there to be watched."""
        if (pod.metadata.uid, container.name, attempt) in self._runs:
            return True
        fd = strays.open_process(record.get("supervisor", 0), record.get("supervisorStart", 0), record.get("boot", ""))
        if fd is None:
            return False
        self._watch_fd(fd, pod, container, attempt, None)
        return True

    def _watch_fd(
        self, fd: int, pod: Pod, container: Container, attempt: int, process: subprocess.Popen[bytes] | None
    ) -> None:
        self._watched[fd] = process
        self._runs[pod.metadata.uid, container.name, attempt] = fd
        asyncio.get_running_loop().add_reader(fd, self._ended, fd, pod, container, attempt)

    def _ended(self, fd: int, pod: Pod, container: Container, attempt: int) -> None:
        asyncio.get_running_loop().remove_reader(fd)
        process = self._watched.pop(fd)
        self._runs.pop((pod.metadata.uid, container.name, attempt), None)
        os.close(fd)
        if process is not None:
            process.wait()
        directory = self.places.run(pod.metadata.uid, container.name, attempt)
        record, ended = records.read(directory / "record.json"), records.read(directory / "exit.json")
        if ended is None:
            # Somebody killed the supervisor. What it left behind must not run on unseen.
            strays.kill(record or {}, plans.MARK)
            outcome = outcomes.lost()
        else:
            outcome = self._outcome(pod, container, attempt, ended)
        self._tell(pod, news.ContainerEnded(container.name, attempt, outcome, (record or {}).get("id", "")))

    def _outcome(self, pod: Pod, container: Container, attempt: int, ended: dict[str, Any]) -> news.Outcome:
        directory = self.places.run(pod.metadata.uid, container.name, attempt)
        return outcomes.read(
            container, ended, directory / "termination-log", self.places.log(pod, container.name, attempt)
        )

    # Acting on what runs.

    def send_signal(self, pod: Pod, container: str, attempt: int, signal: str) -> None:
        ending.tell(self.places.run(pod.metadata.uid, container, attempt), signal)

    async def act(
        self, pod: Pod, container: str, attempt: int, handler: Handler, place: Place, timeout_s: float
    ) -> Answer:
        if handler.exec is not None:
            directory = self.places.run(pod.metadata.uid, container, attempt)
            return await commands.answer(directory, handler.exec.command, timeout_s)
        address = place.host_ip if pod.spec.host_network else place.pod_ip
        return await handlers.act(pod.container(container), handler, address, timeout_s)

    async def execute(
        self,
        pod: Pod,
        container: str,
        command: Sequence[str],
        *,
        stdout: Output,
        stderr: Output | None = None,
        stdin: AsyncIterator[bytes] | None = None,
        tty: bool = False,
        sizes: AsyncIterator[Size] | None = None,
    ) -> int:
        directory = self._running(pod, container)
        return await commands.execute(
            directory, command, stdout=stdout, stderr=stderr, stdin=stdin, tty=tty, sizes=sizes
        )

    async def type_into(
        self, pod: Pod, container: str, stdin: AsyncIterator[bytes] | None, sizes: AsyncIterator[Size] | None = None
    ) -> None:
        once = pod.container(container).stdin_once
        await attaching.type_into(self._running(pod, container), stdin, sizes, once=once)

    def _running(self, pod: Pod, container: str) -> Path:
        """The directory of the run; raises LookupError."""
        for attempt in reversed(list(self.places.attempts(pod.metadata.uid, container))):
            directory = self.places.run(pod.metadata.uid, container, attempt)
            if (directory / "record.json").exists() and not (directory / "exit.json").exists():
                return directory
        raise LookupError(f'container "{container}" of pod "{pod.metadata.name}" is not running')

    def read_logs(
        self, namespace: str, pod: str, container: str, query: logs.Query, *, uid: str = "", previous: bool = False
    ) -> AsyncIterator[bytes]:
        path = logs.find(self.places, namespace, pod, container, uid=uid, previous=previous)
        run = self.places.run(path.parents[1].name.rpartition("_")[2], container, int(path.stem))
        return logs.read(path, query, lambda: (run / "exit.json").exists() or not run.exists())

    async def release(self, pod: Pod) -> None:
        await asyncio.to_thread(self._clear, self.places.pod(pod.metadata.uid))

    def _clear(self, directory: Path) -> None:
        for record in directory.glob("containers/*/runs/*/record.json"):
            cgroups.remove((records.read(record) or {}).get("groups", ()))  # a supervisor that was killed could not
        shutil.rmtree(directory, ignore_errors=True)
        logs.prune(self.places)

    async def close(self) -> None:
        loop = asyncio.get_running_loop()
        for fd, process in self._watched.items():
            loop.remove_reader(fd)
            os.close(fd)
            if process is not None:
                process.returncode = 0  # it goes on without us, and that is no reason to warn
        self._watched.clear()
        self._runs.clear()
        os.close(self._claim)

    def _tell(self, pod: Pod, event: news.Event) -> None:
        self._listener(pod.metadata.uid, event)


async def _answer(process: subprocess.Popen[bytes]) -> bytes:
    """The supervisor's one word; empty if it died without one."""
    assert process.stdout is not None
    fd = process.stdout.fileno()
    try:
        async with asyncio.timeout(START_TIMEOUT_S):
            await records.readable(fd)
        return os.read(fd, 64)
    except TimeoutError:
        return b""
    finally:
        process.stdout.close()
