"""Does a TaskSet wait for its share of a queue? Then the QueueJob that claims for it says why."""

from __future__ import annotations

from contextlib import suppress

from octarbiter.api import errors, scheme
from octarbiter.api.queuejob import ALLOCATED, QueueJob
from octarbiter.api.taskset import TaskSet
from octarbiter.cli import text
from octarbiter.runtime.client import Client


async def claim_of(client: Client, taskset: TaskSet) -> QueueJob | None:
    """The QueueJob that decides whether it runs: the one that was made for it, or one that somebody wrote."""
    meta = taskset.metadata
    if not (taskset.spec.queue or taskset.spec.suspend):
        return None
    try:
        with suppress(errors.NotFound):
            made = await client.get(scheme.QUEUEJOBS, meta.namespace, meta.name)
            if refers(made, taskset):
                return made
        found = await client.list(scheme.QUEUEJOBS, meta.namespace)
    except (errors.NotFound, errors.Forbidden):
        return None  # a cluster without queues, or not for this person's eyes
    return next((claim for claim in found if refers(claim, taskset)), None)


def refers(claim: QueueJob, taskset: TaskSet) -> bool:
    ref = claim.spec.workload_ref
    wanted = (scheme.TASKSETS.api_version, scheme.TASKSETS.kind, taskset.metadata.name)
    return ref is not None and (ref.api_version, ref.kind, ref.name) == wanted


def holds_back(taskset: TaskSet, claim: QueueJob) -> bool:
    """It is suspended, and because of its claim."""
    allocated = claim.condition(ALLOCATED)
    return bool(taskset.spec.suspend) and (allocated is None or allocated.status != "True")


def waits_for(taskset: TaskSet, claim: QueueJob | None) -> str:
    """Empty: its claim does not hold it back, or it has none."""
    if claim is None or not refers(claim, taskset) or not holds_back(taskset, claim):
        return ""
    allocated = claim.condition(ALLOCATED)
    told = text.line(allocated.message) if allocated is not None else "nobody has looked at its claim yet"
    return f"its share of queue {claim.spec.queue}: {told}"
