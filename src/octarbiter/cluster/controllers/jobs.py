"""The Job controller: looks at the pods, asks `job_plan`, records, acts, looks again."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any, Final

from octarbiter.api import codec, errors
from octarbiter.api.meta import Json
from octarbiter.cluster.controllers import job_plan, job_pods, kinds
from octarbiter.cluster.controllers.kinds import Job, JobStatus, Pod
from octarbiter.runtime import cache, client, clock, events, fairness

BY_JOB: Final = "job"
SECONDS_PER_POD: Final = 0.001
LONGEST_COOLDOWN_S: Final = 1.0
"""A look, and the status it may write, cost in proportion to the pods: a Job of thousands is looked at every second."""
OURS: Final = ("", "kubernetes.io/job-controller")

log = logging.getLogger(__name__)


def jobs_of(pod: Pod) -> list[str]:
    """The key of the Job whose affair this pod is; by its label, because an orphan has no owner any more."""
    meta = pod.metadata
    owner = meta.controller
    name = owner.name if owner is not None and owner.kind == kinds.JOBS.kind else ""
    if not name and job_pods.is_tracked(pod):
        name = meta.labels.get(job_pods.JOB_NAME, "")
    return [f"{meta.namespace}/{name}"] if name else []


class JobController:
    """`pods` has the index BY_JOB, and was listed after `jobs`: see `job_counting` for why."""

    def __init__(
        self,
        client_: client.Client,
        gate: fairness.FairGate,
        recorder: events.Recorder,
        jobs: cache.Cache[Job],
        pods: cache.Cache[Pod],
        cool_down: Callable[[str, float], None],
        clock_: clock.Clock = clock.SYSTEM,
    ) -> None:
        self._client, self._gate, self._recorder, self._clock = client_, gate, recorder, clock_
        self._jobs, self._pods, self._cool_down = jobs, pods, cool_down

    async def reconcile(self, key: str) -> float | None:
        job = self._jobs.get(key)
        uid = job.metadata.uid if job is not None else ""
        pods = [pod for pod in self._pods.by_index(BY_JOB, key) if uid and _controller_uid(pod) == uid]
        await self._release_strays(key, uid)
        if job is None or job.spec.managed_by not in OURS:
            return None
        self._cool_down(key, min(LONGEST_COOLDOWN_S, len(pods) * SECONDS_PER_POD))
        now = self._clock.now()
        plan = job_plan.plan(job, pods, now)
        if not _same(plan.status, job.status):
            await self._record(job, plan.status)
        for told in plan.told:
            self._recorder.record(kinds.reference(kinds.JOBS, job), told.type, told.reason, told.message)
        await _all(
            [
                *(self._release(key, pod) for pod in plan.release),
                *(self._delete(key, pod) for pod in plan.delete),
                *(self._dismiss(key, pod) for pod in plan.dismiss),
            ]
        )
        await self._create_all(job, plan.create)
        if plan.delete_job:
            await self._delete_job(job)
        if plan.release or plan.create or plan.dismiss:
            return 0.0  # there is more to count, or to look at
        return max(0.0, (plan.look_again_at - now).total_seconds()) if plan.look_again_at is not None else None

    async def _record(self, job: Job, status: JobStatus) -> None:
        meta = job.metadata
        # Zeros are told, too: tables and people expect them.
        whole: Json = {"ready": 0, "terminating": 0, **codec.to_json(status)}
        operations: list[Json] = [
            {"op": "test", "path": "/metadata/uid", "value": meta.uid},
            {"op": "replace", "path": "/metadata/resourceVersion", "value": meta.resource_version},
            {"op": "add", "path": "/status", "value": whole},
        ]
        try:
            async with self._gate.slot(meta.key):
                written = await self._client.json_patch(
                    kinds.JOBS, meta.namespace, meta.name, operations, subresource="status"
                )
        except errors.Conflict:
            with contextlib.suppress(errors.NotFound):
                self._jobs.put(await self._client.get(kinds.JOBS, meta.namespace, meta.name))
            raise
        self._jobs.put(written)

    # --- pods

    async def _create_all(self, job: Job, indexes: Sequence[int | None]) -> None:
        """Few at first, then twice as many each time: where one is refused, by a quota, say, so are the others."""
        done, batch = 0, 1
        while done < len(indexes):
            await _all(self._create(job, index) for index in indexes[done : done + batch])
            done, batch = done + batch, batch * 2

    async def _create(self, job: Job, index: int | None) -> None:
        meta = job.metadata
        reference = kinds.reference(kinds.JOBS, job)
        try:
            async with self._gate.slot(meta.key):
                made = await self._client.create(kinds.PODS, meta.namespace, job_pods.body(job, index))
        except errors.ApiError as problem:
            self._recorder.record(reference, "Warning", "FailedCreate", f"Error creating: {problem}")
            raise
        self._pods.put(made)
        self._recorder.record(reference, "Normal", "SuccessfulCreate", f"Created pod: {made.metadata.name}")

    async def _delete(self, key: str, pod: Pod) -> None:
        meta = pod.metadata
        try:
            async with self._gate.slot(key):
                left = await self._client.delete(kinds.PODS, meta.namespace, meta.name, uid=meta.uid)
        except (errors.NotFound, errors.Conflict):
            self._pods.remove(meta.key, meta.uid)
            return
        if left is not None:
            self._pods.put(left)

    async def _dismiss(self, key: str, pod: Pod) -> None:
        await self._release(key, pod)
        await self._delete(key, pod)

    async def _release(self, key: str, pod: Pod) -> None:
        if not job_pods.is_tracked(pod):
            return
        meta = pod.metadata
        left = [name for name in meta.finalizers if name != job_pods.TRACKING]
        path = "/metadata/finalizers"
        operations: list[Json] = [
            {"op": "test", "path": "/metadata/uid", "value": meta.uid},
            {"op": "test", "path": path, "value": meta.finalizers},
            {"op": "replace", "path": path, "value": left} if left else {"op": "remove", "path": path},
        ]
        try:
            async with self._gate.slot(key):
                written = await self._client.json_patch(kinds.PODS, meta.namespace, meta.name, operations)
        except errors.NotFound:
            self._pods.remove(meta.key, meta.uid)
        except errors.Invalid:
            # A test failed: it is another pod, or has other finalizers. Decided again on what is there now.
            await self._read_again(pod)
        else:
            self._pods.put(written)

    async def _read_again(self, pod: Pod) -> None:
        meta = pod.metadata
        try:
            self._pods.put(await self._client.get(kinds.PODS, meta.namespace, meta.name))
        except errors.NotFound:
            self._pods.remove(meta.key, meta.uid)

    async def _release_strays(self, key: str, uid: str) -> None:
        """Pods of a Job that is no more, or of its predecessor: nobody counts them, so nobody may hold them."""
        strays = [
            pod
            for pod in self._pods.by_index(BY_JOB, key)
            if job_pods.is_tracked(pod) and (not uid or _controller_uid(pod) != uid)
        ]
        if not strays:
            return
        namespace, _, name = key.partition("/")
        try:
            uid = (await self._client.get(kinds.JOBS, namespace, name)).metadata.uid
        except errors.NotFound:
            uid = ""
        await _all(self._release(key, pod) for pod in strays if _controller_uid(pod) != uid or not uid)

    async def _delete_job(self, job: Job) -> None:
        meta = job.metadata
        with contextlib.suppress(errors.NotFound, errors.Conflict):
            async with self._gate.slot(meta.key):
                await self._client.delete(kinds.JOBS, meta.namespace, meta.name, propagation="Foreground", uid=meta.uid)
        log.info("a finished Job's time is up", extra={"job": meta.key})


def _controller_uid(pod: Pod) -> str:
    owner = pod.metadata.controller
    return owner.uid if owner is not None else ""


def _same(one: JobStatus, other: JobStatus) -> bool:
    """An empty list of the uncounted, and none, are the same."""
    first, second = codec.to_json(one), codec.to_json(other)
    for each in (first, second):
        if not each.get("uncountedTerminatedPods"):
            each.pop("uncountedTerminatedPods", None)
    return bool(first == second)


async def _all(deeds: Iterable[Coroutine[Any, Any, None]]) -> None:
    """All of them to their end; then the first thing that went wrong."""
    for outcome in await asyncio.gather(*deeds, return_exceptions=True):
        if isinstance(outcome, BaseException):
            raise outcome
