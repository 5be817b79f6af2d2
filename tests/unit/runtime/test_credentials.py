from __future__ import annotations

import asyncio
import base64
import json
import stat
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from octarbiter.api import errors
from octarbiter.runtime import credentials, kubeconfig

V1 = "client.authentication.k8s.io/v1"


class Clock:
    def __init__(self) -> None:
        self.seconds = 1000.0

    def monotonic(self) -> float:
        return self.seconds

    def now(self) -> datetime:
        return datetime(2030, 1, 1, tzinfo=UTC) + timedelta(seconds=self.seconds)


def plugin(directory: Path, script: str) -> Path:
    """A program that counts its runs in `runs` and then does what `script` says."""
    path = directory / "plugin"
    path.write_text(f"#!/bin/sh\necho x >> {directory}/runs\n{script}\n")
    path.chmod(stat.S_IRWXU)
    return path


def runs(directory: Path) -> int:
    return len((directory / "runs").read_text().splitlines())


def credential(api_version: str = V1, **status: Any) -> str:
    """Shell variables in it are filled in."""
    return "cat <<END\n" + json.dumps({"apiVersion": api_version, "kind": "ExecCredential", "status": status}) + "\nEND"


def made(directory: Path, script: str, clock: Clock | None = None, **spec: Any) -> credentials.ExecPlugin:
    plugin(directory, script)
    spec = {"command": "./plugin", "api_version": V1, **spec}
    return credentials.ExecPlugin(
        credentials.ExecSpec(**spec), directory, {"server": "https://x"}, clock=clock or Clock()
    )


def token_of(identity: credentials.Identity) -> str:
    return dict(identity.headers)["Authorization"].removeprefix("Bearer ")


async def test_a_token_file_is_read_again_after_a_while(tmp_path: Path) -> None:
    clock, file = Clock(), tmp_path / "token"
    file.write_text("old\n")
    direct = credentials.Direct(token_file=file, clock=clock)

    file.write_text("new\n")
    before = token_of(await direct.identity())
    clock.seconds += credentials.REREAD_S + 1
    after = token_of(await direct.identity())

    assert (before, after) == ("old", "new")


async def test_a_refused_token_is_read_again_at_once(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("old")
    direct = credentials.Direct(token_file=file, clock=Clock())
    refused = await direct.identity()

    assert not await direct.renew(refused)
    file.write_text("new")
    assert await direct.renew(refused)
    assert token_of(await direct.identity()) == "new"


async def test_a_token_file_that_vanishes_for_a_moment_costs_nothing(tmp_path: Path) -> None:
    clock, file = Clock(), tmp_path / "token"
    file.write_text("old")
    direct = credentials.Direct(token_file=file, clock=clock)

    file.unlink()
    clock.seconds += credentials.REREAD_S + 1

    assert token_of(await direct.identity()) == "old"


async def test_a_plugin_is_run_once_until_its_token_expires(tmp_path: Path) -> None:
    clock = Clock()
    expires = (clock.now() + timedelta(minutes=1)).isoformat().replace("+00:00", "Z")
    exec_ = made(tmp_path, credential(token="t", expirationTimestamp=expires), clock)

    first, *_ = await asyncio.gather(*(exec_.identity() for _ in range(5)))
    assert (token_of(first), runs(tmp_path)) == ("t", 1)

    clock.seconds += 61
    await asyncio.gather(*(exec_.identity() for _ in range(5)))
    assert runs(tmp_path) == 2


async def test_a_refused_token_of_a_plugin_is_asked_for_again_but_not_for_each_refusal(tmp_path: Path) -> None:
    clock = Clock()
    exec_ = made(tmp_path, f"n=$(wc -l < {tmp_path}/runs)\n" + credential(token="t$n"), clock)
    old = await exec_.identity()
    clock.seconds += credentials.RENEW_PAUSE_S + 1

    renewed = await asyncio.gather(*(exec_.renew(old) for _ in range(5)))
    new = await exec_.identity()

    assert renewed == [True] * 5
    assert (token_of(old), token_of(new), runs(tmp_path)) == ("t1", "t2", 2)
    assert not await exec_.renew(new)  # too soon: a plugin whose answers are always refused is not run each time
    assert runs(tmp_path) == 2


async def test_a_plugin_is_told_what_the_protocol_demands(tmp_path: Path) -> None:
    script = f'echo "$KUBERNETES_EXEC_INFO" > {tmp_path}/info; echo "$1 $GREETING" > {tmp_path}/said\n'
    script += credential(token="t")
    exec_ = made(
        tmp_path, script, args=["hello"], env=[{"name": "GREETING", "value": "world"}], provide_cluster_info=True
    )

    await exec_.identity()

    assert json.loads((tmp_path / "info").read_text()) == {
        "apiVersion": V1,
        "kind": "ExecCredential",
        "spec": {"interactive": False, "cluster": {"server": "https://x"}},
    }
    assert (tmp_path / "said").read_text() == "hello world\n"


async def test_a_plugin_may_hand_out_a_certificate(tmp_path: Path) -> None:
    exec_ = made(tmp_path, credential(clientCertificateData="CERT", clientKeyData="KEY"))

    identity = await exec_.identity()

    assert (identity.headers, identity.certificate, identity.key) == ((), b"CERT", b"KEY")


@pytest.mark.parametrize(
    ("script", "spec", "told"),
    [
        ("exit 3", {}, "ended with exit code 3"),
        ("echo nonsense", {}, "printed no ExecCredential"),
        (credential(), {}, "neither a token nor a client certificate"),
        (credential(clientKeyData="K"), {}, "only one of clientCertificateData and clientKeyData"),
        (credential("client.authentication.k8s.io/v1beta1", token="t"), {}, "speaks 'client.*v1beta1'"),
        ("", {"command": "/absent/plugin", "install_hint": "Get it from the shop."}, "No such file.*\n.*from the shop"),
        ("", {"interactive_mode": "Always"}, "there is no terminal"),
    ],
)
async def test_what_is_wrong_with_a_plugin_is_told(
    tmp_path: Path, script: str, spec: dict[str, Any], told: str
) -> None:
    with pytest.raises(errors.Unauthorized, match=told):
        await made(tmp_path, script, **spec).identity()


async def test_a_plugin_of_a_kubeconfig_works_end_to_end(tmp_path: Path) -> None:
    plugin(tmp_path, credential("client.authentication.k8s.io/v1beta1", token="from-plugin"))
    exec_ = {"command": "./plugin", "apiVersion": "client.authentication.k8s.io/v1beta1", "args": None, "env": None}
    path = tmp_path / "config"
    path.write_text(
        yaml.safe_dump(
            {
                "current-context": "x",
                "clusters": [{"name": "c", "cluster": {"server": "https://k8s"}}],
                "users": [{"name": "u", "user": {"exec": exec_, "as": "ada"}}],
                "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            }
        )
    )

    identity = await kubeconfig.load(str(path)).credentials.identity()

    assert identity.headers == (("Authorization", "Bearer from-plugin"), ("Impersonate-User", "ada"))


def oidc(path: Path, expires_in_s: float, **settings: str) -> credentials.Credentials:
    claims = base64.urlsafe_b64encode(json.dumps({"exp": time.time() + expires_in_s}).encode()).decode().rstrip("=")
    provider = {"name": "oidc", "config": {"id-token": f"e30.{claims}.sig", "client-id": "me", **settings}}
    path.write_text(
        yaml.safe_dump(
            {
                "current-context": "x",
                "clusters": [{"name": "c", "cluster": {"server": "https://k8s"}}],
                "users": [{"name": "u", "user": {"auth-provider": provider}}],
                "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            }
        )
    )
    return kubeconfig.load(str(path)).credentials


async def test_the_official_client_reads_what_we_do_not(tmp_path: Path) -> None:
    identity = await oidc(tmp_path / "config", 3600).identity()

    assert token_of(identity).startswith("e30.")


async def test_an_identity_provider_nobody_answers_for_is_told_with_what_to_do(tmp_path: Path) -> None:
    settings = {"idp-issuer-url": "https://127.0.0.1:1", "refresh-token": "r", "client-secret": "s"}
    provider = oidc(tmp_path / "config", -3600, **settings)

    with pytest.raises(errors.Unauthorized, match=r"auth-provider oidc of context x gave no token(.|\n)*Log in again"):
        await provider.identity()
