"""`octo logs`: what did the replicas print?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from octarbiter.cli import access, arguments

if TYPE_CHECKING:
    from octarbiter.runtime.client import Client


@click.command(name="logs")
@click.argument("words", metavar="NAME", nargs=-1, required=True)
@click.option("-r", "--role", default=None, help="Only the replicas of this role.")
@click.option("-i", "--index", type=click.IntRange(min=0), default=None, help="Only the replica with this number.")
@click.option("-c", "--container", default=None, help="This container; else the main one.")
@click.option("-f", "--follow", is_flag=True, help="Stay until the TaskSet has ended, also across retries.")
@click.option("--tail", type=click.IntRange(min=0), default=None, metavar="N", help="Begin with the last N lines.")
@click.option(
    "-p", "--previous", is_flag=True, help="Of the container before its last restart (restartPolicy OnFailure)."
)
@click.option("--timestamps", is_flag=True, help="Each line with its time.")
@click.option("--all", "everyone", is_flag=True, help="Also when more than 10 replicas match.")
@access.namespaced
def command(
    words: tuple[str, ...],
    role: str | None,
    index: int | None,
    container: str | None,
    follow: bool,
    tail: int | None,
    previous: bool,
    timestamps: bool,
    everyone: bool,
) -> None:
    """Print what the replicas of a TaskSet have printed.

    Lines begin with the replica's name where there are several. Pods are removed when a TaskSet ends unless its
    spec.podRetention says otherwise; what their last words were, `octo describe` still knows.
    """
    from octarbiter.cli import replica_logs

    names = arguments.names(words)
    if len(names) != 1:
        raise click.UsageError("the logs of one TaskSet at a time")
    if follow and previous:
        raise click.UsageError("--previous cannot be followed: that container has ended")
    choice = replica_logs.Choice(
        role=role,
        index=index,
        container=container or "",
        tail=tail,
        previous=previous,
        timestamps=timestamps,
        everyone=everyone,
    )

    async def deed(client: Client, namespace: str) -> None:
        await replica_logs.show(client, namespace, names[0], choice, follow)

    access.run(deed)
