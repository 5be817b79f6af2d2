"""Who does a kubelet's work? This: it sees pods, feeds their machines, and carries out what they order.

Nothing is decided here. Machines are kept by UID; whatever happens to a pod is fed to its machine, whose orders become
tasks, timers and writes. Status writes go through a queue with a few writers: what changes several times before its
turn comes is written once.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Coroutine, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

from octarbiter.api import codec, errors
from octarbiter.api.core_kinds import ObjectReference
from octarbiter.cluster.nodeagent import news, nodes, orders, patches, status
from octarbiter.cluster.nodeagent.addresses import Addresses
from octarbiter.cluster.nodeagent.alarms import Alarms
from octarbiter.cluster.nodeagent.machine import Machine
from octarbiter.cluster.nodeagent.pods import PODS, Handler, Pod, Probe
from octarbiter.cluster.nodeagent.runtimes.protocol import Answer, NotPrepared, Place, Runtime
from octarbiter.runtime import backoff, events, informer, requests, telemetry, workqueue
from octarbiter.runtime import clock as clocks
from octarbiter.runtime.client import Client

STRATEGIC_PATCH: Final = "application/strategic-merge-patch+json"
GATHER_S: Final = 0.02
"""A change waits so long for company before it is written."""
PREPARE_TIMEOUT_S: Final = 120.0
REFRESH_S: Final = 60.0
"""Between two looks at what volumes were made from."""
PROBES_AT_ONCE: Final = 32

log = logging.getLogger(__name__)


class Agent:
    def __init__(
        self,
        client: Client,
        settings: Sequence[nodes.NodeSettings],
        runtime: Runtime,
        *,
        writers: int = 8,
        metrics: telemetry.Metrics | None = None,
        clock: clocks.Clock = clocks.SYSTEM,
    ) -> None:
        """Plays all the nodes in `settings`. Needs a running event loop."""
        self._client = client
        self._nodes = {node.name: node for node in settings}
        self._runtime = runtime
        self._writers = writers
        self._clock = clock
        self._registration = nodes.Registration(client, settings, clock)
        self._first = settings[0]
        first = self._first.name
        self._informer = informer.Informer(
            client,
            PODS,
            # One watch for any number of nodes: the field selector knows no "one of".
            field_selector=f"spec.nodeName={first}" if len(settings) == 1 else "",
            on_change=self._pod_changed,
        )
        self._recorder = events.Recorder(
            client, component="kubelet", instance=first, metrics=metrics or telemetry.Metrics(), clock=clock
        )
        self._machines: dict[str, Machine] = {}
        self._arriving: dict[str, list[news.Event]] = {}
        self._to_confirm: set[str] = set()
        self._addresses = Addresses()
        self._alarms: Alarms[str] = Alarms(lambda uid: self._feed(uid, news.TimeCame()), clock)
        self._queue: workqueue.Queue[str] = workqueue.Queue()
        self._tasks: set[asyncio.Task[None]] = set()
        self._probes = asyncio.Semaphore(PROBES_AT_ONCE)
        self.ready = asyncio.Event()
        """The nodes are registered and all pods on them are known."""
        runtime.attach(self._feed)

    async def run(self) -> None:
        """Until cancelled. What runs then goes on running; the next agent takes it over."""
        self._recorder.start()
        try:
            async with asyncio.TaskGroup() as group:
                await self._registration.register()
                group.create_task(self._registration.keep(), name="nodes")
                group.create_task(self._informer.run(), name="pods")
                group.create_task(self._refresh(), name="volumes")
                for number in range(self._writers):
                    group.create_task(self._write_all(), name=f"status-{number}")
                await self._informer.synced.wait()
                await self._end_strays()
                self.ready.set()
        finally:
            self._queue.shut_down()
            self._alarms.close()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            await self._runtime.close()
            await self._recorder.stop()

    # Pods come and go.

    def _pod_changed(self, key: str, old: Pod | None, new: Pod | None) -> None:
        if new is None:
            if old is not None:
                self._feed(old.metadata.uid, news.PodGone())
        elif new.spec.node_name in self._nodes:
            uid = new.metadata.uid
            if uid not in self._machines and uid not in self._arriving:
                self._arriving[uid] = []
                self._spawn(self._accept(new))
            elif old is not None and old.metadata.annotations != new.metadata.annotations:
                self._runtime.changed(new)
            self._feed(uid, news.PodSeen(new))

    async def _accept(self, pod: Pod) -> None:
        uid, pauses = pod.metadata.uid, backoff.Backoff(1.0, 60.0)
        while True:
            try:
                known = await self._runtime.known(pod)
                break
            except (OSError, ValueError) as problem:
                # Not knowing what runs of it, we must not run it.
                log.error("a pod cannot be taken on yet", extra={"pod": pod.metadata.key, "error": str(problem)})
            await asyncio.sleep(pauses.next_pause())
        self._machines[uid] = Machine(pod, known, self._clock.now(), probing=self._runtime.is_real)
        for event in self._arriving.pop(uid):
            self._feed(uid, event)

    async def _end_strays(self) -> None:
        """What an earlier agent left running, and the API server has forgotten since."""
        for pod in await self._runtime.remembered():
            uid = pod.metadata.uid
            if uid not in self._machines and uid not in self._arriving:
                self._arriving[uid] = [news.PodGone()]
                self._spawn(self._accept(pod))

    def _feed(self, uid: str, event: news.Event) -> None:
        machine = self._machines.get(uid)
        if machine is not None:
            for order in machine.feed(event, self._clock.now()):
                self._carry_out(machine, order)
        elif uid in self._arriving:
            self._arriving[uid].append(event)

    # Orders.

    def _carry_out(self, machine: Machine, order: orders.Order) -> None:
        pod = machine.pod
        uid = pod.metadata.uid
        match order:
            case orders.Prepare():
                self._spawn(self._prepare(pod))
            case orders.StartContainer():
                self._spawn(self._start(pod, order))
            case orders.SendSignal():
                self._runtime.send_signal(pod, order.container, order.attempt, order.signal)
            case orders.RunHook():
                self._spawn(self._run_hook(pod, order))
            case orders.RunProbe():
                self._spawn(self._run_probe(pod, order))
            case orders.WakeAt():
                self._alarms.set(uid, order.at)
            case orders.Report():
                self._queue.add_after(uid, GATHER_S)
            case orders.ConfirmDeletion():
                self._to_confirm.add(uid)
                self._queue.add(uid)
            case orders.Release():
                self._release(machine)
            case orders.Tell():
                self._tell(pod, order)

    async def _prepare(self, pod: Pod) -> None:
        try:
            async with asyncio.timeout(PREPARE_TIMEOUT_S):
                await self._runtime.prepare(pod, self._place(pod))
        except TimeoutError:
            self._feed(pod.metadata.uid, news.PreparationFailed(f"not done within {PREPARE_TIMEOUT_S:g} s"))
        except NotPrepared as problem:
            self._feed(pod.metadata.uid, news.PreparationFailed(str(problem)))
        else:
            self._feed(pod.metadata.uid, news.Prepared())

    async def _refresh(self) -> None:
        """ConfigMaps, Secrets and tokens change: what is mounted follows."""
        while True:
            await asyncio.sleep(REFRESH_S)
            for machine in list(self._machines.values()):
                if machine.pod.spec.volumes and machine.is_prepared and machine.ending is None:
                    try:
                        async with asyncio.timeout(PREPARE_TIMEOUT_S):
                            await self._runtime.prepare(machine.pod, self._place(machine.pod))
                    except (NotPrepared, TimeoutError) as problem:
                        extra = {"pod": machine.pod.metadata.key, "error": str(problem)}
                        log.warning("volumes were not brought up to date", extra=extra)

    async def _start(self, pod: Pod, order: orders.StartContainer) -> None:
        try:
            await self._runtime.start(pod, order.container, order.attempt, self._place(pod))
        except Exception as problem:
            # A fault of ours must not leave the pod starting for ever.
            log.exception("a container could not be started", extra={"pod": pod.metadata.key})
            outcome = news.Outcome(128, "StartError", f"{type(problem).__name__}: {problem}", self._clock.now())
            self._feed(pod.metadata.uid, news.ContainerEnded(order.container, order.attempt, outcome))

    async def _run_hook(self, pod: Pod, order: orders.RunHook) -> None:
        lifecycle = pod.container(order.container).lifecycle
        handler = lifecycle.post_start if order.hook == "postStart" else lifecycle.pre_stop
        answer = Answer(True)
        if handler is not None and self._runtime.is_real:
            answer = await self._act(pod, order.container, order.attempt, handler, order.timeout_s)
        problem = "" if answer.passed else answer.output or "it failed"
        self._feed(pod.metadata.uid, news.HookDone(order.container, order.attempt, order.hook, problem))

    async def _run_probe(self, pod: Pod, order: orders.RunProbe) -> None:
        container = pod.container(order.container)
        probes: dict[news.ProbeKind, Probe | None] = {
            "startup": container.startup_probe,
            "readiness": container.readiness_probe,
            "liveness": container.liveness_probe,
        }
        probe, answer = probes[order.probe], Answer(True)
        if probe is not None:
            timeout_s = float(max(1, probe.timeout_seconds))
            async with self._probes:
                answer = await self._act(pod, order.container, order.attempt, probe, timeout_s)
        event = news.Probed(order.container, order.attempt, order.probe, answer.passed, answer.output)
        self._feed(pod.metadata.uid, event)

    async def _act(self, pod: Pod, container: str, attempt: int, handler: Handler, timeout_s: float) -> Answer:
        try:
            return await self._runtime.act(pod, container, attempt, handler, self._place(pod), timeout_s)
        except Exception as problem:
            log.exception("a probe or hook could not be carried out", extra={"pod": pod.metadata.key})
            return Answer(False, f"{type(problem).__name__}: {problem}")

    def _release(self, machine: Machine) -> None:
        uid = machine.pod.metadata.uid
        self._machines.pop(uid, None)
        self._to_confirm.discard(uid)
        self._alarms.cancel(uid)
        self._addresses.take_back(uid)
        self._spawn(self._runtime.release(machine.pod))

    def _place(self, pod: Pod) -> Place:
        node = self._nodes.get(pod.spec.node_name, self._first)  # a stray may be of a node we no longer play
        server = urlsplit(self._client.connection.server)
        port = str(server.port or (443 if server.scheme == "https" else 80))
        services = {
            "KUBERNETES_SERVICE_HOST": server.hostname or "",
            "KUBERNETES_SERVICE_PORT": port,
            "KUBERNETES_SERVICE_PORT_HTTPS": port,
        }
        return Place(node.address, self._address(pod), node.capacity, services)

    def _address(self, pod: Pod) -> str:
        if pod.spec.host_network:
            return self._nodes.get(pod.spec.node_name, self._first).address
        return self._addresses.give(pod.metadata.uid, pod.status.pod_ip)

    def _tell(self, pod: Pod, order: orders.Tell) -> None:
        if not self._runtime.is_real and not order.warning:
            return
        meta = pod.metadata
        kind = "initContainers" if any(c.name == order.container for c in pod.spec.init_containers) else "containers"
        ref = ObjectReference(
            api_version="v1",
            kind="Pod",
            namespace=meta.namespace,
            name=meta.name,
            uid=meta.uid,
            field_path=f"spec.{kind}{{{order.container}}}" if order.container else "",
        )
        self._recorder.record(ref, "Warning" if order.warning else "Normal", order.reason, order.message)

    # Writing.

    async def _write_all(self) -> None:
        with contextlib.suppress(workqueue.ShutDown):
            while True:
                uid = await self._queue.get()
                try:
                    await self._write(uid)
                    self._queue.forget(uid)
                except Exception as problem:
                    after = problem.after if isinstance(problem, errors.Retry) else 0.0
                    self._queue.retry(uid, after)
                    extra = {"uid": uid, "error": f"{type(problem).__name__}: {problem}"}
                    log.warning("the status of a pod was not written", extra=extra)
                finally:
                    self._queue.done(uid)

    async def _write(self, uid: str) -> None:
        machine = self._machines.get(uid)
        if machine is None or machine.is_gone or self._runtime.is_silent(machine.pod):
            return
        pod, revision = machine.pod, machine.revision
        meta = pod.metadata
        node = self._nodes[pod.spec.node_name]
        wanted = status.of(machine, host_ip=node.address, pod_ip=self._address(pod), now=self._clock.now())
        patch = patches.needed(pod, wanted)
        try:
            if patch is not None:
                self._informer.cache.put(await self._client.send(_patch(pod, codec.encode(patch)), Pod))
            self._feed(uid, news.Reported(revision))
            if uid in self._to_confirm:
                await self._client.delete(PODS, meta.namespace, meta.name, grace_period_seconds=0, uid=uid)
                self._to_confirm.discard(uid)
        except (errors.NotFound, errors.Conflict):
            # Only a look can tell "another pod has the name" from "too many wrote at once": what is gone is stopped.
            if not await self._is_there(pod):
                self._informer.cache.remove(meta.key, uid)
                self._feed(uid, news.PodGone())
            else:
                raise

    async def _is_there(self, pod: Pod) -> bool:
        try:
            found = await self._client.get(PODS, pod.metadata.namespace, pod.metadata.name)
        except errors.NotFound:
            return False
        return found.metadata.uid == pod.metadata.uid

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (problem := task.exception()) is not None:
            log.error("a task of the agent failed", exc_info=problem)


def _patch(pod: Pod, body: bytes) -> requests.Request:
    path = requests.merge_patch(PODS, pod.metadata.namespace, pod.metadata.name, b"", subresource="status").path
    return requests.Request(
        method="PATCH", path=path, body=body, content_type=STRATEGIC_PATCH, verb="patch", resource="pods/status"
    )
