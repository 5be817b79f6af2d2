"""How much is "1.5Gi"? Quantities of Kubernetes, exactly.

A number with a suffix of one of three families: decimal (n u m k M G T P E), binary (Ki Mi Gi Ti Pi Ei) or an exponent
(e3, E-2). Amounts are whole numbers of nano-units, the smallest step there is, so sums and comparisons are exact;
floats never occur. Where a real server rounds up or caps in silence we refuse, because it is always a slip of the pen.
"""

from __future__ import annotations

import functools
import re
from fractions import Fraction
from typing import Literal

import msgspec

from octarbiter.api.errors import FieldProblem, Refused

Family = Literal["decimal", "binary", "exponent"]

NANO = 10**9
LARGEST = 2**63 - 1
"""In whole units; the server's own limit."""

_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_FORM = re.compile(
    r"(?P<number>[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))(?:[eE](?P<exponent>[+-]?[0-9]+)|(?P<suffix>[A-Za-z]*))", re.ASCII
)
_LONGEST = 64
"""Characters; bounds the work that a hostile number can cause."""
_EXPONENTS = range(-27, 28)


class Quantity(msgspec.Struct, frozen=True):
    nano: int
    """What to add and to compare."""
    family: Family = "decimal"
    """How it was written, and so how it is shown."""

    @property
    def milli(self) -> int:
        """Rounded up, as schedulers count: whoever asks for something gets something."""
        return -(-self.nano // 10**6)

    def __str__(self) -> str:
        """The canonical form: no fraction, nothing lost, the largest suffix that allows both."""
        whole, rest = divmod(abs(self.nano), NANO)
        sign = "-" if self.nano < 0 else ""
        if self.family == "binary" and rest == 0 and whole >= 1024:
            shift, suffix = max((s, name) for name, s in {"": 0, **_BINARY}.items() if whole % (1 << s) == 0)
            return f"{sign}{whole >> shift}{suffix}"
        power, suffix = max((p, name) for name, p in _DECIMAL.items() if abs(self.nano) % 10 ** (p + 9) == 0)
        if self.nano == 0:
            power, suffix = 0, ""
        if self.family == "exponent" and power:
            suffix = f"e{power}"
        return f"{sign}{abs(self.nano) // 10 ** (power + 9)}{suffix}"


def parse(value: str | int | float, path: str = "") -> Quantity:
    """`path` is the field that a refusal names. Bare numbers are what YAML makes of `cpu: 2` and `cpu: 0.5`."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise _refused(path, f"a quantity is a number such as 2 or a string such as 500m, not {value!r}")
    text = repr(value) if isinstance(value, float) else str(value)
    try:
        return _known(text)
    except Refused:
        return _read(text, path)  # to be refused once more, with the field


@functools.lru_cache(maxsize=8192)
def _known(text: str) -> Quantity:
    """The same few quantities are read again and again."""
    return _read(text, "")


def _read(text: str, path: str) -> Quantity:
    if len(text) > _LONGEST:
        raise _refused(path, f"a quantity has at most {_LONGEST} characters, this one has {len(text)}")
    match = _FORM.fullmatch(text)
    if match is None:
        raise _refused(path, f'"{text}" is not a quantity: write a number and a suffix, such as 500m, 1.5, 2Gi or 1e3')
    unit, family = _unit(text, match, path)
    nano = Fraction(match["number"]) * unit * NANO
    if nano.denominator != 1:
        raise _refused(path, f'"{text}" is finer than a nano-unit (1n), the smallest step there is')
    if abs(nano) > LARGEST * NANO:
        raise _refused(path, f'"{text}" is too large: at most 2^63-1 ({LARGEST}) is possible, a little less than 8Ei')
    return Quantity(int(nano), family)


def _unit(text: str, match: re.Match[str], path: str) -> tuple[Fraction, Family]:
    if (exponent := match["exponent"]) is not None:
        # Compared before it is raised: 1e999999999 must not become a number.
        if int(exponent) not in _EXPONENTS:
            raise _refused(path, f'"{text}": the exponent must be between {_EXPONENTS[0]} and {_EXPONENTS[-1]}')
        return Fraction(10) ** int(exponent), "exponent"
    suffix = match["suffix"]
    if suffix in _DECIMAL:
        return Fraction(10) ** _DECIMAL[suffix], "decimal"
    if suffix in _BINARY:
        return Fraction(2 ** _BINARY[suffix]), "binary"
    meant = suffix.lower().removesuffix("b")
    near = [known for known in (*_DECIMAL, *_BINARY) if known and known.lower() == meant]
    hint = f"; did you mean {' or '.join(near)}?" if near else ""
    known = ", ".join(name for name in (*_DECIMAL, *_BINARY) if name)
    raise _refused(path, f'"{text}" ends in {suffix}, which is no suffix of quantities ({known}){hint}')


def _refused(path: str, message: str) -> Refused:
    return Refused([FieldProblem(path, message)])
