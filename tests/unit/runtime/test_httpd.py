from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager

import aiohttp
import pytest

from octarbiter.api.errors import Refused
from octarbiter.runtime import httpd, telemetry

Get = Callable[[str], "aiohttp.client._RequestContextManager"]


@asynccontextmanager
async def endpoint(
    live: Mapping[str, httpd.Check] = {}, ready: Mapping[str, httpd.Check] = {}
) -> AsyncIterator[tuple[Get, telemetry.Metrics]]:
    metrics = telemetry.Metrics()
    async with (
        httpd.Endpoint("127.0.0.1:0", live=live, ready=ready, registry=metrics.registry) as served,
        aiohttp.ClientSession(f"http://127.0.0.1:{served.port}") as session,
    ):
        yield session.get, metrics


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz"])
async def test_all_well_is_200_ok(path: str) -> None:
    async with endpoint({"loop": lambda: True}, {"informers": lambda: True}) as (get, _), get(path) as answer:
        assert (answer.status, await answer.text()) == (200, "ok")


async def test_not_ready_is_503_with_the_failing_names_and_still_alive() -> None:
    ready = {"informers": lambda: False, "lease": lambda: True, "webhook": lambda: False}
    async with endpoint({"loop": lambda: True}, ready) as (get, _):
        async with get("/readyz") as answer:
            assert (answer.status, await answer.text()) == (503, "informers failed\nwebhook failed\n")
        async with get("/livez") as answer:
            assert answer.status == 200


async def test_a_check_that_breaks_has_failed_and_its_error_stays_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    def broken() -> bool:
        raise RuntimeError("inner workings")

    async with endpoint({"broken": broken}) as (get, _), get("/healthz") as answer:
        assert (answer.status, await answer.text()) == (503, "broken failed\n")
    assert "inner workings" in caplog.text


async def test_metrics_are_served_as_prometheus_reads_them() -> None:
    async with endpoint() as (get, metrics):
        metrics.requests.labels("create", "pods", "201").inc(3)
        async with get("/metrics") as answer:
            text = await answer.text()
            assert answer.headers["Content-Type"].startswith("text/plain")
    assert 'octarbiter_requests_total{code="201",resource="pods",verb="create"} 3.0' in text


async def test_there_is_nothing_else() -> None:
    async with endpoint() as (get, _), get("/debug") as answer:
        assert answer.status == 404


async def test_an_empty_address_serves_nothing() -> None:
    registry = telemetry.Metrics().registry
    async with httpd.Endpoint("", live={}, ready={}, registry=registry) as served:
        with pytest.raises(IndexError):
            _ = served.port


async def test_a_port_in_use_is_an_error_and_not_a_silent_start() -> None:
    registry = telemetry.Metrics().registry
    async with httpd.Endpoint("127.0.0.1:0", live={}, ready={}, registry=registry) as first:
        with pytest.raises(Refused, match=r"--health-address: cannot listen on .*address already in use"):
            await httpd.Endpoint(f"127.0.0.1:{first.port}", live={}, ready={}, registry=registry).__aenter__()
