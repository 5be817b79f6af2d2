"""How much does a pod ask for, as a whole?

Sums are in nano-units, so they are exact; `requests` makes of them the whole numbers that schedulers compare, rounded
up.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping

from octarbiter.api import errors, quantity, resources
from octarbiter.api.resources import Amounts
from octarbiter.api.workpod import Container, Quantities, Resources, WorkPodSpec

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


def amounts(given: Mapping[str, str | int | float]) -> Sums:
    return {name: parsed(value).nano for name, value in given.items()}


def requests(spec: WorkPodSpec) -> Amounts:
    """In canonical units, without zeros."""
    return {name: resources.counted(name, nano) for name, nano in exact_requests(spec).items() if nano > 0}


def exact_requests(spec: WorkPodSpec) -> Sums:
    return _whole(spec, lambda container: container.requests)


def exact_limits(spec: WorkPodSpec) -> Sums:
    return _whole(spec, lambda container: container.limits)


def _whole(spec: WorkPodSpec, part: Callable[[Resources], Quantities]) -> Sums:
    """Containers run together, init containers one after the other before them; sidecars beside both."""
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


def _of(container: Container, part: Callable[[Resources], Quantities]) -> Sums:
    return amounts(part(container.resources))


def _add(total: Sums, more: Sums) -> None:
    for name, nano in more.items():
        total[name] = total.get(name, 0) + nano


def _raise_to(total: Sums, least: Sums) -> None:
    for name, nano in least.items():
        total[name] = max(total.get(name, 0), nano)
