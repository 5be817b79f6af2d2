"""A tiny default scheduler: what fits where is decided in `fitting`, whose turn it is in `waiting_line`.

It knows requests, ports, selectors, required node affinity, taints and gates. It does not know affinity between pods,
topology spread, volumes and preemption: pods that ask for these are placed as if they did not.

A pod that was given a node holds its share from that moment, long before the watch tells of it; several bindings are
under way at once. What became of a binding that failed is asked of the server before the share is given back, so no
node is ever promised twice.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from octarbiter.api import errors
from octarbiter.api.meta import Json
from octarbiter.cluster.controllers import fitting, kinds, telling, waiting_line, writing
from octarbiter.cluster.controllers.kinds import Node, Pod
from octarbiter.runtime import backoff, cache, client, clock, controller, events, fairness, requests, telemetry

BINDINGS = 16
"""Under way at once."""
FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 60.0
"""Of a pod whose binding was refused."""
TELL_AGAIN_S = (2.0, 60.0)
TELL_AGAIN_PER_POD_S = 0.02
"""A refusal that changes its words is written again after so long, longer the more pods wait: in a full cluster the
words of all change with every pod that goes."""
PASS = ""
"""The key that means: look who can be placed. Others are pods that come back to the line."""

log = logging.getLogger(__name__)


class Scheduler:
    """Two queues feed it: `look` has somebody call `reconcile`, `tell` has somebody call `explain` for a pod."""

    def __init__(
        self,
        client_: client.Client,
        gate: fairness.FairGate,
        recorder: events.Recorder,
        pods: cache.Cache[Pod],
        *,
        scheduler_name: str,
        clock_: clock.Clock = clock.SYSTEM,
    ) -> None:
        self._client, self._gate, self._recorder, self._clock = client_, gate, recorder, clock_
        self._name, self._pods = scheduler_name, pods
        self._rooms = fitting.Rooms()
        self._line = waiting_line.Line()
        self._slots = asyncio.Semaphore(BINDINGS)
        self._bindings: set[asyncio.Task[None]] = set()
        self._pauses: dict[str, backoff.Backoff] = {}
        self._resting: set[str] = set()  # pods whose binding failed, until `look` calls them back to the line
        self.look: Callable[[str, float], None] = lambda key, after_s: None
        self.tell: Callable[[str], None] = lambda key: None

    # --- what the watches tell

    def pod_changed(self, key: str, old: Pod | None, new: Pod | None) -> None:
        if new is None:
            self._forget(key, old)
            return
        uid = new.metadata.uid
        if new.is_terminal:
            self._line.remove(key)
            self._give_back(uid)
        elif new.spec.node_name:
            self._line.remove(key)
            self._rested(key)
            before = self._rooms.claimed(uid)
            if before != new.spec.node_name or old is None or old.spec != new.spec:
                self._rooms.claim(uid, new.spec.node_name, fitting.wish_of(new))
            if before not in ("", new.spec.node_name):
                self._room_was_made()
        elif self._is_ours(new) and not self._rooms.claimed(uid) and key not in self._resting:
            self._enter(key, new)
        else:
            self._line.remove(key)

    def node_changed(self, name: str, old: Node | None, new: Node | None) -> None:
        if new is None:
            self._rooms.drop_node(name)
        else:
            self._rooms.set_node(new)
        if old is None or new is None or _matters(old) != _matters(new):
            self._room_was_made()

    def _forget(self, key: str, old: Pod | None) -> None:
        self._line.remove(key)
        self._rested(key)
        if old is not None:
            self._give_back(old.metadata.uid)

    def _rested(self, key: str) -> None:
        self._resting.discard(key)
        self._pauses.pop(key, None)

    def _is_ours(self, pod: Pod) -> bool:
        wanted = pod.spec.scheduler_name == self._name and not pod.spec.scheduling_gates
        return wanted and pod.metadata.deletion_timestamp is None

    def _enter(self, key: str, pod: Pod) -> None:
        self._line.add(key, fitting.wish_of(pod), pod.spec.priority or 0)
        if self._line.refusal(key):
            self.tell(key)
        else:
            self.look(PASS, 0.0)

    def _give_back(self, uid: str) -> None:
        if self._rooms.release(uid):
            self._room_was_made()

    def _room_was_made(self) -> None:
        self._line.unblock()
        if len(self._line):
            self.look(PASS, 0.0)

    # --- placing

    async def reconcile(self, key: str) -> float | None:
        if key in self._resting:
            self._resting.discard(key)
            pod = self._pods.get(key)
            if pod is not None and not pod.spec.node_name and not pod.is_terminal and self._is_ours(pod):
                self._line.add(key, fitting.wish_of(pod), pod.spec.priority or 0)
        while True:
            await self._slots.acquire()
            # Whose turn it is may have changed while we waited.
            chosen = self._choose()
            if chosen is None:
                self._slots.release()
                return None
            task = asyncio.create_task(self._bind(*chosen))
            self._bindings.add(task)
            task.add_done_callback(self._bound)

    def _choose(self) -> tuple[str, Pod, str] | None:
        while (found := self._line.next()) is not None:
            key, wish = found
            pod = self._pods.get(key)
            if pod is None:
                self._line.remove(key)
                continue
            node = self._rooms.best_for(wish)
            if isinstance(node, fitting.Refusal):
                for each in self._line.block(wish, node.message):
                    self.tell(each)
                continue
            self._line.remove(key)
            self._rooms.claim(pod.metadata.uid, node, wish)
            return key, pod, node
        return None

    def _bound(self, task: asyncio.Task[None]) -> None:
        self._bindings.discard(task)
        self._slots.release()
        if not task.cancelled() and (problem := task.exception()) is not None:
            log.error("a binding failed unforeseen", exc_info=problem)

    async def _bind(self, key: str, pod: Pod, node: str) -> None:
        meta = pod.metadata
        body: Json = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": meta.name, "namespace": meta.namespace, "uid": meta.uid},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        try:
            async with self._gate.slot("scheduler"):
                request = requests.create(kinds.PODS, meta.namespace, body, name=meta.name, subresource="binding")
                await self._client.send(request, bytes)
        except errors.ApiError as problem:
            log.warning("a pod was not bound", extra={"pod": key, "node": node, "error": str(problem)})
            await self._after_failure(key, pod)
            return
        self._rested(key)
        message = f"Successfully assigned {key} to {node}"
        self._recorder.record(kinds.reference(kinds.PODS, pod), "Normal", "Scheduled", message)

    async def _after_failure(self, key: str, pod: Pod) -> None:
        """The answer may have been lost only: the share is given back when the server says that nobody holds it."""
        uid = pod.metadata.uid
        self._resting.add(key)
        pauses = self._pauses.setdefault(key, backoff.Backoff(FIRST_PAUSE_S, LONGEST_PAUSE_S))
        while True:
            try:
                current = await self._client.get(kinds.PODS, pod.metadata.namespace, pod.metadata.name)
            except errors.NotFound:
                self._pods.remove(key, uid)
                self._give_back(uid)
                self._rested(key)
                return
            except errors.ApiError:
                await asyncio.sleep(pauses.next_pause())
                continue
            break
        if current.metadata.uid != uid or not current.spec.node_name:
            self._give_back(uid)
        self._pods.put(current)  # if it has a node, this claims it
        self.look(key, pauses.next_pause())

    async def finish(self) -> None:
        """Lets no binding go on without us."""
        for task in list(self._bindings):
            task.cancel()
        await asyncio.gather(*self._bindings, return_exceptions=True)

    # --- explaining

    @property
    def tell_again_s(self) -> float:
        shortest, longest = TELL_AGAIN_S
        return min(longest, max(shortest, len(self._line) * TELL_AGAIN_PER_POD_S))

    async def explain(self, key: str) -> float | None:
        """Writes why a pod waits."""
        pod = self._pods.get(key)
        message = self._line.refusal(key)
        if pod is None or not message:
            return None
        known = pod.condition("PodScheduled")
        if known is not None and (known.status, known.reason, known.message) == ("False", "Unschedulable", message):
            return None
        condition: Json = {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": message,
        }
        if known is None or known.status != "False":
            condition["lastTransitionTime"] = writing.timestamp(self._clock.now())
        request = writing.strategic_patch(
            kinds.PODS, pod, {"status": {"conditions": [condition]}}, subresource="status"
        )
        try:
            async with self._gate.slot("scheduler"):
                written = await self._client.send(request, Pod)
        except (errors.NotFound, errors.Conflict):
            return None  # it is another by now, or none
        self._pods.put(written)
        self._recorder.record(kinds.reference(kinds.PODS, pod), "Warning", "FailedScheduling", message)
        return None


def _matters(node: Node) -> object:
    return node.spec, node.metadata.labels, node.status.allocatable


class Placing(telling.Teller):
    """The scheduler's own worker: one, because one decides; it takes the bindings under way with it when it ends."""

    def __init__(self, scheduler: Scheduler, recorder: events.Recorder, metrics: telemetry.Metrics) -> None:
        super().__init__("scheduler", scheduler.reconcile, recorder, workers=1, metrics=metrics)
        self._scheduler = scheduler
        scheduler.look = self.queue.add_after

    async def run(self) -> None:
        try:
            await super().run()
        finally:
            await self._scheduler.finish()


class Explaining(controller.Controller[str]):
    def __init__(self, scheduler: Scheduler, metrics: telemetry.Metrics) -> None:
        super().__init__("scheduler-reasons", self._explain, workers=4, metrics=metrics)
        self._scheduler = scheduler
        scheduler.tell = self.queue.add

    async def _explain(self, key: str) -> float | None:
        self.queue.cooldown(key, self._scheduler.tell_again_s)
        return await self._scheduler.explain(key)
