"""`octo controller`: run the TaskSet controller against the current context, or inside a cluster."""

from __future__ import annotations

import os
import sys
from typing import Any

import click

from octarbiter.runtime import settings as options


@click.command(name="controller")
@click.option("--kubeconfig", default=None, help="Path of the kubeconfig file.")
@click.option("--context", default=None, help="Context of the kubeconfig to use.")
def command(kubeconfig: str | None, context: str | None, **flags: Any) -> None:
    """Run the TaskSet controller until it is told to stop (SIGTERM, Ctrl-C).

    Every option can also be given as an environment variable: OCTO_ and the name in capitals, e.g. OCTO_WORKERS.
    """
    from octarbiter.runtime import kubeconfig as connections
    from octarbiter.runtime import manager
    from octarbiter.services.controllers import assembly

    chosen = options.parse(flags, os.environ)
    connection = connections.load(kubeconfig, context)
    sys.exit(manager.main(chosen, connection, assembly.add_taskset_controller))


for _option in options.options():
    command.params.append(
        click.Option(
            [
                f"{_option.flag}/--no-{_option.flag[2:]}" if isinstance(_option.default, bool) else _option.flag,
                _option.name,
            ],
            default=None,
            help=f"{_option.doc} [default: {_option.default if _option.default != '' else 'empty'}]",
            type=click.Choice(_option.choices) if _option.choices else None,
        )
    )
