"""How are times, columns and objects shown in plain text? As kubectl's users expect them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import msgspec
import yaml

from octarbiter.api import codec
from octarbiter.api.meta import Json
from octarbiter.runtime import yaml_scalars

NOTHING = "<none>"
_GAP = "   "
_UNITS = ((86_400, "d"), (3_600, "h"), (60, "m"), (1, "s"))


def duration(seconds: float) -> str:
    """The two largest units at most, and the second only where it still matters: 45s, 3m20s, 45m, 5h20m, 3d4h, 30d."""
    left = max(0, int(seconds))
    for (size, unit), (lesser, lesser_unit) in pairwise(_UNITS):
        if left >= size:
            count, rest = divmod(left, size)
            part = f"{rest // lesser}{lesser_unit}" if rest >= lesser and count < 10 else ""
            return f"{count}{unit}{part}"
    return f"{left}s"


def age(then: datetime | None, now: datetime) -> str:
    return NOTHING if then is None else duration((now - then) / timedelta(seconds=1))


def moment(then: datetime) -> str:
    return f"{then:%Y-%m-%d %H:%M:%SZ}"


def line(text: str) -> str:
    """Foreign text on one line; control characters, which could rule the terminal, are left out."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def widths(rows: Sequence[Sequence[str]]) -> list[int]:
    return [max(map(len, column)) for column in zip(*rows, strict=True)]


def columns(rows: Sequence[Sequence[str]], least: Sequence[int] = ()) -> list[str]:
    """Aligned; `least` are widths of rows that were printed before."""
    if not rows:
        return []
    wide = [max(pair) for pair in zip(widths(rows), least or widths(rows), strict=True)]
    return [_GAP.join(cell.ljust(width) for cell, width in zip(row, wide, strict=True)).rstrip() for row in rows]


class _Dumper(yaml.CSafeDumper):
    def ignore_aliases(self, data: object) -> bool:
        """What is shared in memory is written out each time."""
        return True


def _string(dumper: yaml.CSafeDumper, value: str) -> yaml.ScalarNode:
    """PyYAML knows fewer words than kubectl: it would write the string "y" bare, to be read back as true."""
    try:
        is_itself = yaml_scalars.plain(value) == value
    except ValueError:
        is_itself = False
    style = "|" if "\n" in value else None if is_itself else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style)


_Dumper.add_representer(str, _string)


def to_yaml(value: Any) -> str:
    return str(yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120))


def to_json(value: Any) -> str:
    return msgspec.json.format(codec.encode(value), indent=4).decode() + "\n"


def objects(bodies: Sequence[Json], form: str) -> str:
    """As `json` or `yaml`: one object as it is, several as a List or as several documents."""
    if form == "yaml":
        return "---\n".join(to_yaml(body) for body in bodies)
    return to_json(bodies[0] if len(bodies) == 1 else {"apiVersion": "v1", "kind": "List", "items": list(bodies)})
