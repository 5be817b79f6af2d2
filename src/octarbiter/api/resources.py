"""How much of which resource? Whole numbers in canonical units, so that sums and comparisons are exact.

Milli for cpu, bytes for memory and other storage, units for the rest. What somebody asks for is rounded up, what there
is is rounded down, as schedulers count: nobody gets more than there is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from octarbiter.api import quantity
from octarbiter.api.quantity import Quantity

CPU, MEMORY = "cpu", "memory"

Amounts = dict[str, int]
"""By name of the resource; absent means none."""

_IN_BYTES = (MEMORY, "ephemeral-storage", "hugepages-")


def asked(resources: Mapping[str, str | int | float], path: str = "") -> Amounts:
    """Raises Refused, with the field below `path`, for what is no quantity."""
    return {name: counted(name, _nano(name, value, path)) for name, value in resources.items()}


def offered(resources: Mapping[str, str | int | float]) -> Amounts:
    return {name: _nano(name, value, "") // _nano_per_unit(name) for name, value in resources.items()}


def counted(name: str, nano: int) -> int:
    """What is asked for, from an exact sum of nano-units."""
    return -(-nano // _nano_per_unit(name))


def shown(name: str, amount: int) -> str:
    """As a quantity, in the canonical form that kubectl prints."""
    family: quantity.Family = "binary" if name.startswith(_IN_BYTES) else "decimal"
    return str(Quantity(amount * _nano_per_unit(name), family))


def written(amounts: Mapping[str, int]) -> dict[str, str]:
    return {name: shown(name, amount) for name, amount in sorted(amounts.items())}


def plus(*parts: Mapping[str, int]) -> Amounts:
    total: Amounts = {}
    for part in parts:
        for name, amount in part.items():
            total[name] = total.get(name, 0) + amount
    return total


def less(whole: Mapping[str, int], part: Mapping[str, int]) -> Amounts:
    """What is left; never below nothing."""
    return {name: max(0, amount - part.get(name, 0)) for name, amount in whole.items()}


def larger(one: Mapping[str, int], other: Mapping[str, int]) -> Amounts:
    return {name: max(one.get(name, 0), other.get(name, 0)) for name in _names((one, other))}


def smaller(one: Mapping[str, int], other: Mapping[str, int]) -> Amounts:
    return {name: min(one.get(name, 0), other.get(name, 0)) for name in _names((one, other))}


def times(amounts: Mapping[str, int], count: int) -> Amounts:
    return {name: amount * count for name, amount in amounts.items()}


def fits(wanted: Mapping[str, int], there: Mapping[str, int]) -> bool:
    return all(amount <= there.get(name, 0) for name, amount in wanted.items() if amount > 0)


def some(amounts: Mapping[str, int]) -> Amounts:
    """Without zeros."""
    return {name: amount for name, amount in amounts.items() if amount}


def _names(parts: Iterable[Mapping[str, int]]) -> dict[str, None]:
    return {name: None for part in parts for name in part}


def _nano_per_unit(name: str) -> int:
    return 10**6 if name == CPU else quantity.NANO


def _nano(name: str, value: str | int | float, path: str) -> int:
    return quantity.parse(value, f"{path}[{name}]" if path else name).nano
