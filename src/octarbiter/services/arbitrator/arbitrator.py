"""The arbitrator: sees, asks the core, and has carried out what it answers.

`cycle` decides for the whole cluster whenever something has changed; nothing is written there. What was decided is
brought about by others, who always look at the latest decision: `settle` for each claim (its status, then its
workload), `round` for the queues and their namespaces, `tell` for those who wait, when there is nothing better to do.

In a round, in this order: quotas go down, pods are asked to go, queues' statuses are written, quotas go up, gates open.
So at no moment may all namespaces together use more than there is, nor one more than its queue's status says, and who
was evicted finds the quota lowered.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterator
from datetime import datetime
from typing import Any

import msgspec

from octarbiter.api import errors, resources, scheme
from octarbiter.api.arbitrator import Mode
from octarbiter.api.queue import Queue
from octarbiter.api.queuejob import QueueJob
from octarbiter.api.resources import Amounts
from octarbiter.api.scheme import Resource
from octarbiter.core.arbitration import decide, explain, made_claims, supply
from octarbiter.core.arbitration.state import Eviction, JobResult, Settings, State
from octarbiter.core.quota import admission
from octarbiter.runtime import clock
from octarbiter.runtime.cache import Cache
from octarbiter.runtime.client import Client
from octarbiter.runtime.fairness import FairGate
from octarbiter.services.arbitrator import observing, recording
from octarbiter.services.arbitrator.books import PodBook
from octarbiter.services.arbitrator.claims import Claims, Reason, Standing
from octarbiter.services.arbitrator.evicting import Evictor
from octarbiter.services.arbitrator.figures import Figures
from octarbiter.services.arbitrator.gates import Gates
from octarbiter.services.arbitrator.holding import Decided, Holding
from octarbiter.services.arbitrator.observing import Caches, Gangs, Pods
from octarbiter.services.arbitrator.quotas import Quotas
from octarbiter.services.arbitrator.recording import Records, Verdict
from octarbiter.services.arbitrator.settings import ArbitratorSettings
from octarbiter.services.arbitrator.topology import Checks, Topology
from octarbiter.services.arbitrator.workloads import Kind, Workloads

EVERYTHING = ""
"""The only key of those who work on all at once."""
TELL_S = 1.0
TOLD_AT_ONCE = 50
"""Waiting claims that are told in one go: what only tells must not get in the way of what does."""
LOOKED_AT_ONCE = 1000
REST_FACTOR = 2
"""After a cycle, so many times its length is left to others: to carry out what was decided, above all."""
PATIENCE_S = 10.0
"""While claims are served all the time, those who wait are told so seldom."""
TASKSET: Kind = (scheme.TASKSETS.api_version, scheme.TASKSETS.kind)

log = logging.getLogger(__name__)


class Wake(msgspec.Struct, frozen=True):
    """Who is to look again. `settle` takes the name of a claim, the others have nothing to choose from."""

    cycle: Callable[[], None]
    round: Callable[[], None]
    settle: Callable[[str], None]
    tell: Callable[[], None]
    rest: Callable[[float], None]
    """No cycle for so many seconds after the start of the present one."""
    pause: Callable[[float], None]
    """The same for rounds."""


class Hands(msgspec.Struct, frozen=True):
    client: Client
    gate: FairGate
    evictor: Evictor
    quotas: Quotas
    gates: Gates
    records: Records
    workloads: Workloads


class Arbitrator:
    def __init__(
        self,
        caches: Caches,
        claim_caches: dict[Resource[QueueJob], Cache[QueueJob]],
        hands: Hands,
        settings: ArbitratorSettings,
        figures: Figures,
        is_busy: Callable[[], bool],
        clock_: clock.Clock = clock.SYSTEM,
    ) -> None:
        self.claims = Claims(hands.workloads)
        self.book = PodBook()
        self.wake: Wake | None = None
        self._caches, self._claim_caches, self._hands, self._clock = caches, claim_caches, hands, clock_
        self._settings = Settings(reserve_after_s=settings.reserve_after_s, hold_s=settings.hold_s)
        self._policy, self._interval_s = settings.policy, settings.status_interval_s
        self._mode = Mode(settings.mode) if settings.mode else None
        self._own_namespace = settings.webhook_namespace
        self._figures, self._is_busy = figures, is_busy
        self._topology: Topology | None = None
        self._checks = Checks()
        self._decided: Decided | None = None
        self._jobs: explain.Jobs | None = None
        self._units: dict[str, int] = {}
        self._due: dict[str, int] = {}  # units that statuses do not tell of yet
        self._taken_from: dict[str, datetime] = {}
        self._is_short = False
        self._untold: list[str] = []
        self._settled_at = self._told_at = float("-inf")

    # --- what happened

    def topology_changed(self) -> None:
        self._topology = None
        self._awake.cycle()

    def queue_changed(self, old: Queue | None, new: Queue | None) -> None:
        """Our own statuses are no news."""
        if new is None and old is not None:
            self._checks.forget(old.metadata.uid)
        if old is None or new is None or old.spec != new.spec or old.metadata.uid != new.metadata.uid:
            self.topology_changed()

    def claim_changed(self, resource: Resource[QueueJob], key: str, old: QueueJob | None, new: QueueJob | None) -> None:
        name = self.claims.changed(resource, key, new)
        if not self._is_our_own_doing(name, old, new):
            self._awake.cycle()

    def workload_changed(self, kind: Kind, key: str) -> None:
        if self.claims.workload_changed(kind, key):
            self._awake.cycle()

    def kind_known(self, kind: Kind) -> None:
        self.claims.kind_known(kind)
        self._awake.cycle()

    def _is_our_own_doing(self, name: str, old: QueueJob | None, new: QueueJob | None) -> bool:
        """Only the status has changed, to what was decided: nothing new to decide on."""
        return (
            old is not None
            and new is not None
            and (old.metadata.uid, old.metadata.generation) == (new.metadata.uid, new.metadata.generation)
            and old.metadata.deletion_timestamp == new.metadata.deletion_timestamp
            and new.spec.workload_ref is None
            and new.status.allocated_no == self._units.get(name, 0)
        )

    @property
    def topology(self) -> Topology:
        if self._topology is None:
            self._topology = Topology(self._caches, self._mode, self._own_namespace, self._checks)
            self.claims.everything_changed()
        return self._topology

    @property
    def _awake(self) -> Wake:
        assert self.wake is not None
        return self.wake

    # --- what the webhook asks

    def place(self, namespace: str) -> admission.Place:
        return self.topology.place(namespace, self._caches.quotas.by_index(observing.BY_NAMESPACE, namespace))

    def has_claim(self, kind: Kind, key: str) -> bool:
        return bool(self.claims.referring_to(kind, key))

    # --- deciding

    async def cycle(self, _key: str) -> float | None:
        wake = self._awake
        began = self._clock.monotonic()
        await self._make_claims()
        topology = self.topology
        looked_at = self.claims.refresh(topology.find)
        again = await self._hands.workloads.settle()
        # Of a kind that was named for the first time, as all are after a restart, it is known only now what is there.
        looked_at += self.claims.refresh(topology.find)
        for name in looked_at:
            wake.settle(name)
        now = self._clock.now()
        state = self._state(topology)
        outcome = decide.arbitrate(state, self._settings, now)
        before = self._decided
        self._decided = decided = Decided(topology, state, outcome, now)
        self._jobs = explain.Jobs(state, outcome, self._settings, now)
        self._units = dict(outcome.units)
        due: dict[str, int] = {}
        for name, units in self._units.items():
            # By what the status said, not by what was decided before: that may have got lost with a crash.
            if self.claims.standings[name].claim.status.allocated_no != units:
                due[name] = units
                if self._due.get(name) != units:  # else it is on its way
                    wake.settle(name)
        for name in outcome.suspend:
            wake.settle(name)
        self._due = due
        wake.round()
        wake.tell()
        took = self._clock.monotonic() - began
        self._figures.cycle.observe(took)
        self._figures.show(decided)
        if before is None:
            log.info("the first arbitration", extra={"queues": len(state.queues), "claims": len(self.claims.standings)})
        wake.rest((1 + REST_FACTOR) * took)
        if outcome.look_again_at is not None:
            in_s = max(0.0, (outcome.look_again_at - now).total_seconds())
            again = in_s if again is None else min(again, in_s)
        return again

    def _state(self, topology: Topology) -> State:
        blocked, leaving = self._hands.evictor.blocked(), self._hands.evictor.asked()
        used = {
            key: resources.plus(*(self.book.used(namespace) for namespace in namespaces))
            for key, namespaces in topology.covered.items()
        }
        found = supply.supply(self._nodes(topology))
        if found.sentence and not self._is_short:
            log.warning("less than nothing is left to share", extra={"why": found.sentence})
        self._is_short = bool(found.sentence)
        return State(
            total=found.total,
            policy=self._policy,
            queues=topology.queues,
            lines=self.claims.lines,
            used=used,
            pods=Pods(self.book, self.claims, topology.covered, leaving, blocked),
            gangs=Gangs(self._caches.tasksets),
            taken_from=self._taken_from,
            evictions_left=self._hands.evictor.left,
        )

    def _nodes(self, topology: Topology) -> Iterator[supply.Node]:
        """Also those that are gone while their pods are not."""
        queue_of = topology.tree.namespaces
        known = {node.metadata.name: node for node in self._caches.nodes}
        for name in {**known, **dict.fromkeys(self.book.nodes())}:
            ours: Amounts = {}
            others: Amounts = {}
            for namespace, amounts in self.book.on_node(name).items():
                if namespace in queue_of:
                    ours = resources.plus(ours, amounts)
                else:
                    others = resources.plus(others, amounts)
            node = known.get(name)
            yield supply.Node(
                name=name,
                allocatable=resources.offered(node.status.allocatable) if node is not None else {},
                takes_pods=node is not None and node.is_ready and not node.spec.unschedulable,
                used_by_queues=ours,
                used_by_others=others,
            )

    # --- carrying out

    async def settle(self, name: str) -> float | None:
        standing = self._seen(name)
        wanted = self._verdict(name, standing) if standing is not None else None
        if standing is None or wanted is None:
            return None
        if standing.claim.spec.workload_ref is None and recording.says_enough(standing.claim, wanted):
            return None  # why, and who is ahead, is told at leisure
        self._settled_at = self._clock.monotonic()
        await self._hands.records.claim(standing, wanted, observing.second(self._clock.now()))
        return None

    async def round(self, _key: str) -> float | None:
        decided = self._decided
        if decided is None:
            return None
        holding = Holding(decided, self.claims, self._caches.quotas, self._caches.pods, self._settings.reserve_after_s)
        await self._hands.quotas.lower(holding.deeds)
        leaving = self._take_back(decided)
        await self._hands.evictor.evict(leaving)
        await self._write_queues(decided)
        try:
            if await self._hands.quotas.settle(holding.deeds):
                self._awake.cycle()
        finally:  # a quota that cannot be written holds up no pod at another queue's gate
            await self._hands.gates.open(holding.let_in())
        if leaving:
            self._awake.cycle()
        self._awake.pause(self._interval_s)
        return None

    def _take_back(self, decided: Decided) -> list[Eviction]:
        """Those who are to go by this decision, whose quotas are in force now, and by the latest: nobody is asked for
        the sake of somebody who has given up meanwhile."""
        latest, evictor = self._decided, self._hands.evictor
        assert latest is not None
        done = evictor.asked() | evictor.blocked()
        still = {eviction.uid for eviction in latest.outcome.evictions} - done
        due = [eviction for eviction in decided.outcome.evictions if eviction.uid in still]
        spared = {eviction.queue for eviction in decided.outcome.evictions} - {eviction.queue for eviction in due}
        self._taken_from |= {queue: decided.now for queue in decided.outcome.taken_from if queue not in spared}
        return due

    async def _write_queues(self, decided: Decided) -> None:
        now = observing.second(decided.now)
        records, known = self._hands.records, self._caches.queues
        deeds = []
        for key in decided.topology.objects:
            queue = known.get(key)
            if queue is None:
                continue
            if (result := decided.outcome.queues.get(key)) is not None:
                deeds.append(records.queue(queue, result, now))
            elif (problem := decided.topology.tree.problems.get(key)) is not None:
                deeds.append(records.queue_problem(queue, problem, now))
        await asyncio.gather(*deeds)

    async def tell(self, _key: str) -> float | None:
        """Some of those who wait; in how many seconds the next ones, if any are left."""
        if self._decided is None:
            return None
        now = self._clock.monotonic()
        at_leisure = now - self._settled_at >= TELL_S and not self._is_busy()
        if not at_leisure and now - self._told_at < PATIENCE_S:
            return TELL_S
        self._told_at = now
        if not self._untold:
            self._untold = [name for name, each in self.claims.standings.items() if each.reason is not Reason.FINISHED]
        moment = observing.second(self._clock.now())
        due: list[Coroutine[Any, Any, None]] = []
        for _ in range(LOOKED_AT_ONCE):
            if not self._untold or len(due) >= TOLD_AT_ONCE:
                break
            name = self._untold.pop()
            standing = self._seen(name)
            wanted = self._verdict(name, standing) if standing is not None else None
            if standing is not None and wanted is not None and not recording.is_told(standing.claim, wanted, moment):
                due.append(self._hands.records.claim(standing, wanted, moment))
        await asyncio.gather(*due)
        return TELL_S if self._untold else None

    def _seen(self, name: str) -> Standing | None:
        """As it is now: our last write may not have been looked at yet."""
        standing = self.claims.standings.get(name)
        if standing is None:
            return None
        claim = self._claim_caches[standing.resource].get(standing.claim.metadata.key)
        if claim is None or claim.metadata.uid != standing.claim.metadata.uid:
            return None
        return msgspec.structs.replace(standing, claim=claim)

    def _verdict(self, name: str, standing: Standing) -> Verdict | None:
        """None: nothing was decided about it yet."""
        result: JobResult | None = None
        decided = self._decided
        if standing.reason is Reason.IN_LINE:
            line = self.claims.lines.get(standing.queue)
            job = line.jobs.get(name) if line is not None else None
            if decided is None or self._jobs is None or job is None or standing.queue not in decided.outcome.queues:
                return None
            result = self._jobs.of(job)
        suspended = decided.outcome.suspend.get(name, "") if decided is not None else ""
        return recording.verdict(standing, result, suspended)

    # --- claims of TaskSets

    async def _make_claims(self) -> None:
        due = [
            taskset
            for taskset in self._caches.tasksets
            if made_claims.is_due(taskset) and not self.claims.referring_to(TASKSET, taskset.metadata.key)
        ]
        for taskset in due:
            meta = taskset.metadata
            priority = self._caches.priorities.get(taskset.spec.priority_class_name)
            body = made_claims.claim(taskset, priority.value if priority is not None else 0)
            try:
                async with self._hands.gate.slot(meta.namespace):
                    written = await self._hands.client.create(scheme.QUEUEJOBS, meta.namespace, body)
            except errors.AlreadyExists:
                continue  # somebody's claim has the name; it refers to something else, or the watch is late
            except errors.Retry:
                raise
            except errors.ApiError as error:
                # A quota, somebody's rule, a namespace that ends: the others' affairs go on.
                log.warning("a TaskSet's claim cannot be made", extra={"taskset": meta.key, "error": str(error)})
                continue
            self._claim_caches[scheme.QUEUEJOBS].put(written)
