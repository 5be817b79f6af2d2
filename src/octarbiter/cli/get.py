"""`octo get`: which TaskSets are there, and how do they fare?"""

from __future__ import annotations

from typing import Any

import click

from octarbiter.cli import access, arguments


@click.command(name="get")
@click.argument("words", metavar="[tasksets] [NAME...]", nargs=-1)
@arguments.listed
@access.namespaced
def command(words: tuple[str, ...], **how: Any) -> None:
    """List TaskSets."""
    from octarbiter.cli import columns, listing

    listing.run(columns.TASKSETS, arguments.names(words, kind_alone=True), **how)
