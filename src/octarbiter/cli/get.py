"""`octo get`: which TaskSets are there, and how do they fare?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from octarbiter.cli import access, arguments

if TYPE_CHECKING:
    from octarbiter.runtime.client import Client


@click.command(name="get")
@click.argument("words", metavar="[tasksets] [NAME...]", nargs=-1)
@click.option("-A", "--all-namespaces", is_flag=True, help="Of all namespaces.")
@click.option("-l", "--selector", default="", metavar="LABELS", help="Only those with these labels, e.g. team=vision.")
@click.option("-w", "--watch", is_flag=True, help="Stay, and print each change, until interrupted.")
@click.option("--no-headers", is_flag=True, help="Without the line of column names.")
@arguments.output(
    "wide",
    "name",
    "json",
    "yaml",
    meaning="wide: more columns, with the replicas of each role that succeeded. name, json, yaml: for programs.",
)
@access.namespaced
def command(
    words: tuple[str, ...], all_namespaces: bool, selector: str, watch: bool, no_headers: bool, form: str | None
) -> None:
    """List TaskSets."""
    from octarbiter.cli import listing

    names = arguments.names(words, kind_alone=True)
    if names and (all_namespaces or selector):
        raise click.UsageError("names cannot be combined with --all-namespaces or --selector")
    how = listing.How(names=tuple(names), selector=selector, everywhere=all_namespaces, form=form, bare=no_headers)

    async def deed(client: Client, namespace: str) -> None:
        if watch:
            await listing.watch(client, namespace, how)
        else:
            await listing.show(client, namespace, how)

    access.run(deed)
