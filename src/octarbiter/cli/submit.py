"""`octo submit`: create what files hold, all or nothing as far as mistakes go."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from octarbiter.cli import access, arguments

if TYPE_CHECKING:
    from octarbiter.api.meta import Json
    from octarbiter.runtime.client import Client


@click.command(name="submit")
@arguments.files(required=True)
@click.option(
    "--dry-run",
    type=click.Choice(["none", "client", "server"]),
    default="none",
    show_default=True,
    help="client: check and print, send nothing. server: let the API server check, too, and keep nothing.",
)
@click.option("--wait", is_flag=True, help="Stay until every TaskSet has ended; the exit code tells how.")
@arguments.timeout
@arguments.output("name", "json", "yaml", meaning="Print the objects so, instead of one line each.")
@access.namespaced
def command(sources: tuple[str, ...], dry_run: str, wait: bool, timeout_s: float | None, form: str | None) -> None:
    """Create TaskSets, and what belongs to them, from files.

    Everything is checked before anything is sent. Other kinds in the same files (PodGroup, ConfigMap, Service, ...) are
    created as well, in the order of the files. What exists already is not changed.
    """
    from octarbiter.cli import creating, waiting
    from octarbiter.cli import sources as files

    if wait and dry_run != "none":
        raise click.UsageError("--wait has nothing to wait for with --dry-run")
    if timeout_s is not None and not wait:
        raise click.UsageError("--timeout needs --wait")
    documents = files.read(sources)
    files.check(documents, access.chosen("namespace"))
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
        if wait:
            await waiting.until_all_end(client, creating.tasksets(made, documents), timeout_s)

    access.run(deed)


def _print(bodies: list[Json], form: str | None, verdict: str) -> None:
    from octarbiter.cli import sending, text

    if form in ("json", "yaml"):
        click.echo(text.objects(bodies, form), nl=False)
        return
    for body in bodies:
        click.echo(sending.short(body) + (f" {verdict}" if form is None else ""))
