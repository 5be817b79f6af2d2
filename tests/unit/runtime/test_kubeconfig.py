from __future__ import annotations

import base64
import logging
from pathlib import Path
from typing import Any

import pytest
import yaml

from octarbiter.api import errors
from octarbiter.runtime import credentials, kubeconfig

CA = b"-----BEGIN CERTIFICATE-----\n"


def write(path: Path, **parts: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "Config", **parts}))
    return path


def config(
    path: Path,
    *,
    cluster: dict[str, Any] | None = None,
    user: dict[str, Any] | None = None,
    namespace: str | None = None,
) -> Path:
    return write(
        path,
        **{"current-context": "here"},
        clusters=[{"name": "c", "cluster": {"server": "https://k8s.example:6443", **(cluster or {})}}],
        users=[{"name": "u", "user": user or {}}],
        contexts=[{"name": "here", "context": {"cluster": "c", "user": "u", "namespace": namespace}}],
    )


def load(path: Path | str, context: str | None = None) -> kubeconfig.Connection:
    return kubeconfig.load(str(path), context, environment={})


async def headers(connection: kubeconfig.Connection) -> list[tuple[str, str]]:
    return list((await connection.credentials.identity()).headers)


def data(content: bytes) -> str:
    return base64.b64encode(content).decode()


async def test_a_token_and_an_authority_in_the_file_are_used(tmp_path: Path) -> None:
    path = config(
        tmp_path / "k",
        cluster={"certificate-authority-data": data(CA), "tls-server-name": "inside"},
        user={"token": "t1"},
        namespace="lab",
    )

    connection = load(path)

    assert connection.server == "https://k8s.example:6443"
    assert connection.namespace == "lab"
    assert connection.ca_pem == CA
    assert connection.tls_server_name == "inside"
    assert connection.verify_tls
    assert await headers(connection) == [("Authorization", "Bearer t1")]


def test_the_namespace_is_default_where_the_context_names_none(tmp_path: Path) -> None:
    assert load(config(tmp_path / "k")).namespace == "default"


async def test_relative_files_count_from_the_directory_of_the_kubeconfig(tmp_path: Path) -> None:
    (tmp_path / "pki").mkdir()
    for name in ("ca.pem", "cert.pem", "key.pem", "token"):
        (tmp_path / "pki" / name).write_text(f"{name}\n")
    path = config(
        tmp_path / "k",
        cluster={"certificate-authority": "pki/ca.pem"},
        user={"client-certificate": "pki/cert.pem", "client-key": "pki/key.pem", "tokenFile": "pki/token"},
    )

    connection = load(path)
    identity = await connection.credentials.identity()

    assert connection.ca_pem == b"ca.pem\n"
    assert (identity.certificate, identity.key) == (b"cert.pem\n", b"key.pem\n")
    assert identity.headers == (("Authorization", "Bearer token"),)


async def test_several_files_are_merged_and_the_first_to_say_something_wins(tmp_path: Path) -> None:
    first = write(
        tmp_path / "one" / "k",
        users=[{"name": "u", "user": {"token": "first"}}],
        contexts=[{"name": "here", "context": {"cluster": "c", "user": "u"}}],
    )
    second = config(tmp_path / "two" / "k", user={"token": "second"}, cluster={"certificate-authority": "ca"})
    (tmp_path / "two" / "ca").write_bytes(CA)
    places = f"{first}:{tmp_path / 'absent'}:{second}"

    connection = kubeconfig.load(environment={"KUBECONFIG": places})

    assert connection.server == "https://k8s.example:6443"
    assert connection.ca_pem == CA
    assert await headers(connection) == [("Authorization", "Bearer first")]


def test_without_anything_said_the_file_in_the_home_directory_is_read(tmp_path: Path) -> None:
    config(tmp_path / ".kube" / "config", namespace="mine")

    assert kubeconfig.load(environment={"HOME": str(tmp_path)}).namespace == "mine"


def test_a_file_asked_for_must_exist(tmp_path: Path) -> None:
    with pytest.raises(errors.Refused, match=r"kubeconfig .*absent is invalid:\n.*No such file"):
        load(tmp_path / "absent")


def test_where_there_is_nothing_at_all_the_message_says_where_it_looked(tmp_path: Path) -> None:
    with pytest.raises(errors.Refused, match=rf"{tmp_path}/.kube/config does not exist. Name one with --kubeconfig"):
        kubeconfig.load(environment={"HOME": str(tmp_path)})


def test_an_unknown_context_is_told_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(errors.Refused, match="no context 'there'; there are: here"):
        load(config(tmp_path / "k"), "there")


def test_no_chosen_context_is_told_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(errors.Refused, match="no context is chosen; there are: none at all"):
        load(write(tmp_path / "k", contexts=None, users=None, clusters=None))


def test_every_problem_is_told_at_once(tmp_path: Path) -> None:
    path = config(
        tmp_path / "k",
        cluster={"server": "k8s", "certificate-authority-data": "%", "proxy-url": "socks5://x"},
        user={"client-certificate": "gone.pem", "tokenFile": "gone"},
    )

    with pytest.raises(errors.Refused) as raised:
        load(path)

    assert [problem.path for problem in raised.value.problems] == [
        "clusters[c].certificate-authority-data",
        "clusters[c].server",
        "clusters[c].proxy-url",
        "users[u].tokenFile",
        "users[u].client-certificate",
    ]
    assert "context here of" in str(raised.value)


def test_names_that_lead_nowhere_are_told(tmp_path: Path) -> None:
    path = write(
        tmp_path / "k", **{"current-context": "x"}, contexts=[{"name": "x", "context": {"cluster": "a", "user": "b"}}]
    )

    with pytest.raises(errors.Refused) as raised:
        load(path)

    assert [str(problem) for problem in raised.value.problems] == [
        "contexts[x].cluster: there is no cluster 'a'",
        "contexts[x].user: there is no user 'b'",
    ]


@pytest.mark.parametrize("text", ["a: [", "clusters: 5", "- a", "clusters: [{cluster: {}}]", "\x00"])
def test_a_file_that_is_no_kubeconfig_is_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "k"
    path.write_text(text)

    with pytest.raises(errors.Refused, match=f"kubeconfig {path} is invalid"):
        load(path)


def test_a_key_without_its_certificate_is_refused(tmp_path: Path) -> None:
    with pytest.raises(errors.Refused, match="only one of client-certificate and client-key"):
        load(config(tmp_path / "k", user={"client-key-data": data(b"key")}))


def test_skipping_verification_is_possible_but_said_aloud(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        connection = load(config(tmp_path / "k", cluster={"insecure-skip-tls-verify": True}))

    assert not connection.verify_tls
    assert "not verified" in caplog.text


def test_skipping_verification_beside_an_authority_is_refused(tmp_path: Path) -> None:
    path = config(tmp_path / "k", cluster={"insecure-skip-tls-verify": True, "certificate-authority-data": data(CA)})

    with pytest.raises(errors.Refused, match="contradicts the certificate-authority"):
        load(path)


async def test_credentials_are_not_sent_over_plain_http(tmp_path: Path) -> None:
    connection = load(config(tmp_path / "k", cluster={"server": "http://localhost:8080"}, user={"token": "t"}))

    assert await headers(connection) == []


async def test_whom_the_user_impersonates_is_told_to_the_server(tmp_path: Path) -> None:
    path = config(
        tmp_path / "k",
        user={"token": "t", "as": "ada", "as-groups": ["a", "b"], "as-user-extra": {"scope": ["x"]}},
    )

    assert await headers(load(path)) == [
        ("Authorization", "Bearer t"),
        ("Impersonate-User", "ada"),
        ("Impersonate-Group", "a"),
        ("Impersonate-Group", "b"),
        ("Impersonate-Extra-scope", "x"),
    ]


async def test_a_name_and_a_password_are_basic_authentication(tmp_path: Path) -> None:
    connection = load(config(tmp_path / "k", user={"username": "ada", "password": "pw"}))

    assert await headers(connection) == [("Authorization", "Basic " + data(b"ada:pw"))]


def test_the_proxy_of_the_cluster_goes_before_that_of_the_environment(tmp_path: Path) -> None:
    environment = {"HTTPS_PROXY": "http://env:1"}
    plain, own = config(tmp_path / "a"), config(tmp_path / "b", cluster={"proxy-url": "http://own:2"})

    assert kubeconfig.load(str(plain), environment=environment).proxy == "http://env:1"
    assert kubeconfig.load(str(own), environment=environment).proxy == "http://own:2"


def test_an_unknown_kind_of_plugin_is_refused(tmp_path: Path) -> None:
    with pytest.raises(errors.Refused, match=r"users\[u\].exec.apiVersion: must be .*v1beta1, is 'x/v1alpha1'"):
        load(config(tmp_path / "k", user={"exec": {"command": "c", "apiVersion": "x/v1alpha1"}}))


async def test_a_token_goes_before_a_plugin(tmp_path: Path) -> None:
    plugin = {"command": "/absent", "apiVersion": credentials.EXEC_VERSIONS[0]}
    connection = load(config(tmp_path / "k", user={"token": "t", "exec": plugin}))

    assert await headers(connection) == [("Authorization", "Bearer t")]


async def test_in_a_pod_its_service_account_is_used(tmp_path: Path) -> None:
    for name, content in (("token", "pod-token\n"), ("ca.crt", "CA"), ("namespace", "lab")):
        (tmp_path / name).write_text(content)
    environment = {"HOME": "/nowhere", "KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}

    connection = kubeconfig.load(environment=environment, service_account=tmp_path)

    assert (connection.server, connection.namespace) == ("https://[fd00::1]:443", "lab")
    assert connection.ca_pem == b"CA"
    assert await headers(connection) == [("Authorization", "Bearer pod-token")]


def test_a_pod_without_a_service_account_is_told_so(tmp_path: Path) -> None:
    with pytest.raises(errors.Refused, match="the pod's service account"):
        kubeconfig.load(environment={"HOME": "/nowhere", "KUBERNETES_SERVICE_HOST": "h"}, service_account=tmp_path)


async def test_secrets_do_not_show_when_an_identity_or_a_connection_is_printed(tmp_path: Path) -> None:
    connection = load(config(tmp_path / "k", user={"token": "s3cret"}))

    assert "s3cret" not in repr(connection) + repr(await connection.credentials.identity())
