"""`octo delete`: away with TaskSets, and with what they own."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
        from octarbiter.cli import deleting, exits

        targets = deleting.named(names, namespace)
        if sources:
            targets = await deleting.in_files(client, sources, namespace, access.chosen("namespace"))
        deleted, missing = await deleting.delete(client, targets, cascade)
        if wait:
            await deleting.until_gone(client, deleted, timeout_s)
        if missing and not ignore_not_found:
            raise exits.together([exits.failure_of(problem) for problem in missing])

    access.run(deed)
