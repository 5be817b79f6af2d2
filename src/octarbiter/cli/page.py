"""What does a person want to know of one TaskSet, above all when it hangs?

From what was seen to blocks of text. The notable comes first everywhere: failed replicas before running ones, warnings
before news.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

import msgspec

from octarbiter.api import codec, facts
from octarbiter.api import taskset as api
from octarbiter.api.core_kinds import Event
from octarbiter.api.pod import Pod
from octarbiter.api.queuejob import QueueJob
from octarbiter.cli import claiming, layout, text
from octarbiter.cli.layout import Block, Facts, Table, ago, moment, short, since, some
from octarbiter.core.lifecycle import completion, names, observe
from octarbiter.core.lifecycle.phases import ReplicaPhase

REPLICAS = 20
PODS = 10
_USUAL = facts.DEFAULT_EVENT_POLICY
"""What an event means where nobody has said otherwise; not worth a word."""


class Subject(msgspec.Struct, frozen=True):
    taskset: api.TaskSet
    replicas: Mapping[str, Sequence[api.ReplicaStatus]]
    """By role; all that are known."""
    pods: Sequence[Pod] = ()
    events: Sequence[Event] = ()
    claim: QueueJob | None = None
    """What says whether it may run, if it has a queue."""


def blocks(subject: Subject, now: datetime, all_replicas: bool = False) -> list[Block]:
    taskset = subject.taskset
    found: list[Block] = [Facts("", list(_headline(subject, now))), _roles(taskset)]
    optional = (
        _replicas(subject, None if all_replicas else REPLICAS),
        _pods(subject, now),
        _attempts(taskset, now),
        layout.conditions(taskset.status.conditions, taskset.status.state_message, now),
        layout.events(subject.events, api.KIND, now),
    )
    return found + [block for block in optional if block is not None and block.rows]


# --- the headline


def _headline(subject: Subject, now: datetime) -> Iterator[tuple[str, str]]:
    taskset = subject.taskset
    held = claiming.waits_for(taskset, subject.claim)
    meta, spec, status = taskset.metadata, taskset.spec, taskset.status
    yield "TaskSet", meta.name
    yield "Namespace", meta.namespace
    yield "State", _state(taskset, now)
    if meta.deletion_timestamp is not None:
        yield (
            "Deletion",
            f"asked for {ago(meta.deletion_timestamp, now)}; waits for: {', '.join(meta.finalizers) or '-'}",
        )
    if waits := held or _waits_for(taskset, now):
        yield "Waits for", waits
    if status.suspended_at is not None:
        who = "its queue" if held else "spec.suspend: false"
        yield "Suspended", f"since {moment(status.suspended_at, now)}; {who} lets it go on"
    if status.phase:
        yield "Phase", f"{status.phase}{since(status.transition_time, now)}"
    yield "Created", moment(meta.creation_timestamp, now)
    if status.start_at is not None:
        yield "Started", moment(status.start_at, now)
    if status.finish_at is not None:
        took = f", took {text.age(status.start_at, status.finish_at)}" if status.start_at else ""
        yield "Finished", moment(status.finish_at, now) + took
    if status.trigger is not None:
        yield "Decided by", _trigger(status.trigger)
    if taskset.spec.retry_policy.retry or status.attempt:
        yield (
            "Retries",
            f"{status.total_retried_count} of {spec.retry_policy.budget} used; this is attempt {status.attempt}",
        )
    if status.preempt_count:
        yield "Preempted", f"{status.preempt_count} pods"
    for name, value in (("Queue", spec.queue), ("Priority", spec.priority_class_name)):
        if value:
            yield name, value
    if spec.min_available is not None:
        yield "Gang", f"at least {spec.min_available} pods start together"
    if spec.active_deadline_seconds is not None:
        yield "Deadline", f"{text.duration(spec.active_deadline_seconds)} after its start"
    if meta.labels:
        yield "Labels", ", ".join(f"{name}={value}" for name, value in sorted(meta.labels.items()))


def _state(taskset: api.TaskSet, now: datetime) -> str:
    status = taskset.status
    if not status.state:
        return "not looked at by a controller yet"
    if status.state == api.State.RUNNING and status.start_at is not None:
        return f"{status.state} for {text.age(status.start_at, now)}"
    return status.state


def _waits_for(taskset: api.TaskSet, now: datetime) -> str:
    status = taskset.status
    if not status.state:
        return "a controller; is one running? (`octo install`, `octo controller`)"
    if status.state in (api.State.FAILED, api.State.SUCCEEDED):
        return ""
    if status.observed_generation and status.observed_generation < taskset.metadata.generation:
        return "the controller, which has not seen the last change of the spec yet"
    if status.retry_at is not None:
        left = text.duration((status.retry_at - now).total_seconds())
        return f"the next attempt, at {text.moment(status.retry_at)} (in {left})"
    return short(status.state_message or status.phase_message)


def _trigger(trigger: api.Trigger) -> str:
    who = trigger.role if trigger.index is None else names.hostname(trigger.role, trigger.index)
    return ": ".join(part for part in (who, trigger.event, short(trigger.message)) if part)


# --- roles and replicas


def _roles(taskset: api.TaskSet) -> Table:
    known = {role.name: role for role in taskset.status.role_status}
    rows = []
    for role in taskset.spec.roles:
        seen = known.get(role.name, api.RoleStatus(name=role.name))
        counts = (role.replicas, seen.active, seen.succeeded, seen.failed, seen.stopped)
        message = _unless_said(seen.state_message, taskset)
        rows.append([role.name, seen.state or text.NOTHING, *map(str, counts), message, policy(role)])
    header = ["ROLE", "STATE", "REPLICAS", "ACTIVE", "SUCCEEDED", "FAILED", "STOPPED", "MESSAGE", "POLICY"]
    return Table("Roles", header, rows)


def policy(role: api.Role) -> str:
    """What the role's end takes and means, in one line."""
    fails = f"fails at {role.max_failed} failed" if role.max_failed > 0 else "never fails by count"
    parts = [f"needs {role.min_succeeded} succeeded", fails]
    if role.retry_policy.budget:
        delay = f" after {text.duration(role.retry_policy.delay)}" if role.retry_policy.delay else ""
        budget = role.retry_policy.budget
        parts.append(f"{budget} {'retry' if budget == 1 else 'retries'}{delay}")
    parts += [f"{rule.event}->{rule.action}" for rule in role.event_policy if codec.to_json(rule) not in _USUAL]
    if role.depends_on:
        parts.append(f"after {', '.join(role.depends_on)}")
    return "; ".join(parts)


def _replicas(subject: Subject, most: int | None) -> Table:
    nodes = {pod.metadata.uid: pod.spec.node_name for pod in subject.pods}
    listed = [replica for role in subject.taskset.spec.roles for replica in subject.replicas.get(role.name, ())]
    listed.sort(key=_rank)  # stable: by role and index where equally notable
    shown = listed if most is None else listed[:most]
    rows = [
        [
            replica.name,
            _phase(replica),
            str(replica.attempt),
            str(replica.total_retried_count),
            str(replica.lost_count),
            nodes.get(replica.pod_uid) or replica.pod_host_ip or "-",
            replica.pod_ip or "-",
            _exit_code(replica),
            _message(replica),
        ]
        for replica in shown
    ]
    total = sum(role.replicas for role in subject.taskset.spec.roles)
    more = total - len(shown)
    note = f"and {more} more (--all-replicas)" if more > 0 and most is not None else ""
    header = ["REPLICA", "PHASE", "ATTEMPT", "RETRIES", "LOST", "NODE", "IP", "EXIT", "MESSAGE"]
    return Table("Replicas", header, rows, note)


def _rank(replica: api.ReplicaStatus) -> int:
    if replica.outcome == completion.FAILED:
        return 0
    if not replica.outcome and replica.phase != ReplicaPhase.RUNNING:
        return 1
    if replica.total_retried_count or replica.lost_count:
        return 2
    return {"": 3, completion.SUCCEEDED: 4}.get(replica.outcome, 5)


def _phase(replica: api.ReplicaStatus) -> str:
    """The contract's word without the part that all of them share."""
    return replica.outcome or replica.phase.removeprefix("TaskRoleReplica").removeprefix("Attempt") or text.NOTHING


def _exit_code(replica: api.ReplicaStatus) -> str:
    end = replica.terminated_info
    if end is None:
        return "-"
    return f"{end.exit_code} ({end.reason})" if end.reason not in ("", "Error", "Completed") else str(end.exit_code)


def _message(replica: api.ReplicaStatus) -> str:
    end = replica.terminated_info
    words = [replica.phase_message, end.exit_message if end else ""]
    if replica.lost_count and replica.pod_reason and replica.pod_reason not in replica.phase_message:
        words.append(f"last lost: {replica.pod_reason}")
    return short("; ".join(dict.fromkeys(word for word in words if word)))


# --- what surrounds it


def _pods(subject: Subject, now: datetime) -> Table:
    """Those that do not run yet, or do not answer: where a TaskSet hangs, it hangs here. Those alike on one line."""
    alike: dict[tuple[str, str, str], list[Pod]] = {}
    for pod in sorted(subject.pods, key=lambda pod: pod.metadata.name):
        kind = observe.bucket(pod)
        if kind in observe.ALIVE and kind is not observe.Bucket.RUNNING:
            alike.setdefault((kind.value, pod.spec.node_name or "-", short(_why(pod, now))), []).append(pod)
    rows = [
        [some([pod.metadata.name for pod in pods]), state, node, text.age(_oldest(pods), now), message]
        for (state, node, message), pods in alike.items()
    ]
    note = f"and {len(rows) - PODS} more lines" if len(rows) > PODS else ""
    return Table("Pods that do not run", ["POD", "STATE", "NODE", "AGE", "MESSAGE"], rows[:PODS], note)


def _oldest(pods: Sequence[Pod]) -> datetime | None:
    return min((pod.metadata.creation_timestamp for pod in pods if pod.metadata.creation_timestamp), default=None)


def _why(pod: Pod, now: datetime) -> str:
    if pod.metadata.deletion_timestamp is not None:
        return f"its end was asked for {ago(observe.deletion_requested_at(pod), now)}"
    return observe.why_not_running(pod)


def _attempts(taskset: api.TaskSet, now: datetime) -> Table:
    rows = []
    for record in taskset.status.history:
        failed = [f"{names.hostname(f.role, f.index)} (exit {f.exit_code})" for f in record.failed_replicas]
        decided = _trigger(record.trigger) if record.trigger is not None else "-"
        took = text.age(record.start_at, record.finish_at) if record.finish_at else "-"
        rows.append(
            [str(record.attempt), record.state or "-", moment(record.start_at, now), took, decided, ", ".join(failed)]
        )
    return Table(
        "Attempts that have ended", ["ATTEMPT", "STATE", "BEGUN", "TOOK", "DECIDED BY", "FAILED REPLICAS"], rows
    )


def _unless_said(message: str, taskset: api.TaskSet) -> str:
    """The headline has said it already."""
    return "" if message == taskset.status.state_message else short(message)
