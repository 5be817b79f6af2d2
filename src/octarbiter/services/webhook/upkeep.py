"""The leader's part: certificates in time, and the configurations that make the API server ask.

A step of a rotation is taken only when the one before has been the truth for a while: in the Secret, and, as far as the
API server must know of it, in the configurations. How long that has been is counted anew by every new leader.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime

from octarbiter.api import arbitrator, errors
from octarbiter.api.arbitrator import Mode
from octarbiter.runtime import clock, fairness
from octarbiter.runtime.client import Client
from octarbiter.services.webhook import certificates, configuration
from octarbiter.services.webhook.certificates import SECRET, SECRETS, Held, Secret

LOOK_AGAIN_S = 60.0
"""Somebody may have changed or deleted what we wrote."""

log = logging.getLogger(__name__)


class Upkeep:
    def __init__(
        self,
        client: Client,
        gate: fairness.FairGate,
        reach: configuration.Reach,
        terms: certificates.Terms,
        everywhere: Mode | None,
        us: Callable[[], str],
        on_written: Callable[[Secret], None],
        clock_: clock.Clock = clock.SYSTEM,
    ) -> None:
        self._client, self._gate, self._clock = client, gate, clock_
        self._reach, self._terms, self._everywhere = reach, terms, everywhere
        self._us, self._on_written = us, on_written
        self._seen: tuple[Held, datetime] | None = None

    async def reconcile(self, _key: str) -> float:
        secret = await self._secret()
        held = certificates.read(secret.data) if secret is not None else None
        if held is None:
            held = certificates.first(self._terms, self._clock.now())
            log.info("the webhook gets a first certificate", extra={"expires": held.expires.isoformat()})
            await self._write(secret, held)
            return 0.0
        # Before anything else: whoever verifies must know an authority before its certificate is shown.
        await self._configure(held)
        if self._seen is None or self._seen[0] != held:
            self._seen = (held, self._clock.now())
        after, again_s = certificates.step(held, self._terms, self._seen[1], self._clock.now())
        if after != held:
            await self._write(secret, after)
            log.info("a step of the certificate's rotation", extra={"authorities": len(after.trusted)})
            return 0.0
        return min(again_s, LOOK_AGAIN_S)

    async def _secret(self) -> Secret | None:
        try:
            return await self._client.get(SECRETS, self._reach.namespace, SECRET)
        except errors.NotFound:
            return None

    async def _write(self, present: Secret | None, held: Held) -> None:
        data = certificates.written(held)
        async with self._gate.slot(SECRET):
            if present is None:
                body = {
                    "apiVersion": "v1",
                    "kind": "Secret",
                    "type": "kubernetes.io/tls",
                    "metadata": {"name": SECRET},
                    "data": {name: value for name, value in data.items() if value is not None},
                }
                written = await self._client.create(SECRETS, self._reach.namespace, body)
            else:
                patch = {"metadata": {"resourceVersion": present.metadata.resource_version}, "data": data}
                written = await self._client.merge_patch(SECRETS, self._reach.namespace, SECRET, patch)
        self._on_written(written)

    async def _configure(self, held: Held) -> None:
        bodies = configuration.configurations(self._reach, held.bundle, self._us(), self._everywhere)
        for resource, body in zip((configuration.MUTATING, configuration.VALIDATING), bodies, strict=True):
            async with self._gate.slot(configuration.NAME):
                await self._client.apply(
                    resource, "", configuration.NAME, body, field_manager=arbitrator.MANAGER, force=True
                )
