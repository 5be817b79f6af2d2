"""The webhook's server itself, without an API server before it."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import aiohttp
import pytest
from prometheus_client import CollectorRegistry

from octarbiter.api.errors import Refused
from octarbiter.core.quota import admission
from octarbiter.services.webhook import certificates, reviews
from octarbiter.services.webhook.server import Server

HELD = certificates.first(certificates.Terms(("127.0.0.1",)), datetime.now(UTC))


class EmptyView:
    us, policies = "us", ()

    def place(self, namespace: str) -> admission.Place:
        return admission.Place(name=namespace)

    def queues(self) -> dict[str, Any]:
        return {}

    def has_claim(self, namespace: str, api_version: str, kind: str, name: str) -> bool:
        return False


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    made = Server("127.0.0.1:0", EmptyView(), CollectorRegistry())
    made.show(HELD.shown)
    async with made:
        yield made


async def post(server: Server, path: str, body: bytes, trusted: bytes = HELD.bundle) -> tuple[int, bytes]:
    context = ssl.create_default_context(cadata=trusted.decode())
    async with aiohttp.ClientSession() as session:
        url = f"https://127.0.0.1:{server.port}{path}"
        async with session.post(url, data=body, ssl=context) as answer:
            return answer.status, await answer.read()


async def test_nonsense_is_refused_and_the_server_goes_on(server: Server) -> None:
    assert (await post(server, "/queues", b"nonsense"))[0] == 400
    assert (await post(server, "/nowhere", b"{}"))[0] == 404
    assert (await post(server, "/queues", b"x" * (reviews.LARGEST + 1)))[0] == 413
    assert (await post(server, "/queues", b"nonsense"))[0] == 400


async def test_another_certificate_is_shown_from_the_next_connection_on(server: Server) -> None:
    other = certificates.first(certificates.Terms(("127.0.0.1",)), datetime.now(UTC))
    server.show(other.shown)

    assert (await post(server, "/queues", b"", other.bundle))[0] == 400
    with pytest.raises(aiohttp.ClientConnectorCertificateError):
        await post(server, "/queues", b"", HELD.bundle)


async def test_without_a_certificate_nobody_connects() -> None:
    async with Server("127.0.0.1:0", EmptyView(), CollectorRegistry()) as bare:
        assert not bare.has_certificate.is_set()
        with pytest.raises(aiohttp.ClientConnectorError):
            await post(bare, "/queues", b"")


async def test_an_address_that_is_taken_is_told(server: Server) -> None:
    with pytest.raises(Refused, match="--webhook-address"):
        async with Server(f"127.0.0.1:{server.port}", EmptyView(), CollectorRegistry()):
            await asyncio.sleep(0)
