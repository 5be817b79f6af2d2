"""What is there to see of one TaskSet? Reads it, its replicas, pods and events, in few requests however large it is."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime

import msgspec

from octarbiter.api import codec, errors, scheme
from octarbiter.api import taskset as api
from octarbiter.api.core_kinds import Event
from octarbiter.api.pod import Pod
from octarbiter.cli import claiming
from octarbiter.cli.page import Subject
from octarbiter.core.lifecycle import names, observe, report
from octarbiter.core.lifecycle.phases import ReplicaPhase
from octarbiter.runtime.client import Client

STARTING = 3
"""So many of the pods that are being started are asked for all their events; of the others the warnings are enough."""

_PHASES = {observe.Bucket.ASSIGNED: ReplicaPhase.ASSIGNED, observe.Bucket.RUNNING: ReplicaPhase.RUNNING}

Replicas = dict[str, list[api.ReplicaStatus]]


async def subject(client: Client, namespace: str, name: str) -> Subject:
    taskset = await client.get(scheme.TASKSETS, namespace, name)
    selector = f"{names.UID_LABEL}={taskset.metadata.uid}"
    pods, replicas, claim = await asyncio.gather(
        client.list(scheme.PODS, namespace, label_selector=selector),
        _replicas(client, taskset),
        claiming.claim_of(client, taskset),
    )
    return Subject(taskset, with_pods(replicas, pods), pods, await _events(client, taskset, pods), claim)


def with_pods(replicas: Replicas, pods: Sequence[Pod]) -> Replicas:
    """A ledger knows that a replica has a pod and no more; the pod itself tells the rest."""
    by_place = {}
    for pod in pods:
        attempts = names.attempts_of_pod(pod.metadata.name)
        labels = pod.metadata.labels
        if attempts is not None:
            by_place[labels.get(names.ROLE_LABEL), labels.get(names.INDEX_LABEL), attempts[1]] = pod

    def seen(role: str, replica: api.ReplicaStatus) -> api.ReplicaStatus:
        pod = by_place.get((role, str(replica.index), replica.attempt))
        if pod is None or replica.pod_uid != report.FORGOTTEN_UID:
            return replica
        return msgspec.structs.replace(
            replica,
            phase=_PHASES.get(observe.bucket(pod), replica.phase),
            pod_name=pod.metadata.name,
            pod_uid=pod.metadata.uid,
            pod_ip=pod.status.pod_ip,
            pod_host_ip=pod.status.host_ip,
        )

    return {role: [seen(role, replica) for replica in known] for role, known in replicas.items()}


async def _replicas(client: Client, taskset: api.TaskSet) -> Replicas:
    """All of them. A status that lists the notable only has the others in ConfigMaps, or else in its ledger."""
    status = taskset.status
    found: Replicas = {role.name: list(role.replica_status) for role in report.expand(status).role_status}
    if not any(role.ledger for role in status.role_status):
        return found
    listed = {replica.name: replica for replica in await _listed(client, taskset)}
    # The lists are written now and then; the status, where it says something of a replica, is newer.
    listed |= {replica.name: replica for role in status.role_status for replica in role.replica_status}
    return {role: [listed.get(replica.name, replica) for replica in replicas] for role, replicas in found.items()}


async def _listed(client: Client, taskset: api.TaskSet) -> list[api.ReplicaStatus]:
    meta, found, part = taskset.metadata, list[api.ReplicaStatus](), 0
    while True:
        name = names.replica_list(meta.name, taskset.status.attempt, part)
        try:
            page = await client.get(scheme.CONFIGMAPS, meta.namespace, name)
        except errors.NotFound:
            return found
        try:
            lines = page.data.get(names.REPLICA_LIST_KEY, "").splitlines()
            found += [codec.decode(line.encode(), api.ReplicaStatus) for line in lines]
        except msgspec.MsgspecError:
            return found  # not written by a controller of ours: the ledger has to do
        part += 1


async def _events(client: Client, taskset: api.TaskSet, pods: Sequence[Pod]) -> list[Event]:
    """A pod's events cannot be asked for by its TaskSet; thousands of pods have tens of thousands of them."""
    namespace = taskset.metadata.namespace
    starting = [pod.metadata.uid for pod in pods if observe.bucket(pod) is observe.Bucket.ASSIGNED][:STARTING]
    selectors = [
        "involvedObject.kind=Pod,type=Warning",
        *(f"involvedObject.uid={uid}" for uid in (taskset.metadata.uid, *starting)),
    ]
    lists = await asyncio.gather(*(client.list(scheme.EVENTS, namespace, field_selector=s) for s in selectors))
    prefixes = tuple(f"{taskset.metadata.name}-{role.name}-" for role in taskset.spec.roles)
    # By name and time, because the pod itself may be gone; a namesake's pods of an earlier life are not meant.
    born = taskset.metadata.creation_timestamp or datetime.min.replace(tzinfo=UTC)
    ours = [
        e
        for e in lists[0]
        if e.involved_object.name.startswith(prefixes) and (e.metadata.creation_timestamp or born) >= born
    ]
    return list({event.metadata.uid: event for event in [*ours, *(e for found in lists[1:] for e in found)]}.values())
