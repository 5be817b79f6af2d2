"""What may be asked of a cluster that is started on this machine?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click
import msgspec

F = TypeVar("F", bound=Callable[..., Any])

MOST_NODES = 1000


class Settings(msgspec.Struct, frozen=True):
    nodes: int = 1
    resources: dict[str, str] = {}
    pretend: bool = False
    port: int = 0
    """Of the API server; 0: a free one."""
    policy: str = "drf"
    """How queues without a parent share the cluster."""


def options(command: F) -> F:
    for option in (
        click.option("--pretend", is_flag=True, help="Run no programs: pods last as long as their `sleep` says."),
        click.option(
            "--resource",
            "resources",
            multiple=True,
            metavar="NAME=COUNT",
            help="Let each node pretend to have it, e.g. nvidia.com/gpu=4; may be repeated.",
        ),
        click.option(
            "--nodes", type=click.IntRange(1, MOST_NODES), default=1, show_default=True, help="How many nodes to show."
        ),
    ):
        command = option(command)
    return command


def settings(
    nodes: int, resources: Sequence[str], pretend: bool, port: int = 0, policy: str = Settings().policy
) -> Settings:
    from octarbiter.api import errors, quantity
    from octarbiter.core.arbitration import policies

    pairs: dict[str, str] = {}
    for written in resources:
        name, _, count = written.partition("=")
        try:
            quantity.parse(count, name)
        except errors.Refused as problem:
            raise click.UsageError(f"--resource is written NAME=COUNT, e.g. nvidia.com/gpu=4; {problem}") from None
        if not name:
            raise click.UsageError(f"--resource is written NAME=COUNT, e.g. nvidia.com/gpu=4, not {written!r}")
        pairs[name] = count
    if policy not in policies.names():
        raise click.UsageError(f"--policy must be one of {', '.join(policies.names())}, is {policy!r}")
    return Settings(nodes, pairs, pretend, port, policy)
