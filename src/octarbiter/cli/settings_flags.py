"""Every setting of a process that runs, as a flag of its command."""

from __future__ import annotations

import click

from octarbiter.runtime import settings


def add(command: click.Command, of: type[settings.Settings]) -> None:
    for option in settings.options(of):
        names = f"{option.flag}/--no-{option.flag[2:]}" if isinstance(option.default, bool) else option.flag
        given = ["-n", names] if option.name == "namespace" else [names]
        command.params.append(
            click.Option(
                [*given, option.name],
                default=None,
                help=f"{option.doc} [default: {option.default if option.default != '' else 'empty'}]",
                type=click.Choice(option.choices) if option.choices else None,
            )
        )
