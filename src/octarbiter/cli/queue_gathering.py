"""What is there to see of a Queue or a QueueJob, and of those around it?

Children may be in other namespaces, and so may jobs, if the queue has a selector. Who may not look there, or not at
quotas, sees the rest, and is told so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from octarbiter.api import arbitrator, errors, scheme
from octarbiter.api.core_kinds import Event
from octarbiter.api.meta import Object
from octarbiter.api.queue import Queue
from octarbiter.api.queuejob import FINISHED, QueueJob
from octarbiter.api.scheme import Resource
from octarbiter.cli import queue_page, queuejob_page
from octarbiter.core.arbitration import tree
from octarbiter.runtime.client import Client

T = TypeVar("T", bound=Object)

HIDDEN = "not everything is shown: some of it you may not see"


async def queue(client: Client, namespace: str, name: str) -> queue_page.Subject:
    found = await client.get(scheme.QUEUES, namespace, name)
    key, where = found.metadata.key, _where(found)
    (queues, hides), (quotas, hides_quotas), (events, _) = await asyncio.gather(
        _seen(client, scheme.QUEUES, "", namespace),
        _seen(client, scheme.RESOURCEQUOTAS, where, namespace, label_selector=f"{arbitrator.QUEUE}={name}"),
        _events(client, found),
    )
    branches = await _grown(client, queues, namespace)
    jobs, hides_jobs = await _line(client, branches, found)
    covered = {namespace, *branches.covered(key)}
    return queue_page.Subject(
        queue=found,
        children=sorted((each for each in queues if each.parent_key == key), key=lambda each: each.metadata.key),
        jobs=jobs,
        quotas=[quota for quota in quotas if quota.metadata.namespace in covered],
        events=events,
        hidden=HIDDEN if hides or hides_quotas or hides_jobs else "",
    )


async def queuejob(client: Client, namespace: str, name: str) -> queuejob_page.Subject:
    found = await client.get(scheme.QUEUEJOBS, namespace, name)
    (queues, hides), (events, _) = await asyncio.gather(
        _seen(client, scheme.QUEUES, "", namespace), _events(client, found)
    )
    branches = await _grown(client, queues, namespace)
    key, _ = tree.queue_of(branches, namespace, found.spec.queue)
    whose = next((each for each in queues if each.metadata.key == key), None)
    line, hides_jobs = await _line(client, branches, whose) if whose is not None else ([], False)
    place = next((number for number, job in enumerate(line) if job.metadata.uid == found.metadata.uid), 0)
    return queuejob_page.Subject(
        job=found,
        queue=whose,
        ahead=line[:place],
        events=events,
        hidden=HIDDEN if hides or hides_jobs else "",
    )


def _where(queue: Queue) -> str:
    """In which namespace its jobs are; empty: in several."""
    return queue.metadata.namespace if queue.spec.namespace_selector is None else ""


async def _line(client: Client, branches: tree.Tree, queue: Queue) -> tuple[list[QueueJob], bool]:
    key = queue.metadata.key
    jobs, hidden = await _jobs(client, _where(queue), queue.metadata.namespace)
    ours = [job for job in jobs if tree.queue_of(branches, job.metadata.namespace, job.spec.queue)[0] == key]
    return in_order(ours), hidden


async def _grown(client: Client, queues: Sequence[Queue], namespace: str) -> tree.Tree:
    """Labels of namespaces matter only where a queue selects by them."""
    labels: dict[str, dict[str, str]] = {namespace: {}}
    if any(queue.spec.namespace_selector is not None for queue in queues):
        with suppress(errors.Forbidden):
            labels = {each.metadata.name: each.metadata.labels for each in await client.list(scheme.NAMESPACES)}
    return tree.grow(map(_facts, queues), labels)


def in_order(jobs: Iterable[QueueJob]) -> list[QueueJob]:
    """Those that have not finished, as they are served."""
    unfinished = [job for job in jobs if (end := job.condition(FINISHED)) is None or end.status != "True"]
    return sorted(unfinished, key=lambda job: (-job.spec.priority, job.metadata.creation_timestamp, job.metadata.key))


async def _jobs(client: Client, where: str, namespace: str) -> tuple[list[QueueJob], bool]:
    """Under both names."""
    jobs, hidden = await _seen(client, scheme.QUEUEJOBS, where, namespace)
    try:
        older, _ = await _seen(client, scheme.ARBITRATOR_TASKSETS, where, namespace)
    except errors.NotFound:
        older = []  # the older name is not installed everywhere
    return [*jobs, *older], hidden


async def _events(client: Client, of: Object) -> tuple[list[Event], bool]:
    place, selector = of.metadata.namespace, f"involvedObject.uid={of.metadata.uid}"
    return await _seen(client, scheme.EVENTS, place, place, field_selector=selector)


async def _seen(
    client: Client, resource: Resource[T], where: str, namespace: str, **selectors: Any
) -> tuple[list[T], bool]:
    """All of them; or those of the namespace, or none, and True, where more may not be seen."""
    try:
        return list(await client.list(resource, where, **selectors)), False
    except errors.Forbidden:
        if where == namespace:
            return [], True
        found, _ = await _seen(client, resource, namespace, namespace, **selectors)
        return found, True


def _facts(queue: Queue) -> tree.QueueFacts:
    created = queue.metadata.creation_timestamp
    assert created is not None
    return tree.QueueFacts(
        key=queue.metadata.key,
        parent=queue.spec.parent,
        selector=queue.spec.namespace_selector,
        created=created,
    )
