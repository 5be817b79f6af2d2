"""Which words may stand where? Each function says what is wrong with a word, in the server's words; nothing if all is
well."""

from __future__ import annotations

import ipaddress
import re
from typing import Final

_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN: Final = re.compile(rf"{_LABEL.pattern}(\.{_LABEL.pattern})*")
_LABEL_1035: Final = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_QUALIFIED: Final = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_LABEL_VALUE: Final = re.compile(rf"({_QUALIFIED.pattern})?")
_CONFIG_KEY: Final = re.compile(r"[-._a-zA-Z0-9]+")
_PERCENT: Final = re.compile(r"[0-9]+%")
_PORT_NAME: Final = re.compile(r"[-a-z0-9]+")

_LETTERS: Final = "must consist of alphanumeric characters, '-', '_' or '.'"
_ENDS: Final = "must start and end with an alphanumeric character"
_SUBDOMAIN_RULE: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and " + _ENDS
)
_LABEL_RULE: Final = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and " + _ENDS
)
_LABEL_1035_RULE: Final = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character"
)
_QUALIFIED_RULE: Final = f"{_LETTERS}, and {_ENDS}"


def _listed(rule: str, pattern: re.Pattern[str], *examples: str) -> str:
    """Several examples stand with two blanks between them; clients compare texts, so they do here."""
    shown = ",  or ".join(f"'{example}'" for example in examples)
    return f"{rule} (e.g. {shown}, regex used for validation is '{pattern.pattern}')"


def subdomain(text: str) -> list[str]:
    """Names of most things: dots are allowed."""
    found = ["must be no more than 253 characters"] if len(text) > 253 else []
    return found + ([] if _SUBDOMAIN.fullmatch(text) else [_listed(_SUBDOMAIN_RULE, _SUBDOMAIN, "example.com")])


def label(text: str) -> list[str]:
    """Names that become a part of a host name."""
    found = ["must be no more than 63 characters"] if len(text) > 63 else []
    if _LABEL.fullmatch(text):
        return found
    if _SUBDOMAIN.fullmatch(text):
        return [*found, "must not contain dots"]
    return [*found, _listed(_LABEL_RULE, _LABEL, "my-name", "123-abc")]


def label_1035(text: str) -> list[str]:
    """Names of services."""
    found = ["must be no more than 63 characters"] if len(text) > 63 else []
    return found + (
        [] if _LABEL_1035.fullmatch(text) else [_listed(_LABEL_1035_RULE, _LABEL_1035, "my-name", "abc-123")]
    )


def path_segment(text: str) -> list[str]:
    """Names of what is only ever a part of a URL, such as roles."""
    if text in (".", ".."):
        return [f"may not be '{text}'"]
    return [f"may not contain '{part}'" for part in ("/", "%") if part in text]


def qualified(text: str) -> list[str]:
    """Keys of labels, finalizers, resources: `[prefix/]name`."""
    parts = text.split("/")
    found = []
    if len(parts) == 2:
        prefix = parts[0]
        if not prefix:
            found.append("prefix part must be non-empty")
        elif len(prefix) > 253:
            found.append("prefix part must be no more than 253 bytes")
        else:
            found += [f"prefix part {wrong}" for wrong in subdomain(prefix)]
    elif len(parts) > 2:
        rule = _listed(f"a valid label key {_QUALIFIED_RULE}", _QUALIFIED, "MyName", "my.name", "123-abc")
        return [f"{rule} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"]
    name = parts[-1]
    if not name:
        found.append("name part must be non-empty")
    elif len(name.encode()) > 63:
        found.append("name part must be no more than 63 bytes")
    if not _QUALIFIED.fullmatch(name):
        found.append(_listed(f"name part {_QUALIFIED_RULE}", _QUALIFIED, "MyName", "my.name", "123-abc"))
    return found


def label_value(text: str) -> list[str]:
    found = ["must be no more than 63 bytes"] if len(text.encode()) > 63 else []
    if _LABEL_VALUE.fullmatch(text):
        return found
    rule = f"a valid label must be an empty string or {_QUALIFIED_RULE.removeprefix('must ')}"
    return [*found, _listed(rule, _LABEL_VALUE, "MyValue", "my_value", "12345")]


def config_key(text: str) -> list[str]:
    """Keys of config maps and secrets, which become names of files."""
    found = ["must be no more than 253 characters"] if len(text) > 253 else []
    if not _CONFIG_KEY.fullmatch(text):
        found.append(_listed(f"a valid config key {_LETTERS}", _CONFIG_KEY, "key.name", "KEY_NAME", "key-name"))
    if text in (".", ".."):
        found.append(f"must not be '{text}'")
    elif text.startswith(".."):
        found.append("must not start with '..'")
    return found


def environment_variable(text: str) -> list[str]:
    if text and all(" " <= character <= "~" and character != "=" for character in text):
        return []
    return ["a valid environment variable name must consist only of printable ASCII characters other than '='"]


def port_name(text: str) -> list[str]:
    found = ["must be no more than 15 characters"] if len(text) > 15 else []
    if not _PORT_NAME.fullmatch(text):
        found.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not re.search("[a-z]", text):
        found.append("must contain at least one letter (a-z)")
    if "--" in text:
        found.append("must not contain consecutive hyphens")
    if text.startswith("-") or text.endswith("-"):
        found.append("must not begin or end with a hyphen")
    return found


def port(number: int) -> list[str]:
    return within(number, 1, 65535)


def within(number: int, low: int, high: int) -> list[str]:
    return [] if low <= number <= high else [f"must be between {low} and {high}, inclusive"]


def percent(text: str) -> list[str]:
    if not _PERCENT.fullmatch(text):
        rule = "a valid percent string must be a numeric string followed by an ending '%'"
        return [_listed(rule, _PERCENT, "1%", "93%")]
    return ["must not be greater than 100%"] if int(text[:-1]) > 100 else []


def ip_address(text: str) -> list[str]:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return ["must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"]
    return []


def ip_range(text: str) -> list[str]:
    try:
        ipaddress.ip_network(text, strict=False)
    except ValueError:
        return ["must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"]
    return [] if "/" in text else ["must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"]
