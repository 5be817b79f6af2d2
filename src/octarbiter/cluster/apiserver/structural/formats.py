"""Is a string a date, an address, a name?

The formats a schema may name; any other name says nothing, as on the real server. Dashes in names do not count.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from urllib.parse import urlsplit

_HEX = "[0-9a-fA-F]"
_SHORT_NAME = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_TIME = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))", re.ASCII)
_GO_DURATION = re.compile(r"[-+]?(0|((\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h))+)", re.ASCII)
_WORDY_DURATION = re.compile(r"(\d+)\s*([A-Za-zµ]+)")
_UNIT_NANOS = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "μs": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}
_WORDY_NANOS = (
    (("ns", "nano"), 1),
    (("us", "µs", "micro"), 10**3),
    (("ms", "milli"), 10**6),
    (("s", "sec"), 10**9),
    (("m", "min"), 60 * 10**9),
    (("h", "hr", "hour"), 3600 * 10**9),
    (("d", "day"), 86400 * 10**9),
    (("w", "wk", "week"), 7 * 86400 * 10**9),
)


def is_known(name: str) -> bool:
    return name.replace("-", "") in _CHECKS


def matches(name: str, text: str) -> bool:
    """`name` is a known format."""
    return _CHECKS[name.replace("-", "")](text)


def go_duration_nanos(text: str) -> int | None:
    """`1h30m`, `-1.5s`."""
    match = _GO_DURATION.fullmatch(text)
    if match is None:
        return None
    parts = re.findall(r"(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h)", text)
    nanos = sum(int(Decimal(amount) * _UNIT_NANOS[unit]) for amount, unit in parts)
    return -nanos if text.startswith("-") else nanos


def duration_nanos(text: str) -> int | None:
    """Go's `1h30m`, or words: `3 days`."""
    if (nanos := go_duration_nanos(text)) is not None:
        return nanos
    parts = [_wordy_nanos(int(amount), unit.lower()) for amount, unit in _WORDY_DURATION.findall(text)]
    known = [each for each in parts if each is not None]
    return sum(known) if known else None


def _wordy_nanos(amount: int, unit: str) -> int | None:
    for names, nanos in _WORDY_NANOS:
        if unit in names or unit.startswith(names[-1]):
            return amount * nanos
    return None


def _pattern(pattern: str) -> Callable[[str], bool]:
    compiled = re.compile(pattern, re.ASCII)
    return lambda text: compiled.fullmatch(text) is not None


def _is_date(text: str) -> bool:
    try:
        return re.fullmatch(r"\d{4}-\d{2}-\d{2}", text, re.ASCII) is not None and bool(date.fromisoformat(text))
    except ValueError:
        return False


def _is_date_time(text: str) -> bool:
    day, _, rest = text.lower().partition("t")
    match = _TIME.fullmatch(rest)
    return _is_date(day) and match is not None and match[1] <= "23" and match[2] <= "59" and match[3] <= "59"


def _is_address(version: int) -> Callable[[str], bool]:
    def check(text: str) -> bool:
        try:
            return ipaddress.ip_address(text).version == version
        except ValueError:
            return False

    return check


def _is_cidr(text: str) -> bool:
    address, slash, length = text.partition("/")
    try:
        return bool(slash) and length.isdecimal() and bool(ipaddress.ip_network(f"{address}/{length}", strict=False))
    except ValueError:
        return False


def _is_hostname(text: str) -> bool:
    labels = text.split(".")
    fits = all(re.fullmatch(r"[^\W_]([-\w]*[^\W_])?", label) and len(label) <= 63 for label in labels)
    return fits and len(text) <= 255 and (len(labels) == 1 or re.fullmatch(r"[^\W\d_]{2,63}", labels[-1]) is not None)


def _is_uri(text: str) -> bool:
    if not text or any(character <= " " or character == "\x7f" for character in text):
        return False
    try:
        return text.startswith("/") or text == "*" or bool(urlsplit(text).scheme)
    except ValueError:
        return False


def _is_isbn10(text: str) -> bool:
    digits = re.sub(r"[\s-]", "", text)
    if not re.fullmatch(r"[0-9]{9}[0-9X]", digits):
        return False
    return sum((index + 1) * (10 if digit == "X" else int(digit)) for index, digit in enumerate(digits)) % 11 == 0


def _is_isbn13(text: str) -> bool:
    digits = re.sub(r"[\s-]", "", text)
    if not re.fullmatch(r"[0-9]{13}", digits):
        return False
    return sum(int(digit) * (3 if index % 2 else 1) for index, digit in enumerate(digits)) % 10 == 0


def _is_credit_card(text: str) -> bool:
    digits = re.sub(r"[^0-9]", "", text)
    if not 12 < len(digits) < 20:
        return False
    doubled = [int(digit) * (2 if index % 2 else 1) for index, digit in enumerate(reversed(digits))]
    return sum(value - 9 if value > 9 else value for value in doubled) % 10 == 0


def _is_rgb(text: str) -> bool:
    match = re.fullmatch(r"rgb\(\s*(\d{1,3})\s*,\s*(\d{1,3})\s*,\s*(\d{1,3})\s*\)", text, re.ASCII)
    return match is not None and all(int(part) <= 255 for part in match.groups())


_CHECKS: dict[str, Callable[[str], bool]] = {
    "bsonobjectid": _pattern(f"{_HEX}{{24}}"),
    "uri": _is_uri,
    "email": _pattern(r"(.*<)?[^@\s<>]+@[^@\s<>]+>?"),
    "hostname": _is_hostname,
    "ipv4": _is_address(4),
    "ipv6": _is_address(6),
    "cidr": _is_cidr,
    "mac": _pattern(
        f"{_HEX}{{2}}([:-]{_HEX}{{2}}){{5}}(([:-]{_HEX}{{2}}){{2}}|([:-]{_HEX}{{2}}){{14}})?"
        f"|{_HEX}{{4}}(\\.{_HEX}{{4}}){{2}}((\\.{_HEX}{{4}})|(\\.{_HEX}{{4}}){{7}})?"
    ),
    "uuid": _pattern(f"{_HEX}{{8}}-?{_HEX}{{4}}-?{_HEX}{{4}}-?{_HEX}{{4}}-?{_HEX}{{12}}"),
    "uuid3": _pattern(f"{_HEX}{{8}}-?{_HEX}{{4}}-?3{_HEX}{{3}}-?{_HEX}{{4}}-?{_HEX}{{12}}"),
    "uuid4": _pattern(f"{_HEX}{{8}}-?{_HEX}{{4}}-?4{_HEX}{{3}}-?[89abAB]{_HEX}{{3}}-?{_HEX}{{12}}"),
    "uuid5": _pattern(f"{_HEX}{{8}}-?{_HEX}{{4}}-?5{_HEX}{{3}}-?[89abAB]{_HEX}{{3}}-?{_HEX}{{12}}"),
    "isbn": lambda text: _is_isbn10(text) or _is_isbn13(text),
    "isbn10": _is_isbn10,
    "isbn13": _is_isbn13,
    "creditcard": _is_credit_card,
    "ssn": _pattern(r"\d{3}[- ]?\d{2}[- ]?\d{4}"),
    "hexcolor": _pattern(f"#?({_HEX}{{3}}|{_HEX}{{6}})"),
    "rgbcolor": _is_rgb,
    "byte": _pattern(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})"),
    "password": lambda _: True,
    "date": _is_date,
    "duration": lambda text: duration_nanos(text) is not None,
    "datetime": _is_date_time,
    "k8sshortname": lambda text: len(text) <= 63 and re.fullmatch(_SHORT_NAME, text) is not None,
    "k8slongname": lambda text: (
        len(text) <= 253 and re.fullmatch(rf"{_SHORT_NAME}(\.{_SHORT_NAME})*", text) is not None
    ),
}
