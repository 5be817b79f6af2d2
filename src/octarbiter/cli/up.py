"""`octo up`: a cluster on this machine, without Kubernetes."""

from __future__ import annotations

import click

from octarbiter.cli import access, pretending


@click.command(name="up")
@pretending.options
@click.option("--policy", default="drf", show_default=True, help="How Queues without a parent share it.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Of the API server; 0: a free one.")
@click.option("--foreground", is_flag=True, help="Stay, and end with Ctrl-C or SIGTERM.")
@access.debug
def command(nodes: int, resources: tuple[str, ...], pretend: bool, policy: str, port: int, foreground: bool) -> None:
    """Start a cluster on this machine; it stays until `octo down`.

    No Kubernetes, no containers and no special rights are needed: containers run as processes of this user. It listens
    on 127.0.0.1 only, and its state is kept for the next time.
    """
    from octarbiter.cli import embedding, exits

    settings = pretending.settings(nodes, resources, pretend, port, policy)
    place = embedding.home()
    if embedding.running(place) is not None:
        told = f"a cluster is up already: export KUBECONFIG={place / embedding.KUBECONFIG}"
        raise exits.Failure(exits.Exit.REFUSED, told)
    if foreground:
        from octarbiter.cli import serving

        serving.serve(embedding.Order(place, settings), debug=access.wants_debug())
        return
    embedding.start(place, settings, until_closed=False)
    click.echo(f"a cluster with {nodes} {'node' if nodes == 1 else 'nodes'} is up; `octo down` ends it")
    click.echo(f"export KUBECONFIG={place / embedding.KUBECONFIG}")
