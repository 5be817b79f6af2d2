"""Is the process well, is it ready, and what are its figures?

Serves `/healthz` and `/livez` (should the process be restarted?), `/readyz` (does it see the cluster?) and
`/metrics`. Only what an operator may know stands in the answers: names of checks, never their errors.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping

from aiohttp import web
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

from octarbiter.api.errors import FieldProblem, Refused
from octarbiter.runtime import settings

log = logging.getLogger(__name__)

Check = Callable[[], bool]


class Endpoint:
    """Serves between `async with`'s ends."""

    def __init__(
        self, address: str, *, live: Mapping[str, Check], ready: Mapping[str, Check], registry: CollectorRegistry
    ) -> None:
        """An empty address serves nothing."""
        self._address = address
        self._registry = registry
        app = web.Application(client_max_size=1024)
        app.router.add_get("/healthz", _answer(live))
        app.router.add_get("/livez", _answer(live))
        app.router.add_get("/readyz", _answer(ready))
        app.router.add_get("/metrics", self._metrics)
        self._runner = web.AppRunner(app, access_log=None, keepalive_timeout=30, shutdown_timeout=1.0)

    async def __aenter__(self) -> Endpoint:
        if self._address:
            host, port = settings.host_and_port(self._address)
            await self._runner.setup()
            try:
                # aiohttp reads None as "every address of the machine"; nobody gets that without having written ":8080".
                await web.TCPSite(self._runner, host or None, port).start()
            except OSError as error:
                await self._runner.cleanup()
                message = f"cannot listen on {self._address} ({error.strerror}); choose another, or none with ''"
                raise Refused([FieldProblem("--health-address", message)]) from error
            log.info("serving health and metrics", extra={"addresses": [each[:2] for each in self._runner.addresses]})
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    @property
    def port(self) -> int:
        """The one in use, where 0 was asked for."""
        port: int = self._runner.addresses[0][1]
        return port

    async def _metrics(self, request: web.Request) -> web.Response:
        encode, content_type = choose_encoder(request.headers.get("Accept", ""))
        return web.Response(body=encode(self._registry), headers={"Content-Type": content_type})


def _answer(checks: Mapping[str, Check]) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def answer(_: web.Request) -> web.Response:
        failing = [name for name, check in checks.items() if not _passes(name, check)]
        if failing:
            return web.Response(status=503, text="".join(f"{name} failed\n" for name in failing))
        return web.Response(text="ok")

    return answer


def _passes(name: str, check: Check) -> bool:
    try:
        return check()
    except Exception:
        log.exception("a health check broke", extra={"check": name})
        return False
