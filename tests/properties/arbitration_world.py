"""A cluster in which what `arbitrate` says is carried out: pods end after a while, controllers make them again.

Nothing arrives and nothing finishes by itself. Evicted pods linger, then their controllers make them again, as soon as
the quota (what is allocated) admits them. Workloads start when their claim has units; their pods are made as the quota
allows; suspended ones lose their pods.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec

from octarbiter.api import resources
from octarbiter.api.resources import Amounts
from octarbiter.core.arbitration import lines
from octarbiter.core.arbitration.decide import arbitrate
from octarbiter.core.arbitration.state import Job, Outcome, Phase, Pod, Queue, Settings, State

START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


class World:
    def __init__(
        self,
        total: Amounts,
        policy: str,
        queues: list[Queue],
        jobs: list[Job],
        workloads: set[str],
        pods: list[Pod],
        gangs: dict[str, int],
        linger: int,
        settings: Settings,
        budget: int,
    ) -> None:
        """`workloads`: the jobs that have one to be started. `linger`: so many steps a pod takes to end."""
        self.total, self.policy, self.gangs, self.linger, self.settings = total, policy, gangs, linger, settings
        self.budget = budget
        self.queues = {queue.key: queue for queue in queues}
        self.jobs = {job.key: job for job in jobs}
        self.workloads = workloads
        self.pods = {pod.key: pod for pod in pods}
        self.ends: dict[str, int] = {pod.key: linger for pod in pods if pod.phase == Phase.TERMINATING}
        self.refused: list[Pod] = []
        """Made again when the quota admits them."""
        self.taken_from: dict[str, datetime] = {}
        self.now = START
        self.made = 0

    def state(self) -> State:
        by_queue: dict[str, list[Pod]] = {}
        for pod in self.pods.values():
            by_queue.setdefault(pod.queue, []).append(pod)
        return State(
            total=self.total,
            policy=self.policy,
            queues=self.queues,
            lines=lines.by_queue(self.jobs.values()),
            pods=by_queue,
            used={key: resources.plus(*(pod.requests for pod in own)) for key, own in by_queue.items()},
            gangs=self.gangs,
            taken_from=self.taken_from,
            evictions_left=self.budget,
        )

    def step(self, lasts: timedelta) -> tuple[State, Outcome]:
        state = self.state()
        outcome = arbitrate(state, self.settings, self.now)
        self._carry_out(outcome)
        self.now += lasts
        self._end()
        self._make(outcome)
        return state, outcome

    def image(self) -> object:
        """What is at rest if it does not change."""
        pods = sorted((pod.queue, pod.job, sorted(pod.requests.items()), pod.phase) for pod in self.pods.values())
        jobs = sorted((job.key, job.had, job.started) for job in self.jobs.values())
        return pods, jobs

    def _carry_out(self, outcome: Outcome) -> None:
        self.taken_from |= dict.fromkeys(outcome.taken_from, self.now)
        for eviction in outcome.evictions:
            self._terminate(self.pods[eviction.pod])
        for key, job in self.jobs.items():
            units = outcome.units.get(key, 0)
            waits = None if units >= job.floor else job.waits_since or self.now
            started = (job.started and key not in outcome.suspend) or (key in self.workloads and units >= job.floor)
            self.jobs[key] = msgspec.structs.replace(job, had=units, started=started, waits_since=waits)
            if key in outcome.suspend:
                for pod in [*self.pods.values()]:
                    if pod.job == key:
                        self._terminate(pod, again=False)

    def _terminate(self, pod: Pod, *, again: bool = True) -> None:
        if pod.key not in self.ends:
            self.ends[pod.key] = self.linger
            self.pods[pod.key] = msgspec.structs.replace(pod, phase=Phase.TERMINATING)
            if again and not pod.job:
                self.refused.append(pod)

    def _end(self) -> None:
        for key in [*self.ends]:
            self.ends[key] -= 1
            if self.ends[key] < 0:
                del self.ends[key], self.pods[key]

    def _make(self, outcome: Outcome) -> None:
        used = {key: dict(amounts) for key, amounts in self.state().used.items()}
        wanted = [pod for pod in self.refused if pod.key not in self.pods]
        for job in self.jobs.values():
            if job.started:
                there = [pod for pod in self.pods.values() if pod.job == job.key and pod.phase != Phase.TERMINATING]
                pod = Pod(
                    key=job.key,
                    uid="",
                    queue=job.queue,
                    requests=job.unit,
                    phase=Phase.RUNNING,
                    created=self.now,
                    job=job.key,
                )
                wanted += [pod] * (job.had - len(there))
        for pod in wanted:
            after = resources.plus(used.get(pod.queue, {}), pod.requests)
            if resources.fits(after, outcome.queues[pod.queue].allocated):
                used[pod.queue] = after
                self.made += 1
                key = f"{pod.key}-{self.made}"
                self.pods[key] = msgspec.structs.replace(
                    pod, key=key, uid=key, phase=Phase.RUNNING, created=self.now, gang=pod.gang
                )
                if pod in self.refused:
                    self.refused.remove(pod)
