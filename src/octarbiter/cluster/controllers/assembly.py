"""Which informers feed which controller of the cluster?"""

from __future__ import annotations

import platform
from collections.abc import Callable
from typing import Any, Protocol

from msgspec import Struct

from octarbiter.api.core_kinds import Lease, Namespace, ResourceQuota
from octarbiter.api.meta import Object
from octarbiter.cluster.controllers import (
    accounts,
    census,
    discovery,
    disruption,
    garbage,
    jobs,
    kinds,
    namespaces,
    nodes,
    outlines,
    quotas,
    scheduler,
    telling,
)
from octarbiter.cluster.controllers.kinds import Budget, Crd, Job, Node, Pod
from octarbiter.runtime import client, controller, events, fairness, informer, telemetry

GARBAGE_READS = 8


class Options(Struct, frozen=True, kw_only=True):
    scheduler_name: str = "default-scheduler"
    """Pods that ask for this scheduler are placed."""
    root_ca: str = ""
    """PEM of the authority that the API server's certificate comes from; pods find it in `kube-root-ca.crt`."""
    node_grace_s: float = 40.0
    """A node that gave no sign of life for so long is lost."""
    workers: int = 8


class Manager(Protocol):
    """What is needed of the process that runs all this; `runtime.manager.Manager` has it."""

    @property
    def client(self) -> client.Client: ...
    @property
    def gate(self) -> fairness.FairGate: ...
    @property
    def metrics(self) -> telemetry.Metrics: ...
    @property
    def informers(self) -> list[informer.Informer[Any]]: ...
    @property
    def controllers(self) -> list[controller.Controller[Any]]: ...


def add_all(manager: Manager, options: Options) -> None:
    Assembly(manager, options).add_all()


class Assembly:
    """Pods come last among the informers: what is listed later is never older, and no pod may be older than the status
    of the Job that counts it."""

    def __init__(self, manager: Manager, options: Options) -> None:
        self._manager, self._options = manager, options
        self._client, self._gate, self._metrics = manager.client, manager.gate, manager.metrics
        self._pod_handlers: list[Callable[[str, Pod | None, Pod | None], None]] = []
        self._node_handlers: list[Callable[[str, Node | None, Node | None], None]] = []
        self._namespace_handlers: list[Callable[[str], None]] = []
        self.namespaces = informer.Informer(self._client, kinds.NAMESPACES, on_change=self._namespace_changed)
        self.nodes = informer.Informer(self._client, kinds.NODES, on_change=self._node_changed)
        self.pods = informer.Informer(
            self._client,
            kinds.PODS,
            indexes={jobs.BY_JOB: jobs.jobs_of, nodes.BY_NODE: _node_of, quotas.BY_NAMESPACE: _namespace_of},
            on_change=self._pod_changed,
        )

    def add_all(self) -> None:
        catalogue = self._add_discovery()
        counts = census.Census()
        self._add_garbage(catalogue, counts)
        self._add_namespaces(catalogue)
        self._add_accounts()
        self._add_scheduler()
        self._add_jobs()
        self._add_nodes()
        self._add_quotas(counts)
        self._add_disruption()
        self._manager.informers.extend([self.namespaces, self.nodes, self.pods])

    # --- each controller

    def _add_discovery(self) -> discovery.Catalogue:
        def changed(_key: str, _old: Crd | None, _new: Crd | None) -> None:
            worker.queue.add("")

        crds = informer.Informer(self._client, kinds.CRDS, on_change=changed)
        catalogue = discovery.Catalogue(self._client, crds.cache)
        worker = self._worker("discovery", catalogue.reconcile, 1)
        worker.queue.add("")
        self._manager.informers.append(crds)
        return catalogue

    def _add_garbage(self, catalogue: discovery.Catalogue, counts: census.Census) -> None:
        outline_client = outlines.OutlineClient(
            self._client.connection, concurrency=GARBAGE_READS + self._options.workers, retry_for_s=0.0
        )
        collector = garbage.GarbageCollector(
            outline_client, catalogue, self._gate, self._metrics, counts, workers=self._options.workers
        )
        self._manager.controllers.append(collector)

    def _add_namespaces(self, catalogue: discovery.Catalogue) -> None:
        def pod_changed(_key: str, old: Pod | None, new: Pod | None) -> None:
            if new is None and old is not None and shell.is_going(old.metadata.namespace):
                worker.queue.add(old.metadata.namespace)

        shell = namespaces.NamespaceController(self._client, self._gate, self.namespaces.cache, catalogue)
        worker = self._worker("namespaces", shell.reconcile, 4)
        self._namespace_handlers.append(worker.queue.add)
        self._pod_handlers.append(pod_changed)

    def _add_accounts(self) -> None:
        def changed(_key: str, old: Any, new: Any) -> None:
            worker.queue.add((new or old).metadata.namespace)

        def named(resource: Any, name: str) -> informer.Informer[Any]:
            selector = f"metadata.name={name}"
            made = informer.Informer(self._client, resource, field_selector=selector, on_change=changed)
            self._manager.informers.append(made)
            return made

        shell = accounts.Furnishing(
            self._client,
            self._gate,
            self.namespaces.cache,
            named(kinds.SERVICE_ACCOUNTS, accounts.ACCOUNT).cache,
            named(kinds.CONFIGMAPS, accounts.ROOT_CA).cache,
            self._options.root_ca,
        )
        worker = self._worker("accounts", shell.reconcile, 4)
        self._namespace_handlers.append(worker.queue.add)

    def _add_scheduler(self) -> None:
        name = self._options.scheduler_name
        recorder = self._recorder(name)
        shell = scheduler.Scheduler(self._client, self._gate, recorder, self.pods.cache, scheduler_name=name)
        self._pod_handlers.append(shell.pod_changed)
        self._node_handlers.append(shell.node_changed)
        self._manager.controllers.append(scheduler.Placing(shell, recorder, self._metrics))
        self._manager.controllers.append(scheduler.Explaining(shell, self._metrics))

    def _add_jobs(self) -> None:
        def job_changed(key: str, _old: Job | None, _new: Job | None) -> None:
            worker.queue.add(key)

        def pod_changed(_key: str, old: Pod | None, new: Pod | None) -> None:
            for pod in (old, new):
                for key in jobs.jobs_of(pod) if pod is not None else ():
                    worker.queue.add(key)

        all_jobs = informer.Informer(self._client, kinds.JOBS, on_change=job_changed)
        recorder = self._recorder("job-controller")
        shell = jobs.JobController(
            self._client,
            self._gate,
            recorder,
            all_jobs.cache,
            self.pods.cache,
            cool_down=lambda key, seconds: worker.queue.cooldown(key, seconds),
        )
        worker = telling.Teller("jobs", shell.reconcile, recorder, workers=self._options.workers, metrics=self._metrics)
        self._manager.controllers.append(worker)
        self._manager.informers.append(all_jobs)
        self._pod_handlers.append(pod_changed)

    def _add_nodes(self) -> None:
        def node_changed(key: str, _old: Node | None, _new: Node | None) -> None:
            worker.queue.add(key)

        def lease_changed(_key: str, old: Lease | None, new: Lease | None) -> None:
            for lease in (old, new):
                if lease is not None:
                    worker.queue.add(lease.metadata.name)

        def pod_changed(_key: str, old: Pod | None, new: Pod | None) -> None:
            name = new.spec.node_name if new is not None else ""
            if name and (old is None or old.spec.node_name != name) and shell.is_evicting(name):
                worker.queue.add(name)

        leases = informer.Informer(self._client, kinds.LEASES, namespace=nodes.LEASES, on_change=lease_changed)
        recorder = self._recorder("node-controller")
        shell = nodes.NodeController(
            self._client,
            self._gate,
            recorder,
            self.nodes.cache,
            leases.cache,
            self.pods.cache,
            grace_s=self._options.node_grace_s,
        )
        worker = telling.Teller("nodes", shell.reconcile, recorder, workers=2, metrics=self._metrics)
        self._manager.controllers.append(worker)
        self._manager.informers.append(leases)
        self._node_handlers.append(node_changed)
        self._pod_handlers.append(pod_changed)

    def _add_quotas(self, counts: census.Census) -> None:
        def quota_changed(key: str, _old: ResourceQuota | None, _new: ResourceQuota | None) -> None:
            worker.queue.add(key)

        def namespace_changed(namespace: str) -> None:
            for quota in all_quotas.cache.by_index(quotas.BY_NAMESPACE, namespace):
                worker.queue.add(quota.metadata.key)

        def pod_changed(_key: str, old: Pod | None, new: Pod | None) -> None:
            if (pod := new or old) is None:
                return
            if new is None:
                shell.forget(pod.metadata.uid)
            if old is None or new is None or old.is_terminal != new.is_terminal or old.spec != new.spec:
                namespace_changed(pod.metadata.namespace)

        all_quotas = informer.Informer(
            self._client, kinds.QUOTAS, indexes={quotas.BY_NAMESPACE: _namespace_of}, on_change=quota_changed
        )
        shell = quotas.QuotaController(
            self._client,
            self._gate,
            all_quotas.cache,
            self.pods.cache,
            counts,
            cool_down=lambda key, seconds: worker.queue.cooldown(key, seconds),
        )
        worker = self._worker("quotas", shell.reconcile, 2)
        counts.on_change.append(namespace_changed)
        self._manager.informers.append(all_quotas)
        self._pod_handlers.append(pod_changed)

    def _add_disruption(self) -> None:
        def budget_changed(key: str, _old: Budget | None, _new: Budget | None) -> None:
            worker.queue.add(key)

        def pod_changed(_key: str, old: Pod | None, new: Pod | None) -> None:
            for pod in (old, new):
                for key in shell.concerned(pod) if pod is not None else ():
                    worker.queue.add(key)

        all_budgets = informer.Informer(
            self._client, kinds.BUDGETS, indexes={disruption.BY_NAMESPACE: _namespace_of}, on_change=budget_changed
        )
        shell = disruption.DisruptionController(self._client, self._gate, all_budgets.cache, self.pods.cache)
        worker = self._worker("disruption", shell.reconcile, 2)
        self._manager.informers.append(all_budgets)
        self._pod_handlers.append(pod_changed)

    # --- what they share

    def _worker(self, name: str, reconcile: Callable[[str], Any], workers: int) -> controller.Controller[str]:
        made: controller.Controller[str] = controller.Controller(
            name, reconcile, workers=workers, metrics=self._metrics
        )
        self._manager.controllers.append(made)
        return made

    def _recorder(self, component: str) -> events.Recorder:
        return events.Recorder(
            self._client, component=component, instance=f"{component}-{platform.node()}", metrics=self._metrics
        )

    def _pod_changed(self, key: str, old: Pod | None, new: Pod | None) -> None:
        for handle in self._pod_handlers:
            handle(key, old, new)

    def _node_changed(self, key: str, old: Node | None, new: Node | None) -> None:
        for handle in self._node_handlers:
            handle(key, old, new)

    def _namespace_changed(self, key: str, _old: Namespace | None, _new: Namespace | None) -> None:
        for handle in self._namespace_handlers:
            handle(key)


def _node_of(pod: Pod) -> list[str]:
    return [pod.spec.node_name] if pod.spec.node_name else []


def _namespace_of(of: Object) -> list[str]:
    return [of.metadata.namespace]
