"""`octo wait`: come back when a TaskSet has come to something."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from octarbiter.cli import access, arguments

if TYPE_CHECKING:
    from octarbiter.runtime.client import Client


@click.command(name="wait")
@click.argument("words", metavar="NAME...", nargs=-1, required=True)
@click.option(
    "--for",
    "wanted",
    default="succeeded",
    show_default=True,
    metavar="GOAL",
    help="succeeded, failed, completed (either of them), running, deleted, condition=NAME or condition=NAME=STATUS.",
)
@arguments.timeout
@access.namespaced
def command(words: tuple[str, ...], wanted: str, timeout_s: float | None) -> None:
    """Wait until TaskSets have come to something.

    Returns when all of them have. Fails as soon as one of them no longer can, such as a failed one that should succeed.
    """
    from octarbiter.cli import goals, waiting

    names = arguments.names(words)
    try:
        goal = goals.parse(wanted)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--for") from None

    async def deed(client: Client, namespace: str) -> None:
        await waiting.until(client, [(namespace, name) for name in names], goal, timeout_s)

    access.run(deed)
