"""The webhook of a process: it answers, also while another one leads; certificates and configurations are the leader's.

view = ...                       # see `view`
async with Webhook(manager, options, view):
    await manager.run()
"""

from __future__ import annotations

import logging

import msgspec

from octarbiter.api.arbitrator import Mode
from octarbiter.runtime import controller, informer, requests
from octarbiter.runtime import manager as managers
from octarbiter.runtime.client import Client
from octarbiter.services.webhook import certificates, configuration, server, upkeep
from octarbiter.services.webhook.certificates import SECRET, SECRETS, Secret
from octarbiter.services.webhook.view import View

log = logging.getLogger(__name__)


class Options(msgspec.Struct, frozen=True, kw_only=True):
    address: str = "127.0.0.1:9443"
    """host:port where the webhook listens."""
    reach: configuration.Reach = configuration.Reach()
    mode: Mode | None = None
    """Of namespaces without a label."""
    certificate_lifetime_s: float = 90 * certificates.DAY_S
    certificate_rotation_s: float = 60 * certificates.DAY_S
    settle_s: float = 120.0


class Webhook:
    """To be made before the manager runs: it adds an informer and a controller."""

    def __init__(self, manager: managers.Manager, options: Options, view: View) -> None:
        self.server = server.Server(options.address, view, manager.metrics.registry)
        terms = certificates.Terms(
            options.reach.hosts,
            lifetime_s=options.certificate_lifetime_s,
            rotate_s=options.certificate_rotation_s,
            settle_s=options.settle_s,
        )
        self._secrets = informer.Informer(
            manager.client,
            SECRETS,
            namespace=options.reach.namespace,
            field_selector=f"metadata.name={SECRET}",
            on_change=self._changed,
        )
        self._upkeep = upkeep.Upkeep(
            manager.client,
            manager.gate,
            options.reach,
            terms,
            options.mode,
            us=lambda: view.us,
            on_written=self._secrets.cache.put,
        )
        self._worker = controller.Controller("webhook", self._upkeep.reconcile, workers=1, metrics=manager.metrics)
        self._worker.queue.add(SECRET)
        manager.informers.append(self._secrets)
        manager.controllers.append(self._worker)

    async def __aenter__(self) -> Webhook:
        await self.server.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.server.__aexit__()

    def _changed(self, _key: str, _old: Secret | None, new: Secret | None) -> None:
        held = certificates.read(new.data) if new is not None else None
        if held is not None:
            self.server.show(held.shown)
        else:
            log.warning("the Secret of the webhook's certificate is gone or unreadable; the leader makes a new one")
        self._worker.queue.add(SECRET)


class _UserInfo(msgspec.Struct):
    username: str


class _ReviewStatus(msgspec.Struct, rename="camel"):
    user_info: _UserInfo


class _SelfSubjectReview(msgspec.Struct):
    status: _ReviewStatus


async def who_we_are(client: Client) -> str:
    """The name by which the API server knows us."""
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    request = requests.Request(
        method="POST",
        path="/apis/authentication.k8s.io/v1/selfsubjectreviews",
        body=msgspec.json.encode(body),
        content_type=requests.JSON,
        verb="create",
        resource="selfsubjectreviews",
    )
    return (await client.send(request, _SelfSubjectReview)).status.user_info.username
