"""`octo testbed`: a real Kubernetes on this machine, to try things on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from octarbiter.cli import access

if TYPE_CHECKING:
    from octarbiter.testing.kubernetes.bed import Status


@click.group(name="testbed")
def command() -> None:
    """A real Kubernetes on this machine, with fake nodes, to try things on.

    The first start builds Kubernetes, which takes some minutes; later ones take seconds.
    """


@command.command(name="up")
@click.option("--fake-nodes", type=click.IntRange(0, 5000), default=5, show_default=True, help="How many fake nodes.")
@click.option(
    "--resource", "resources", multiple=True, metavar="NAME=COUNT", help="Of each fake node, e.g. nvidia.com/gpu=8."
)
@click.option("--real-node", is_flag=True, help="Also one node that runs real containers, if this machine can.")
@access.debug
def up(fake_nodes: int, resources: tuple[str, ...], real_node: bool) -> None:
    """Start it; it stays until `octo testbed down`."""
    from octarbiter.cli import exits
    from octarbiter.testing.kubernetes import bed, build, processes

    pairs = dict(pair.partition("=")[::2] for pair in resources)
    if not all(name and count for name, count in pairs.items()):
        raise click.UsageError("--resource is written NAME=COUNT, e.g. nvidia.com/gpu=8")
    try:
        found = bed.up(fake_nodes=fake_nodes, resources=pairs, real_node=real_node)
    except (bed.NotUp, build.Unavailable, processes.StartFailed) as problem:
        raise exits.Failure(exits.Exit.REFUSED, str(problem)) from problem
    _tell(found)


@command.command(name="down")
@access.debug
def down() -> None:
    """End it, with everything in it."""
    from octarbiter.testing.kubernetes import bed

    click.echo("the test bed is down" if bed.down() else "no test bed was up")


@command.command(name="status")
@access.debug
def status() -> None:
    """Tell whether it is up, and how to speak to it."""
    from octarbiter.cli import exits
    from octarbiter.testing.kubernetes import bed

    found = bed.status()
    if found is None:
        raise exits.Failure(exits.Exit.NOT_FOUND, "no test bed is up: `octo testbed up`")
    _tell(found)


def _tell(found: Status) -> None:
    import shutil

    from octarbiter.testing.kubernetes import build

    click.echo(f"Kubernetes at {found.url}, up since {found.since}, {len(found.nodes)} nodes")
    if found.left_out:
        click.echo(f"without a real node: {found.left_out}")
    kubectl = build.find("kubectl")
    if shutil.which("kubectl") is None and kubectl is not None:
        click.echo(f'export PATH="{kubectl.parent}:$PATH"')
    click.echo(f"export KUBECONFIG={found.kubeconfig}")
