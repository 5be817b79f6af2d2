"""Through which proxy is a server reached? As the environment says, read the way Go programs like kubectl do."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from urllib.parse import urlsplit


def proxy_for(server: str, environment: Mapping[str, str]) -> str:
    """$HTTPS_PROXY (for http: $HTTP_PROXY), unless $NO_PROXY names the server or it is on this machine. Empty: none."""
    parts = urlsplit(server)
    host = parts.hostname or ""
    proxy = _variable(f"{parts.scheme}_proxy", environment)
    if not proxy or host == "localhost" or _is_loopback(host):
        return ""
    excepted = (entry.strip().lower() for entry in _variable("no_proxy", environment).split(","))
    return "" if any(_covers(entry, host) for entry in excepted if entry) else proxy


def _variable(name: str, environment: Mapping[str, str]) -> str:
    return environment.get(name.upper()) or environment.get(name) or ""


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _covers(entry: str, host: str) -> bool:
    if entry == "*":
        return True
    try:
        return ipaddress.ip_address(host) in ipaddress.ip_network(entry, strict=False)
    except ValueError:
        domain = entry.removeprefix("*").removeprefix(".")
        return host == domain or host.endswith(f".{domain}")
