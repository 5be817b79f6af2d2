"""The operators of the language, and its few functions on strings and sizes."""

from __future__ import annotations

import math
import re
from typing import Any

from octarbiter.cluster.apiserver.structural import regexes
from octarbiter.cluster.apiserver.structural.cel import values
from octarbiter.cluster.apiserver.structural.cel.functions import define
from octarbiter.cluster.apiserver.structural.cel.values import CelError, Duration, Items, Timestamp, Uint
from octarbiter.cluster.apiserver.types import ListType


def whole(number: int) -> int:
    if number not in values.INT_RANGE:
        raise CelError("integer overflow")
    return number


def natural(number: int) -> Uint:
    if number not in values.UINT_RANGE:
        raise CelError("unsigned integer overflow")
    return Uint(number)


@define("_==_(A, A) bool")
def _equals(left: Any, right: Any) -> bool:
    return values.equal(left, right)


@define("_!=_(A, A) bool")
def _differs(left: Any, right: Any) -> bool:
    return not values.equal(left, right)


_ORDERED = ("bool", "int", "uint", "double", "string", "bytes", "timestamp", "duration")
_NUMBERS = ("int", "uint", "double")
_COMPARED = [(kind, kind) for kind in _ORDERED] + [(a, b) for a in _NUMBERS for b in _NUMBERS if a != b]


def _comparisons(operator: str) -> list[str]:
    return [f"{operator}({left}, {right}) bool" for left, right in _COMPARED]


@define(*_comparisons("_<_"))
def _less(left: Any, right: Any) -> bool:
    return values.order(left, right) < 0


@define(*_comparisons("_<=_"))
def _at_most(left: Any, right: Any) -> bool:
    return values.order(left, right) <= 0


@define(*_comparisons("_>_"))
def _more(left: Any, right: Any) -> bool:
    return values.order(left, right) > 0


@define(*_comparisons("_>=_"))
def _at_least(left: Any, right: Any) -> bool:
    return values.order(left, right) >= 0


@define("@in(A, list<A>) bool")
def _in_list(item: Any, items: Any) -> bool:
    return values.contains(items, item)


@define("@in(A, map<A,B>) bool")
def _in_map(key: Any, container: Any) -> bool:
    return values.find(container, key)[0]


@define("!_(bool) bool")
def _not(value: bool) -> bool:
    return not value


@define("-_(int) int")
def _negative(value: int) -> int:
    return whole(-value)


@define("-_(double) double")
def _negative_double(value: float) -> float:
    return -value


@define("_+_(int, int) int")
def _add(left: int, right: int) -> int:
    return whole(left + right)


@define("_+_(uint, uint) uint")
def _addnatural(left: int, right: int) -> Uint:
    return natural(int(left) + int(right))


@define("_+_(double, double) double", "_+_(string, string) string", "_+_(bytes, bytes) bytes")
def _add_plain(left: Any, right: Any) -> Any:
    return left + right


@define("_+_(list<A>, list<A>) list<A>")
def _add_lists(left: Any, right: Any) -> Any:
    form = left.form if isinstance(left, Items) else None
    if form is None or form.list_type is ListType.ATOMIC:
        return [*left, *right]
    if form.list_type is ListType.SET:
        own = list(left)
        return [*own, *(item for item in right if not values.contains(own, item))]
    merged = {values.item_key(item, form): item for item in left}
    merged |= {values.item_key(item, form): item for item in right}
    return list(merged.values())


@define("_+_(duration, duration) duration")
def _add_durations(left: Duration, right: Duration) -> Duration:
    return Duration(whole(left.nanos + right.nanos))


@define("_+_(timestamp, duration) timestamp")
def _later(left: Timestamp, right: Duration) -> Timestamp:
    return Timestamp(left.nanos + right.nanos)


@define("_+_(duration, timestamp) timestamp")
def _later_again(left: Duration, right: Timestamp) -> Timestamp:
    return _later(right, left)


@define("_-_(int, int) int")
def _subtract(left: int, right: int) -> int:
    return whole(left - right)


@define("_-_(uint, uint) uint")
def _subtractnatural(left: int, right: int) -> Uint:
    return natural(int(left) - int(right))


@define("_-_(double, double) double")
def _subtract_doubles(left: float, right: float) -> float:
    return left - right


@define("_-_(duration, duration) duration", "_-_(timestamp, timestamp) duration")
def _between(left: Any, right: Any) -> Duration:
    return Duration(whole(left.nanos - right.nanos))


@define("_-_(timestamp, duration) timestamp")
def _earlier(left: Timestamp, right: Duration) -> Timestamp:
    return Timestamp(left.nanos - right.nanos)


@define("_*_(int, int) int")
def _multiply(left: int, right: int) -> int:
    return whole(left * right)


@define("_*_(uint, uint) uint")
def _multiplynatural(left: int, right: int) -> Uint:
    return natural(int(left) * int(right))


@define("_*_(double, double) double")
def _multiply_doubles(left: float, right: float) -> float:
    return left * right


@define("_/_(int, int) int")
def _divide(left: int, right: int) -> int:
    if right == 0:
        raise CelError("division by zero")
    # Towards zero, as machines do; Python goes down.
    quotient = abs(left) // abs(right)
    return whole(quotient if (left < 0) == (right < 0) else -quotient)


@define("_/_(uint, uint) uint")
def _dividenatural(left: int, right: int) -> Uint:
    return Uint(_divide(int(left), int(right)))


@define("_/_(double, double) double")
def _divide_doubles(left: float, right: float) -> float:
    if right == 0:
        return math.nan if left == 0 or left != left else math.copysign(math.inf, left) * math.copysign(1, right)
    return left / right


@define("_%_(int, int) int")
def _remainder(left: int, right: int) -> int:
    if right == 0:
        raise CelError("modulus by zero")
    return left - right * _divide(left, right)


@define("_%_(uint, uint) uint")
def _remaindernatural(left: int, right: int) -> Uint:
    return Uint(_remainder(int(left), int(right)))


@define("size(string) int", "size(bytes) int", "size(list<A>) int", "size(map<A,B>) int")
@define("string.size() int", "bytes.size() int", "list<A>.size() int", "map<A,B>.size() int")
def _size(value: Any) -> int:
    return len(value)


@define("string.contains(string) bool")
def _contains(text: str, part: str) -> bool:
    return part in text


@define("string.startsWith(string) bool")
def _starts(text: str, part: str) -> bool:
    return text.startswith(part)


@define("string.endsWith(string) bool")
def _ends(text: str, part: str) -> bool:
    return text.endswith(part)


def regex(pattern: str) -> re.Pattern[str]:
    try:
        return regexes.compile(pattern)
    except regexes.BadPattern as problem:
        raise CelError(str(problem)) from None


@define("string.matches(string) bool", "matches(string, string) bool")
def _matches(text: str, pattern: str) -> bool:
    return regex(pattern).search(text) is not None
