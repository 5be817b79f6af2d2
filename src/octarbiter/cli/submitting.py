"""Sends what a command line holds, in files or in options, and tells what became of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

import click

from octarbiter.api.meta import Json
from octarbiter.cli import access, creating, sending, sources, text
from octarbiter.cli.sources import Document
from octarbiter.runtime.client import Client


def submit(
    documents: Sequence[Document],
    dry_run: str,
    form: str | None,
    *,
    then: Callable[[Client, Sequence[creating.Made]], Awaitable[None]] | None = None,
) -> None:
    """Checked before anything is sent; raises `sources.Mistakes`. `then` is awaited when all of them are there."""
    sources.check(documents, access.chosen("namespace"))
    if dry_run == "client":
        _print([document.body for document in documents], form, "valid (dry run)")
        return
    is_dry = dry_run == "server"

    def tell(body: Json) -> None:
        if form is None:
            _print([body], None, "created (server dry run)" if is_dry else "created")

    async def deed(client: Client, namespace: str) -> None:
        made = await creating.create(client, namespace, documents, dry=is_dry, each=tell)
        if form is not None:
            _print([body for _, body in made], form, "")
        if then is not None:
            await then(client, made)

    access.run(deed)


def _print(bodies: Sequence[Json], form: str | None, verdict: str) -> None:
    if form in ("json", "yaml"):
        click.echo(text.objects(bodies, form), nl=False)
        return
    for body in bodies:
        click.echo(sending.short(body) + (f" {verdict}" if form is None else ""))
