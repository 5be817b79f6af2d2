"""`octo delete`: away with TaskSets, and with what they own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from octarbiter.cli import access, arguments

if TYPE_CHECKING:
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
@arguments.waiting_for_the_end
@access.namespaced
def command(
    words: tuple[str, ...],
    sources: tuple[str, ...],
    cascade: str,
    **how: Any,
) -> None:
    """Delete TaskSets, by name or as files name them.

    From files, objects of other kinds are deleted, too.
    """
    names = arguments.names(words)
    if bool(names) == bool(sources):
        raise click.UsageError("name the TaskSets or give a file with -f: one of the two")

    from octarbiter.api import scheme
    from octarbiter.cli import deleting

    async def targets(client: Client, namespace: str) -> list[deleting.Target]:
        if sources:
            return await deleting.in_files(client, sources, namespace, access.chosen("namespace"))
        return deleting.named(scheme.TASKSETS, names, namespace)

    deleting.run(targets, cascade, **how)
