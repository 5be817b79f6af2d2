"""`octo completion`: let a shell complete commands and options."""

from __future__ import annotations

import click

VARIABLE = "_OCTO_COMPLETE"


@click.command(name="completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print the completion script for a shell.

    For example, in ~/.bashrc: eval "$(octo completion bash)"
    """
    from click import shell_completion

    from octarbiter.cli import main

    made = shell_completion.get_completion_class(shell)
    if made is None:
        raise click.UsageError(f"click knows no completion for {shell}")
    click.echo(made(main.cli, {}, "octo", VARIABLE).source())
