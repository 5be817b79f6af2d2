"""`octo describe`: everything about one TaskSet on a page."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import click

from octarbiter.cli import access, arguments

if TYPE_CHECKING:
    from octarbiter.cli.page import Subject
    from octarbiter.runtime.client import Client


@click.command(name="describe")
@click.argument("words", metavar="[taskset] NAME...", nargs=-1, required=True)
@click.option("--all-replicas", is_flag=True, help="Every replica, not the notable ones only.")
@access.namespaced
def command(words: tuple[str, ...], all_replicas: bool) -> None:
    """Tell all about a TaskSet: what runs, what failed, what it waits for."""
    names = arguments.names(words)

    async def deed(client: Client, namespace: str) -> list[Subject]:
        from octarbiter.cli import gathering

        return await asyncio.gather(*(gathering.subject(client, namespace, name) for name in names))

    subjects = access.run(deed)
    from octarbiter.cli import drawing, page
    from octarbiter.runtime import clock

    for number, subject in enumerate(subjects):
        if number:
            click.echo()
        drawing.show(page.blocks(subject, clock.SYSTEM.now(), all_replicas))
