"""`octo run`: run what files hold, watch it, and end as it ends."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import click

from octarbiter.cli import access, arguments, pretending

if TYPE_CHECKING:
    from octarbiter.runtime.client import Client


@click.command(name="run")
@click.argument("sources", metavar="FILE...", nargs=-1, required=True, type=click.Path(allow_dash=True))
@pretending.options
@click.option("--logs", is_flag=True, help="Print what the replicas print, and nothing of their life but its end.")
@click.option("--json", "as_json", is_flag=True, help="Print each new status as a line of JSON.")
@click.option("--keep", is_flag=True, help="Leave what was created, and the cluster it was created in.")
@arguments.timeout
@access.namespaced
def command(
    sources: tuple[str, ...],
    nodes: int,
    resources: tuple[str, ...],
    pretend: bool,
    logs: bool,
    as_json: bool,
    keep: bool,
    timeout_s: float | None,
) -> None:
    """Run TaskSets from files, show how they go, and end as they end.

    Without --context, --kubeconfig and KUBECONFIG they run in a cluster of their own on this machine, which is there
    for this run only (--keep leaves it up; `octo down` ends it). The exit code is the outcome. Ctrl-C stops everything.
    """
    from octarbiter.cli import embedding, showing
    from octarbiter.cli import sources as files

    if logs and as_json:
        raise click.UsageError("--logs and --json are two ways to use the output: choose one")
    documents = files.read(sources)
    files.check(documents, access.chosen("namespace"))
    if not any(document.is_taskset for document in documents):
        raise click.UsageError(
            "no TaskSet in these files: there is nothing to wait for (`octo submit` creates the rest)"
        )
    manner = showing.manner(logs=logs, as_json=as_json)
    is_private = not (access.chosen("context") or access.chosen("kubeconfig") or os.environ.get("KUBECONFIG"))
    if not is_private and (resources or pretend or nodes != 1):
        raise click.UsageError("--nodes, --resource and --pretend are for a cluster of this run's own")

    async def deed(client: Client, namespace: str) -> None:
        from octarbiter.cli import running

        await running.run(client, namespace, documents, manner, timeout_s, keep=keep or is_private, alone=is_private)

    if not is_private:
        access.run(deed)
        return
    settings = pretending.settings(nodes, resources, pretend)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: signal.raise_signal(signal.SIGINT))  # these, too, leave nothing behind
    with embedding.private(settings, keep=keep) as kubeconfig:
        access.run(deed, kubeconfig=str(kubeconfig))
