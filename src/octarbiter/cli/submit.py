"""`octo submit`: create what files hold, all or nothing as far as mistakes go."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from octarbiter.cli import access, arguments

if TYPE_CHECKING:
    from octarbiter.runtime.client import Client


@click.command(name="submit")
@arguments.files(required=True)
@click.option("--wait", is_flag=True, help="Stay until every TaskSet has ended; the exit code tells how.")
@arguments.timeout
@arguments.sent
@access.namespaced
def command(sources: tuple[str, ...], dry_run: str, wait: bool, timeout_s: float | None, form: str | None) -> None:
    """Create TaskSets, and what belongs to them, from files.

    Everything is checked before anything is sent. Other kinds in the same files (PodGroup, ConfigMap, Service, ...) are
    created as well, in the order of the files. What exists already is not changed.
    """
    from octarbiter.cli import creating, submitting, waiting
    from octarbiter.cli import sources as files

    if wait and dry_run != "none":
        raise click.UsageError("--wait has nothing to wait for with --dry-run")
    if timeout_s is not None and not wait:
        raise click.UsageError("--timeout needs --wait")
    documents = files.read(sources)

    async def until_all_end(client: Client, made: Sequence[creating.Made]) -> None:
        if wait:
            await waiting.until_all_end(client, creating.tasksets(made, documents), timeout_s)

    submitting.submit(documents, dry_run, form, then=until_all_end)
