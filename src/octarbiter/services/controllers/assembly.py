"""Which informers feed which controller?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from octarbiter.api import scheme
from octarbiter.api import taskset as api
from octarbiter.api.core_kinds import Node
from octarbiter.api.meta import Object
from octarbiter.core.lifecycle import names
from octarbiter.runtime import cache, controller, informer
from octarbiter.runtime import manager as managers
from octarbiter.services.controllers import taskset as tasksets
from octarbiter.services.controllers.taskset_actions import Caches

Owned = TypeVar("Owned", bound=Object)


def add_taskset_controller(manager: managers.Manager) -> None:
    """TaskSets are listed first: when the lists are made anew, pods are then never older than the statuses that
    speak of them, and a pod that is not there was there and is lost."""

    def taskset_changed(key: str, _old: api.TaskSet | None, _new: api.TaskSet | None) -> None:
        queue.add(key)

    def owned_changed(_key: str, old: Object | None, new: Object | None) -> None:
        """Somebody may have changed the labels: then it is the affair of two, or no longer of any."""
        for owned in (old, new):
            if owned is not None and names.TASKSET_LABEL in owned.metadata.labels:
                queue.add(tasksets.taskset_key(owned))

    def node_changed(key: str, old: Node | None, new: Node | None) -> None:
        """Only readiness matters: whether a pod that should go may still be there."""
        if (old is not None and old.is_ready) != (new is not None and new.is_ready):
            for pod in pods.cache.by_index(tasksets.BY_NODE, key):
                queue.add(tasksets.taskset_key(pod))

    client, settings = manager.client, manager.settings
    namespace = settings.namespace

    def owned(
        resource: scheme.Resource[Owned], indexes: Mapping[str, cache.IndexFunction[Owned]]
    ) -> informer.Informer[Owned]:
        return informer.Informer(
            client,
            resource,
            namespace=namespace,
            label_selector=tasksets.OWNED_SELECTOR,
            indexes=indexes,
            on_change=owned_changed,
        )

    all_tasksets = informer.Informer(client, scheme.TASKSETS, namespace=namespace, on_change=taskset_changed)
    units = owned(scheme.CONFIGMAPS, tasksets.indexes())
    pods = owned(scheme.PODS, tasksets.pod_indexes())
    services = owned(scheme.SERVICES, tasksets.indexes())
    nodes = informer.Informer(client, scheme.NODES, on_change=node_changed)
    shell = tasksets.TaskSetController(
        client,
        Caches(all_tasksets.cache, pods.cache, units.cache, services.cache, nodes.cache),
        manager.gate,
        manager.recorder,
        cool_down=lambda key, seconds: queue.cooldown(key, seconds),
        is_busy=manager.is_busy,
        status_interval_s=settings.status_interval_s,
    )
    worker = controller.Controller("taskset", shell.reconcile, workers=settings.workers, metrics=manager.metrics)
    queue = worker.queue
    manager.informers += [all_tasksets, units, pods, services, nodes]
    manager.controllers.append(worker)
