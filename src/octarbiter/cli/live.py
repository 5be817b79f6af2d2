"""What is shown of TaskSets while somebody watches them run?

On a terminal a picture that is drawn again and again (`picture`), elsewhere a line for each thing that has happened
(`said`), for scripts the same as JSON (`told`). Pure: TaskSets, log lines and the time in, blocks and lines out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from octarbiter.api import codec
from octarbiter.api import taskset as api
from octarbiter.api.meta import Json
from octarbiter.cli import text
from octarbiter.cli.page import Block, Facts, Table
from octarbiter.core.lifecycle.phases import ReplicaPhase

REPLICAS = 16
LINES = 8
_BAR = 20


def picture(tasksets: Sequence[api.TaskSet], lines: Sequence[str], now: datetime) -> list[Block]:
    """`lines`: the last ones that were printed; the newest at the end."""
    found: list[Block] = []
    for taskset in tasksets:
        found += [Facts("", list(_headline(taskset, now))), _roles(taskset)]
        replicas = _replicas(taskset, now)
        if replicas.rows:
            found.append(replicas)
    if lines:
        found.append(Table("Log", [""], [[text.line(line)] for line in lines[-LINES:]]))
    return found


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


def told(taskset: api.TaskSet) -> Json:
    """For scripts: the object's name and the whole status."""
    meta = taskset.metadata
    return {"namespace": meta.namespace, "name": meta.name, "status": codec.to_json(taskset.status)}


def _headline(taskset: api.TaskSet, now: datetime) -> Iterator[tuple[str, str]]:
    status = taskset.status
    yield "TaskSet", taskset.metadata.name
    since = text.age(status.start_at or taskset.metadata.creation_timestamp, status.finish_at or now)
    yield (
        "State",
        f"{status.state or 'Waiting'} for {since}" if status.finish_at is None else f"{status.state} in {since}",
    )
    if status.total_retried_count or status.attempt:
        yield "Attempt", f"{status.attempt}, {status.total_retried_count} retries"
    ended = status.state in (api.State.SUCCEEDED, api.State.FAILED)
    if words := text.line(status.state_message):
        yield "Because" if ended else "Waits for", words


def _roles(taskset: api.TaskSet) -> Table:
    known = {role.name: role for role in taskset.status.role_status}
    rows = []
    for role in taskset.spec.roles:
        seen = known.get(role.name, api.RoleStatus(name=role.name))
        done = seen.succeeded + seen.failed + seen.stopped
        counts = [role.replicas, seen.active, seen.succeeded, seen.failed, seen.stopped]
        rows.append([role.name, seen.state or "Waiting", _bar(done, role.replicas), *map(str, counts)])
    return Table("", ["ROLE", "STATE", "DONE", "REPLICAS", "ACTIVE", "SUCCEEDED", "FAILED", "STOPPED"], rows)


def _bar(done: int, of: int) -> str:
    filled = _BAR * done // of if of else _BAR
    return f"[{'=' * filled}{' ' * (_BAR - filled)}]"


def _replicas(taskset: api.TaskSet, now: datetime) -> Table:
    listed = [replica for role in taskset.status.role_status for replica in role.replica_status]
    # Those that run first, then those that wait; what is over is counted above.
    listed.sort(key=lambda replica: (bool(replica.outcome), replica.phase != ReplicaPhase.RUNNING))
    rows = [
        [
            replica.name,
            _word(replica),
            text.age(replica.start_at, replica.finish_at or now) if replica.start_at else "-",
            str(replica.terminated_info.exit_code) if replica.terminated_info else "-",
            text.line(replica.phase_message),
        ]
        for replica in listed[:REPLICAS]
    ]
    total = sum(role.replicas for role in taskset.spec.roles)
    note = f"and {total - len(rows)} more" if total > len(rows) else ""
    return Table("", ["REPLICA", "PHASE", "TIME", "EXIT", "MESSAGE"], rows, note)


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
