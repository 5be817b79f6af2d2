"""What is shown of TaskSets while somebody watches them run?

On a terminal a picture that is drawn again and again (`picture`), elsewhere a line for each thing that has happened
(`said`), for scripts the same as JSON (`told`). Pure: TaskSets, log lines, time and space in, blocks and lines out.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from datetime import datetime

import msgspec

from octarbiter.api import codec
from octarbiter.api import taskset as api
from octarbiter.api.meta import Json
from octarbiter.cli import text
from octarbiter.cli.layout import Block, Facts, Table
from octarbiter.core.lifecycle.phases import ReplicaPhase

REPLICAS = 16
LINES = 8
FEWEST = 3
"""Replicas, or log lines: fewer are not worth the heading."""
_BARS = (20, 10)
_FRAME = 4
"""Lines of a table beside its rows."""
_MARGIN = 3
"""Columns around a column's text."""
_LONGEST = 3
"""Lines of a sentence."""


class Space(msgspec.Struct, frozen=True):
    """Of a terminal."""

    columns: int = 120
    rows: int = 50


def picture(tasksets: Sequence[api.TaskSet], lines: Sequence[str], now: datetime, space: Space) -> list[Block]:
    """As much as the terminal has room for. `lines`: the last ones that were printed; the newest at the end."""
    heads: list[list[Block]] = [[_headline(taskset, now, space), _roles(taskset, space)] for taskset in tasksets]
    left = space.rows - 1 - sum(_height(block) for head in heads for block in head)
    kept = _FRAME + min(FEWEST, len(lines)) if lines else 0
    found: list[Block] = []
    if left < kept and len(tasksets) > 1:
        found.append(_overview(tasksets, now, space, space.rows - 1 - kept))
        left = space.rows - 1 - _height(found[0])
    else:
        for number, (taskset, head) in enumerate(zip(tasksets, heads, strict=True)):
            replicas = _replicas(taskset, now, space, (left - kept) // (len(tasksets) - number))
            left -= _height(replicas) if replicas.rows else 0
            found += [*head, replicas] if replicas.rows else head
    log = _log(lines, space, left)
    return [*found, log] if log.rows else found


def _height(block: Block) -> int:
    """In lines."""
    if isinstance(block, Table):
        return len(block.rows) + _FRAME + bool(block.note)
    return 1 + sum(value.count("\n") + 1 for _, value in block.pairs)


def _log(lines: Sequence[str], space: Space, height: int) -> Table:
    most = max(FEWEST, min(LINES, height - _FRAME))
    return Table("", ["LOG"], [[_cut(line, space.columns - _MARGIN - 1)] for line in lines[-most:]])


def _cut(words: str, columns: int) -> str:
    line = text.line(words)
    return line if len(line) <= columns else line[: max(0, columns - 3)] + "..."


def _fitting(number: int, height: int) -> int:
    """How many of so many rows a table shows that may be so high; a line may be needed to say that there are more."""
    most = height - _FRAME
    return number if number <= most else max(0, most - 1)


def _overview(tasksets: Sequence[api.TaskSet], now: datetime, space: Space, height: int) -> Table:
    """A line for each: those that run first, then those that wait."""
    order: dict[str, int] = {api.State.RUNNING: 0, api.State.SUCCEEDED: 2, api.State.FAILED: 2}
    ordered = sorted(tasksets, key=lambda taskset: order.get(taskset.status.state or "", 1))
    shown = ordered[: max(1, _fitting(len(ordered), height))]
    rows = []
    for taskset in shown:
        status = taskset.status
        roles, replicas = status.role_status, sum(role.replicas for role in taskset.spec.roles)
        done, active, failed = (
            sum(role.succeeded + role.failed + role.stopped for role in roles),
            sum(role.active for role in roles),
            sum(role.failed for role in roles),
        )
        since = text.age(status.start_at or taskset.metadata.creation_timestamp, status.finish_at or now)
        counts = [f"{done}/{replicas}", _count(active), _count(failed)]
        name, state = taskset.metadata.name, status.state or "Waiting"
        rows.append([name, state, *counts, since, "" if status.finish_at else status.state_message])
    more = len(tasksets) - len(rows)
    header = ["TASKSET", "STATE", "DONE", "ACTIVE", "FAILED", "TIME", "MESSAGE"]
    return _fitted(Table("", header, rows, f"and {more} more" if more else ""), space)


def _fitted(table: Table, space: Space) -> Table:
    """With as much of each message as there is room for on one line."""
    others = [[cell for cell, name in zip(row, table.header, strict=True) if name != "MESSAGE"] for row in table.rows]
    names = [name for name in table.header if name != "MESSAGE"]
    room = space.columns - _needed(Table("", names, others)) - _MARGIN
    words = [row[table.header.index("MESSAGE")] for row in table.rows]
    if room < len("MESSAGE") or not any(words):
        return Table("", names, others, table.note)
    rows = [[*row, _cut(word, room)] for row, word in zip(others, words, strict=True)]
    return Table("", [*names, "MESSAGE"], rows, table.note)


def _needed(table: Table) -> int:
    """How many columns of a terminal; those of the table in which nothing stands are not drawn."""
    wide = text.widths([table.header, *table.rows])
    used = [width for number, width in enumerate(wide) if any(row[number] for row in table.rows)]
    return 1 + sum(used) + _MARGIN * len(used)


def said(before: api.TaskSet | None, after: api.TaskSet) -> list[str]:
    """What has happened since `before`, a line each."""
    name = after.metadata.name
    old, new = before.status if before is not None else api.TaskSetStatus(), after.status
    lines = []
    was = {replica.name: replica for role in old.role_status for replica in role.replica_status}
    for role in new.role_status:
        for replica in role.replica_status:
            earlier = was.get(replica.name)
            if earlier is None or _happened(earlier) != _happened(replica):
                lines += [f"{name}: {line}" for line in _replica_line(replica)]
    if (old.state, old.attempt, old.state_message) != (new.state, new.attempt, new.state_message) and new.state:
        words = text.line(new.state_message)
        attempt = f" (attempt {new.attempt})" if new.attempt else ""
        lines.append(f"{name}: {new.state}{attempt}" + (f": {words}" if words else ""))
    return lines


def held_back(taskset: api.TaskSet, waits_for: str) -> api.TaskSet:
    """Its own status says only that it is suspended. `waits_for`: what its queue says, if that holds it back."""
    if not waits_for:
        return taskset
    status = msgspec.structs.replace(taskset.status, state=taskset.status.state or "Waiting", state_message=waits_for)
    return msgspec.structs.replace(taskset, status=status)


def told(taskset: api.TaskSet, waits_for: str = "") -> Json:
    """For scripts: the object's name and the whole status."""
    meta = taskset.metadata
    found = {"namespace": meta.namespace, "name": meta.name, "status": codec.to_json(taskset.status)}
    return {**found, "waitsFor": waits_for} if waits_for else found


def _headline(taskset: api.TaskSet, now: datetime, space: Space) -> Facts:
    status = taskset.status
    since = text.age(status.start_at or taskset.metadata.creation_timestamp, status.finish_at or now)
    state = f"{status.state or 'Waiting'} for {since}" if status.finish_at is None else f"{status.state} in {since}"
    found = [("TaskSet", taskset.metadata.name), ("State", state)]
    if status.total_retried_count or status.attempt:
        found.append(("Attempt", f"{status.attempt}, {status.total_retried_count} retries"))
    ended = status.state in (api.State.SUCCEEDED, api.State.FAILED)
    room = max(20, space.columns - len("Waits for") - 2 * _MARGIN)
    if words := textwrap.wrap(text.line(status.state_message), room, max_lines=_LONGEST, placeholder=" ..."):
        found.append(("Because" if ended else "Waits for", "\n".join(words)))
    return Facts("", found)


def _roles(taskset: api.TaskSet, space: Space) -> Table:
    for bar in _BARS:
        table = _roles_with(taskset, bar)
        if _needed(table) <= space.columns:
            return table
    table = _roles_with(taskset, 0)
    return table if _needed(table) <= space.columns else Table("", table.header[:4], [row[:4] for row in table.rows])


def _roles_with(taskset: api.TaskSet, bar: int) -> Table:
    """`bar`: how long one is; 0: none."""
    known = {role.name: role for role in taskset.status.role_status}
    rows = []
    for role in taskset.spec.roles:
        seen = known.get(role.name, api.RoleStatus(name=role.name))
        done = seen.succeeded + seen.failed + seen.stopped
        counts = [seen.active, seen.succeeded, seen.failed, seen.stopped]
        progress = f"{done}/{role.replicas}"
        rows.append(
            [role.name, seen.state or "Waiting", _bar(done, role.replicas, bar), progress, *map(_count, counts)]
        )
    return Table("", ["ROLE", "STATE", "PROGRESS", "DONE", "ACTIVE", "SUCCEEDED", "FAILED", "STOPPED"], rows)


def _bar(done: int, of: int, long: int) -> str:
    filled = long * done // of if of else long
    return f"[{'=' * filled}{' ' * (long - filled)}]" if long else ""


def _count(number: int) -> str:
    """Nothing for none: a column without a number is not drawn."""
    return str(number) if number else ""


def _replicas(taskset: api.TaskSet, now: datetime, space: Space, height: int) -> Table:
    """Without rows where there is no room for a few."""
    listed = [replica for role in taskset.status.role_status for replica in role.replica_status]
    # Those that run first, then those that wait; what is over is counted above.
    listed.sort(key=lambda replica: (bool(replica.outcome), replica.phase != ReplicaPhase.RUNNING))
    total = sum(role.replicas for role in taskset.spec.roles)
    most = _fitting(total, min(height, REPLICAS + _FRAME))
    if most < min(FEWEST - 1, len(listed)):
        most = 0
    rows = [
        [
            replica.name,
            _word(replica),
            text.age(replica.start_at, replica.finish_at or now) if replica.start_at else "-",
            str(replica.terminated_info.exit_code) if replica.terminated_info else "-",
            replica.phase_message,
        ]
        for replica in listed[:most]
    ]
    note = f"and {total - len(rows)} more" if total > len(rows) else ""
    return _fitted(Table("", ["REPLICA", "PHASE", "TIME", "EXIT", "MESSAGE"], rows, note), space)


def _word(replica: api.ReplicaStatus) -> str:
    return replica.outcome or replica.phase.removeprefix("TaskRoleReplica").removeprefix("Attempt") or "Waiting"


def _happened(replica: api.ReplicaStatus) -> tuple[object, ...]:
    running = replica.phase == ReplicaPhase.RUNNING
    return (replica.outcome, running, replica.attempt, replica.lost_count, replica.total_retried_count)


def _replica_line(replica: api.ReplicaStatus) -> Iterator[str]:
    end = replica.terminated_info
    if replica.outcome:
        code = f" (exit {end.exit_code})" if end is not None else ""
        words = f": {text.line(end.exit_message)}" if end is not None and end.exit_message else ""
        yield f"{replica.name} {replica.outcome}{code}{words}"
    elif replica.phase == ReplicaPhase.RUNNING:
        yield f"{replica.name} Running" + (f" (attempt {replica.attempt})" if replica.attempt else "")
