from __future__ import annotations

import pytest

from octarbiter.runtime import proxies

PROXY = "http://proxy:3128"


def test_the_proxy_of_the_environment_is_used_in_either_case() -> None:
    assert proxies.proxy_for("https://k8s.example", {"HTTPS_PROXY": PROXY}) == PROXY
    assert proxies.proxy_for("https://k8s.example", {"https_proxy": PROXY}) == PROXY
    assert proxies.proxy_for("http://k8s.example", {"HTTPS_PROXY": PROXY}) == ""


@pytest.mark.parametrize("server", ["https://localhost:6443", "https://127.0.0.1:6443", "https://[::1]:6443"])
def test_a_server_on_this_machine_is_never_behind_a_proxy(server: str) -> None:
    assert proxies.proxy_for(server, {"HTTPS_PROXY": PROXY}) == ""


@pytest.mark.parametrize(
    ("excepted", "server"),
    [
        ("*", "https://k8s.example"),
        ("other, k8s.example", "https://k8s.example:6443"),
        (".example", "https://k8s.example"),
        ("example", "https://k8s.example"),
        ("10.0.0.0/8", "https://10.1.2.3:6443"),
        ("10.1.2.3", "https://10.1.2.3"),
    ],
)
def test_exceptions_may_be_names_domains_addresses_and_networks(excepted: str, server: str) -> None:
    assert proxies.proxy_for(server, {"HTTPS_PROXY": PROXY, "NO_PROXY": excepted}) == ""


@pytest.mark.parametrize("excepted", ["", ",", "ample", "8s.example", "10.0.0.0/8"])
def test_other_servers_stay_behind_it(excepted: str) -> None:
    assert proxies.proxy_for("https://k8s.example", {"HTTPS_PROXY": PROXY, "NO_PROXY": excepted}) == PROXY
