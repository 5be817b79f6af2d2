"""Values that may be absent: `self.?field.orValue(1)`."""

from __future__ import annotations

from typing import Any

from octarbiter.cluster.apiserver.structural.cel import values
from octarbiter.cluster.apiserver.structural.cel.functions import define
from octarbiter.cluster.apiserver.structural.cel.values import CelError, Duration, Fields, Items, Optional


@define("of(A) optional<A>", namespace="optional")
def _of(value: Any) -> Optional:
    return Optional(value, True)


@define("none() optional<dyn>", namespace="optional")
def _none() -> Optional:
    return values.NONE


@define("ofNonZeroValue(A) optional<A>", namespace="optional")
def _of_non_zero(value: Any) -> Optional:
    empty = value is None or (isinstance(value, Duration) and value.nanos == 0)
    if isinstance(value, str | bytes | list | dict | Items | Fields):
        empty = len(value) == 0
    elif isinstance(value, int | float):
        empty = not value
    return values.NONE if empty else Optional(value, True)


@define("optional<A>.hasValue() bool")
def _has_value(value: Optional) -> bool:
    return value.present


@define("optional<A>.value() A")
def _value(value: Optional) -> Any:
    if not value.present:
        raise CelError("optional.none() dereference")
    return value.value


# `or` and `orValue` evaluate their argument only when it is needed; see `running`. Here is what they take and give.
@define("optional<A>.or(optional<A>) optional<A>")
def _or(value: Optional, other: Optional) -> Optional:
    return value if value.present else other


@define("optional<A>.orValue(A) A")
def _or_value(value: Optional, other: Any) -> Any:
    return value.value if value.present else other
