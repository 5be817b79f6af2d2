"""`octo queue`: who shares the cluster, and how much does each of them get?"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import click

from octarbiter.cli import access, arguments, queue_fields

if TYPE_CHECKING:
    from octarbiter.cli.queue_page import Subject
    from octarbiter.runtime.client import Client


@click.group(name="queue")
def command() -> None:
    """Queues: who shares the cluster, what each deserves, may use and uses."""


@command.command(name="list")
@click.argument("words", metavar="[NAME...]", nargs=-1)
@arguments.listed
@access.namespaced
def list_(words: tuple[str, ...], **how: Any) -> None:
    """List Queues with what each asks for, deserves, may use now, uses, and waits for.

    The figures stand in the order of the column RESOURCES. SHARE is the dominant share: of what the queue may use now,
    the largest part of any resource of the cluster.
    """
    from octarbiter.cli import columns, listing

    listing.run(columns.QUEUES, arguments.names_of(arguments.QUEUE, words), **how)


@command.command(name="describe")
@click.argument("words", metavar="NAME...", nargs=-1, required=True)
@access.namespaced
def describe(words: tuple[str, ...]) -> None:
    """Tell all about a Queue: its figures, why they are so, and whose turn it is."""
    names = arguments.names_of(arguments.QUEUE, words)

    async def deed(client: Client, namespace: str) -> list[Subject]:
        from octarbiter.cli import queue_gathering

        return await asyncio.gather(*(queue_gathering.queue(client, namespace, name) for name in names))

    subjects = access.run(deed)
    from octarbiter.cli import drawing, queue_page
    from octarbiter.runtime import clock

    for number, subject in enumerate(subjects):
        if number:
            click.echo()
        drawing.show(queue_page.blocks(subject, clock.SYSTEM.now()))


@command.command(name="create")
@click.argument("word", metavar="NAME")
@queue_fields.options
@arguments.sent
@access.namespaced
def create(word: str, dry_run: str, form: str | None, **given: Any) -> None:
    """Create a Queue in a namespace: its pods and QueueJobs are those of the queue.

    For example: octo queue create vision -n vision --weight 3 --request cpu=4,memory=8Gi
    """
    from octarbiter.api import scheme
    from octarbiter.cli import sources, submitting

    (name,) = arguments.names_of(arguments.QUEUE, [word])
    body = {
        "apiVersion": scheme.QUEUES.api_version,
        "kind": scheme.QUEUES.kind,
        "metadata": {"name": name},
        "spec": queue_fields.changed({}, given),
    }
    submitting.submit([sources.Document("octo queue create", body)], dry_run, form)


@command.command(name="set")
@click.argument("word", metavar="NAME")
@queue_fields.options
@access.namespaced
def set_(word: str, **given: Any) -> None:
    """Change what a Queue says of itself; the rest stays as it is.

    An empty value takes a field away, e.g. --guarantee "".
    """
    (name,) = arguments.names_of(arguments.QUEUE, [word])
    if all(value is None for value in given.values()):
        raise click.UsageError("say what to change, e.g. --weight 3; `octo queue set --help` lists all there is")

    async def deed(client: Client, namespace: str) -> None:
        from octarbiter.cli import changing

        await changing.change_queue(client, namespace, name, lambda spec: queue_fields.changed(spec, given))

    access.run(deed)


@command.command(name="delete")
@click.argument("words", metavar="NAME...", nargs=-1, required=True)
@arguments.waiting_for_the_end
@access.namespaced
def delete(words: tuple[str, ...], **how: Any) -> None:
    """Delete Queues.

    What runs of them is suspended if a QueueJob started it, and runs on otherwise, without a share of the cluster. The
    QueueJobs stay, and wait for a queue of that name. A quota that was made for it goes; one that was there before gets
    its own values back.
    """
    from octarbiter.api import scheme
    from octarbiter.cli import deleting

    deleting.run_named(scheme.QUEUES, arguments.names_of(arguments.QUEUE, words), **how)
