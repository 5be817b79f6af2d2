"""Which informers feed the arbitrator, and who works for it? And the webhook, which sees what the arbitrator sees."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from octarbiter.api import scheme
from octarbiter.api.arbitrator import Mode
from octarbiter.api.meta import Object
from octarbiter.api.queue import Queue
from octarbiter.api.queuejob import QueueJob
from octarbiter.api.scheme import Resource
from octarbiter.api.workpod import WorkPod
from octarbiter.core.arbitration import policies
from octarbiter.core.quota import admission
from octarbiter.runtime import cache, controller, informer, served
from octarbiter.runtime import manager as managers
from octarbiter.services.arbitrator.arbitrator import EVERYTHING, Arbitrator, Hands, Wake
from octarbiter.services.arbitrator.evicting import Budget, Evictor
from octarbiter.services.arbitrator.figures import Figures
from octarbiter.services.arbitrator.gates import Gates
from octarbiter.services.arbitrator.observing import BY_NAMESPACE, Caches
from octarbiter.services.arbitrator.quotas import Quotas
from octarbiter.services.arbitrator.recording import Records
from octarbiter.services.arbitrator.settings import ArbitratorSettings
from octarbiter.services.arbitrator.workloads import Workloads
from octarbiter.services.webhook import configuration, serving

BATCH_S = 0.01
"""What happens within so short a time is decided on together."""


@asynccontextmanager
async def arbitration(manager: managers.Manager, settings: ArbitratorSettings) -> AsyncIterator[Arbitrator]:
    """Adds the arbitrator, and the webhook if it has an address, to a manager that does not run yet."""
    kinds = [scheme.QUEUEJOBS, *await _older_kind(manager)]
    arbitrator = _add(manager, settings, kinds)
    async with AsyncExitStack() as stack:
        if settings.webhook_listens:
            us = await serving.who_we_are(manager.client)
            view = _View(us, arbitrator, manager)
            options = serving.Options(
                address=settings.webhook_listens,
                reach=configuration.Reach(url=settings.webhook_url, namespace=settings.webhook_namespace),
                mode=Mode(settings.mode) if settings.mode else None,
            )
            await stack.enter_async_context(serving.Webhook(manager, options, view))
        yield arbitrator


async def _older_kind(manager: managers.Manager) -> list[Resource[QueueJob]]:
    """TaskSet, the older name of QueueJob, where it is installed."""
    older = scheme.ARBITRATOR_TASKSETS
    there = await served.of_version(manager.client, older.api_version)
    return [older] if served.named(there, older.api_version, older.kind, QueueJob) is not None else []


def _add(manager: managers.Manager, settings: ArbitratorSettings, kinds: Collection[Resource[QueueJob]]) -> Arbitrator:
    client, gate = manager.client, manager.gate
    arbitrator: Arbitrator
    cycles: controller.Controller[str]
    rounds: controller.Controller[str]

    def topology_changed(_key: str, _old: Object | None, _new: Object | None) -> None:
        arbitrator.topology_changed()

    def queue_changed(_key: str, old: Queue | None, new: Queue | None) -> None:
        arbitrator.queue_changed(old, new)

    def pod_changed(key: str, _old: WorkPod | None, new: WorkPod | None) -> None:
        if arbitrator.book.changed(key, new):
            cycles.queue.add_after(EVERYTHING, BATCH_S)
        elif new is not None and new.is_gated:
            rounds.queue.add(EVERYTHING)

    def something_changed(_key: str, _old: Object | None, _new: Object | None) -> None:
        cycles.queue.add_after(EVERYTHING, BATCH_S)

    def quota_changed(_key: str, _old: Object | None, _new: Object | None) -> None:
        rounds.queue.add(EVERYTHING)

    def followed(watched: informer.Informer[Any]) -> None:
        manager.follow(watched)

    queues = informer.Informer(client, scheme.QUEUES, on_change=queue_changed)
    namespaces = informer.Informer(client, scheme.NAMESPACES, on_change=topology_changed)
    nodes = informer.Informer(client, scheme.NODES, on_change=something_changed)
    priorities = informer.Informer(client, scheme.PRIORITYCLASSES)
    tasksets = informer.Informer(client, scheme.TASKSETS, on_change=something_changed)
    quotas = informer.Informer(
        client, scheme.RESOURCEQUOTAS, indexes={BY_NAMESPACE: _namespace_of}, on_change=quota_changed
    )
    pods = informer.Informer(client, scheme.WORKPODS, indexes={BY_NAMESPACE: _namespace_of}, on_change=pod_changed)
    claims = {
        kind: informer.Informer(
            client,
            kind,
            on_change=lambda key, old, new, kind=kind: arbitrator.claim_changed(kind, key, old, new),  # type: ignore[misc]
        )
        for kind in kinds
    }
    workloads = Workloads(
        client,
        followed,
        lambda kind, key: arbitrator.workload_changed(kind, key),
        lambda kind: arbitrator.kind_known(kind),
    )
    claim_caches: dict[Resource[QueueJob], cache.Cache[QueueJob]] = {kind: each.cache for kind, each in claims.items()}
    hands = Hands(
        client=client,
        gate=gate,
        evictor=Evictor(client, gate, manager.recorder, Budget(*settings.budget), pods.cache.remove),
        quotas=Quotas(client, gate, quotas.cache, queues.cache),
        gates=Gates(client, gate, pods.cache),
        records=Records(client, gate, manager.recorder, queues.cache, claim_caches, workloads),
        workloads=workloads,
    )
    arbitrator = Arbitrator(
        Caches(queues.cache, namespaces.cache, nodes.cache, pods.cache, quotas.cache, tasksets.cache, priorities.cache),
        claim_caches,
        hands,
        settings,
        Figures(manager.metrics.registry),
        is_busy=manager.is_busy,
    )
    cycles = controller.Controller("arbitration", arbitrator.cycle, workers=1, metrics=manager.metrics)
    settling = controller.Controller(
        "claims", arbitrator.settle, workers=settings.write_concurrency, metrics=manager.metrics
    )
    rounds = controller.Controller("queues", arbitrator.round, workers=1, metrics=manager.metrics)
    telling = controller.Controller("telling", arbitrator.tell, workers=1, metrics=manager.metrics)
    arbitrator.wake = Wake(
        cycle=lambda: cycles.queue.add_after(EVERYTHING, BATCH_S),
        round=lambda: rounds.queue.add(EVERYTHING),
        settle=settling.queue.add,
        tell=lambda: telling.queue.add_after(EVERYTHING, 1.0),
        rest=lambda seconds: cycles.queue.cooldown(EVERYTHING, seconds),
        pause=lambda seconds: rounds.queue.cooldown(EVERYTHING, seconds),
    )
    cycles.queue.add(EVERYTHING)
    manager.informers += [namespaces, priorities, queues, tasksets, *claims.values(), quotas, nodes, pods]
    manager.controllers += [cycles, settling, rounds, telling]
    return arbitrator


def _namespace_of(of: Object) -> list[str]:
    return [of.metadata.namespace]


class _View:
    """What the webhook may know: what is in our caches."""

    def __init__(self, us: str, arbitrator: Arbitrator, manager: managers.Manager) -> None:
        self._us, self._arbitrator = us, arbitrator

    @property
    def us(self) -> str:
        return self._us

    @property
    def policies(self) -> Collection[str]:
        return policies.names()

    def place(self, namespace: str) -> admission.Place:
        return self._arbitrator.place(namespace)

    def queues(self) -> Mapping[str, Queue]:
        return self._arbitrator.topology.objects

    def has_claim(self, namespace: str, api_version: str, kind: str, name: str) -> bool:
        return self._arbitrator.has_claim((api_version, kind), f"{namespace}/{name}")
