"""Of what is a page for people made? Facts, tables, and what every object has: conditions and events.

How blocks are drawn is decided in `drawing`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec

from octarbiter.api.core_kinds import Event
from octarbiter.api.meta import Condition
from octarbiter.cli import text

EVENTS = 20
LONGEST_MESSAGE = 200
NOBODY = "-"


class Facts(msgspec.Struct, frozen=True):
    """Names and values, one a line."""

    title: str
    pairs: list[tuple[str, str]]


class Table(msgspec.Struct, frozen=True):
    title: str
    header: list[str]
    rows: list[list[str]]
    note: str = ""


Block = Facts | Table


def conditions(found: Sequence[Condition], said: str, now: datetime) -> Table:
    """`said`: a message that stands elsewhere on the page."""
    rows = [
        [
            each.type,
            each.status,
            text.age(each.last_transition_time, now),
            each.reason or "-",
            "" if each.message == said else short(each.message),
        ]
        for each in found
    ]
    return Table("Conditions", ["CONDITION", "STATUS", "SINCE", "REASON", "MESSAGE"], rows)


def events(found: Sequence[Event], subject: str, now: datetime) -> Table:
    """Warnings first, then the latest; what was said of several pods alike on one line. `subject`: the page's kind."""
    alike: dict[tuple[str, str, str], list[Event]] = {}
    for event in found:
        alike.setdefault((event.type, event.reason, short(event.message)), []).append(event)

    def last_seen(events: Sequence[Event]) -> datetime | None:
        return max((at for event in events if (at := seen_at(event)) is not None), default=None)

    def order(line: tuple[tuple[str, str, str], list[Event]]) -> tuple[bool, float]:
        (type_, _, _), events = line
        at = last_seen(events)
        return type_ != "Warning", -(at.timestamp() if at else 0.0)

    rows = []
    for (type_, reason, message), events in sorted(alike.items(), key=order):
        count = sum(max(1, event.count) for event in events)
        times = f" (x{count})" if count > 1 else ""
        about = sorted({e.involved_object.name for e in events if e.involved_object.kind != subject})
        rows.append([text.age(last_seen(events), now) + times, type_, reason, some(about), message])
    if all(row[3] == NOBODY for row in rows):
        rows = [[*row[:3], "", row[4]] for row in rows]  # a column in which nothing stands is not drawn
    note = f"and {len(rows) - EVENTS} more lines" if len(rows) > EVENTS else ""
    return Table("Events", ["LAST SEEN", "TYPE", "REASON", "POD", "MESSAGE"], rows[:EVENTS], note)


def seen_at(event: Event) -> datetime | None:
    return event.last_timestamp or event.event_time or event.first_timestamp or event.metadata.creation_timestamp


def some(members: Sequence[str]) -> str:
    if not members:
        return NOBODY
    return members[0] if len(members) == 1 else f"{members[0]} and {len(members) - 1} more"


def short(message: str) -> str:
    line = text.line(message)
    return line if len(line) <= LONGEST_MESSAGE else line[: LONGEST_MESSAGE - 3] + "..."


def ago(then: datetime | None, now: datetime) -> str:
    return "at an unknown time" if then is None else f"{text.age(then, now)} ago"


def moment(then: datetime | None, now: datetime) -> str:
    return text.NOTHING if then is None else f"{text.moment(then)} ({text.age(then, now)} ago)"


def since(then: datetime | None, now: datetime) -> str:
    return "" if then is None else f" for {text.age(then, now)}"
