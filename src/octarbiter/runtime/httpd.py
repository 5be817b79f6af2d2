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

log = logging.getLogger(__name__)

Check = Callable[[], bool]


class Endpoint:
    def __init__(
        self,
        host: str,
        port: int,
        *,
        live: Mapping[str, Check],
        ready: Mapping[str, Check],
        registry: CollectorRegistry,
    ) -> None:
        self._host = host
        self._port = port
        self._registry = registry
        app = web.Application(client_max_size=1024)
        app.router.add_get("/healthz", _answer(live))
        app.router.add_get("/livez", _answer(live))
        app.router.add_get("/readyz", _answer(ready))
        app.router.add_get("/metrics", self._metrics)
        self._runner = web.AppRunner(app, access_log=None, keepalive_timeout=30, shutdown_timeout=1.0)

    async def start(self) -> None:
        await self._runner.setup()
        # aiohttp reads None as "every address"; an empty host must have been written by somebody to get here.
        await web.TCPSite(self._runner, self._host or None, self._port).start()
        log.info("serving health and metrics", extra={"addresses": [address[:2] for address in self._runner.addresses]})

    @property
    def port(self) -> int:
        """The one in use, where 0 was asked for."""
        port: int = self._runner.addresses[0][1]
        return port

    async def stop(self) -> None:
        await self._runner.cleanup()

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
