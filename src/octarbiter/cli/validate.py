"""`octo validate`: is what these files say right?"""

from __future__ import annotations

import click

from octarbiter.cli import arguments


@click.command(name="validate")
@arguments.files(required=True)
def command(sources: tuple[str, ...]) -> None:
    """Check files without a cluster.

    Tells every problem of every TaskSet, Queue and QueueJob, each with its field. Objects of other kinds are checked
    for a name only: what else they need, only their cluster knows (`octo submit --dry-run=server`).
    """
    from octarbiter.cli import sources as files

    documents = files.read(sources)
    files.check(documents)
    for document in documents:
        verdict = "valid" if document.is_ours else f"not checked ({document.kind})"
        click.echo(f"{document.name or document.metadata['generateName']}: {verdict}")
