"""`octo install`: make a cluster know TaskSets and Queues, and have their controller and arbitrator run in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

import octarbiter
from octarbiter.cli import access

if TYPE_CHECKING:
    from octarbiter.runtime.client import Client

IMAGE = f"octarbiter:{octarbiter.__version__}"


@click.command(name="install")
@click.option("--apply", is_flag=True, help="Apply the objects to the cluster (server-side) instead of printing them.")
@click.option("--image", default=IMAGE, show_default=True, help="Image of both, with the command octo in it.")
@click.option(
    "--replicas",
    type=click.IntRange(min=0, max=10),
    default=2,
    show_default=True,
    help="How many of each: one leads, the others stand by.",
)
@click.option("--crds-only", is_flag=True, help="Only the CRDs, for who runs `octo controller` elsewhere.")
@click.option(
    "--arbitrator/--no-arbitrator", default=True, show_default=True, help="Also what shares the cluster among Queues."
)
@click.option(
    "--mode",
    type=click.Choice(["deny", "gate", "default-queue"]),
    default=None,
    help="How namespaces without the label are managed by the arbitrator; absent: they are not.",
)
@click.option("--policy", default=None, help="How Queues without a parent share: drf, proportion, ...; absent: drf.")
@click.option(
    "--arbitrator-taskset",
    is_flag=True,
    help="Also the older name of QueueJob, TaskSet of arbitrator.incubator.k8s.io; `kubectl get taskset` will mean it.",
)
@access.namespace("Namespace of both; else octarbiter-system.")
@access.options
def command(
    apply: bool,
    image: str,
    replicas: int,
    crds_only: bool,
    arbitrator: bool,
    mode: str | None,
    policy: str | None,
    arbitrator_taskset: bool,
) -> None:
    """Print or apply what a cluster needs to run TaskSets and to share itself among Queues.

    The CRDs, a controller and an arbitrator, with their namespace, service accounts and rights. Can be repeated, also
    to upgrade.
    """
    from octarbiter.cli import installation, text

    if (mode or policy) and (crds_only or not arbitrator):
        raise click.UsageError("--mode and --policy are for the arbitrator, which is not installed")
    if arbitrator_taskset:
        click.echo(installation.ARBITRATOR_TASKSET_WARNING, err=True)
    if crds_only:
        objects = installation.crds(arbitrator_taskset=arbitrator_taskset)
    else:
        wishes = installation.Wishes(
            image=image,
            namespace=access.chosen("namespace") or installation.NAMESPACE,
            replicas=replicas,
            arbitrator=arbitrator,
            mode=mode or "",
            policy=policy or "",
            arbitrator_taskset=arbitrator_taskset,
        )
        objects = installation.objects(wishes)
    if not apply:
        click.echo(text.objects(objects, "yaml"), nl=False)
        return

    async def deed(client: Client, _: str) -> None:
        from octarbiter.cli import applying

        await applying.apply(client, objects)

    access.run(deed)
