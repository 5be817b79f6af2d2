"""Of whom does `octo why` speak? Looks a name up among the kinds that it knows."""

from __future__ import annotations

import asyncio

from octarbiter.api import errors, scheme
from octarbiter.api.meta import Object
from octarbiter.api.queuejob import QueueJob
from octarbiter.api.scheme import Resource
from octarbiter.api.taskset import TaskSet
from octarbiter.cli import arguments, claiming, exits, queue_gathering, reasons
from octarbiter.cli.arguments import Called
from octarbiter.cli.reasons import Reason
from octarbiter.runtime.client import Client

_RESOURCES: dict[Called, Resource[Object]] = {
    arguments.QUEUE: scheme.QUEUES,
    arguments.QUEUEJOB: scheme.QUEUEJOBS,
    arguments.TASKSET: scheme.TASKSETS,
}


async def reason(client: Client, namespace: str, kind: Called | None, name: str) -> Reason:
    if kind is None:
        kind = await _kind_of(client, namespace, name)
    if kind is arguments.QUEUE:
        return reasons.of_queue(await client.get(scheme.QUEUES, namespace, name))
    if kind is arguments.QUEUEJOB:
        return reasons.of_job(await queue_gathering.queuejob(client, namespace, name))
    taskset = await client.get(scheme.TASKSETS, namespace, name)
    claim = await claiming.claim_of(client, taskset)
    subject = await queue_gathering.queuejob(client, namespace, claim.metadata.name) if claim is not None else None
    return reasons.of_taskset(taskset, subject)


async def _kind_of(client: Client, namespace: str, name: str) -> Called:
    async def found(called: Called) -> Object | None:
        try:
            return await client.get(_RESOURCES[called], namespace, name)
        except errors.NotFound as problem:
            if not problem.status.details.name and called is arguments.TASKSET:
                raise  # not even these are served
            return None

    answers = dict(zip(_RESOURCES, await asyncio.gather(*map(found, _RESOURCES)), strict=True))
    there = [called for called, answer in answers.items() if answer is not None]
    taskset, claim = answers[arguments.TASKSET], answers[arguments.QUEUEJOB]
    if isinstance(taskset, TaskSet) and isinstance(claim, QueueJob) and claiming.refers(claim, taskset):
        there.remove(arguments.QUEUEJOB)  # the claim of that TaskSet, and explained with it
    if len(there) == 1:
        return there[0]
    if not there:
        kinds = ", ".join(called.kind for called in _RESOURCES)
        told = f"nothing is called {name} in namespace {namespace}: no {kinds}"
        raise exits.Failure(exits.Exit.NOT_FOUND, told)
    ways = " or ".join(f"`octo why {called.words[0]}/{name}`" for called in there)
    told = f"{name} is the name of a {' and a '.join(called.kind for called in there)}: say {ways}"
    raise exits.Failure(exits.Exit.INVALID, told)
