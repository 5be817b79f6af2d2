"""How does a Kubernetes server read and write a quantity?

More leniently than `api.quantity`, which refuses slips of the pen: what is finer than a nano-unit is rounded up, what
is too large in binary units is capped. Written is the canonical form, so `1000m` comes back as `1`.
"""

from __future__ import annotations

import functools
import re
from fractions import Fraction

from octarbiter.api import quantity

_LONGEST = 256
"""Characters; bounds the work that a hostile number can cause."""
_FORM = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?(?:([eE][+-]?[0-9]+)|([A-Za-z]*))", re.ASCII)
_LETTERS = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)[eEinumkKMGTP]*[-+]?[0-9]*", re.ASCII)
_POWERS_OF_TEN = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_POWERS_OF_TWO = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_MILLI = 10**6
"""Nano-units in a thousandth."""
_LARGEST_EXPONENT = 10**3

NANO = quantity.NANO

WRONG_FORM = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
WRONG_SUFFIX = "unable to parse quantity's suffix"


class BadQuantity(ValueError):
    """The message is the server's."""


def parse(value: object) -> quantity.Quantity:
    return _read(_text(value))[0]


def canonical(value: object) -> str:
    """As the server writes it."""
    found, kept = _read(_text(value))
    return kept or str(found)


def rounded(value: object) -> str:
    """Canonical, and as fine as amounts of resources are counted: thousandths, rounded up."""
    found, kept = _read(_text(0 if value is None else value))
    if found.nano % _MILLI == 0:
        return kept or str(found)
    return str(quantity.Quantity(-(-found.nano // _MILLI) * _MILLI, "decimal"))


def nano(value: object) -> int:
    """For comparisons."""
    return parse(value).nano


@functools.lru_cache(maxsize=4096)
def _read(text: str) -> tuple[quantity.Quantity, str]:
    """The amount, and how it was written if the server leaves that as it is. Few different ones are written often."""
    match = _FORM.fullmatch(text)
    if match is None or not (match[2] or match[3]) or not _LETTERS.fullmatch(text):
        raise BadQuantity(WRONG_SUFFIX if _LETTERS.fullmatch(text) else WRONG_FORM)
    sign, whole, fraction, exponent, suffix = (part or "" for part in match.groups())
    digits = whole + fraction
    amount = Fraction(int(digits or "0"), 10 ** len(fraction))
    if suffix in _POWERS_OF_TWO:
        family: quantity.Family = "binary"
        amount = min(amount * (1 << _POWERS_OF_TWO[suffix]), Fraction(quantity.LARGEST))
        power = -1  # never kept as written
    else:
        family = "exponent" if exponent else "decimal"
        power = int(exponent[1:]) if exponent else _POWERS_OF_TEN.get(suffix, _LARGEST_EXPONENT + 1)
        if abs(power) > _LARGEST_EXPONENT:
            raise BadQuantity(WRONG_SUFFIX)
        amount *= Fraction(10) ** power
    # Whoever asks for something gets something: away from zero.
    steps = -(-amount.numerator * quantity.NANO // amount.denominator)
    found = quantity.Quantity(-steps if sign == "-" else steps, family)
    scale = power - len(fraction)
    kept = (
        family != "binary"
        and scale % 3 == 0
        and scale >= -9
        and len(digits) <= 18
        and not digits.endswith("000")
        and not digits.startswith("0")
    )
    return found, text if kept else ""


def _text(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise BadQuantity(WRONG_FORM)
    text = (repr(value) if isinstance(value, float) else str(value)).strip()
    if len(text) > _LONGEST:
        raise BadQuantity(WRONG_FORM)
    return text
