"""Carries out what was decided for one TaskSet. Each action stands alone: what one meets does not stop the others."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any

import msgspec

from octarbiter.api import errors, scheme
from octarbiter.api import taskset as api
from octarbiter.api.meta import Json, Object
from octarbiter.api.scheme import Resource
from octarbiter.core.lifecycle import actions, names, objects, observe
from octarbiter.runtime import cache, client, clock, fairness, requests
from octarbiter.services.controllers.taskset_memory import Memory, kind_of_refusal

BATCH = 500
"""Pods made in one look: a TaskSet of thousands comes up for air in between."""

COLLECTION_TIMEOUT_S = 120.0
"""Deleting thousands of pods is one request."""


class Caches(msgspec.Struct, frozen=True):
    tasksets: cache.Cache[Any]
    pods: cache.Cache[Any]
    control_units: cache.Cache[Any]
    services: cache.Cache[Any]
    nodes: cache.Cache[Any]


class Hands:
    def __init__(self, client_: client.Client, gate: fairness.FairGate, caches: Caches, clock_: clock.Clock) -> None:
        self._client, self._gate, self._caches, self._clock = client_, gate, caches, clock_

    async def carry_out(self, taskset: api.TaskSet, memory: Memory, wanted: Sequence[actions.Action]) -> bool:
        """True if something was left for the next look."""
        work = _Work(self._client, self._gate, self._caches, self._clock, taskset, memory)
        creations = [action for action in wanted if isinstance(action, actions.CreatePod)]
        others: list[Coroutine[Any, Any, None]] = []
        for action in wanted:
            match action:
                case actions.CreateControlUnit(attempt):
                    others.append(work.create_control_unit(attempt))
                case actions.CreateService():
                    others.append(work.create_service())
                case actions.DeletePod():
                    others.append(work.delete_pod(action))
        await _all([*others, *(work.create_pod(action) for action in creations[:BATCH])])
        # In this order: what goes first need not be taken one by one by the garbage collector.
        for action in wanted:
            match action:
                case actions.DeletePods(attempt):
                    await work.delete_pods(attempt)
                case actions.DeleteControlUnit(name, uid):
                    await work.delete_control_unit(name, uid)
                case actions.DeleteTaskSet():
                    await work.delete_taskset()
        return len(creations) > BATCH


async def _all(deeds: Sequence[Coroutine[Any, Any, None]]) -> None:
    """All of them to their end; then the first thing that went wrong unforeseen."""
    outcomes = await asyncio.gather(*deeds, return_exceptions=True)
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome


class _Work:
    def __init__(
        self,
        client_: client.Client,
        gate: fairness.FairGate,
        caches: Caches,
        clock_: clock.Clock,
        taskset: api.TaskSet,
        memory: Memory,
    ) -> None:
        self._client, self._gate, self._caches, self._clock = client_, gate, caches, clock_
        self._taskset, self._memory = taskset, memory
        self._key = taskset.metadata.key
        self._namespace = taskset.metadata.namespace
        self._roles = {role.name: role for role in taskset.spec.roles}
        self._quota_used_up: dict[str, str] = {}

    def _is_wanted(self) -> bool:
        """Not one more object is made for a TaskSet that was deleted while we were waiting for our turn."""
        known = self._caches.tasksets.get(self._key)
        return (
            known is not None
            and known.metadata.uid == self._taskset.metadata.uid
            and known.metadata.deletion_timestamp is None
        )

    # --- creations

    async def create_control_unit(self, attempt: int) -> None:
        body = objects.control_unit(self._taskset, attempt)
        await self._create(scheme.CONFIGMAPS, self._caches.control_units, body, observe.CONTROL_UNIT)

    async def create_service(self) -> None:
        body = objects.service(self._taskset)
        await self._create(scheme.SERVICES, self._caches.services, body, observe.SERVICE)

    async def create_pod(self, action: actions.CreatePod) -> None:
        what = (action.role, action.index)
        if action.role in self._quota_used_up:
            self._memory.refused(what, "quota", self._quota_used_up[action.role], self._clock.now())
            return
        body = objects.pod(self._taskset, self._roles[action.role], action.index, action.attempt)
        await self._create(scheme.PODS, self._caches.pods, body, what)

    async def _create(
        self, resource: Resource[Any], known: cache.Cache[Any], body: Json, what: tuple[str, int]
    ) -> None:
        name = body["metadata"]["name"]
        try:
            async with self._gate.slot(self._key):
                if not self._is_wanted():
                    return
                if what[0] in self._quota_used_up:
                    self._memory.refused(what, "quota", self._quota_used_up[what[0]], self._clock.now())
                    return
                made = await self._client.create(resource, self._namespace, body)
        except errors.AlreadyExists:
            await self._adopt(resource, known, name, body["metadata"]["ownerReferences"][0]["uid"], what)
        except errors.ApiError as error:
            kind = kind_of_refusal(error)
            self._memory.refused(what, kind, str(error), self._clock.now())
            if kind == "quota":
                # The pods of one role ask for the same: the others need not be refused one by one.
                self._quota_used_up[what[0]] = str(error)
        else:
            known.put(made)
            self._memory.accepted(what)

    async def _adopt(
        self, resource: Resource[Any], known: cache.Cache[Any], name: str, owner_uid: str, what: tuple[str, int]
    ) -> None:
        """An answer was lost, or another controller was faster; or it is not ours at all."""
        try:
            found: Object = await self._client.get(resource, self._namespace, name)
        except errors.NotFound:
            return
        owner = found.metadata.controller
        if owner is not None and owner.uid == owner_uid:
            known.put(found)
            self._memory.accepted(what)
            return
        whose = f"it belongs to {owner.kind} {owner.name}" if owner is not None else "nobody owns it"
        message = f"{resource.kind} {name} exists already and is not of this TaskSet ({whose}): waits until it is gone"
        self._memory.refused(what, "foreign", message, self._clock.now())

    # --- removals

    async def delete_pod(self, action: actions.DeletePod) -> None:
        grace = 0 if action.force else None
        await self._delete(
            scheme.PODS, self._caches.pods, action.name, action.uid, grace, marker=f"{action.uid}/{grace}"
        )

    async def delete_pods(self, attempt: int) -> None:
        uid = self._taskset.metadata.uid
        marker = f"{uid}/{attempt}/pods"
        if not self._memory.may_delete(marker, self._clock.monotonic()):
            return
        selector = f"{names.UID_LABEL}={uid},{names.ATTEMPT_LABEL}={attempt}"
        async with self._gate.slot(self._key):
            request = requests.delete_collection(scheme.PODS, self._namespace, selector)
            await self._client.send(request, bytes, timeout_s=COLLECTION_TIMEOUT_S)
        self._memory.deleted(marker, self._clock.monotonic())

    async def delete_control_unit(self, name: str, uid: str) -> None:
        known = self._caches.control_units
        await self._delete(scheme.CONFIGMAPS, known, name, uid, None, marker=uid, propagation="Background")

    async def delete_taskset(self) -> None:
        meta = self._taskset.metadata
        known = self._caches.tasksets
        await self._delete(scheme.TASKSETS, known, meta.name, meta.uid, None, marker=meta.uid, propagation="Background")

    async def _delete(
        self,
        resource: Resource[Any],
        known: cache.Cache[Any],
        name: str,
        uid: str,
        grace: int | None,
        *,
        marker: str,
        propagation: str | None = None,
    ) -> None:
        if not self._memory.may_delete(marker, self._clock.monotonic()):
            return
        try:
            async with self._gate.slot(self._key):
                await self._client.delete(
                    resource, self._namespace, name, propagation=propagation, grace_period_seconds=grace, uid=uid
                )
        except (errors.NotFound, errors.Conflict):
            # Gone, or another object under the same name: what we meant does not exist any more.
            known.remove(f"{self._namespace}/{name}", uid)
        else:
            self._memory.deleted(marker, self._clock.monotonic())
