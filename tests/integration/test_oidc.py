"""Refreshing an OIDC login through the official client: to whom is the refresh token shown?"""

from __future__ import annotations

import base64
import json
import ssl
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from faulty_server import Line, Seen, serving

from octarbiter.api import errors
from octarbiter.runtime import kubeconfig
from octarbiter.testing.kubernetes import certificates


def id_token(expires_in_s: float) -> str:
    claims = json.dumps({"exp": int(time.time() + expires_in_s)}).encode()
    return f"e30.{base64.urlsafe_b64encode(claims).decode().rstrip('=')}.sig"


NEW = id_token(3600)


def write(path: Path, issuer: str, **settings: str) -> None:
    provider = {
        "name": "oidc",
        "config": {
            "idp-issuer-url": issuer,
            "id-token": id_token(-60),
            "refresh-token": "refresh-1",
            "client-id": "octo",
            "client-secret": "secret",
            **settings,
        },
    }
    content: dict[str, Any] = {
        "current-context": "x",
        "clusters": [{"name": "c", "cluster": {"server": "https://k8s"}}],
        "users": [{"name": "u", "user": {"auth-provider": provider}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
    }
    path.write_text(yaml.safe_dump(content))


async def provider(seen: Seen, line: Line) -> None:
    issuer = f"https://{seen.headers['host']}"
    if seen.method == "GET":
        await line.answer(200, {"token_endpoint": f"{issuer}/token"}, Content_Type="application/json")
    else:
        tokens = {"id_token": NEW, "refresh_token": "refresh-2", "access_token": "a", "token_type": "bearer"}
        await line.answer(200, tokens, Content_Type="application/json")


@pytest.fixture
def authority(tmp_path: Path) -> certificates.Authority:
    return certificates.Authority(tmp_path)


def tls(authority: certificates.Authority) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*authority.issue_server("idp", ["127.0.0.1"]))
    return context


async def test_an_expired_login_is_renewed_and_the_new_one_kept_for_kubectl(
    tmp_path: Path, authority: certificates.Authority
) -> None:
    path = tmp_path / "kubeconfig"
    async with serving(provider, tls(authority)) as server:
        write(path, f"https://127.0.0.1:{server.port}", **{"idp-certificate-authority": str(authority.file)})
        identity = await kubeconfig.load(str(path)).credentials.identity()

    assert identity.headers == (("Authorization", f"Bearer {NEW}"),)
    kept = yaml.safe_load(path.read_text())["users"][0]["user"]["auth-provider"]["config"]
    assert (kept["id-token"], kept["refresh-token"]) == (NEW, "refresh-2")


async def test_a_provider_nobody_vouches_for_sees_nothing(tmp_path: Path, authority: certificates.Authority) -> None:
    path = tmp_path / "kubeconfig"
    async with serving(provider, tls(authority)) as server:
        write(path, f"https://127.0.0.1:{server.port}")
        before = path.read_text()
        with pytest.raises(errors.Unauthorized, match="gave no token"):
            await kubeconfig.load(str(path)).credentials.identity()

    assert server.seen == []
    assert path.read_text() == before
