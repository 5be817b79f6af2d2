"""`octo controller`: run the TaskSet controller against the current context, or inside a cluster."""

from __future__ import annotations

import os
import sys
from typing import Any

import click

from octarbiter.cli import access, settings_flags
from octarbiter.runtime import settings as options


@click.command(name="controller")
@access.options
def command(**flags: Any) -> None:
    """Run the TaskSet controller until it is told to stop (SIGTERM, Ctrl-C).

    Every option of the controller itself can also be given as an environment variable: OCTO_ and its name in capitals,
    e.g. OCTO_WORKERS.
    """
    from octarbiter.runtime import manager
    from octarbiter.services.controllers import assembly

    if flags["namespace"] is None:
        flags["namespace"] = access.chosen("namespace")
    chosen = options.parse(flags, os.environ)
    sys.exit(manager.main(chosen, access.connection(), assembly.add_taskset_controller))


settings_flags.add(command, options.Settings)
