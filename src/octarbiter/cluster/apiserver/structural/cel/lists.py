"""Functions on lists that Kubernetes adds: order, sums, positions, sets."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from octarbiter.cluster.apiserver.structural.cel import operators, values
from octarbiter.cluster.apiserver.structural.cel.functions import define
from octarbiter.cluster.apiserver.structural.cel.values import CelError, Duration, Optional, Uint

LARGEST_RANGE = 10_000


@define("list<A>.isSorted() bool")
def _is_sorted(items: Any) -> bool:
    return all(values.order(left, right) <= 0 for left, right in pairwise(items))


@define("list<A>.sum() A")
def _sum(items: Any) -> Any:
    found = list(items)
    kinds = {values.kind_of(item) for item in found}
    if not kinds:
        return 0
    if kinds == {"duration"}:
        return Duration(operators.whole(sum(item.nanos for item in found)))
    if kinds == {"int"}:
        return operators.whole(sum(found))
    if kinds == {"uint"}:
        return Uint(sum(found))
    if kinds == {"double"}:
        return float(sum(found))
    raise CelError("no such overload")


@define("list<A>.min() A")
def _min(items: Any) -> Any:
    return _extreme(items, "min", -1)


@define("list<A>.max() A")
def _max(items: Any) -> Any:
    return _extreme(items, "max", 1)


def _extreme(items: Any, name: str, sign: int) -> Any:
    found = list(items)
    if not found:
        raise CelError(f"{name} called on empty list")
    best = found[0]
    for item in found[1:]:
        if values.order(item, best) * sign > 0:
            best = item
    return best


@define("list<A>.indexOf(A) int")
def _list_index(items: Any, wanted: Any) -> int:
    return next((index for index, item in enumerate(items) if values.equal(item, wanted)), -1)


@define("list<A>.lastIndexOf(A) int")
def _list_last_index(items: Any, wanted: Any) -> int:
    return max((index for index, item in enumerate(items) if values.equal(item, wanted)), default=-1)


@define("list<A>.slice(int, int) list<A>")
def _slice(items: Any, start: int, end: int) -> list[Any]:
    if start < 0 or end < 0:
        raise CelError(f"cannot slice({start}, {end}), negative indexes not supported")
    if start > end:
        raise CelError(f"cannot slice({start}, {end}), start index must be less than or equal to end index")
    if end > len(items):
        raise CelError(f"cannot slice({start}, {end}), list is length {len(items)}")
    return list(items)[start:end]


@define("list<dyn>.flatten() list<dyn>", "list<dyn>.flatten(int) list<dyn>")
def _flatten(items: Any, depth: int = 1) -> list[Any]:
    if depth < 0:
        raise CelError("level must be non-negative")
    flat: list[Any] = []
    for item in items:
        flat += _flatten(item, depth - 1) if depth and values.kind_of(item) == "list" else [item]
    return flat


@define("list<A>.distinct() list<A>")
def _distinct(items: Any) -> list[Any]:
    found: list[Any] = []
    seen = set()
    for item in items:
        mark = values.hashable(item)
        if mark in seen if mark is not None else values.contains(found, item):
            continue
        seen.add(mark)
        found.append(item)
    return found


@define("list<A>.reverse() list<A>")
def _reverse(items: Any) -> list[Any]:
    return list(items)[::-1]


@define("list<A>.sort() list<A>")
def _sort(items: Any) -> list[Any]:
    return sorted_by(list(items), list(items))


def sorted_by(items: list[Any], keys: list[Any]) -> list[Any]:
    if len({values.kind_of(key) for key in keys}) > 1:
        raise CelError("list elements must have the same type")
    for key in keys:
        values.order(key, key)
    try:
        positions = sorted(range(len(items)), key=lambda index: keys[index])
    except TypeError:
        raise CelError("list elements must be comparable") from None
    return [items[index] for index in positions]


@define("list<A>.first() optional<A>")
def _first(items: Any) -> Optional:
    return next((Optional(item, True) for item in items), values.NONE)


@define("list<A>.last() optional<A>")
def _last(items: Any) -> Optional:
    found = list(items)
    return Optional(found[-1], True) if found else values.NONE


@define("range(int) list<int>", namespace="lists")
def _range(end: int) -> list[int]:
    if end > LARGEST_RANGE:
        raise CelError(f"lists.range: at most {LARGEST_RANGE}")
    return list(range(end))


@define("contains(list<A>, list<A>) bool", namespace="sets")
def _set_contains(items: Any, wanted: Any) -> bool:
    found = list(items)
    return all(values.contains(found, item) for item in wanted)


@define("equivalent(list<A>, list<A>) bool", namespace="sets")
def _set_equivalent(left: Any, right: Any) -> bool:
    return _set_contains(left, right) and _set_contains(right, left)


@define("intersects(list<A>, list<A>) bool", namespace="sets")
def _set_intersects(left: Any, right: Any) -> bool:
    found = list(left)
    return any(values.contains(found, item) for item in right)
