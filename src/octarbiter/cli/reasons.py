"""Why has a Queue, a QueueJob or a TaskSet what it has, and what would help? One sentence each, for people.

The sentence is the one of its conditions, the same everywhere. What would help is told only to those who wait.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from octarbiter.api import resources
from octarbiter.api import taskset as tasksets
from octarbiter.api.queue import SATISFIED, Queue
from octarbiter.api.queuejob import ALLOCATED, FINISHED, STARTED, QueueJob
from octarbiter.cli import claiming, queue_page, queuejob_page, text

AHEAD = 3
"""So many of those ahead are named."""
_RUNS, _ENDED = tasksets.State.RUNNING, (tasksets.State.SUCCEEDED, tasksets.State.FAILED)


class Reason(msgspec.Struct, frozen=True, kw_only=True):
    kind: str
    namespace: str
    name: str
    waits: bool
    sentence: str
    helps: list[str] = []
    """Each is something that a person can do, or need not."""


def of_queue(queue: Queue) -> Reason:
    meta, status = queue.metadata, queue.status
    satisfied = next((each for each in status.conditions if each.type == SATISFIED), None)
    waits = satisfied is None or satisfied.status != "True"
    return Reason(
        kind="Queue",
        namespace=meta.namespace,
        name=meta.name,
        waits=waits,
        sentence=_about(meta.name, queue_page.explanation(queue)),
        helps=list(_queue_helps(queue)) if waits and satisfied is not None else [],
    )


def of_job(subject: queuejob_page.Subject) -> Reason:
    job = subject.job
    meta, ended = job.metadata, job.condition(FINISHED)
    waits = job.status.allocated_no < job.spec.resourceno and (ended is None or ended.status != "True")
    return Reason(
        kind=job.kind or "QueueJob",
        namespace=meta.namespace,
        name=meta.name,
        waits=waits,
        sentence=_about(meta.name, queuejob_page.explanation(job)),
        helps=list(_job_helps(subject)) if waits and job.condition(ALLOCATED) is not None else [],
    )


def of_taskset(taskset: tasksets.TaskSet, claim: queuejob_page.Subject | None) -> Reason:
    """`claim`: the QueueJob that says whether it may run, if there is one."""
    meta, status = taskset.metadata, taskset.status
    helps: list[str] = []
    if claim is not None and claiming.holds_back(taskset, claim.job):
        told = of_job(claim)
        sentence, helps = text.line(queuejob_page.explanation(claim.job)), told.helps
    elif status.state in _ENDED:
        sentence = f"has {status.state.lower()}: {text.line(status.state_message)}"
    elif not status.state:
        sentence = "nobody has looked at it yet: is a controller running? (`octo install`, `octo controller`)"
    elif taskset.spec.suspend:
        sentence, helps = "is suspended", ["spec.suspend: false lets it go on"]
    else:
        does = "runs" if status.state == _RUNS else "waits"
        sentence = f"{does}: {text.line(status.state_message)}" if status.state_message else does
    return Reason(
        kind=tasksets.KIND,
        namespace=meta.namespace,
        name=meta.name,
        waits=status.state not in (_RUNS, *_ENDED),
        sentence=_about(meta.name, sentence),
        helps=helps,
    )


def _about(name: str, sentence: str) -> str:
    """Sentences of queues name them already; those of jobs begin with `it`."""
    return sentence if sentence.startswith(f"{name} ") else f"{name}: {sentence}"


def _queue_helps(queue: Queue) -> Iterator[str]:
    status, name, namespace = queue.status, queue.metadata.name, queue.metadata.namespace
    if status.observed_generation < queue.metadata.generation:
        return
    satisfied = next(each for each in status.conditions if each.type == SATISFIED)
    if satisfied.reason == "Invalid":
        return  # the sentence itself says what to do
    if resources.some(status.preempting.amounts):
        yield "nothing need be done: what it is owed comes back by itself, as soon as pods of others have ended"
        return
    more = queue.spec.weight + 1
    yield f"a larger share: octo queue set {name} -n {namespace} --weight {more}, or a --guarantee"
    yield "more nodes, or less that others ask for (octo queue list -A)"


def _job_helps(subject: queuejob_page.Subject) -> Iterator[str]:
    job, queue = subject.job, subject.queue
    allocated = job.condition(ALLOCATED)
    if queue is None or allocated is None or allocated.reason not in ("Waits", "SomeUnits"):
        return  # the sentence itself says what to do
    if "never fits" in allocated.message:
        yield "smaller units, or fewer at once (spec.minResourceno); or more room for the queue"
        return
    running = [each for each in subject.ahead if _is_started(each)]
    waiting = [each for each in subject.ahead if not _is_started(each)]
    if running:
        yield f"ahead of it, and started: {_some(running)}; it is their turn until they end"
    if waiting:
        yield f"ahead of it: {_some(waiting)}; a higher priority would overtake"
    yield from _queue_helps(queue) if resources.some(_lacking(queue)) else ()


def _is_started(job: QueueJob) -> bool:
    """It keeps what it has, whoever comes."""
    started = job.condition(STARTED)
    return started is not None and started.status == "True"


def _some(jobs: Sequence[QueueJob]) -> str:
    first = [each.metadata.name for each in jobs[:AHEAD]]
    more = len(jobs) - len(first)
    return ", ".join(first) + (f" and {more} more" if more else "")


def _lacking(queue: Queue) -> resources.Amounts:
    return resources.less(queue.status.demand.amounts, queue.status.allocated.amounts)
