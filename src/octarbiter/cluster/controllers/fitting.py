"""Does a pod fit on a node, and if not, why not? And which of the nodes that fit is the best?

`Wish` is what matters of a pod, `Room` what matters of a node; reasons are in the words of kube-scheduler, which
people and programs know. `Rooms` keeps running sums: a pod that comes or goes costs one addition.
"""

from __future__ import annotations

import heapq
from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct

from octarbiter.api import codec, pod_requests
from octarbiter.api.workpod import Container
from octarbiter.cluster.controllers import selecting
from octarbiter.cluster.controllers.kinds import Node, NodeSelectorTerm, Pod, Taint, Toleration

Port = tuple[str, str, int]
"""Protocol, address, number."""

Rank = tuple[float, int, str]
"""The least is the best."""

PODS = "pods"
RANKINGS_KEPT = 256
UNSCHEDULABLE = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
ANY_ADDRESS = ("", "0.0.0.0")  # noqa: S104


class Wish(Struct, frozen=True):
    """Pods with equal wishes are interchangeable: what holds for one holds for all."""

    signature: bytes
    amounts: dict[str, int]
    """As schedulers count, without zeros; one of `pods` is always among them."""
    ports: tuple[Port, ...]
    tolerations: tuple[Toleration, ...]
    node_selector: dict[str, str]
    terms: tuple[NodeSelectorTerm, ...] | None
    """Of the required node affinity; None: there is none."""


def wish_of(pod: Pod) -> Wish:
    spec = pod.spec
    amounts = pod_requests.requests(spec) | {PODS: 1}
    ports = tuple(sorted(set(_ports([*spec.containers, *_sidecars(pod)]))))
    affinity = spec.affinity.node_affinity if spec.affinity is not None else None
    required = affinity.required if affinity is not None else None
    terms = tuple(required.node_selector_terms) if required is not None else None
    parts = [sorted(amounts.items()), ports, spec.tolerations, sorted(spec.node_selector.items()), terms]
    return Wish(codec.encode(parts), amounts, ports, tuple(spec.tolerations), spec.node_selector, terms)


def _sidecars(pod: Pod) -> list[Container]:
    return [container for container in pod.spec.init_containers if container.restart_policy == "Always"]


def _ports(containers: Iterable[Container]) -> Iterator[Port]:
    for container in containers:
        for port in container.ports:
            if port.host_port > 0:
                yield port.protocol, "" if port.host_ip in ANY_ADDRESS else port.host_ip, port.host_port


class Room:
    """One node and what is taken of it."""

    __slots__ = ("allocatable", "claims", "node", "ports", "used")

    def __init__(self) -> None:
        self.node: Node | None = None
        self.allocatable: dict[str, int] = {}
        self.used: dict[str, int] = {}
        self.ports: Counter[Port] = Counter()
        self.claims = 0

    def set_node(self, node: Node | None) -> None:
        self.node = node
        given = pod_requests.amounts(node.status.allocatable) if node is not None else {}
        self.allocatable = {name: nano // (10**6 if name == "cpu" else 10**9) for name, nano in given.items()}

    def take(self, wish: Wish) -> None:
        self.claims += 1
        for name, count in wish.amounts.items():
            self.used[name] = self.used.get(name, 0) + count
        self.ports.update(wish.ports)

    def give_back(self, wish: Wish) -> None:
        self.claims -= 1
        for name, count in wish.amounts.items():
            self.used[name] -= count
        self.ports.subtract(wish.ports)
        self.ports = +self.ports

    def free_share(self, wish: Wish) -> float:
        """Of what the pod asks for, how much would be left, on average? Between 0 and 1."""
        shares = [1 - (self.used.get(name, 0) + count) / self.allocatable[name] for name, count in wish.amounts.items()]
        return sum(shares) / len(shares)


def why_not(wish: Wish, room: Room) -> list[str]:
    """Empty: it fits. The first rule that is broken tells, as in kube-scheduler; all resources that lack tell."""
    node = room.node
    if node is None:
        return ["node(s) do not exist"]
    if node.spec.unschedulable and not tolerates(wish.tolerations, UNSCHEDULABLE):
        return ["node(s) were unschedulable"]
    for taint in node.spec.taints:
        if taint.effect in ("NoSchedule", "NoExecute") and not tolerates(wish.tolerations, taint):
            return [f"node(s) had untolerated taint {{{taint.key}: {taint.value}}}"]
    if not _is_chosen(wish, node):
        return ["node(s) didn't match Pod's node affinity/selector"]
    if room.ports and any(_is_taken(port, room.ports) for port in wish.ports):
        return ["node(s) didn't have free ports for the requested pod ports"]
    allocatable, used = room.allocatable, room.used
    return [
        "Too many pods" if name == PODS else f"Insufficient {name}"
        for name, count in wish.amounts.items()
        if count > allocatable.get(name, 0) - used.get(name, 0)
    ]


def tolerates(tolerations: Iterable[Toleration], taint: Taint) -> bool:
    return any(tolerates_taint(toleration, taint) for toleration in tolerations)


def tolerates_taint(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect not in ("", taint.effect) or toleration.key not in ("", taint.key):
        return False
    if toleration.operator in ("", "Equal"):
        return toleration.value == taint.value
    return toleration.operator == "Exists"


def _is_chosen(wish: Wish, node: Node) -> bool:
    labels = node.metadata.labels
    if any(labels.get(key) != value for key, value in wish.node_selector.items()):
        return False
    return wish.terms is None or selecting.matches_any_term(wish.terms, labels, node.metadata.name)


def _is_taken(wanted: Port, taken: Mapping[Port, int]) -> bool:
    """All addresses and one of them are in each other's way."""
    protocol, address, number = wanted
    return any(
        protocol == other_protocol and number == other_number and (address == other or "" in (address, other))
        for other_protocol, other, other_number in taken
    )


class Refusal(Struct, frozen=True):
    nodes: int
    reasons: dict[str, int]
    """How many nodes say so."""

    @property
    def message(self) -> str:
        if not self.nodes:
            return "no nodes available to schedule pods"
        said = ", ".join(sorted(f"{count} {reason}" for reason, count in self.reasons.items()))
        return f"0/{self.nodes} nodes are available: {said}."


class Ranking:
    """The nodes that fit one wish, the best first, as of some moment."""

    def __init__(self) -> None:
        self.as_of = 0
        self.heap: list[tuple[Rank, int, str]] = []  # with the stamp of the node; another stamp: out of date


class Rooms:
    """All nodes, and the claims of all pods on them, also on nodes that are not known (yet, or any more).

    A node is looked at again for a wish only when it has changed since: placing many equal pods costs one look each,
    however many nodes there are.
    """

    def __init__(self) -> None:
        self._rooms: dict[str, Room] = {}
        self._claims: dict[str, tuple[str, Wish]] = {}
        self._stamp = 0
        self._stamps: dict[str, int] = {}  # when each room changed last, in that order
        self._rankings: OrderedDict[bytes, Ranking] = OrderedDict()

    def set_node(self, node: Node) -> None:
        name = node.metadata.name
        self._room(name).set_node(node)
        self._changed(name)

    def drop_node(self, name: str) -> None:
        self._room(name).set_node(None)
        self._changed(name)

    def claim(self, uid: str, node_name: str, wish: Wish) -> None:
        """A pod has one claim: another one takes its place."""
        if self._claims.get(uid) == (node_name, wish):
            return
        self.release(uid)
        self._room(node_name).take(wish)
        self._claims[uid] = (node_name, wish)
        self._changed(node_name)

    def release(self, uid: str) -> bool:
        """Whether there was something to give back."""
        claim = self._claims.pop(uid, None)
        if claim is None:
            return False
        node_name, wish = claim
        self._rooms[node_name].give_back(wish)
        self._changed(node_name)
        return True

    def claimed(self, uid: str) -> str:
        """The node's name, or empty."""
        claim = self._claims.get(uid)
        return claim[0] if claim is not None else ""

    def best_for(self, wish: Wish) -> str | Refusal:
        """The name of the emptiest node that fits; among equals the one with the fewest pods, then by name."""
        ranking = self._rankings.pop(wish.signature, None) or Ranking()
        self._rankings[wish.signature] = ranking
        if len(self._rankings) > RANKINGS_KEPT:
            self._rankings.popitem(last=False)
        heap = ranking.heap
        for name in reversed(self._stamps):
            stamp = self._stamps[name]
            if stamp <= ranking.as_of:
                break
            room = self._rooms[name]
            if room.node is not None and not why_not(wish, room):
                heapq.heappush(heap, ((-room.free_share(wish), room.claims, name), stamp, name))
        ranking.as_of = self._stamp
        if len(heap) > 64 + 2 * len(self._rooms):
            heap[:] = [entry for entry in heap if self._stamps.get(entry[2]) == entry[1]]
            heapq.heapify(heap)
        while heap:
            _, stamp, name = heap[0]
            if self._stamps.get(name) == stamp:
                return name
            heapq.heappop(heap)
        return self._refusal(wish)

    def room(self, name: str) -> Room | None:
        return self._rooms.get(name)

    def _refusal(self, wish: Wish) -> Refusal:
        present = [room for room in self._rooms.values() if room.node is not None]
        reasons = Counter(reason for room in present for reason in why_not(wish, room))
        return Refusal(len(present), dict(reasons))

    def _room(self, name: str) -> Room:
        return self._rooms.setdefault(name, Room())

    def _changed(self, name: str) -> None:
        self._stamps.pop(name, None)
        room = self._rooms[name]
        if room.node is None and not room.claims:
            del self._rooms[name]
            return
        self._stamp += 1
        self._stamps[name] = self._stamp
