"""`octo queuejob`: what do batch jobs claim of their queue, and what have they got?"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import click

from octarbiter.cli import access, arguments

if TYPE_CHECKING:
    from octarbiter.cli.queuejob_page import Subject
    from octarbiter.runtime.client import Client


@click.group(name="queuejob")
def command() -> None:
    """QueueJobs: what batch jobs claim of their queue, and what they have got."""


@command.command(name="list")
@click.argument("words", metavar="[NAME...]", nargs=-1)
@arguments.listed
@access.namespaced
def list_(words: tuple[str, ...], **how: Any) -> None:
    """List QueueJobs: the units they have of those they ask for, and their position among those that wait."""
    from octarbiter.cli import columns, listing

    listing.run(columns.QUEUEJOBS, arguments.names_of(arguments.QUEUEJOB, words), **how)


@command.command(name="describe")
@click.argument("words", metavar="NAME...", nargs=-1, required=True)
@access.namespaced
def describe(words: tuple[str, ...]) -> None:
    """Tell all about a QueueJob: what it has, why no more, and who is ahead of it."""
    names = arguments.names_of(arguments.QUEUEJOB, words)

    async def deed(client: Client, namespace: str) -> list[Subject]:
        from octarbiter.cli import queue_gathering

        return await asyncio.gather(*(queue_gathering.queuejob(client, namespace, name) for name in names))

    subjects = access.run(deed)
    from octarbiter.cli import drawing, queuejob_page
    from octarbiter.runtime import clock

    for number, subject in enumerate(subjects):
        if number:
            click.echo()
        drawing.show(queuejob_page.blocks(subject, clock.SYSTEM.now()))


@command.command(name="create")
@click.argument("word", metavar="NAME")
@click.option("--queue", required=True, help="The Queue whose resources it claims.")
@click.option("--unit", required=True, metavar="NAME=AMOUNT,...", help="What one unit is, e.g. cpu=1,memory=4Gi.")
@click.option("--units", type=int, default=1, show_default=True, help="How many of them.")
@click.option("--min-units", type=int, default=None, help="With fewer it gets none.")
@click.option("--priority", type=int, default=None, help="A higher one is served first; else 0.")
@click.option(
    "--workload",
    default="",
    metavar="KIND/NAME",
    help="What to start when it has its units: taskset/NAME, job/NAME, or APIVERSION/KIND/NAME.",
)
@arguments.sent
@access.namespaced
def create(
    word: str,
    queue: str,
    unit: str,
    units: int,
    min_units: int | None,
    priority: int | None,
    workload: str,
    dry_run: str,
    form: str | None,
) -> None:
    """Claim units of resources in a Queue.

    For example: octo queuejob create train -n vision --queue vision --unit cpu=1,memory=4Gi --units 6
    """
    from octarbiter.api import scheme
    from octarbiter.cli import sources, submitting

    (name,) = arguments.names_of(arguments.QUEUEJOB, [word])
    try:
        amounts = arguments.pairs(unit)
    except click.BadParameter as problem:
        problem.param_hint = "--unit"
        raise
    spec: dict[str, Any] = {"queue": queue, "resourceunit": {"resources": amounts}, "resourceno": units}
    if min_units is not None:
        spec["minResourceno"] = min_units
    if priority is not None:
        spec["priority"] = priority
    if workload:
        spec["workloadRef"] = _reference(workload)
    body = {
        "apiVersion": scheme.QUEUEJOBS.api_version,
        "kind": scheme.QUEUEJOBS.kind,
        "metadata": {"name": name},
        "spec": spec,
    }
    submitting.submit([sources.Document("octo queuejob create", body)], dry_run, form)


def _reference(written: str) -> dict[str, str]:
    from octarbiter.api import scheme

    known = {resource.kind.lower(): resource for resource in (scheme.TASKSETS, scheme.JOBS)}
    version, _, short = written.rpartition("/")[0].rpartition("/")
    name = written.rpartition("/")[2]
    resource = known.get(short.lower()) if not version else None
    if resource is not None and name:
        return {"apiVersion": resource.api_version, "kind": resource.kind, "name": name}
    if version and short and name:
        return {"apiVersion": version, "kind": short, "name": name}
    told = f"{written!r} is none of taskset/NAME, job/NAME, APIVERSION/KIND/NAME (such as batch/v1/Job/train)"
    raise click.BadParameter(told, param_hint="--workload")


@command.command(name="delete")
@click.argument("words", metavar="NAME...", nargs=-1, required=True)
@arguments.waiting_for_the_end
@access.namespaced
def delete(words: tuple[str, ...], **how: Any) -> None:
    """Delete QueueJobs: what they have is free for others. Their workloads stay as they are."""
    from octarbiter.api import scheme
    from octarbiter.cli import deleting

    deleting.run_named(scheme.QUEUEJOBS, arguments.names_of(arguments.QUEUEJOB, words), **how)
