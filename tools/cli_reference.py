"""What does `octo` take and answer? The page that is made from its commands, in the words of their `--help`."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import click

from octarbiter.cli import exits, main

NOTE = "Made by `python -m tools.generate` from src/octarbiter/cli; edit there."


def page() -> str:
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield f"<!-- {NOTE} -->"
    yield "# octo"
    root = click.Context(main.cli, info_name="octo", **main.cli.context_settings)
    yield from _told(root)
    yield from ("", "## Exit codes", "", "The same for every command. Each has `--help`, too.", "")
    yield from _table(("Code", "Meaning"), ((str(int(code)), meaning) for code, meaning in exits.MEANING.items()))
    for context in _below(root):
        yield from ("", f"## {context.command_path}")
        yield from _told(context)


def _below(above: click.Context) -> Iterator[click.Context]:
    if not isinstance(above.command, click.Group):
        return
    for name in above.command.list_commands(above):
        command = above.command.get_command(above, name)
        if command is not None:
            context = click.Context(command, info_name=name, parent=above)
            yield context
            yield from _below(context)


def _told(context: click.Context) -> Iterator[str]:
    yield ""
    yield f"`{' '.join((context.command_path, *context.command.collect_usage_pieces(context)))}`"
    yield ""
    # Without click's \b, which would keep it from wrapping the lines.
    yield inspect.cleandoc(context.command.help or "").replace("\b\n", "")
    if isinstance(context.command, click.Group):
        base = context.command_path.replace(" ", "-")
        names = context.command.list_commands(context)
        yield ""
        yield f"Commands: {', '.join(f'[{name}](#{base}-{name})' for name in names)}."
    # `get_params` has the option --help as well, which every command has; it is told once, at the top.
    command = context.command
    options = command.params if context.parent else command.get_params(context)
    records = [record for option in options if (record := option.get_help_record(context))]
    if records:
        yield ""
        yield from _table(("Option", "Meaning"), ((f"`{names}`", meaning) for names, meaning in records))


def _table(header: tuple[str, str], rows: Iterator[tuple[str, str]]) -> Iterator[str]:
    yield f"| {' | '.join(header)} |"
    yield "|---|---|"
    yield from (f"| {_cell(left)} | {_cell(right)} |" for left, right in rows)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", r"\|")
