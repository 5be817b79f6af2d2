"""Quantities (`1.5Gi`) in expressions."""

from __future__ import annotations

from octarbiter.api import errors, quantity
from octarbiter.api.quantity import Quantity
from octarbiter.cluster.apiserver.structural.cel import values
from octarbiter.cluster.apiserver.structural.cel.functions import define
from octarbiter.cluster.apiserver.structural.cel.values import CelError


@define("isQuantity(string) bool")
def _is_quantity(text: str) -> bool:
    try:
        return quantity.parse(text) is not None
    except errors.Refused:
        return False


@define("quantity(string) quantity")
def _quantity(text: str) -> Quantity:
    try:
        return quantity.parse(text)
    except errors.Refused:
        raise CelError(
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
        ) from None


@define("sign(quantity) int")
def _sign(value: Quantity) -> int:
    return (value.nano > 0) - (value.nano < 0)


@define("quantity.isInteger() bool")
def _is_integer(value: Quantity) -> bool:
    return value.nano % quantity.NANO == 0 and value.nano // quantity.NANO in values.INT_RANGE


@define("quantity.asInteger() int")
def _as_integer(value: Quantity) -> int:
    if not _is_integer(value):
        raise CelError("cannot convert value to integer")
    return value.nano // quantity.NANO


@define("quantity.asApproximateFloat() double")
def _as_float(value: Quantity) -> float:
    return value.nano / quantity.NANO


@define("quantity.add(quantity) quantity")
def _add(left: Quantity, right: Quantity) -> Quantity:
    return Quantity(left.nano + right.nano, left.family)


@define("quantity.add(int) quantity")
def _add_int(left: Quantity, right: int) -> Quantity:
    return Quantity(left.nano + right * quantity.NANO, left.family)


@define("quantity.sub(quantity) quantity")
def _sub(left: Quantity, right: Quantity) -> Quantity:
    return Quantity(left.nano - right.nano, left.family)


@define("quantity.sub(int) quantity")
def _sub_int(left: Quantity, right: int) -> Quantity:
    return Quantity(left.nano - right * quantity.NANO, left.family)


@define("quantity.compareTo(quantity) int")
def _compare(left: Quantity, right: Quantity) -> int:
    return (left.nano > right.nano) - (left.nano < right.nano)


@define("quantity.isGreaterThan(quantity) bool")
def _greater(left: Quantity, right: Quantity) -> bool:
    return left.nano > right.nano


@define("quantity.isLessThan(quantity) bool")
def _less(left: Quantity, right: Quantity) -> bool:
    return left.nano < right.nano
