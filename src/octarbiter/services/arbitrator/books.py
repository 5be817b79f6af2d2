"""What do the pods of each namespace use, and on which nodes? Kept by addition: nobody has to count them all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from octarbiter.api import pod_requests, resources
from octarbiter.api.resources import Amounts
from octarbiter.api.workpod import WorkPod


class Entry(msgspec.Struct, frozen=True):
    """One pod that uses something: unfinished, and not gated (a gated pod that is going uses nothing, either)."""

    pod: WorkPod
    requests: Amounts


class PodBook:
    def __init__(self) -> None:
        self._entries: dict[str, dict[str, Entry]] = {}  # by namespace, by key
        self._used: dict[str, Amounts] = {}  # by namespace
        self._placed: dict[str, dict[str, Amounts]] = {}  # by node, by namespace

    def changed(self, key: str, new: WorkPod | None) -> bool:
        """True if it matters to anybody's sums or to who may be asked to go."""
        namespace = key.partition("/")[0]
        old = self._entries.get(namespace, {}).get(key)
        entry = _entry(new, old)
        if entry is None and old is None:
            return False
        if old is not None and entry is not None and _same(old.pod, entry.pod):
            self._entries[namespace][key] = entry
            return False
        if old is not None:
            del self._entries[namespace][key]
            if not self._entries[namespace]:
                del self._entries[namespace]
            self._add(old, -1)
        if entry is not None:
            self._entries.setdefault(namespace, {})[key] = entry
            self._add(entry, 1)
        return True

    def used(self, namespace: str) -> Amounts:
        return self._used.get(namespace, {})

    def namespaces(self) -> Iterator[str]:
        return iter(self._used)

    def on_node(self, node: str) -> Mapping[str, Amounts]:
        """By namespace."""
        return self._placed.get(node, {})

    def nodes(self) -> Iterator[str]:
        return iter(self._placed)

    def entries(self, namespace: str) -> Mapping[str, Entry]:
        return self._entries.get(namespace, {})

    def _add(self, entry: Entry, sign: int) -> None:
        namespace, node = entry.pod.metadata.namespace, entry.pod.spec.node_name
        _into(self._used, namespace, entry.requests, sign)
        if node:
            by_namespace = self._placed.setdefault(node, {})
            _into(by_namespace, namespace, entry.requests, sign)
            if not by_namespace:
                del self._placed[node]


def _entry(pod: WorkPod | None, old: Entry | None) -> Entry | None:
    if pod is None or pod.is_terminal or pod.is_gated:
        return None
    if old is not None and old.pod.spec == pod.spec:
        return Entry(pod, old.requests)  # statuses change often, specs hardly ever
    return Entry(pod, pod_requests.requests(pod.spec))


def _same(old: WorkPod, new: WorkPod) -> bool:
    return (
        old.metadata.uid == new.metadata.uid
        and old.spec == new.spec
        and old.status.phase == new.status.phase
        and old.is_terminating == new.is_terminating
        and old.metadata.labels == new.metadata.labels
        and old.metadata.annotations == new.metadata.annotations
    )


def _into(sums: dict[str, Amounts], key: str, amounts: Amounts, sign: int) -> None:
    total = resources.plus(sums.get(key, {}), {name: sign * amount for name, amount in amounts.items()})
    if left := resources.some(total):
        sums[key] = left
    else:
        sums.pop(key, None)
