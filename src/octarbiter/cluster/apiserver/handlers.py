"""How is a request for a resource answered?

From the target of the URL and the method to a verb, from the verb's result to a response. What the verbs do is in
`registry`, how results look in `rendering`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from contextlib import aclosing, suppress
from datetime import datetime
from typing import Final

import msgspec
from aiohttp import web

from octarbiter.api.meta import Json
from octarbiter.cluster.apiserver import (
    access,
    bodies,
    cautions,
    decoding,
    kinds,
    listing,
    negotiation,
    objects,
    options,
    patches,
    rendering,
    scale,
    schemas,
    status,
    verbs,
    watching,
)
from octarbiter.cluster.apiserver.authn import Authenticator, User
from octarbiter.cluster.apiserver.authorization import NO_SNIFFING, Authorizer
from octarbiter.cluster.apiserver.catalogue import Catalogue, Served
from octarbiter.cluster.apiserver.negotiation import Form, View
from octarbiter.cluster.apiserver.pods import binding, eviction, forwarding, log, streams
from octarbiter.cluster.apiserver.pods.kubelet import Kubelet
from octarbiter.cluster.apiserver.registry import Call, Registry
from octarbiter.cluster.apiserver.routing import Target
from octarbiter.cluster.apiserver.tokens import Tokens
from octarbiter.cluster.store.store import Store

MOST_BODY_BYTES: Final = 3 * 1024 * 1024
BODY_TIMEOUT_S: Final = 30.0
STALLED_S: Final = 60.0
"""How long a watcher may read nothing."""
TEXT: Final = "text/plain; charset=utf-8"
HEADERS: Final = {"Cache-Control": "no-cache, private"}

Handler = Callable[[web.BaseRequest, Call, Target], Coroutine[None, None, web.StreamResponse]]


class Handlers:
    def __init__(
        self,
        store: Store,
        catalogue: Catalogue,
        registry: Registry,
        watches: watching.Watching,
        authenticator: Authenticator,
        authorizer: Authorizer,
        tokens: Tokens,
        kubelet: Kubelet | None,
        clock: Callable[[], datetime],
    ) -> None:
        self._store = store
        self._catalogue = catalogue
        self._registry = registry
        self._watches = watches
        self._authenticator = authenticator
        self._authorizer = authorizer
        self._tokens = tokens
        self._kubelet = kubelet
        self._clock = clock

    async def handle(self, request: web.BaseRequest, target: Target, user: User) -> web.StreamResponse:
        served = self._catalogue.find(target.group, target.version, target.plural)
        if served is None:
            raise status.unknown_resource()
        resource = served.resource
        if resource.custom:
            if not verbs.is_there(request.method, target, resource):
                return page_not_found()
        elif target.rest or not verbs.is_there("GET", target, resource):
            raise status.unknown_resource()
        verb = verbs.of(request.method, target, served)
        if special := verbs.SPECIAL.get(target.subresource or ("binding" if target.plural == "bindings" else "")):
            verb = special
        if resource.namespaced and not target.namespace and verb != "list":
            raise status.method_not_allowed()
        call = Call(
            served=served,
            namespace=target.namespace,
            user=user,
            name=target.name,
            subresource=target.subresource,
            warnings=[],
        )
        handler: Handler = getattr(self, f"_{verb}")
        if resource is kinds.CRDS and verb not in ("get", "list"):
            # What a definition brings must be served also if its author hangs up too early.
            return await asyncio.shield(handler(request, call, target))
        try:
            answer = await handler(request, call, target)
        except status.Failure as failure:
            failure.warnings += [*call.warnings, *([served.deprecation] if served.deprecation else [])]
            raise
        if served.deprecation and not answer.prepared:
            answer.headers.add("Warning", f"299 - {_quoted(served.deprecation)}")
        return answer

    async def _get(self, request: web.BaseRequest, call: Call, target: Target) -> web.StreamResponse:
        if target.watch:
            return await self._list(request, call, target)
        form = self._form(request, call.served)
        asked = options.revision(request.query.get("resourceVersion", ""))
        if asked > self._store.revision:
            raise status.version_too_large(asked, self._store.revision)
        entry = self._registry.get(call.served, call.namespace, call.name)
        return self._one(request, call, entry.value, form)

    async def _list(self, request: web.BaseRequest, call: Call, target: Target) -> web.StreamResponse:
        served = call.served
        wanted = options.listing(request.query, served.resource, forced_watch=target.watch)
        form = self._form(request, served, can_be_watched=True)
        if wanted.watch:
            return await self._watch(request, call, wanted, form)
        page = await listing.page(self._store, served.resource, call.namespace, wanted)
        body = rendering.many(page, served, form, options.include_object(request.query), self._clock())
        return response(200, body, form.content_type)

    async def _watch(
        self, request: web.BaseRequest, call: Call, wanted: options.Listing, form: Form
    ) -> web.StreamResponse:
        if form.media_type != negotiation.JSON:
            raise status.not_acceptable(negotiation.STREAMED)
        options.revision(wanted.resource_version)
        include = options.include_object(request.query)
        wish = watching.Request(served=call.served, namespace=call.namespace, wanted=wanted, form=form, include=include)
        stream = web.StreamResponse(headers={**HEADERS, "Content-Type": negotiation.JSON})
        stream.enable_chunked_encoding()
        async with aclosing(self._watches.stream(wish)) as pieces:
            await stream.prepare(request)
            # A client that leaves is how most watches end.
            with suppress(ConnectionResetError):
                async for piece in pieces:
                    await _send(stream, piece)
                await stream.write_eof()
        return stream

    async def _create(self, request: web.BaseRequest, call: Call, target: Target) -> web.StreamResponse:
        served, resource = call.served, call.served.resource
        is_review = resource.group in access.GROUPS
        form = self._form(request, served, views=negotiation.METADATA_VIEWS if is_review else negotiation.EVERY_VIEW)
        body = await read_body(request)
        call.write = options.write(request.query, request.headers.get("User-Agent", ""))
        content_type = request.headers.get("Content-Type", "")
        obj = bodies.read(body, content_type, served, call.write.field_validation, call.warnings)
        if is_review:
            self._registry.settle_owners(call, None, obj, self._clock())
            answered = access.answer(call, obj, self._authenticator, self._authorizer.policy, self._clock())
            return self._passing(request, call, answered, form, code=201)
        written = await self._registry.create(call, obj)
        return self._one(request, call, written.value, form, code=201)

    async def _update(self, request: web.BaseRequest, call: Call, target: Target) -> web.StreamResponse:
        form = self._form(request, call.served)
        body = await read_body(request)
        call.write = options.write(request.query, request.headers.get("User-Agent", ""), "UpdateOptions")
        content_type = request.headers.get("Content-Type", "")
        obj = bodies.read(body, content_type, call.served, call.write.field_validation, call.warnings)
        written = await self._registry.update(call, obj)
        return self._one(request, call, written.value, form, code=201 if written.created else 200)

    async def _patch(self, request: web.BaseRequest, call: Call, target: Target) -> web.StreamResponse:
        form = self._form(request, call.served)
        custom = call.served.resource.custom
        media_type = negotiation.patch_type(request.headers.get("Content-Type", ""), custom=custom)
        body = await read_body(request)
        way = "apply" if media_type == negotiation.APPLY_PATCH else "other"
        call.write = options.write(request.query, request.headers.get("User-Agent", ""), "PatchOptions", patch=way)
        written = await patches.patch(self._registry, call, media_type, body, self._clock())
        return self._one(request, call, written.value, form, code=201 if written.created else 200)

    async def _nameless(self, request: web.BaseRequest, call: Call, target: Target) -> web.StreamResponse:
        if request.method == "PATCH":
            negotiation.patch_type(request.headers.get("Content-Type", ""), custom=True)
        raise status.bad_request("name must be provided")

    async def _delete(self, request: web.BaseRequest, call: Call, target: Target) -> web.StreamResponse:
        form = self._form(request, call.served)
        wanted = options.deleting(await self._options(request), request.query)
        deleted = await self._registry.delete(call, wanted)
        if deleted.gone and not call.served.resource.returns_deleted:
            uid = msgspec.json.decode(deleted.value)["metadata"].get("uid", "")
            done = status.success(call.name, call.served.resource, uid)
            return response(200, rendering.plain(done, form), form.content_type, call.warnings)
        return self._one(request, call, deleted.value, form)

    async def _deletecollection(self, request: web.BaseRequest, call: Call, target: Target) -> web.StreamResponse:
        form = self._form(request, call.served)
        chosen = options.listing(request.query, call.served.resource)
        wanted = options.deleting(await self._options(request), request.query)
        page = await listing.page(self._store, call.served.resource, call.namespace, chosen)
        await self._registry.delete_all(call, page.entries, wanted)
        body = rendering.many(page, call.served, form, options.include_object(request.query), self._clock())
        return response(200, body, form.content_type, call.warnings)

    async def _scale(self, request: web.BaseRequest, call: Call, target: Target) -> web.StreamResponse:
        """GET, PUT and PATCH of the view that a Scale is."""
        served, scaling = call.served, call.served.scaling
        assert scaling is not None
        form = self._form(request, served)
        if request.method == "GET":
            entry = self._registry.get(served, call.namespace, call.name)
        else:
            with patches.refusals():
                await scale.write(self._registry, call, await self._scale_change(request, call))
            entry = self._registry.get(served, call.namespace, call.name)
        return self._passing(request, call, scale.of(objects.loaded(entry.value, served.resource), scaling), form)

    async def _scale_change(self, request: web.BaseRequest, call: Call) -> Callable[[Json], Json]:
        content_type, agent = request.headers.get("Content-Type", ""), request.headers.get("User-Agent", "")
        type_ = schemas.type_of("autoscaling", "v1", "Scale")
        if request.method == "PATCH":
            media_type = negotiation.patch_type(content_type)
            body = await read_body(request)
            call.write = options.write(request.query, agent, "PatchOptions")
            document = patches.read(media_type, body)
            change = patches.change(media_type, document, type_)
        else:
            body = await read_body(request)
            call.write = options.write(request.query, agent, "UpdateOptions")
            wanted, _ = bodies.parse(body, negotiation.body_type(content_type), "Scale")
            change = lambda _: wanted  # noqa: E731

        def checked(old: Json) -> Json:
            new = change(old)
            if type_ is None or not (problem := decoding.check(new, type_).problem):
                return new
            if request.method == "PATCH":
                raise patches.not_of_its_kind(new, problem, media_type, document)
            raise status.bad_request(f'Scale in version "v1" cannot be handled as a Scale: {problem}')

        return checked

    async def _binding(self, request: web.BaseRequest, call: Call, target: Target) -> web.StreamResponse:
        form = self._form(request, call.served, views=negotiation.NO_VIEW)
        body = await read_body(request)
        call.write = options.write(request.query, request.headers.get("User-Agent", ""))
        found, _ = bodies.parse(body, negotiation.body_type(request.headers.get("Content-Type", "")), "Binding")
        if (kind := found.get("kind") or "Binding") != "Binding":
            what = f"converting (v1.{kind}) to (core.Binding): unknown conversion"
            raise status.bad_request(f'{kind} in version "v1" cannot be handled as a Binding: {what}')
        call.served = self._catalogue.of(kinds.PODS)
        call.name = call.name or str((found.get("metadata") or {}).get("name") or "")
        await binding.bind(self._registry, call, found, self._clock())
        return response(201, rendering.plain(status.plain_success(), form), form.content_type, call.warnings)

    async def _eviction(self, request: web.BaseRequest, call: Call, target: Target) -> web.StreamResponse:
        form = self._form(request, call.served, views=negotiation.NO_VIEW)
        body = await read_body(request)
        call.write = options.write(request.query, request.headers.get("User-Agent", ""))
        found, _ = bodies.parse(body, negotiation.body_type(request.headers.get("Content-Type", "")), "Eviction")
        if (found.get("metadata") or {}).get("name") != call.name:
            raise status.bad_request("name in URL does not match name in Eviction object")
        wanted = options.deleting(found.get("deleteOptions") or {}, request.query)
        wanted = msgspec.structs.replace(wanted, dry_run=wanted.dry_run or call.write.dry_run)
        budgets = self._catalogue.of(kinds.BUDGETS)
        await eviction.evict(self._registry, self._store, call, budgets, wanted, self._clock())
        return response(201, rendering.plain(status.plain_success(), form), form.content_type, call.warnings)

    async def _log(self, request: web.BaseRequest, call: Call, target: Target) -> web.StreamResponse:
        return await log.serve(request, self._pod(call), self._kubelet, self._clock())

    async def _exec(self, request: web.BaseRequest, call: Call, target: Target) -> web.StreamResponse:
        return await streams.execute(request, self._pod(call), self._kubelet)

    async def _attach(self, request: web.BaseRequest, call: Call, target: Target) -> web.StreamResponse:
        return await streams.attach(request, self._pod(call), self._kubelet)

    async def _portforward(self, request: web.BaseRequest, call: Call, target: Target) -> web.StreamResponse:
        return await forwarding.serve(request, self._pod(call), self._kubelet)

    async def _token(self, request: web.BaseRequest, call: Call, target: Target) -> web.StreamResponse:
        form = self._form(request, call.served, views=negotiation.NO_VIEW)
        body = await read_body(request)
        call.write = options.write(request.query, request.headers.get("User-Agent", ""))
        wanted, _ = bodies.parse(body, negotiation.body_type(request.headers.get("Content-Type", "")), "TokenRequest")
        type_ = schemas.type_of("authentication.k8s.io", "v1", "TokenRequest")
        if type_ is not None and (problem := decoding.check(wanted, type_).problem):
            raise status.bad_request(problem)
        entry = self._registry.get(call.served, call.namespace, call.name)
        answered = self._tokens.issue(objects.loaded(entry.value, call.served.resource), wanted)
        return response(201, rendering.plain(answered, form), form.content_type, call.warnings)

    def _pod(self, call: Call) -> Json:
        return objects.loaded(self._registry.get(call.served, call.namespace, call.name).value, kinds.PODS)

    async def _options(self, request: web.BaseRequest) -> Json | None:
        return bodies.options(await read_body(request), request.headers.get("Content-Type", ""))

    def _form(
        self,
        request: web.BaseRequest,
        served: Served,
        *,
        views: frozenset[View] = negotiation.EVERY_VIEW,
        can_be_watched: bool = False,
    ) -> Form:
        form = negotiation.negotiate(
            request.headers.get("Accept", ""),
            custom=served.resource.custom,
            views=views,
            can_be_watched=can_be_watched,
        )
        if options.is_true(request.query.get("pretty")):
            form = msgspec.structs.replace(form, pretty=True)
        return form

    def _one(
        self, request: web.BaseRequest, call: Call, value: bytes, form: Form, *, code: int = 200
    ) -> web.StreamResponse:
        include = options.include_object(request.query)
        body = rendering.one(value, call.served, form, include, self._clock())
        return response(code, body, form.content_type, call.warnings)

    def _passing(
        self, request: web.BaseRequest, call: Call, obj: Json, form: Form, *, code: int = 200
    ) -> web.StreamResponse:
        body = rendering.passing(obj, form, options.include_object(request.query), self._clock())
        return response(code, body, form.content_type, call.warnings)


def page_not_found() -> web.Response:
    return response(404, b"404 page not found\n", TEXT, headers=NO_SNIFFING)


def response(
    code: int,
    body: bytes,
    content_type: str,
    warnings: list[str] | None = None,
    headers: Mapping[str, str] | None = None,
) -> web.Response:
    answer = web.Response(status=code, body=body, headers={**HEADERS, "Content-Type": content_type, **(headers or {})})
    for warning in cautions.shown(warnings or ()):
        answer.headers.add("Warning", f"299 - {_quoted(warning)}")
    return answer


async def _send(stream: web.StreamResponse, piece: bytes) -> None:
    """Raises ConnectionError, which ends the connection."""
    try:
        async with asyncio.timeout(STALLED_S):
            await stream.write(piece)
    except TimeoutError:
        raise ConnectionAbortedError("the watcher does not read") from None


async def read_body(request: web.BaseRequest) -> bytes:
    """Raises a refusal (400, 413)."""
    if (request.content_length or 0) > MOST_BODY_BYTES:
        raise status.body_too_large(MOST_BODY_BYTES)
    if not request.can_read_body:
        return b""
    if request.headers.get("Expect", "").lower() == "100-continue":
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        request.writer.output_size = 0
    pieces: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(BODY_TIMEOUT_S):
            while piece := await request.content.readany():
                size += len(piece)
                if size > MOST_BODY_BYTES:
                    raise status.body_too_large(MOST_BODY_BYTES)
                pieces.append(piece)
    except TimeoutError:
        raise status.bad_request(f"the body did not arrive within {BODY_TIMEOUT_S:.0f} s") from None
    return b"".join(pieces)


def _quoted(text: str) -> str:
    plain = "".join(character if character.isprintable() else " " for character in text)
    escaped = plain.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
