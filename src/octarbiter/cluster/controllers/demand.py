"""How much does a pod ask for, as a whole?

Sums are in nano-units, so they are exact; `counted` makes of them the whole numbers that schedulers compare: CPU in
thousandths, everything else in units, rounded up."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping

from octarbiter.api import errors, quantity
from octarbiter.cluster.controllers.kinds import Amounts, Container, Pod, Resources

Sums = dict[str, int]
"""Nano-units by the name of the resource: exact."""

POD_LEVEL = ("cpu", "memory")
"""What may be asked for by the pod as a whole; other prefixes: hugepages."""


@functools.lru_cache(maxsize=8192)
def parsed(value: str | int | float) -> quantity.Quantity:
    """Nothing, if it is no quantity: the server has let it in, so it must not stop everybody else's pods."""
    try:
        return quantity.parse(value)
    except errors.Refused:
        return quantity.Quantity(0)


def counted(name: str, nano: int) -> int:
    """The number schedulers compare."""
    return -(-nano // 10**6) if name == "cpu" else -(-nano // quantity.NANO)


def amounts(given: Mapping[str, str | int | float]) -> Sums:
    return {name: parsed(value).nano for name, value in given.items()}


def requests(pod: Pod) -> Sums:
    return _whole(pod, lambda resources: resources.requests)


def limits(pod: Pod) -> Sums:
    return _whole(pod, lambda resources: resources.limits)


def _whole(pod: Pod, part: Callable[[Resources], Amounts]) -> Sums:
    """Containers run together, init containers one after the other before them; sidecars beside both."""
    spec = pod.spec
    together: Sums = {}
    for container in spec.containers:
        _add(together, _of(container, part))
    sidecars: Sums = {}
    starting: Sums = {}
    for container in spec.init_containers:
        needs = dict(sidecars)
        _add(needs, _of(container, part))
        if container.restart_policy == "Always":
            _add(together, _of(container, part))
            sidecars = needs
        _raise_to(starting, needs)
    _raise_to(together, starting)
    if spec.resources is not None:
        whole = amounts(part(spec.resources))
        together |= {name: nano for name, nano in whole.items() if name in POD_LEVEL or name.startswith("hugepages-")}
    if spec.overhead:
        _add(together, amounts(spec.overhead))
    return together


def _of(container: Container, part: Callable[[Resources], Amounts]) -> Sums:
    return amounts(part(container.resources))


def _add(total: Sums, more: Sums) -> None:
    for name, nano in more.items():
        total[name] = total.get(name, 0) + nano


def _raise_to(total: Sums, least: Sums) -> None:
    for name, nano in least.items():
        total[name] = max(total.get(name, 0), nano)
