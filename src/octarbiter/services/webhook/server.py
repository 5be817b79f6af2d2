"""The HTTPS server that the API server asks. It reads a review, has it answered, and writes the answer."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from aiohttp import web
from prometheus_client import CollectorRegistry, Histogram

from octarbiter.api.errors import FieldProblem, Refused
from octarbiter.runtime import certificates as keys
from octarbiter.runtime import settings
from octarbiter.services.webhook import (
    certificates,
    pods,
    queuejobs,
    queues,
    resourcequotas,
    reviews,
    tasksets,
)
from octarbiter.services.webhook.view import View

log = logging.getLogger(__name__)

Handler = Callable[[reviews.Request, View], Awaitable[reviews.Answer]]

PATHS: Final[Mapping[str, Handler]] = {
    "/pods/deny": pods.deny,
    "/pods/gate": pods.gate,
    "/pods/ungate": pods.ungate,
    "/queues": queues.validate,
    "/queuejobs": queuejobs.validate,
    "/tasksets": tasksets.validate,
    "/tasksets/hold": tasksets.hold,
    "/resourcequotas": resourcequotas.protect,
}
KEEP_ALIVE_S: Final = 120.0
"""Longer than the API server keeps an idle connection (90 s): if we closed one, we might close it under a request."""
ANSWER_WITHIN_S: Final = 4.0
_BUCKETS: Final = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0)


class Server:
    """Serves between `async with`'s ends; nobody can connect before it has a certificate to show."""

    def __init__(self, address: str, view: View, registry: CollectorRegistry | None = None) -> None:
        self._address = address
        self._view = view
        self._seconds = Histogram(
            "octarbiter_webhook_seconds",
            "Time to answer a review.",
            ["path", "verdict"],
            buckets=_BUCKETS,
            registry=registry,
        )
        self._context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._shown: keys.Issued | None = None
        self.has_certificate = asyncio.Event()
        app = web.Application(client_max_size=reviews.LARGEST)
        for path, handler in PATHS.items():
            app.router.add_post(path, self._answering(path, handler))
        self._runner = web.AppRunner(app, access_log=None, keepalive_timeout=KEEP_ALIVE_S, shutdown_timeout=5.0)

    @property
    def port(self) -> int:
        """The one in use, where 0 was asked for."""
        port: int = self._runner.addresses[0][1]
        return port

    def show(self, shown: keys.Issued) -> None:
        """This certificate, from the next connection on."""
        if shown != self._shown:
            certificates.show(self._context, shown)
            self._shown = shown
            self.has_certificate.set()
            log.info("the webhook shows another certificate")

    async def __aenter__(self) -> Server:
        host, port = settings.host_and_port(self._address)
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, host or None, port, ssl_context=self._context).start()
        except OSError as error:
            await self._runner.cleanup()
            message = f"cannot listen on {self._address} ({error.strerror}); choose another"
            raise Refused([FieldProblem("--webhook-address", message)]) from error
        log.info("serving the webhook", extra={"addresses": [each[:2] for each in self._runner.addresses]})
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    def _answering(self, path: str, handler: Handler) -> Callable[[web.Request], Awaitable[web.Response]]:
        async def answer(asked: web.Request) -> web.Response:
            started = asyncio.get_running_loop().time()
            verdict = "error"
            try:
                async with asyncio.timeout(ANSWER_WITHIN_S):
                    request = reviews.read(await asked.read())
                    given = await handler(request, self._view)
                verdict = "refused" if given.refusal else "changed" if given.patch else "allowed"
                return web.Response(body=reviews.written(request.uid, given), content_type="application/json")
            except reviews.Unreadable as problem:
                raise web.HTTPBadRequest(text=str(problem)) from problem
            finally:
                self._seconds.labels(path, verdict).observe(asyncio.get_running_loop().time() - started)

        return answer
