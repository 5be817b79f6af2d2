"""`octo submit`: create what files hold, all or nothing as far as mistakes go."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from octarbiter.cli import access, arguments

if TYPE_CHECKING:
    from octarbiter.api.meta import Json
    from octarbiter.cli.sources import Document
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
    from octarbiter.cli import sources as files
    from octarbiter.cli import waiting

    if wait and dry_run != "none":
        raise click.UsageError("--wait has nothing to wait for with --dry-run")
    if timeout_s is not None and not wait:
        raise click.UsageError("--timeout needs --wait")
    documents = files.read(sources)
    files.check(documents, access.chosen("namespace"))
    if dry_run == "client":
        _print([document.body for document in documents], form, "valid (dry run)")
        return

    async def deed(client: Client, namespace: str) -> None:
        made = await _create(client, namespace, documents, form, dry_run == "server")
        if wait:
            await waiting.until_all_end(client, made, timeout_s)

    access.run(deed)


async def _create(
    client: Client, namespace: str, documents: list[Document], form: str | None, dry: bool
) -> list[tuple[str, str]]:
    """Namespace and name of each TaskSet that was made."""
    from octarbiter.api import errors
    from octarbiter.cli import discovery, exits, sending
    from octarbiter.runtime import requests

    resources = await discovery.resources_of(client, documents)
    options = {"fieldManager": sending.FIELD_MANAGER, "fieldValidation": "Strict", **({"dryRun": "All"} if dry else {})}
    made: list[Json] = []
    for document, resource in zip(documents, resources, strict=True):
        request = requests.create(resource, sending.namespace_for(resource, document, namespace), document.body)
        try:
            made.append(await sending.answer_of(client, sending.with_query(request, **options)))
        except errors.ApiError as error:
            failure = exits.failure_of(error)
            story = _broken_off(document, failure.message, documents, made, dry)
            raise exits.Failure(failure.code, story) from error
        if form is None:
            _print(made[-1:], None, "created (server dry run)" if dry else "created")
    if form is not None:
        _print(made, form, "")
    tasksets = [body for body, document in zip(made, documents, strict=True) if document.is_taskset]
    return [(body["metadata"]["namespace"], body["metadata"]["name"]) for body in tasksets]


def _broken_off(document: Document, message: str, documents: list[Document], made: list[Json], dry: bool) -> str:
    from octarbiter.cli import sending

    lines = [f"{document.shown} ({document.where}) was refused: {message}"]
    unsent = documents[len(made) + 1 :]
    if made and not dry:
        lines.append(f"Created before it, and still there: {', '.join(map(sending.short, made))}")
    if unsent:
        lines.append(f"Not sent: {', '.join(later.shown for later in unsent)}")
    return "\n".join(lines)


def _print(bodies: list[Json], form: str | None, verdict: str) -> None:
    from octarbiter.cli import sending, text

    if form in ("json", "yaml"):
        click.echo(text.objects(bodies, form), nl=False)
        return
    for body in bodies:
        click.echo(sending.short(body) + (f" {verdict}" if form is None else ""))
