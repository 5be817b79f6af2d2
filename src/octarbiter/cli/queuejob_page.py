"""What does a person want to know of one QueueJob? What it has, why no more, and who is ahead of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

import msgspec

from octarbiter.api import codec
from octarbiter.api.core_kinds import Event
from octarbiter.api.queue import Queue
from octarbiter.api.queuejob import ALLOCATED, FINISHED, KIND, QueueJob
from octarbiter.cli import columns, layout, queue_page, text
from octarbiter.cli.layout import Block, Facts


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    job: QueueJob
    queue: Queue | None = None
    ahead: Sequence[QueueJob] = ()
    """Unfinished ones of the same queue that are served before it."""
    events: Sequence[Event] = ()
    hidden: str = ""
    """Why something may be missing here."""


def blocks(subject: Subject, now: datetime) -> list[Block]:
    job = subject.job
    said = explanation(job)
    found: list[Block] = [Facts("", list(_headline(subject, said, now)))]
    optional = (
        queue_page.line("Ahead of it", subject.ahead, job.metadata.namespace, now),
        layout.conditions(job.status.conditions, said, now),
        layout.events(subject.events, KIND, now),
    )
    return found + [block for block in optional if block.rows]


def explanation(job: QueueJob) -> str:
    """The sentence that explains what it has."""
    found = [job.condition(type_) for type_ in (FINISHED, ALLOCATED)]
    return next((text.line(each.message) for each in found if each is not None), queue_page.UNSEEN)


def _headline(subject: Subject, said: str, now: datetime) -> Iterator[tuple[str, str]]:
    job, queue = subject.job, subject.queue
    meta, spec, status = job.metadata, job.spec, job.status
    yield "QueueJob", meta.name
    yield "Namespace", meta.namespace
    yield "State", columns.claim_state(codec.to_json(job))
    yield "Why", said
    if meta.deletion_timestamp is not None:
        yield "Deletion", f"asked for {layout.ago(meta.deletion_timestamp, now)}"
    yield "Queue", queue_page.shown(queue.metadata.key, meta.namespace) if queue is not None else f"{spec.queue}, none"
    least = f", at least {spec.min_resourceno} at once" if spec.min_resourceno is not None else ""
    yield "Units", f"{status.allocated_no} of {spec.resourceno}{least}"
    yield "Unit", queue_page.unit(job)
    if status.position:
        yield "Position", f"{status.position} among those that wait"
    yield "Priority", str(spec.priority)
    if (ref := spec.workload_ref) is not None:
        yield "Workload", f"{ref.kind} {ref.name} ({ref.api_version})"
    yield "Created", layout.moment(meta.creation_timestamp, now)
    if meta.labels:
        yield "Labels", ", ".join(f"{name}={value}" for name, value in sorted(meta.labels.items()))
    if subject.hidden:
        yield "Note", subject.hidden
