"""How are blocks drawn? As plain aligned text, easily searched and compared; on a terminal as tables in colour."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from octarbiter.cli import text
from octarbiter.cli.page import Block, Facts

if TYPE_CHECKING:
    from rich.console import RenderableType

_COLOURS = {
    "Failed": "red",
    "Warning": "red",
    "Waiting": "yellow",
    "RetryPending": "yellow",
    "Running": "cyan",
    "Succeeded": "green",
}
_WRAPPED = frozenset({"MESSAGE", "POLICY", "DECIDED BY", "FAILED", "POD", "BEGUN"})


def show(blocks: Sequence[Block]) -> None:
    if sys.stdout.isatty():
        from rich.console import Console

        console = Console(highlight=False, markup=False, emoji=False)
        for block in blocks:
            console.print(_rich(block))
            if isinstance(block, Facts):
                console.print()
    else:
        click.echo(plain(blocks))


def plain(blocks: Sequence[Block]) -> str:
    return "\n\n".join(_plain(block) for block in blocks)


def _plain(block: Block) -> str:
    if isinstance(block, Facts):
        lines = text.columns([[f"{name}:", value] for name, value in block.pairs])
    else:
        lines = [f"  {line}" for line in text.columns([block.header, *block.rows])]
        lines += [f"  {block.note}"] if block.note else []
    return "\n".join([f"{block.title}:", *lines] if block.title else lines)


def _rich(block: Block) -> RenderableType:
    from rich import box, table
    from rich.text import Text

    if isinstance(block, Facts):
        grid = table.Table.grid(padding=(0, 2))
        for name, value in block.pairs:
            grid.add_row(Text(name, style="bold"), Text(value, style=_COLOURS.get(value.split(" ")[0].rstrip(":"), "")))
        return grid
    drawn = table.Table(
        *(table.Column(name, overflow="fold", no_wrap=name not in _WRAPPED) for name in block.header),
        title=block.title,
        title_justify="left",
        title_style="bold",
        caption=block.note or None,
        caption_justify="left",
        box=box.SIMPLE_HEAD,
    )
    for row in block.rows:
        drawn.add_row(*(Text(cell, style=_COLOURS.get(cell, "")) for cell in row))
    return drawn
