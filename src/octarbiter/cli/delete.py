"""`octo delete`: away with TaskSets, and with what they own."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING

import click

from octarbiter.cli import access, arguments

if TYPE_CHECKING:
    from octarbiter.api.meta import Object
    from octarbiter.api.scheme import Resource
    from octarbiter.runtime.client import Client


@click.command(name="delete")
@click.argument("words", metavar="[NAME...]", nargs=-1)
@arguments.files(required=False)
@click.option(
    "--cascade",
    type=click.Choice(["background", "foreground", "orphan"]),
    default="background",
    show_default=True,
    help="background: it goes at once, its pods follow. foreground: its pods go first. orphan: its pods stay.",
)
@click.option("--wait/--no-wait", "wait", default=True, show_default=True, help="Stay until it is gone.")
@arguments.timeout
@click.option("--ignore-not-found", is_flag=True, help="What does not exist is no error.")
@access.namespaced
def command(
    words: tuple[str, ...],
    sources: tuple[str, ...],
    cascade: str,
    wait: bool,
    timeout_s: float | None,
    ignore_not_found: bool,
) -> None:
    """Delete TaskSets, by name or as files name them.

    From files, objects of other kinds are deleted, too.
    """
    names = arguments.names(words)
    if bool(names) == bool(sources):
        raise click.UsageError("name the TaskSets or give a file with -f: one of the two")

    async def deed(client: Client, namespace: str) -> None:
        targets = await _targets(client, namespace, names, sources)
        gone = [await _delete(client, *target, cascade, ignore_not_found) for target in targets]
        if wait:
            await _until_gone(client, [found for found in gone if found is not None], timeout_s)

    access.run(deed)


Target = tuple["Resource[Object]", str, str]
"""What it is, its namespace, its name."""


async def _targets(client: Client, namespace: str, names: list[str], sources: tuple[str, ...]) -> list[Target]:
    from octarbiter.api import errors, scheme
    from octarbiter.cli import discovery, sending
    from octarbiter.cli import sources as files

    if names:
        return [(scheme.TASKSETS, namespace, name) for name in names]
    documents = files.read(sources)
    nameless = [d for d in documents if not d.name]
    if nameless:
        problem = errors.FieldProblem("metadata.name", "is required to delete it")
        raise files.Mistakes([errors.Refused([problem], f"{d.shown} ({d.where})") for d in nameless])
    resources = await discovery.resources_of(client, documents)
    return [
        (resource, sending.namespace_for(resource, document, namespace), document.name)
        for resource, document in zip(resources, documents, strict=True)
    ]


async def _delete(
    client: Client, resource: Resource[Object], namespace: str, name: str, cascade: str, ignore_not_found: bool
) -> tuple[Resource[Object], str, str, str] | None:
    """What was deleted, with its UID: under that name another one may appear while we wait."""
    from octarbiter.api import errors
    from octarbiter.cli import sending

    try:
        found = await client.get(resource, namespace, name)
        await client.delete(resource, namespace, name, propagation=cascade.capitalize(), uid=found.metadata.uid)
    except errors.NotFound:
        if ignore_not_found:
            return None
        raise
    body = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": name}}
    click.echo(f"{sending.short(body)} deleted")
    return resource, namespace, name, found.metadata.uid


async def _until_gone(
    client: Client, deleted: list[tuple[Resource[Object], str, str, str]], timeout_s: float | None
) -> None:
    from octarbiter.cli import exits, following, text

    async def gone(resource: Resource[Object], namespace: str, name: str, uid: str) -> None:
        async with aclosing(following.states(client, resource, namespace, name)) as states:
            async for seen in states:
                if seen is None or seen.metadata.uid != uid:
                    return

    try:
        async with asyncio.timeout(timeout_s):
            await asyncio.gather(*(gone(*target) for target in deleted))
    except TimeoutError:
        message = f"gave up after {text.duration(timeout_s or 0)}: the deletion was accepted but is not complete yet"
        raise exits.Failure(exits.Exit.TIMEOUT, message) from None
