"""How are blocks drawn? As plain aligned text, easily searched and compared; on a terminal as tables in colour."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from octarbiter.cli import text
from octarbiter.cli.layout import Block, Facts, Table

if TYPE_CHECKING:
    from rich.console import Group, RenderableType

_COLOURS = {
    "Failed": "red",
    "Warning": "red",
    "Waiting": "yellow",
    "RetryPending": "yellow",
    "Running": "cyan",
    "Succeeded": "green",
}
_WRAPPED = frozenset({"MESSAGE", "POLICY", "DECIDED BY", "FAILED REPLICAS", "POD"})
_NARROWEST = 20
"""Of a column whose text is wrapped."""


def show(blocks: Sequence[Block]) -> None:
    if not sys.stdout.isatty():
        click.echo(plain(blocks))
        return
    from rich.console import Console

    console = Console(highlight=False, markup=False, emoji=False)
    console.print(drawn(blocks, console.width))


def drawn(blocks: Sequence[Block], width: int) -> Group:
    """For a terminal so many characters wide."""
    from rich.console import Group

    return Group(
        *(
            _drawn_facts(block) if isinstance(block, Facts) else _drawn_table(_without_empty_columns(block), width)
            for block in blocks
        )
    )


def plain(blocks: Sequence[Block]) -> str:
    return "\n\n".join(_plain(block) for block in blocks)


def _plain(block: Block) -> str:
    if isinstance(block, Facts):
        return "\n".join(text.columns([[f"{name}:", value] for name, value in block.pairs]))
    table = _without_empty_columns(block)
    lines = text.columns([table.header, *table.rows])
    return "\n".join([f"{table.title}:", *(f"  {line}" for line in [*lines, table.note] if line)])


def _without_empty_columns(table: Table) -> Table:
    used = [number for number in range(len(table.header)) if any(row[number] for row in table.rows)]
    return Table(
        table.title,
        [table.header[number] for number in used],
        [[row[number] for number in used] for row in table.rows],
        table.note,
    )


def _drawn_facts(block: Facts) -> RenderableType:
    from rich import table
    from rich.padding import Padding
    from rich.text import Text

    grid = table.Table.grid(padding=(0, 2))
    for name, value in block.pairs:
        style = _COLOURS.get(value.partition(" ")[0], "") if name == "State" else ""
        grid.add_row(Text(name, style="bold"), Text(value, style=style))
    return Padding(grid, (0, 0, 1, 0))


def _drawn_table(block: Table, width: int) -> RenderableType:
    from rich import box, table
    from rich.text import Text

    widths = dict(zip(block.header, text.widths([block.header, *block.rows]), strict=True))
    needed = sum(min(wide, _NARROWEST) if name in _WRAPPED else wide for name, wide in widths.items())
    if needed + 3 * len(widths) > width:
        # Too narrow for columns: the terminal's own wrapping is easier to read than words of three letters.
        return Text(_plain(block) + "\n", overflow="ignore", no_wrap=True)
    made = table.Table(
        *(table.Column(name, no_wrap=name not in _WRAPPED) for name in block.header),
        title=block.title,
        title_justify="left",
        title_style="bold",
        caption=block.note or None,
        caption_justify="left",
        box=box.SIMPLE_HEAD,
    )
    for row in block.rows:
        made.add_row(*(Text(cell, style=_COLOURS.get(cell, "")) for cell in row))
    return made
