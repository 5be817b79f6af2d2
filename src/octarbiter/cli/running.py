"""Creates what `octo run` was given, follows it to its end, and clears it away."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import aclosing, suppress

from octarbiter.api import errors, scheme
from octarbiter.api import taskset as api
from octarbiter.api.queuejob import QueueJob
from octarbiter.cli import claiming, creating, exits, following, replica_logs, shortage, text
from octarbiter.cli.showing import Manner
from octarbiter.cli.sources import Document
from octarbiter.cluster.controllers import kinds
from octarbiter.core.lifecycle import names
from octarbiter.runtime.client import Client

_ENDS = (api.State.SUCCEEDED, api.State.FAILED)
FEW = 50
"""So many replicas are listened to; more are not for one terminal."""


async def run(
    client: Client,
    namespace: str,
    documents: Sequence[Document],
    manner: Manner,
    timeout_s: float | None,
    *,
    keep: bool,
    alone: bool,
) -> None:
    """`alone`: nobody else can add to this cluster, so what it does not have will not come."""
    made = await creating.create(client, namespace, documents)
    targets = creating.tasksets(made, documents)
    try:
        with manner:
            followed = [_Followed(client, target, manner, alone) for target in targets]
            async with asyncio.timeout(timeout_s):
                await asyncio.gather(*(each.to_the_end() for each in followed))
    except TimeoutError:
        raise exits.Failure(exits.Exit.TIMEOUT, f"gave up after {text.duration(timeout_s or 0)}") from None
    finally:
        if not keep:
            await asyncio.shield(_remove(client, made))
    failed = [each.seen for each in followed if each.seen is not None and each.seen.status.state != api.State.SUCCEEDED]
    if failed:
        lines = [f"{taskset.metadata.name} failed: {text.line(taskset.status.state_message)}" for taskset in failed]
        raise exits.Failure(exits.Exit.FAILED, "\n".join(lines))


async def _remove(client: Client, made: Sequence[creating.Made]) -> None:
    for resource, body in reversed(made):
        meta = body["metadata"]
        try:
            await client.delete(
                resource, meta.get("namespace", ""), meta["name"], uid=meta["uid"], propagation="Background"
            )
        except (errors.NotFound, errors.Conflict):
            continue


class _Followed:
    def __init__(self, client: Client, target: tuple[str, str], manner: Manner, alone: bool) -> None:
        self._client, self._manner, self._alone = client, manner, alone
        self._namespace, self._name = target
        self._hinted: set[str] = set()
        self.seen: api.TaskSet | None = None
        self._claim: QueueJob | None = None

    async def to_the_end(self) -> None:
        logs: asyncio.Task[None] | None = None
        claims: asyncio.Task[None] | None = None
        states = following.states(self._client, scheme.TASKSETS, self._namespace, self._name)
        try:
            async with aclosing(states):
                async for taskset in states:
                    if taskset is None:
                        raise exits.Failure(exits.Exit.FAILED, f"{self._name} was deleted")
                    self.seen = taskset
                    self._show()
                    if claims is None and taskset.spec.queue:
                        claims = asyncio.create_task(self._follow_claim())
                    if logs is None and self._manner.wants_logs and _is_small(taskset):
                        choice = replica_logs.Choice(everyone=True)
                        logs = asyncio.create_task(
                            replica_logs.follow(self._client, taskset, choice, self._manner.printed)
                        )
                    if taskset.status.state in _ENDS:
                        break
                    if "Insufficient" in taskset.status.state_message:
                        await self._look_for_shortage(taskset)
            if logs is not None:
                await asyncio.gather(logs, return_exceptions=True)  # pods without a log are no failure of the run
        finally:
            for task in (logs, claims):
                if task is not None:
                    task.cancel()

    async def _follow_claim(self) -> None:
        """Why its queue holds it back is told beside it, and not in its own status."""
        claims = following.states(self._client, scheme.QUEUEJOBS, self._namespace, self._name)
        with suppress(errors.NotFound, errors.Forbidden):  # no queues there, or not for this person's eyes
            async with aclosing(claims):
                async for claim in claims:
                    self._claim = claim
                    if self.seen is not None and self.seen.spec.suspend:
                        self._show()

    def _show(self) -> None:
        if self.seen is not None:
            self._manner.saw(self.seen, claiming.waits_for(self.seen, self._claim))

    async def _look_for_shortage(self, taskset: api.TaskSet) -> None:
        selector = f"{names.UID_LABEL}={taskset.metadata.uid}"
        pods = await self._client.list(kinds.PODS, self._namespace, label_selector=selector)
        if all(pod.spec.node_name for pod in pods):
            return
        sentences = [found.sentence for found in shortage.find(pods, await self._client.list(kinds.NODES))]
        if sentences and self._alone:
            raise exits.Failure(exits.Exit.FAILED, "\n".join(f"{self._name}: {line}" for line in sentences))
        for sentence in sentences:
            if sentence not in self._hinted:
                self._hinted.add(sentence)
                self._manner.hint(f"{self._name}: {sentence}")


def _is_small(taskset: api.TaskSet) -> bool:
    return sum(role.replicas for role in taskset.spec.roles) <= FEW
