"""The API server: one port, HTTPS, every path.

    async with ApiServer(store, directory=path) as server:
        server.url, server.kubeconfig, server.token

Who is not known gets 401 everywhere but at the few paths that say whether the server is well. Whatever a client sends
is answered with a Status and never with a crash; a crash of ours is logged and answered as an internal error.
"""

from __future__ import annotations

import contextlib
import logging
import secrets
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from prometheus_client import CollectorRegistry, Counter
from prometheus_client.exposition import choose_encoder

from octarbiter.api.meta import Json
from octarbiter.cluster.apiserver import (
    admission,
    authn,
    authorization,
    bootstrap,
    certificates,
    connections,
    crds,
    discovery,
    expiry,
    handlers,
    kinds,
    models,
    negotiation,
    objects,
    publishing,
    registry,
    rendering,
    routing,
    status,
    watching,
)
from octarbiter.cluster.apiserver.admission import (
    accounts,
    limits,
    namespaces,
    nodes,
    pods,
    quotas,
    rights,
    webhooks,
)
from octarbiter.cluster.apiserver.authorization import NO_SNIFFING
from octarbiter.cluster.apiserver.catalogue import Catalogue
from octarbiter.cluster.apiserver.handlers import HEADERS, TEXT, page_not_found, response
from octarbiter.cluster.apiserver.pods.kubelet import Kubelet
from octarbiter.cluster.apiserver.tokens import Tokens
from octarbiter.cluster.store.errors import StoreError
from octarbiter.cluster.store.store import Store

log = logging.getLogger(__name__)

_LONGEST_LINE: Final = 64 * 1024
"""Of a request's first line: label selectors of some clients are long."""
_LONGEST_HEADER: Final = 16 * 1024
_FAREWELL_S: Final = 1.0
"""For requests that are being answered when the server stops."""
_OPEN_TO_ALL: Final = frozenset({"healthz", "livez", "readyz", "version"})
_HEALTH: Final = frozenset({"healthz", "livez", "readyz"})


def utc_now() -> datetime:
    return datetime.now(UTC)


class ApiServer:
    """Serves between `async with`'s ends. The store is the caller's, and must stay open that long."""

    def __init__(
        self,
        store: Store,
        *,
        directory: Path,
        host: str = "127.0.0.1",
        port: int = 0,
        kubelet: Kubelet | None = None,
        aliases: Mapping[str, str] | None = None,
        clock: Callable[[], datetime] = utc_now,
        bounds: connections.Bounds | None = None,
        unattended: Collection[str] = (),
    ) -> None:
        """`aliases`: other names under which groups answer, too. `unattended`: kinds whose objects nobody acts on, as
        their authors are told."""
        self._store = store
        self._aliases = dict(aliases or {})
        self._host = host
        self._wanted_port = port
        self._clock = clock
        self._bounds = bounds or connections.Bounds()
        self._identity = certificates.Identity(directory, host)
        tokens = Tokens(directory, store, clock)
        self._authenticator = authn.Authenticator({self._identity.token: authn.ADMIN}, tokens)
        self._authorizer = authorization.Authorizer(store)
        definition = crds.Definition(crds.others_in(store), clock)
        self.catalogue: Final = Catalogue(models.built_in({kinds.CRDS: definition}))
        self._webhooks = webhooks.Webhooks(store)
        chain = admission.Chain(
            [
                namespaces.NamespaceLifecycle(store),
                limits.LimitRanges(store),
                accounts.ServiceAccounts(store),
                nodes.TaintNewNodes(),
                pods.Priority(store),
                pods.DefaultTolerations(),
                rights.NoEscalation(self._authorizer),
                self._webhooks,
                quotas.Quotas(store),
            ]
        )
        self._registry = registry.Registry(store, chain, clock, unattended)
        self._definitions = crds.Definitions(store, self.catalogue, self._registry)
        self._expiry = expiry.Expiry(store, clock)
        self._registry.witnesses += [self._definitions.witness, self._authorizer.witness, self._expiry.witness]
        self._watches = watching.Watching(store, clock)
        self._handlers = handlers.Handlers(
            store,
            self.catalogue,
            self._registry,
            self._watches,
            self._authenticator,
            self._authorizer,
            tokens,
            kubelet,
            clock,
        )
        self._publisher = publishing.Publisher(store, self.catalogue)
        self._metrics = CollectorRegistry()
        self._requests = Counter(
            "apiserver_request_total",
            "Requests answered, by what was asked of which resource, and the code of the answer.",
            ["code", "group", "resource", "subresource", "verb", "version"],
            registry=self._metrics,
        )
        self._discovered: dict[bool, tuple[int, bytes]] = {}
        self._server: connections.Server
        self.port = 0

    @property
    def url(self) -> str:
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"https://{host}:{self.port}"

    @property
    def kubeconfig(self) -> Path:
        return self._identity.kubeconfig

    @property
    def token(self) -> str:
        return self._identity.token

    def token_for(self, name: str, groups: Sequence[str]) -> str:
        """For a part of this process that is to be known by a name of its own; good as long as the server runs."""
        token = secrets.token_urlsafe(32)
        self._authenticator.know(token, authn.User(name, (*groups, authn.AUTHENTICATED)))
        return token

    @property
    def ca_pem(self) -> bytes:
        return self._identity.ca_pem

    async def __aenter__(self) -> ApiServer:
        self._server = connections.Server(
            self._handle,
            self._bounds,
            self._identity.server_context(),
            max_line_size=_LONGEST_LINE,
            max_field_size=_LONGEST_HEADER,
            auto_decompress=False,
            lingering_time=0,
        )
        self._definitions.start()
        self._expiry.start()
        try:
            self.port = await self._server.listen(self._host, self._wanted_port)
            await bootstrap.furnish(self._registry, self.catalogue, self.port)
            self._identity.write_kubeconfig(self.url)
        except BaseException:
            await self._server.close(_FAREWELL_S)
            raise
        log.info("serving the API", extra={"url": self.url})
        return self

    async def __aexit__(self, *_: object) -> None:
        self._watches.close()
        await self._server.close(_FAREWELL_S)
        await self._expiry.stop()
        await self._definitions.stop()
        await self._webhooks.close()

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        with self._server.answering(request):
            return await self._served(request)

    async def _served(self, request: web.BaseRequest) -> web.StreamResponse:
        answer: web.StreamResponse
        try:
            answer = await self._answer(request)
        except status.Failure as failure:
            answer = _refusal(request, failure)
        except StoreError as problem:
            log.warning(
                "the store refused", extra={"method": request.method, "path": request.path, "why": str(problem)}
            )
            answer = _refusal(request, status.unavailable(str(problem)))
        except ConnectionError:
            raise
        except (web.RequestPayloadError, HttpProcessingError) as problem:
            answer = _refusal(request, status.bad_request(f"the body cannot be read: {problem}"))
        except web.HTTPBadRequest as problem:
            answer = _refusal(request, status.bad_request(problem.text or ""))  # a WebSocket that is none
        except Exception as problem:
            log.exception("a request broke", extra={"method": request.method, "path": request.path})
            answer = _refusal(request, status.internal(type(problem).__name__))
        self._count(request, answer.status)
        if not answer.prepared:
            answer.headers["Audit-Id"] = str(uuid.uuid4())
        return answer

    def _parts(self, request: web.BaseRequest) -> tuple[str, ...] | None:
        parts = routing.parts_of(request.path)
        if parts is not None and parts[0] == "apis" and len(parts) > 1 and parts[1] in self._aliases:
            return ("apis", self._aliases[parts[1]], *parts[2:])
        return parts

    def _count(self, request: web.BaseRequest, code: int) -> None:
        """Only what is served has labels of its own: a stranger's inventions must not fill the memory."""
        parts = self._parts(request)
        target = routing.target(parts) if parts is not None else None
        labels = ("", "", "", request.method if code != 405 else "", "")
        if target is not None and self.catalogue.find(target.group, target.version, target.plural) is not None:
            verb = request.method
            if verb == "GET" and not target.name:
                verb = "WATCH" if "watch" in request.query else "LIST"
            subresource = target.subresource if code < 400 else ""
            labels = (target.group, target.plural, subresource, verb, target.version)
        self._requests.labels(str(code), *labels).inc()

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        parts = self._parts(request)
        user = authn.ANONYMOUS
        if parts is None or parts[0] not in _OPEN_TO_ALL or "Authorization" in request.headers:
            transport = request.transport
            certificate = transport.get_extra_info("peercert") if transport is not None else None
            user = self._authenticator.user(request.headers.get("Authorization", ""), certificate)
            user = self._authorizer.acting_as(user, request.headers)
            self._server.knows(request)
        if parts is None:
            return self._nowhere(tuple(request.path.split("/")[1:]))
        target = routing.target(parts)
        for wanted in authorization.of_request(request.method, request.path, target, request.query):
            self._authorizer.check(user, wanted)
        if target is None:
            return self._fixed(request, parts)
        # Of groups that come and go, only what is there just now is known.
        found = self.catalogue.find(target.group, target.version, target.plural)
        if found is None and not self.catalogue.is_built_in(target.group):
            return page_not_found()
        with self._server.streaming() if routing.lasts(target, request.query) else contextlib.nullcontext():
            return await self._handlers.handle(request, target, user)

    def _fixed(self, request: web.BaseRequest, parts: tuple[str, ...]) -> web.StreamResponse:
        """Paths that name no resource."""
        first = parts[0]
        is_known = first != "api" or parts[1:] in ((), ("v1",))
        if first == "apis" and len(parts) == 3 and self.catalogue.is_built_in(parts[1]):
            is_known = bool(self.catalogue.in_version(parts[1], parts[2]))
        if not is_known:
            raise status.unknown_resource()
        if request.method not in ("GET", "HEAD"):
            raise status.method_not_allowed()
        if first in _HEALTH:
            return self._health(request, parts)
        match parts:
            case ("",):
                return _json(discovery.root_paths(self.catalogue))
            case ("version",):
                return _json(discovery.version())
            case ("metrics",):
                encode, content_type = choose_encoder(request.headers.get("Accept", ""))
                return response(200, encode(self._metrics), content_type)
            case ("api",) | ("apis",):
                return self._discovery(request, core=first == "api")
            case ("openapi", "v2"):
                return publishing.legacy(request.headers.get("Accept", ""))
            case ("openapi", "v3"):
                return _json(self._publisher.index())
            case ("openapi", "v3", "api" | "apis", *rest):
                path = "/".join([parts[2], *rest])
                return self._publisher.answer(path, request.query.get("hash"), self._clock())
            case ("api", version):
                return _json_or_404(discovery.resources(self.catalogue, "", version))
            case ("apis", group):
                return _json_or_404(discovery.group(self.catalogue, group))
            case ("apis", group, version):
                return _json_or_404(discovery.resources(self.catalogue, group, version))
        return page_not_found()

    def _nowhere(self, parts: tuple[str, ...]) -> web.StreamResponse:
        """Below what is always there, whatever leads nowhere is a resource that is not found."""
        is_below = parts[0] == "api" or (parts[0] == "apis" and parts[1] and self.catalogue.is_built_in(parts[1]))
        if len(parts) > 1 and is_below:
            raise status.unknown_resource()
        return page_not_found()

    def _discovery(self, request: web.BaseRequest, *, core: bool) -> web.StreamResponse:
        if not discovery.is_aggregated(request.headers.get("Accept", "")):
            document = (
                discovery.core_versions(f"{self._host}:{self.port}") if core else discovery.groups(self.catalogue)
            )
            return response(200, objects.encode(document), negotiation.JSON)
        body = self._aggregated(core=core)
        etag = discovery.etag(body)
        headers = {"Vary": "Accept", "ETag": etag, "Cache-Control": "public"}
        if request.headers.get("If-None-Match") == etag:
            return web.Response(status=304, headers={**HEADERS, **headers})
        return response(200, body, discovery.AGGREGATED_TYPE, headers=headers)

    def _aggregated(self, *, core: bool) -> bytes:
        """Made anew only when something is served that was not before."""
        edition, body = self._discovered.get(core, (0, b""))
        if edition != self.catalogue.edition:
            body = objects.encode(discovery.aggregated(self.catalogue, core=core))
            self._discovered[core] = (self.catalogue.edition, body)
        return body

    def _health(self, request: web.BaseRequest, parts: tuple[str, ...]) -> web.StreamResponse:
        checks = ("ping", "log", "store")
        if len(parts) == 2 and parts[1] in checks:
            return response(200, b"ok", TEXT)
        if len(parts) > 1 or request.path.endswith("/"):
            return page_not_found()
        if "verbose" in request.query:
            lines = [*(f"[+]{check} ok" for check in checks), f"{parts[0]} check passed", ""]
            return response(200, "\n".join(lines).encode(), TEXT, headers=NO_SNIFFING)
        return response(200, b"ok", TEXT, headers=NO_SNIFFING)


def _refusal(request: web.BaseRequest, failure: status.Failure) -> web.Response:
    form = negotiation.of_refusals(request.headers.get("Accept", ""))
    body = rendering.plain(failure.status, form)
    return response(failure.code, body, form.content_type, failure.warnings, failure.headers)


def _json(document: Json) -> web.Response:
    return response(200, objects.encode(document), negotiation.JSON)


def _json_or_404(document: Json | None) -> web.Response:
    return _json(document) if document is not None else page_not_found()
