"""Deletes objects of any kind, and sees them gone."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import Any

import click
import msgspec

from octarbiter.api import errors
from octarbiter.api.meta import Object
from octarbiter.api.scheme import Resource
from octarbiter.cli import access, discovery, exits, following, sending, sources, text
from octarbiter.runtime.client import Client


class Target(msgspec.Struct, frozen=True):
    resource: Resource[Object]
    namespace: str
    name: str
    uid: str = ""
    """Once it is known: under that name another one may appear while we wait."""

    @property
    def shown(self) -> str:
        resource = self.resource
        return sending.short(
            {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": self.name}}
        )


def run(
    targets: Callable[[Client, str], Awaitable[Sequence[Target]]],
    cascade: str = "background",
    *,
    wait: bool,
    timeout_s: float | None,
    ignore_not_found: bool,
) -> None:
    """What a command with `arguments.waiting_for_the_end` does. `targets`: of a client and a namespace."""

    async def deed(client: Client, namespace: str) -> None:
        deleted, missing = await delete(client, await targets(client, namespace), cascade)
        if wait:
            await until_gone(client, deleted, timeout_s)
        if missing and not ignore_not_found:
            raise exits.together([exits.failure_of(problem) for problem in missing])

    access.run(deed)


def run_named(resource: Resource[Object], names: Sequence[str], **how: Any) -> None:
    async def targets(_: Client, namespace: str) -> list[Target]:
        return named(resource, names, namespace)

    run(targets, **how)


def named(resource: Resource[Object], names: Sequence[str], namespace: str) -> list[Target]:
    return [Target(resource, namespace, name) for name in names]


async def in_files(client: Client, files: Sequence[str], namespace: str, stated: str | None) -> list[Target]:
    """`stated`: the namespace of the command line, if any. What else is wrong in a file does not matter here."""
    documents = sources.read(files)
    refusals = []
    for document in documents:
        problems = list(sources.namespace_problems(document, stated))
        if not document.name:
            problems.append(errors.FieldProblem("metadata.name", "is required to delete it"))
        if problems:
            refusals.append(errors.Refused(problems, f"{document.shown} ({document.where})"))
    if refusals:
        raise sources.Mistakes(refusals)
    resources = await discovery.resources_of(client, documents)
    return [
        Target(resource, sending.namespace_for(resource, document, namespace), document.name)
        for resource, document in zip(resources, documents, strict=True)
    ]


async def delete(client: Client, targets: Sequence[Target], cascade: str) -> tuple[list[Target], list[errors.NotFound]]:
    """All of them, also when one is not there: what was deleted, and what was not found."""
    deleted: list[Target] = []
    missing: list[errors.NotFound] = []
    for target in targets:
        resource, place, name = target.resource, target.namespace, target.name
        try:
            uid = (await client.get(resource, place, name)).metadata.uid
            await client.delete(resource, place, name, propagation=cascade.capitalize(), uid=uid)
        except errors.NotFound as problem:
            missing.append(problem)
            continue
        click.echo(f"{target.shown} deleted")
        deleted.append(msgspec.structs.replace(target, uid=uid))
    return deleted, missing


async def until_gone(client: Client, targets: Sequence[Target], timeout_s: float | None) -> None:
    left = {target.shown for target in targets}

    async def gone(target: Target) -> None:
        states = following.states(client, target.resource, target.namespace, target.name)
        async with aclosing(states):
            async for seen in states:
                if seen is None or seen.metadata.uid != target.uid:
                    left.discard(target.shown)
                    return

    try:
        async with asyncio.timeout(timeout_s):
            await asyncio.gather(*(gone(target) for target in targets))
    except TimeoutError:
        told = f"gave up after {text.duration(timeout_s or 0)}; deleted, but not gone yet: {', '.join(sorted(left))}"
        raise exits.Failure(exits.Exit.TIMEOUT, told) from None
