"""Which keys of a ResourceQuota are ours, and what do they say?

`limits.*` and `requests.*` of cpu and memory where the queue asks for them, `requests.*` of extended resources, which
know no limits of their own. An extended resource that the queue did not ask for is 0: what is scarce is for those who
claim it. All other keys (pods, services, storage, the plain `cpu`) are the user's.

In mode `gate` a quota would refuse what should wait, so there is no key for anything that the gate counts: cpu and
memory in every spelling, and extended resources that the queue asks for.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from octarbiter.api import quantity, resources
from octarbiter.api.arbitrator import Mode
from octarbiter.api.errors import Refused
from octarbiter.api.resources import CPU, MEMORY, Amounts

Hard = dict[str, str | None]
"""None: the key must not be there."""

_REQUESTS, _LIMITS = "requests.", "limits."


def wanted(may_use: Mapping[str, int], asked: Collection[str], extended: Collection[str], mode: Mode | None) -> Hard:
    """`asked`: names of resources that the queue asks for. `extended`: names that exist in the cluster."""
    hard: Hard = {}
    gated = mode is Mode.GATE
    for name in (CPU, MEMORY):
        if gated:
            hard |= dict.fromkeys((name, _REQUESTS + name, _LIMITS + name))
        elif name in asked:
            value = resources.shown(name, may_use.get(name, 0))
            hard |= {_REQUESTS + name: value, _LIMITS + name: value}
    for name in sorted({name for name in (*extended, *asked) if is_extended(name)}):
        if name not in asked:
            hard[_REQUESTS + name] = "0"
        else:
            hard[_REQUESTS + name] = None if gated else resources.shown(name, may_use.get(name, 0))
    return hard


def is_extended(name: str) -> bool:
    """As Kubernetes has it: qualified, and not by Kubernetes' own domain."""
    return "/" in name and "kubernetes.io/" not in name and not name.startswith(_REQUESTS)


def request_in(hard: Mapping[str, str]) -> Amounts:
    """What a Queue made from this quota asks for: as much as the quota allows. The plain name of cpu and memory means
    the same as their requests; where both stand there, the smaller one limits."""
    request: Amounts = {}
    for key, value in hard.items():
        name = key.removeprefix(_REQUESTS)
        if name in (CPU, MEMORY) or (key != name and is_extended(name)):
            amount = resources.offered({name: value})[name]
            request[name] = min(amount, request.get(name, amount))
    return request


def same(one: str | None, other: str | None) -> bool:
    """Quantities may be written in many ways."""
    if one is None or other is None or one == other:
        return one == other
    try:
        return quantity.parse(one).nano == quantity.parse(other).nano
    except Refused:
        return False
