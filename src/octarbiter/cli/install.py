"""`octo install`: make a cluster know TaskSets, and have a controller run in it."""

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
@click.option("--image", default=IMAGE, show_default=True, help="Image of the controller, with the command octo in it.")
@click.option(
    "--replicas",
    type=click.IntRange(min=0, max=10),
    default=2,
    show_default=True,
    help="How many controllers: one leads, the others stand by.",
)
@click.option("--crds-only", is_flag=True, help="Only the CRDs, for who runs `octo controller` elsewhere.")
@click.option(
    "--arbitrator-taskset",
    is_flag=True,
    help="Also the older name of QueueJob, TaskSet of arbitrator.incubator.k8s.io; `kubectl get taskset` will mean it.",
)
@access.namespace("Namespace of the controller; else octarbiter-system.")
@access.options
def command(apply: bool, image: str, replicas: int, crds_only: bool, arbitrator_taskset: bool) -> None:
    """Print or apply what a cluster needs to run TaskSets.

    The CRDs, and a controller with its namespace, service account and rights. Can be repeated, also to upgrade.
    """
    from octarbiter.cli import installation, text

    namespace = access.chosen("namespace") or installation.NAMESPACE
    if arbitrator_taskset:
        click.echo(installation.ARBITRATOR_TASKSET_WARNING, err=True)
    if crds_only:
        objects = installation.crds(arbitrator_taskset=arbitrator_taskset)
    else:
        objects = installation.objects(image, namespace, replicas, arbitrator_taskset=arbitrator_taskset)
    if not apply:
        click.echo(text.objects(objects, "yaml"), nl=False)
        return

    async def deed(client: Client, _: str) -> None:
        from octarbiter.cli import applying

        await applying.apply(client, objects)

    access.run(deed)
