"""Which claim does a TaskSet with `spec.queue` make, if it was submitted without one?

A claim counts in equal units. If all pods ask for the same, a unit is a pod, and as many as the gang needs (all, if
nothing is said) are the least. Otherwise the whole TaskSet is one unit: its roles are no use without each other.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from octarbiter.api import arbitrator, codec, pod_requests, queuejob, resources
from octarbiter.api import taskset as api
from octarbiter.api.meta import Json
from octarbiter.api.resources import Amounts
from octarbiter.api.workpod import WorkPodSpec

BATCH_SCHEDULERS = ("kube-batch", "octarbiter")
"""Pods of these are let in by the scheduler, which knows the queues itself."""


def is_due(taskset: api.TaskSet) -> bool:
    """It names a queue, has not ended, and no scheduler of ours will ask the queue for its pods."""
    if not taskset.spec.queue or taskset.metadata.deletion_timestamp is not None:
        return False
    schedulers = {role.template.get("spec", {}).get("schedulerName") for role in taskset.spec.roles}
    has_ended = taskset.status.state in (api.State.SUCCEEDED, api.State.FAILED)
    return not has_ended and not schedulers.intersection(BATCH_SCHEDULERS)


def claim(taskset: api.TaskSet, priority: int) -> Json:
    """A QueueJob, named after the TaskSet and owned by it."""
    meta = taskset.metadata
    asked = list(_asked(taskset))
    kinds = [requests for requests, _ in asked]
    if all(requests == kinds[0] for requests in kinds):
        unit, count = kinds[0], sum(replicas for _, replicas in asked)
        least = min(count, taskset.spec.min_available or count)
    else:
        unit = resources.plus(*(resources.times(requests, replicas) for requests, replicas in asked))
        count = least = 1
    return {
        "apiVersion": arbitrator.API_VERSION,
        "kind": queuejob.KIND,
        "metadata": {
            "name": meta.name,
            "namespace": meta.namespace,
            "ownerReferences": [
                {
                    "apiVersion": api.API_VERSION,
                    "kind": api.KIND,
                    "name": meta.name,
                    "uid": meta.uid,
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "spec": {
            "queue": taskset.spec.queue,
            "priority": priority,
            "resourceunit": {"resources": resources.written(unit)},
            "resourceno": count,
            "minResourceno": least,
            "workloadRef": {"apiVersion": api.API_VERSION, "kind": api.KIND, "name": meta.name},
        },
    }


def _asked(taskset: api.TaskSet) -> Iterator[tuple[Amounts, int]]:
    for role in taskset.spec.roles:
        try:
            spec = codec.from_json(role.template.get("spec", {}), WorkPodSpec)
        except msgspec.ValidationError:
            spec = WorkPodSpec()  # the API server will refuse its pods and say why
        yield pod_requests.requests(spec), role.replicas
