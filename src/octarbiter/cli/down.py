"""`octo down`: end the cluster of `octo up`."""

from __future__ import annotations

import click

from octarbiter.cli import access


@click.command(name="down")
@click.option("--delete", is_flag=True, help="Forget everything in it, too.")
@access.debug
def command(delete: bool) -> None:
    """End the cluster that `octo up` has started.

    What was created stays, for the next `octo up`, unless --delete is given.
    """
    import shutil

    from octarbiter.cli import embedding

    directory = embedding.home()
    was_up = embedding.stop(directory)
    if delete and directory.exists():
        shutil.rmtree(directory)
    click.echo("the cluster is down" if was_up else "no cluster was up")
