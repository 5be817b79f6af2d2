"""Whose logs are meant, and how are several printed at once?"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterable
from contextlib import aclosing

import click
import msgspec

from octarbiter.api import errors, scheme
from octarbiter.api import taskset as api
from octarbiter.api.pod import Pod
from octarbiter.cli import exits, following, text
from octarbiter.core.lifecycle import names, observe, report
from octarbiter.runtime import backoff, clock, requests
from octarbiter.runtime.client import Client

FEW = 10
"""More replicas are not printed in one heap unless somebody wants it."""
MANY = 500
"""Each one that is followed takes a connection."""
TRIES = 5

Replica = tuple[str, int]
"""Role and index."""


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    role: str | None = None
    index: int | None = None
    container: str = ""
    tail: int | None = None
    previous: bool = False
    timestamps: bool = False
    everyone: bool = False


def chosen(taskset: api.TaskSet, choice: Choice) -> list[Replica]:
    """The replicas that are meant, in the order of the spec."""
    roles = [role for role in taskset.spec.roles if choice.role in (None, role.name)]
    if not roles:
        known = ", ".join(role.name for role in taskset.spec.roles)
        raise exits.Failure(exits.Exit.NOT_FOUND, f"there is no role {choice.role}; there are: {known}")
    found = [(role.name, index) for role in roles for index in range(role.replicas) if choice.index in (None, index)]
    if not found:
        sizes = ", ".join(f"{role.name} {role.replicas}" for role in roles)
        raise exits.Failure(
            exits.Exit.NOT_FOUND, f"there is no replica {choice.index}, they count from 0; there are: {sizes}"
        )
    if len(found) > FEW and not choice.everyone:
        raise exits.Failure(
            exits.Exit.INVALID, f"{len(found)} replicas match: choose with --role and --index, or say --all"
        )
    return found


def newest(pods: Iterable[Pod]) -> dict[Replica, Pod]:
    """The pod of each replica's last attempt."""
    found: dict[Replica, Pod] = {}
    for pod in sorted(pods, key=lambda pod: names.attempts_of_pod(pod.metadata.name) or (-1, -1)):
        found[replica_of(pod)] = pod
    return found


def replica_of(pod: Pod) -> Replica:
    labels = pod.metadata.labels
    index = labels.get(names.INDEX_LABEL, "")
    return labels.get(names.ROLE_LABEL, ""), int(index) if index.isdigit() else -1


def has_spoken(pod: Pod, container: str) -> bool:
    """Its container runs or has run, so there is a log to read."""
    statuses = (*pod.status.container_statuses, *pod.status.init_container_statuses)
    state = next((status.state for status in statuses if status.name == container), None)
    return state is not None and (state.running is not None or state.terminated is not None)


def absence(taskset: api.TaskSet, replica: Replica) -> str:
    """Why there is no log of it."""
    name = names.hostname(*replica)
    roles = {role.name: role for role in report.expand(taskset.status).role_status}
    known = roles[replica[0]].replica_status if replica[0] in roles else []
    status = next((status for status in known if status.index == replica[1]), None)
    if status is None or not (status.pod_name or status.outcome):
        why = f": {text.line(status.phase_message)}" if status is not None and status.phase_message else ""
        return f"{name} has no pod yet{why}"
    kept = taskset.spec.pod_retention
    told = f"the pod of {name} is removed (spec.podRetention is {kept}; All or Failed would keep it)"
    end = status.terminated_info
    if end is None:
        return told
    words = f": {text.line(end.exit_message)}" if end.exit_message else ""
    return f"{told}; it ended with exit code {end.exit_code}{words}"


Write = Callable[[bytes], None]
"""Takes one line, without its end."""


async def follow(client: Client, taskset: api.TaskSet, choice: Choice, write: Write) -> None:
    """Until the TaskSet has ended and every log has been read to its end."""
    await _Reader(client, taskset, chosen(taskset, choice), choice, write).follow()


def _write_out(line: bytes) -> None:
    sys.stdout.buffer.write(line + b"\n")
    sys.stdout.buffer.flush()


async def show(client: Client, namespace: str, name: str, choice: Choice, follow: bool) -> None:
    taskset = await client.get(scheme.TASKSETS, namespace, name)
    replicas = chosen(taskset, choice)
    if follow and len(replicas) > MANY:
        raise exits.Failure(exits.Exit.INVALID, f"at most {MANY} replicas can be followed at once")
    reader = _Reader(client, taskset, replicas, choice, _write_out)
    if follow:
        await reader.follow()
    else:
        await reader.print_once()


class _Reader:
    def __init__(
        self, client: Client, taskset: api.TaskSet, replicas: list[Replica], choice: Choice, write: Write
    ) -> None:
        self._client, self._taskset, self._choice, self._write = client, taskset, choice, write
        self._replicas = replicas
        self._selector = f"{names.UID_LABEL}={taskset.metadata.uid}"
        if choice.role is not None:
            self._selector += f",{names.ROLE_LABEL}={choice.role}"
        if choice.index is not None:
            self._selector += f",{names.INDEX_LABEL}={choice.index}"
        self._main = {role.name: observe.main_container(role.template) for role in taskset.spec.roles}
        self._heard: dict[str, float] = {}
        """When each pod's last line came."""

    async def print_once(self) -> None:
        namespace = self._taskset.metadata.namespace
        pods = newest(await self._client.list(scheme.PODS, namespace, label_selector=self._selector))
        reasons = []
        for replica in self._replicas:
            pod = pods.get(replica)
            if pod is None:
                reasons.append(absence(self._taskset, replica))
                continue
            try:
                await self._print(pod, follow=False)
            except errors.Unauthorized:
                raise
            except errors.ApiError as problem:
                reasons.append(f"{names.hostname(*replica)}: {problem}")
        if len(reasons) == len(self._replicas):
            raise exits.Failure(exits.Exit.NOT_FOUND, "\n".join(reasons))
        for reason in reasons:
            click.echo(reason, err=True)

    async def follow(self) -> None:
        """Until the TaskSet has ended and every log has been read to its end."""
        tails: dict[str, asyncio.Task[None]] = {}
        pods = asyncio.create_task(self._begin(tails))
        end = asyncio.create_task(self._until_the_end())
        try:
            await asyncio.wait({pods, end}, return_when=asyncio.FIRST_COMPLETED)
            for task in (pods, end):
                if task.done():
                    task.result()
            pods.cancel()
            await asyncio.gather(*tails.values())
            if not tails:
                told = "\n".join(absence(self._taskset, replica) for replica in self._replicas)
                raise exits.Failure(exits.Exit.NOT_FOUND, told)
        finally:
            for task in (pods, end, *tails.values()):
                task.cancel()

    async def _begin(self, tails: dict[str, asyncio.Task[None]]) -> None:
        """One reader for each pod, from the moment it has something to say."""
        wanted = set(self._replicas)
        namespace = self._taskset.metadata.namespace
        batches = following.changes(self._client, scheme.PODS, namespace, label_selector=self._selector)
        async with aclosing(batches):
            async for batch in batches:
                for pod in batch.values():
                    if pod is None or pod.metadata.uid in tails or replica_of(pod) not in wanted:
                        continue
                    if has_spoken(pod, self._container_of(pod)):
                        tails[pod.metadata.uid] = asyncio.create_task(self._tail(pod))

    async def _until_the_end(self) -> None:
        meta = self._taskset.metadata
        states = following.states(self._client, scheme.TASKSETS, meta.namespace, meta.name)
        async with aclosing(states):
            async for seen in states:
                if seen is None or seen.metadata.uid != meta.uid:
                    return
                self._taskset = seen
                if seen.status.state in (api.State.SUCCEEDED, api.State.FAILED):
                    return

    async def _tail(self, pod: Pod) -> None:
        name = names.hostname(*replica_of(pod))
        pauses = backoff.Backoff(0.5, 5.0)
        for _ in range(TRIES):
            heard = self._heard.get(pod.metadata.uid)
            since_s = int(clock.SYSTEM.monotonic() - heard) + 1 if heard is not None else None
            try:
                await self._print(pod, follow=True, since_s=since_s)
                return
            except errors.Retry as problem:
                click.echo(f"{name}: its log broke off, some lines may come twice: {problem}", err=True)
                await asyncio.sleep(pauses.next_pause(problem.after))
            except errors.ApiError as problem:
                click.echo(f"{name}: {problem}", err=True)
                return

    async def _print(self, pod: Pod, follow: bool, since_s: int | None = None) -> None:
        request = requests.log(
            pod.metadata.namespace,
            pod.metadata.name,
            container=self._container_of(pod),
            follow=follow,
            previous=self._choice.previous,
            timestamps=self._choice.timestamps,
            tail_lines=self._choice.tail if since_s is None else None,
            since_s=since_s,
        )
        prefix = f"{names.hostname(*replica_of(pod))}: ".encode() if len(self._replicas) > 1 else b""
        async with aclosing(self._client.stream_lines(request)) as lines:
            async for line in lines:
                self._write(prefix + line)
                if follow:
                    self._heard[pod.metadata.uid] = clock.SYSTEM.monotonic()

    def _container_of(self, pod: Pod) -> str:
        return self._choice.container or self._main.get(replica_of(pod)[0], "")
