"""How much of what a queue may use may be used in each of its namespaces?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from octarbiter.api.resources import Amounts


def oversubscribed(allocated: Mapping[str, int], factors: Mapping[str, Fraction]) -> Amounts:
    """What the pods may ask for so that they use what is allocated; exact, then rounded down."""
    return {name: int(amount * factors.get(name, Fraction(1))) for name, amount in allocated.items()}


def shares(
    whole: Mapping[str, int],
    namespaces: Sequence[str],
    asked: Mapping[str, Mapping[str, int]],
    held: Mapping[str, Mapping[str, int]] | None = None,
) -> dict[str, Amounts]:
    """All of it, in whole numbers: the sum is `whole`, for each resource.

    `held`, by namespace, is what was given to QueueJobs there: it comes first, or what was granted could not run. The
    rest goes by what the QueueJobs of a namespace still ask for, and equally where none asks.
    """
    names = sorted(namespaces)
    result: dict[str, Amounts] = {name: {} for name in names}
    for resource, amount in whole.items():
        first = [_of(held or {}, name, resource) for name in names]
        if sum(first) > amount:
            first = proportional(amount, first)
        wanted = [_of(asked, name, resource) for name in names]
        still = [max(0, all_ - some) for all_, some in zip(wanted, first, strict=True)]
        rest = proportional(amount - sum(first), still if any(still) else wanted)
        for name, one, other in zip(names, first, rest, strict=True):
            result[name][resource] = one + other
    return result


def proportional(whole: int, weights: Sequence[int]) -> list[int]:
    """Largest remainders, the first on a tie; equal parts where nobody has any weight."""
    if not weights:
        return []
    if not any(weights):
        weights = [1] * len(weights)
    total = sum(weights)
    parts = [whole * weight // total for weight in weights]
    by_remainder = sorted(range(len(weights)), key=lambda index: (-(whole * weights[index] % total), index))
    for index in by_remainder[: whole - sum(parts)]:
        parts[index] += 1
    return parts


def _of(amounts: Mapping[str, Mapping[str, int]], namespace: str, resource: str) -> int:
    return max(0, amounts.get(namespace, {}).get(resource, 0))
