"""Who belongs to whom at present: queues, namespaces, and how they are managed.

Rebuilt when a Queue or a Namespace changes, which is seldom.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from octarbiter.api import arbitrator, codec, validation
from octarbiter.api.arbitrator import Mode
from octarbiter.api.core_kinds import ResourceQuota
from octarbiter.api.queue import KIND, Queue
from octarbiter.api.queuejob import QueueJob
from octarbiter.core.arbitration import policies, state, tree
from octarbiter.core.quota import admission, ledger, names
from octarbiter.core.quota import objects as quota_objects
from octarbiter.services.arbitrator.claims import Placed
from octarbiter.services.arbitrator.observing import Caches


class Topology:
    def __init__(self, caches: Caches, everywhere: Mode | None, own_namespace: str, checks: Checks) -> None:
        self._namespaces = {each.metadata.name: each for each in caches.namespaces}
        self._everywhere, self._own_namespace = everywhere, own_namespace
        self.objects: dict[str, Queue] = {each.metadata.key: each for each in caches.queues}
        self.tree = tree.grow(
            (_facts(queue, checks.problem(queue)) for queue in self.objects.values()),
            {name: each.metadata.labels for name, each in self._namespaces.items()},
        )
        self.covered: dict[str, tuple[str, ...]] = {
            key: self.tree.covered(key) for key in self.tree.parents if key not in self.tree.inner
        }
        """The namespaces of each leaf queue."""
        self.queues: dict[str, state.Queue] = {
            key: _queue(self.objects[key], parent, self.covered.get(key, ()))
            for key, parent in self.tree.parents.items()
        }

    def find(self, claim: QueueJob) -> Placed:
        queue, problem = tree.queue_of(self.tree, claim.metadata.namespace, claim.spec.queue)
        return Placed(queue, problem)

    @property
    def namespaces(self) -> Collection[str]:
        return self._namespaces

    def mode(self, namespace: str) -> Mode | None:
        known = self._namespaces.get(namespace)
        labels = known.metadata.labels if known is not None else {}
        return names.mode_of(namespace, labels, self._everywhere, self._own_namespace)

    def is_ending(self, namespace: str) -> bool:
        known = self._namespaces.get(namespace)
        return known is not None and known.metadata.deletion_timestamp is not None

    def place(self, namespace: str, quotas: Iterable[ResourceQuota]) -> admission.Place:
        """As the webhook wants to know it."""
        return admission.Place(
            name=namespace,
            mode=self.mode(namespace),
            queue=self.tree.namespaces.get(namespace, ""),
            has_quota=any(not quota.is_made and not quota.is_scoped for quota in map(quota_objects.quota, quotas)),
            is_ending=self.is_ending(namespace),
        )

    def ledger_entry(
        self, namespace: str, holder: ledger.Holder | None, quotas: Iterable[ResourceQuota]
    ) -> ledger.Namespace:
        return ledger.Namespace(
            name=namespace,
            mode=self.mode(namespace),
            queue=holder,
            quotas=tuple(map(quota_objects.quota, quotas)),
            is_contested=namespace in self.tree.disputed,
            is_ending=self.is_ending(namespace),
        )


class Checks:
    """What is wrong with each Queue; looked at once for every change of it."""

    def __init__(self) -> None:
        self._found: dict[str, tuple[int, str]] = {}  # by UID: the generation, and what is wrong with it

    def problem(self, queue: Queue) -> str:
        meta = queue.metadata
        known = self._found.get(meta.uid)
        if known is None or known[0] != meta.generation:
            known = self._found[meta.uid] = (meta.generation, _problem(queue))
        return known[1]

    def forget(self, uid: str) -> None:
        self._found.pop(uid, None)


def _facts(queue: Queue, problem: str) -> tree.QueueFacts:
    meta = queue.metadata
    assert meta.creation_timestamp is not None
    return tree.QueueFacts(
        key=meta.key,
        parent=queue.spec.parent,
        selector=queue.spec.namespace_selector,
        created=meta.creation_timestamp,
        problem=problem,
    )


def _problem(queue: Queue) -> str:
    whole = {
        "apiVersion": arbitrator.API_VERSION,
        "kind": KIND,
        "metadata": {"name": queue.metadata.name},
        "spec": codec.to_json(queue.spec),
    }
    problems = [str(problem) for problem in validation.validate(whole)]
    if queue.spec.policy and queue.spec.policy not in policies.names():
        problems.append(f"spec.policy: must be one of {', '.join(policies.names())}, is {queue.spec.policy!r}")
    return "; ".join(problems)


def _queue(queue: Queue, parent: str, namespaces: tuple[str, ...]) -> state.Queue:
    spec, created = queue.spec, queue.metadata.creation_timestamp
    assert created is not None
    asks = bool(namespaces)  # an inner queue asks for what its children ask for, also while none of them takes part
    return state.Queue(
        key=queue.metadata.key,
        weight=spec.weight,
        priority=spec.priority,
        parent=parent,
        policy=spec.policy,
        request=spec.request.amounts if asks else {},
        guarantee=spec.guarantee.amounts if spec.guarantee is not None else {},
        capability=spec.capability.amounts if spec.capability is not None else None,
        promised=spec.deserved.amounts if spec.deserved is not None else {},
        reclaimable=spec.reclaimable,
        created=created,
        namespaces=namespaces,
    )


def named(queue: state.Queue) -> set[str]:
    """The resources that a queue speaks of: its quota has figures for these, and for those of its claims."""
    parts = [queue.request, queue.guarantee, queue.capability or {}, queue.promised]
    return {name for part in parts for name in part}
