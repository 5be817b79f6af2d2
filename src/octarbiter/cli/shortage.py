"""Does a pod ask for more than any node of the cluster has, and what would help?

Only what no node could ever give, however empty: who waits for others to end need not be told.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from octarbiter.api import pod_requests, quantity
from octarbiter.cluster.controllers.kinds import Node, Pod


class Shortage(msgspec.Struct, frozen=True):
    resource: str
    asked: str
    """By the pod that asks for most."""
    most: str
    """That one node has."""
    pods: int
    total: int
    """What all pods that ask for it need together, in whole units: so many, and all of them run at once."""

    @property
    def sentence(self) -> str:
        amount = f"{self.asked} {self.resource}"
        who = f"{self.pods} pods ask for {amount} each" if self.pods > 1 else f"a pod asks for {amount}"
        have = "no node has any" if self.most == "0" else f"the largest node has {self.most}"
        return f"{who}, but {have}: --resource {self.resource}={self.total} lets the cluster pretend to have it"


def find(pods: Sequence[Pod], nodes: Sequence[Node]) -> list[Shortage]:
    """By resource, in the order of their names."""
    asked = [pod_requests.exact_requests(pod.spec) for pod in pods if not pod.spec.node_name and not pod.is_terminal]
    have = [pod_requests.amounts(node.status.allocatable) for node in nodes]
    found = []
    for resource in sorted({name for requests in asked for name in requests}):
        amounts = [requests[resource] for requests in asked if requests.get(resource)]
        most = max((node.get(resource, 0) for node in have), default=0)
        if amounts and max(amounts) > most:
            asked_most, node_most = (str(quantity.Quantity(amount)) for amount in (max(amounts), most))
            total = -(-sum(amounts) // quantity.NANO)
            found.append(Shortage(resource, asked_most, node_most, len(amounts), total))
    return found
