"""What does a person want to know of one Queue? Why it has what it has, and whose turn it is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

import msgspec

from octarbiter.api import codec
from octarbiter.api.arbitrator import ResourceList
from octarbiter.api.core_kinds import Event, ResourceQuota
from octarbiter.api.queue import KIND, Queue
from octarbiter.api.queuejob import QueueJob, quantities
from octarbiter.cli import columns, layout, text
from octarbiter.cli.layout import Block, Facts, Table

JOBS = 20
UNSEEN = "nobody has looked at it yet: is an arbitrator running? (`octo install`, `octo arbitrator`)"


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    queue: Queue
    children: Sequence[Queue] = ()
    jobs: Sequence[QueueJob] = ()
    """The unfinished ones, in their order."""
    quotas: Sequence[ResourceQuota] = ()
    events: Sequence[Event] = ()
    hidden: str = ""
    """Why something may be missing here."""


def blocks(subject: Subject, now: datetime) -> list[Block]:
    queue = subject.queue
    said = explanation(queue)
    found: list[Block] = [Facts("", list(_headline(subject, said, now)))]
    optional = (
        _figures(queue),
        line("Jobs, in their order", subject.jobs, queue.metadata.namespace, now),
        _children(subject.children, queue.metadata.namespace),
        _quotas(subject.quotas, queue.metadata.namespace),
        layout.conditions(queue.status.conditions, said, now),
        layout.events(subject.events, KIND, now),
    )
    return found + [block for block in optional if block.rows]


def explanation(queue: Queue) -> str:
    """The sentence that explains its figures."""
    if not queue.status.conditions:
        return UNSEEN
    if queue.status.observed_generation < queue.metadata.generation:
        return "the arbitrator has not seen the last change of the spec yet"
    return columns.explanation(codec.to_json(queue.status))


def _headline(subject: Subject, said: str, now: datetime) -> Iterator[tuple[str, str]]:
    queue = subject.queue
    meta, spec, status = queue.metadata, queue.spec, queue.status
    yield "Queue", meta.name
    yield "Namespace", meta.namespace
    yield "Why", said
    if meta.deletion_timestamp is not None:
        yield "Deletion", f"asked for {layout.ago(meta.deletion_timestamp, now)}"
    yield "Weight", str(spec.weight)
    yield "Dominant share", status.share or "none: nothing is allocated"
    if spec.parent:
        yield "Parent", spec.parent
    if spec.policy:
        yield "Policy", f"{spec.policy}, among its children"
    if spec.priority:
        yield "Priority", str(spec.priority)
    if not spec.reclaimable:
        yield "Reclaimable", "no: what it uses beyond its share is not taken back"
    if spec.oversubscription:
        factors = ", ".join(f"{name} x {factor}" for name, factor in sorted(spec.oversubscription.items()))
        yield "Quota", f"larger than allocated: {factors}"
    yield "Created", layout.moment(meta.creation_timestamp, now)
    if meta.labels:
        yield "Labels", ", ".join(f"{name}={value}" for name, value in sorted(meta.labels.items()))
    if subject.hidden:
        yield "Note", subject.hidden


def _figures(queue: Queue) -> Table:
    """A line for each resource; columns without a number are not drawn."""
    spec, status = queue.spec, queue.status
    stated = [spec.request, spec.guarantee, spec.capability, spec.deserved]
    told = [status.demand, status.deserved, status.allocated, status.used, status.preempting]
    lists = [each or ResourceList() for each in (*stated, *told)]
    rows = []
    for name in columns.resources_of([codec.to_json(each) for each in lists]):
        amounts = [str(each.resources.get(name, "")) for each in lists]
        rows.append([name, *amounts[: len(stated)], *(amount or "0" for amount in amounts[len(stated) :])])
    header = ["RESOURCE", "REQUEST", "GUARANTEE", "CAPABILITY", "PROMISED"]
    return Table("Resources", [*header, *(figure.upper() for figure in columns.FIGURES)], rows)


def line(title: str, jobs: Sequence[QueueJob], namespace: str, now: datetime) -> Table:
    """Jobs of one queue. `namespace`: those of others are told with theirs."""
    rows = []
    for job in jobs[:JOBS]:
        body, meta = codec.to_json(job), job.metadata
        units = f"{job.status.allocated_no}/{job.spec.resourceno}"
        position = str(job.status.position) if job.status.position else "-"
        state, age = columns.claim_state(body), text.age(meta.creation_timestamp, now)
        rows.append([position, shown(meta.key, namespace), str(job.spec.priority), state, units, unit(job), age])
    more = len(jobs) - len(rows)
    note = f"and {more} more (octo queuejob list)" if more > 0 else ""
    return Table(title, ["POSITION", "JOB", "PRIORITY", "STATE", "UNITS", "UNIT", "AGE"], rows, note)


def unit(job: QueueJob) -> str:
    """As it was written."""
    amounts = quantities(job.spec.resourceunit)
    return ", ".join(f"{name} {amounts[name]}" for name in sorted(amounts))


def _children(children: Sequence[Queue], namespace: str) -> Table:
    rows = []
    for child in children:
        name, share = shown(child.metadata.key, namespace), child.status.share or "-"
        rows.append([name, str(child.spec.weight), share, layout.short(explanation(child))])
    return Table("Children", ["QUEUE", "WEIGHT", "SHARE", "MESSAGE"], rows)


def _quotas(quotas: Sequence[ResourceQuota], namespace: str) -> Table:
    rows = [
        [shown(quota.metadata.key, namespace), key, str(quota.spec.hard[key]), str(quota.status.used.get(key, "-"))]
        for quota in quotas
        for key in sorted(quota.spec.hard)
    ]
    return Table("Quota", ["QUOTA", "KEY", "HARD", "USED"], rows)


def shown(key: str, namespace: str) -> str:
    """Without the namespace, where it is the one of the page."""
    return key.removeprefix(f"{namespace}/")
