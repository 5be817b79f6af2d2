"""Waits until TaskSets have come to a goal, by watching them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import aclosing

import click

from octarbiter.api import errors, scheme
from octarbiter.api import taskset as api
from octarbiter.cli import exits, following, goals, text
from octarbiter.runtime.client import Client

Target = tuple[str, str]
"""Namespace and name."""


async def until(
    client: Client, targets: Sequence[Target], goal: goals.Goal, timeout_s: float | None, *, to_the_end: bool = False
) -> None:
    """Returns when all have reached the goal; ends the command when one cannot, or (`to_the_end`) when all have ended.

    Each verdict is printed, changes on the way go to stderr.
    """
    waits = [_Wait(client, target, goal) for target in targets]
    await asyncio.gather(*(wait.look() for wait in waits))
    if all(wait.verdict for wait in waits) or not to_the_end:
        _end_if_missed(waits)
    try:
        async with asyncio.timeout(timeout_s):
            if timeout_s == 0 and any(wait.verdict is None for wait in waits):
                raise TimeoutError
            for done in asyncio.as_completed([wait.follow() for wait in waits]):
                await done
                if not to_the_end:
                    _end_if_missed(waits)
    except TimeoutError:
        open_ = [f"{wait.name} {goals.present(wait.seen)}" for wait in waits if wait.verdict is None]
        head = f"gave up after {text.duration(timeout_s)}:" if timeout_s else "not yet:"
        raise exits.Failure(exits.Exit.TIMEOUT, "\n".join([head, *open_])) from None
    _end_if_missed(waits)


async def until_all_end(client: Client, targets: Sequence[Target], timeout_s: float | None) -> None:
    await until(client, targets, goals.Goal("succeeded"), timeout_s, to_the_end=True)


def _end_if_missed(waits: Sequence[_Wait]) -> None:
    missed = [wait for wait in waits if wait.verdict is not None and wait.verdict.exit is not exits.Exit.OK]
    if missed:
        sentences = [f"{wait.name} {wait.verdict.sentence}" for wait in missed if wait.verdict]
        raise exits.Failure(max(wait.verdict.exit for wait in missed if wait.verdict), "\n".join(sentences))


class _Wait:
    def __init__(self, client: Client, target: Target, goal: goals.Goal) -> None:
        self._client, self._goal = client, goal
        self._namespace, name = target
        self._name = name
        self.name = f"taskset/{name}"
        self.seen: api.TaskSet | None = None
        self.verdict: goals.Verdict | None = None
        self._uid = ""
        self._told: tuple[str, int] | None = None

    async def look(self) -> None:
        """Now; what does not exist cannot be waited for, except for its absence."""
        try:
            self.seen = await self._client.get(scheme.TASKSETS, self._namespace, self._name)
            self._uid = self.seen.metadata.uid
        except errors.NotFound:
            if self._goal.word != "deleted":
                raise
        self._judge()

    async def follow(self) -> None:
        if self.verdict is not None:
            return
        states = following.states(self._client, scheme.TASKSETS, self._namespace, self._name)
        async with aclosing(states):
            async for self.seen in states:
                self._judge()
                if self.verdict is not None:
                    return
                self._tell()

    def _judge(self) -> None:
        self.verdict = goals.judge(self._goal, self.seen, self._uid)
        if self.verdict is not None and self.verdict.exit is exits.Exit.OK:
            click.echo(f"{self.name} {self.verdict.sentence}")

    def _tell(self) -> None:
        if self.seen is not None and self._told != (self.seen.status.state, self.seen.status.attempt):
            self._told = (self.seen.status.state, self.seen.status.attempt)
            click.echo(f"{self.name} {goals.present(self.seen)}", err=True)
