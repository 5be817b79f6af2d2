"""URLs, IP addresses, networks, named formats and versions: further functions that Kubernetes adds."""

from __future__ import annotations

import ipaddress
import re
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

from octarbiter.cluster.apiserver.structural import formats
from octarbiter.cluster.apiserver.structural.cel import values
from octarbiter.cluster.apiserver.structural.cel.functions import define
from octarbiter.cluster.apiserver.structural.cel.values import CelError, NamedFormat, Optional, Semver, Url

Ip = ipaddress.IPv4Address | ipaddress.IPv6Address
Cidr = ipaddress.IPv4Interface | ipaddress.IPv6Interface


@define("isURL(string) bool")
def _is_url(text: str) -> bool:
    return formats.matches("uri", text)


@define("url(string) url")
def _url(text: str) -> Url:
    if not _is_url(text):
        raise CelError(f'URL parse error during conversion from string: parse "{text}": invalid URI for request')
    return Url(text)


@define("url.getScheme() string")
def _scheme(url: Url) -> str:
    return urlsplit(url.text).scheme


@define("url.getHost() string")
def _host(url: Url) -> str:
    return urlsplit(url.text).netloc.rpartition("@")[2]


@define("url.getHostname() string")
def _hostname(url: Url) -> str:
    host = _host(url)
    return host[1 : host.index("]")] if host.startswith("[") and "]" in host else host.partition(":")[0]


@define("url.getPort() string")
def _port(url: Url) -> str:
    host = _host(url).rpartition("]")[2]
    return host.partition(":")[2]


@define("url.getEscapedPath() string")
def _path(url: Url) -> str:
    return quote(urlsplit(url.text).path, safe="/%:@!$&'()*+,;=~-._")


@define("url.getQuery() map<string,list<string>>")
def _query(url: Url) -> dict[str, list[str]]:
    return parse_qs(urlsplit(url.text).query, keep_blank_values=True)


def _parse_ip(text: str) -> Ip | None:
    try:
        found = ipaddress.ip_address(text)
    except ValueError:
        return None
    # Addresses with a zone and IPv4 in IPv6's clothes are refused by the server, too.
    return None if "%" in text or getattr(found, "ipv4_mapped", None) is not None else found


@define("isIP(string) bool")
def _is_ip(text: str) -> bool:
    return _parse_ip(text) is not None


@define("ip(string) ip")
def _ip(text: str) -> Ip:
    found = _parse_ip(text)
    if found is None:
        raise CelError(f'IP Address "{text}" parse error during conversion from string: not an IP address')
    return found


@define("isCanonical(string) bool", namespace="ip")
def _is_canonical(text: str) -> bool:
    return str(_ip(text)) == text


@define("string(ip) string")
def _ip_string(value: Ip) -> str:
    return str(value)


@define("ip.family() int")
def _family(value: Ip) -> int:
    return value.version


@define("ip.isUnspecified() bool")
def _is_unspecified(value: Ip) -> bool:
    return value.is_unspecified


@define("ip.isLoopback() bool")
def _is_loopback(value: Ip) -> bool:
    return value.is_loopback


@define("ip.isLinkLocalMulticast() bool")
def _is_link_local_multicast(value: Ip) -> bool:
    local = ipaddress.ip_network("224.0.0.0/24" if value.version == 4 else "ff02::/16")
    return value in local


@define("ip.isLinkLocalUnicast() bool")
def _is_link_local(value: Ip) -> bool:
    return value.is_link_local


@define("ip.isGlobalUnicast() bool")
def _is_global(value: Ip) -> bool:
    special = value.is_unspecified or value.is_loopback or value.is_multicast or value.is_link_local
    return not special and str(value) != "255.255.255.255"


@define("isCIDR(string) bool")
def _is_cidr(text: str) -> bool:
    return formats.matches("cidr", text)


@define("cidr(string) cidr")
def _cidr(text: str) -> Cidr:
    if not _is_cidr(text):
        raise CelError(f'network address parse error during conversion from string: invalid CIDR address: "{text}"')
    return ipaddress.ip_interface(text)


@define("cidr.containsIP(ip) bool")
def _contains_ip(network: Cidr, address: Ip) -> bool:
    return address in network.network


@define("cidr.containsIP(string) bool")
def _contains_ip_text(network: Cidr, address: str) -> bool:
    return _contains_ip(network, _ip(address))


@define("cidr.containsCIDR(cidr) bool")
def _contains_cidr(network: Cidr, other: Cidr) -> bool:
    fits = other.network.prefixlen >= network.network.prefixlen
    return fits and other.network.network_address in network.network


@define("cidr.containsCIDR(string) bool")
def _contains_cidr_text(network: Cidr, other: str) -> bool:
    return _contains_cidr(network, _cidr(other))


@define("cidr.ip() ip")
def _cidr_ip(network: Cidr) -> Ip:
    return network.ip


@define("cidr.masked() cidr")
def _masked(network: Cidr) -> Cidr:
    return ipaddress.ip_interface(network.network.with_prefixlen)


@define("cidr.prefixLength() int")
def _prefix(network: Cidr) -> int:
    return network.network.prefixlen


@define("string(cidr) string")
def _cidr_string(network: Cidr) -> str:
    return network.with_prefixlen


_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_NAMES: dict[str, tuple[str, int, str]] = {
    "dns1123Label": (_LABEL, 63, "a DNS label: lower case letters, digits and '-'"),
    "dns1123Subdomain": (rf"{_LABEL}(\.{_LABEL})*", 253, "a DNS name: labels joined by dots"),
    "dns1035Label": (r"[a-z]([-a-z0-9]*[a-z0-9])?", 63, "a DNS label that starts with a letter"),
    "dns1123LabelPrefix": (r"[a-z0-9]([-a-z0-9]*)?", 63, "the beginning of a DNS label"),
    "dns1123SubdomainPrefix": (rf"{_LABEL}(\.{_LABEL})*[-.]?", 253, "the beginning of a DNS name"),
    "dns1035LabelPrefix": (r"[a-z]([-a-z0-9]*)?", 63, "the beginning of a DNS label"),
    "qualifiedName": (
        rf"({_LABEL}(\.{_LABEL})*/)?([A-Za-z0-9][-A-Za-z0-9_.]{{0,61}})?[A-Za-z0-9]",
        317,
        "a qualified name: an optional DNS name and '/', then at most 63 letters, digits, '-', '_' and '.'",
    ),
    "labelValue": (r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?", 63, "the value of a label"),
}
_OTHERS = {"uri": "uri", "uuid": "uuid", "byte": "byte", "date": "date", "datetime": "date-time"}


def _define_formats() -> None:
    for name in (*_NAMES, *_OTHERS):

        @define(f"{name}() named_format", namespace="format")
        def run(name: str = name) -> NamedFormat:
            return NamedFormat(name)


_define_formats()


@define("named(string) optional<named_format>", namespace="format")
def _named(name: str) -> Optional:
    return Optional(NamedFormat(name), True) if name in _NAMES or name in _OTHERS else values.NONE


@define("named_format.validate(string) optional<list<string>>")
def _validate(format: NamedFormat, text: str) -> Optional:
    if format.name in _OTHERS:
        fits = formats.matches(_OTHERS[format.name], text)
        return values.NONE if fits else Optional([f"invalid {format.name}"], True)
    pattern, most, words = _NAMES[format.name]
    problems = [] if len(text) <= most else [f"must be no more than {most} characters"]
    problems += [] if re.fullmatch(pattern, text, re.ASCII) else [f"must be {words}"]
    return Optional(problems, True) if problems else values.NONE


_NUMBER = r"(0|[1-9]\d*)"
_SEMVER = re.compile(rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?", re.ASCII)


def _parse_semver(text: str) -> Semver | None:
    match = _SEMVER.fullmatch(text) if len(text) < 256 else None
    return None if match is None else Semver(int(match[1]), int(match[2]), int(match[3]), (match[4] or "")[1:])


@define("isSemver(string) bool")
def _is_semver(text: str) -> bool:
    return _parse_semver(text) is not None


@define("semver(string) semver")
def _semver(text: str) -> Semver:
    found = _parse_semver(text)
    if found is None:
        raise CelError("No Major.Minor.Patch elements found")
    return found


@define("semver.major() int")
def _major(version: Semver) -> int:
    return version.major


@define("semver.minor() int")
def _minor(version: Semver) -> int:
    return version.minor


@define("semver.patch() int")
def _patch(version: Semver) -> int:
    return version.patch


def _rank(version: Semver) -> tuple[Any, ...]:
    """A release comes after its candidates, numbers before words."""
    parts = version.rest.split(".") if version.rest else []
    ranked = tuple((0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts)
    return version.major, version.minor, version.patch, not parts, ranked


@define("semver.compareTo(semver) int")
def _compare(left: Semver, right: Semver) -> int:
    return (_rank(left) > _rank(right)) - (_rank(left) < _rank(right))


@define("semver.isLessThan(semver) bool")
def _less(left: Semver, right: Semver) -> bool:
    return _compare(left, right) < 0


@define("semver.isGreaterThan(semver) bool")
def _greater(left: Semver, right: Semver) -> bool:
    return _compare(left, right) > 0
