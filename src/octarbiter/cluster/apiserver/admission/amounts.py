"""How much does a pod ask for, and up to where may it go? Sums of quantities, exact. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from octarbiter.api.meta import Json
from octarbiter.api.quantity import Quantity
from octarbiter.cluster.apiserver.schemas import quantities

Amounts = dict[str, Quantity]


def parsed(given: Mapping[str, Any] | None) -> Amounts:
    """What is no quantity counts as nothing: the kind's own rules refuse it."""
    found: Amounts = {}
    for name, value in (given or {}).items():
        try:
            found[name] = quantities.parse(value)
        except quantities.BadQuantity:
            found[name] = Quantity(0)
    return found


def plus(one: Quantity, other: Quantity) -> Quantity:
    """Written as the first one is, unless that is nothing."""
    return Quantity(one.nano + other.nano, one.family if one.nano else other.family)


def total(parts: Iterable[Amounts]) -> Amounts:
    found: Amounts = {}
    for part in parts:
        _add(found, part)
    return found


def of_pod(spec: Json, part: str) -> Amounts:
    """`part`: requests or limits. Init containers run one after the other before the rest, sidecars beside both."""
    together: Amounts = {}
    for container in spec.get("containers") or []:
        _add(together, _of(container, part))
    sidecars: Amounts = {}
    starting: Amounts = {}
    for container in spec.get("initContainers") or []:
        needs = dict(sidecars)
        _add(needs, _of(container, part))
        if container.get("restartPolicy") == "Always":
            _add(together, _of(container, part))
            sidecars = needs
        _raise_to(starting, needs)
    _raise_to(together, starting)
    for name, value in parsed((spec.get("resources") or {}).get(part)).items():
        together[name] = value
    _add(together, parsed(spec.get("overhead")))
    return together


def _of(container: Json, part: str) -> Amounts:
    return parsed((container.get("resources") or {}).get(part))


def _add(total: Amounts, more: Amounts) -> None:
    for name, value in more.items():
        total[name] = plus(total[name], value) if name in total else value


def _raise_to(total: Amounts, least: Amounts) -> None:
    for name, value in least.items():
        if name not in total or total[name].nano < value.nano:
            total[name] = value
