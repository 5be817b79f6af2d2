"""`octo arbitrator`: share the cluster among queues, run against the current context, or inside a cluster."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import click

from octarbiter.cli import access, settings_flags
from octarbiter.runtime import settings as options
from octarbiter.services.arbitrator.settings import ArbitratorSettings

if TYPE_CHECKING:
    from octarbiter.runtime.manager import Manager


@click.command(name="arbitrator")
@access.options
def command(**flags: Any) -> None:
    """Run the arbitrator until it is told to stop (SIGTERM, Ctrl-C).

    It says what each Queue deserves, makes quotas follow, takes back what is used beyond that, and serves the admission
    webhook. Every option can also be given as an environment variable: OCTO_ and its name in capitals (OCTO_POLICY).
    """
    from octarbiter.runtime import manager

    chosen = options.parse_as(ArbitratorSettings, flags, os.environ)

    async def run(made: Manager) -> int:
        from octarbiter.services.arbitrator import assembly

        async with assembly.arbitration(made, chosen):
            return await made.run()

    sys.exit(manager.process(chosen, access.connection(), run))


settings_flags.add(command, ArbitratorSettings)
