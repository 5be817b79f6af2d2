"""Small random problems for policies: every kind of claim there can be, in every mixture.

They are made from a seed, many at a time: drawn one number at a time they would take longer to make than to solve.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from random import Random

from octarbiter.core.arbitration import policies
from octarbiter.core.arbitration.claims import Block, Claim, Vector

Problem = tuple[Vector, list[Claim]]

WHOLE = 1_000_000
"""Of each resource, where promises are checked that hold but for rounding: one unit of so many is next to nothing."""
BATCH = 10


def mixtures(seed: int) -> Iterator[Problem]:
    """Units, rests, floors, caps, barriers, resources that are not there."""
    random = Random(seed)
    for _ in range(BATCH):
        width = random.choice([1, 2, 2, 3])
        total = tuple(0 if random.random() < 0.07 else random.randint(1, 60) for _ in range(width))
        names = random.sample("abcdefgh", random.randint(1, 5))
        yield total, [_claim(random, width, name) for name in names]


def trees(seed: int) -> Iterator[Problem]:
    random = Random(seed)
    for _ in range(BATCH):
        width = random.choice([1, 2, 3])
        yield _vector(random, width, 60, 0.05), [_node(random, width, name, 2) for name in "ab"]


def requests(seed: int) -> Iterator[list[Claim]]:
    """Everybody would take the whole cluster, in its own ratio."""
    random = Random(seed)
    for _ in range(BATCH):
        width = random.choice([1, 2, 3])
        yield [
            Claim(key=name, weight=random.randint(1, 4), rest=_ratio(random, width), floor=(0,) * width)
            for name in random.sample("abcdef", random.randint(1, 5))
        ]


def _ratio(random: Random, width: int) -> Vector:
    ratio = _vector(random, width, 20, 0.2)
    return tuple(amount * WHOLE for amount in (ratio if any(ratio) else (1,) * width))


def _vector(random: Random, width: int, most: int, zero: float = 0.3) -> Vector:
    return tuple(0 if random.random() < zero else random.randint(1, most) for _ in range(width))


def _claim(random: Random, width: int, name: str) -> Claim:
    kind = random.random()
    units = [_vector(random, width, 8) for _ in range(random.randint(1, 3))]
    path = [
        Block(random.choice(units), random.randint(0, 12), random.choice([1, 1, 1, 2, 3]), random.random() < 0.1)
        for _ in range(0 if kind < 0.3 else random.randint(1, 5))
    ]
    nothing = (0,) * width
    return Claim(
        key=name,
        weight=random.choice([1, 1, 1, 2, 3, 7]),
        path=tuple(path),
        rest=_vector(random, width, 40) if kind < 0.5 else nothing,
        floor=_vector(random, width, 15) if random.random() < 0.3 else nothing,
        cap=_vector(random, width, 40, 0.05) if random.random() < 0.25 else None,
        promised=_vector(random, width, 30) if random.random() < 0.5 else None,
        priority=random.randint(0, 2),
        since=datetime(2026, 1, 1, tzinfo=UTC) + timedelta(hours=random.randint(0, 3)),
    )


def _node(random: Random, width: int, name: str, depth: int) -> Claim:
    if not depth or random.random() < 0.3:
        return _claim(random, width, name)
    nothing = (0,) * width
    return Claim(
        key=name,
        weight=random.randint(1, 3),
        rest=nothing,
        floor=_vector(random, width, 10) if random.random() < 0.3 else nothing,
        cap=_vector(random, width, 40, 0.05) if random.random() < 0.2 else None,
        priority=random.randint(0, 2),
        children=tuple(_node(random, width, f"{name}{number}", depth - 1) for number in range(random.randint(1, 3))),
        policy=random.choice(["", *policies.names()]),
    )
