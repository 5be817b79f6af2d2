"""Typed requests to one API server. What is repeated, and what is not, stands in `transport`."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any, Final, TypeVar

from octarbiter.api import codec, errors
from octarbiter.api.meta import Object
from octarbiter.api.scheme import Resource
from octarbiter.runtime import answers, requests, transport
from octarbiter.runtime import clock as clocks
from octarbiter.runtime.kubeconfig import Connection
from octarbiter.runtime.requests import Body, Request

PAGE_SIZE: Final = 500

T = TypeVar("T")
R = TypeVar("R", bound=Object)


class Client:
    def __init__(
        self,
        connection: Connection,
        *,
        concurrency: int = 32,
        timeout_s: float = 30.0,
        retry_for_s: float = 15.0,
        observer: transport.Observer | None = None,
        clock: clocks.Clock = clocks.SYSTEM,
    ) -> None:
        """`concurrency` bounds the requests under way and so the connections; streams come on top of it.

        `timeout_s` is for one exchange, `retry_for_s` for all repetitions of a request. Needs a running event loop.
        """
        self.connection = connection
        self._transport = transport.Transport(
            connection,
            concurrency=concurrency,
            timeout_s=timeout_s,
            retry_for_s=retry_for_s,
            observer=observer,
            clock=clock,
        )

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        await self._transport.close()

    async def send(self, request: Request, type_: type[T], *, timeout_s: float | None = None) -> T:
        """The answer, decoded; `bytes` means as it came."""
        body = await self._transport.send(request, timeout_s)
        return body if type_ is bytes else answers.decoded(body, type_, request.path)  # type: ignore[return-value]

    def stream_lines(self, request: Request, *, silence_s: float | None = None) -> AsyncGenerator[bytes, None]:
        """The lines of a watch or a log as they come, without their ends; so long without any is a failure.

        Repeats nothing: from where to go on is known to the caller only (who closes it, with `aclosing`).
        """
        return self._transport.stream_lines(request, silence_s)

    async def get(self, resource: Resource[R], namespace: str, name: str) -> R:
        return await self.send(requests.get(resource, namespace, name), resource.type)

    async def list(
        self, resource: Resource[R], namespace: str = "", *, label_selector: str = "", field_selector: str = ""
    ) -> Sequence[R]:
        raw = await self.list_raw(resource, namespace, label_selector=label_selector, field_selector=field_selector)
        return [answers.decoded(item, resource.type, resource.plural) for item in raw.items]

    async def list_raw(
        self,
        resource: Resource[R],
        namespace: str = "",
        *,
        label_selector: str = "",
        field_selector: str = "",
        page_size: int = PAGE_SIZE,
    ) -> codec.RawList:
        """All pages as one list, consistent at its resourceVersion; the items not yet decoded."""
        whole, continue_ = codec.RawList(items=[]), ""
        while True:
            request = requests.list_(
                resource,
                namespace,
                label_selector=label_selector,
                field_selector=field_selector,
                limit=page_size,
                continue_=continue_,
            )
            try:
                page = await self.send(request, codec.RawList)
            except errors.Gone:
                if not continue_:
                    raise
                # We were too slow for the server's history: once more from the start, in one piece.
                whole, continue_, page_size = codec.RawList(items=[]), "", 0
                continue
            whole = codec.RawList(metadata=page.metadata, items=whole.items + page.items)
            continue_ = page.metadata.continue_
            if not continue_:
                return whole

    async def create(self, resource: Resource[R], namespace: str, body: Body) -> R:
        return await self.send(requests.create(resource, namespace, body), resource.type)

    async def replace(
        self, resource: Resource[R], namespace: str, name: str, body: Body, *, subresource: str = ""
    ) -> R:
        """Only with an object we built ourselves: our structs do not hold every field of the server's."""
        return await self.send(
            requests.replace(resource, namespace, name, body, subresource=subresource), resource.type
        )

    async def merge_patch(
        self, resource: Resource[R], namespace: str, name: str, patch: Body, *, subresource: str = ""
    ) -> R:
        return await self.send(
            requests.merge_patch(resource, namespace, name, patch, subresource=subresource), resource.type
        )

    async def json_patch(
        self,
        resource: Resource[R],
        namespace: str,
        name: str,
        operations: Sequence[Mapping[str, Any]],
        *,
        subresource: str = "",
    ) -> R:
        return await self.send(
            requests.json_patch(resource, namespace, name, operations, subresource=subresource), resource.type
        )

    async def apply(
        self,
        resource: Resource[R],
        namespace: str,
        name: str,
        body: Body,
        *,
        field_manager: str,
        force: bool = False,
        subresource: str = "",
    ) -> R:
        request = requests.apply(
            resource, namespace, name, body, field_manager=field_manager, force=force, subresource=subresource
        )
        return await self.send(request, resource.type)

    async def delete(
        self,
        resource: Resource[R],
        namespace: str,
        name: str,
        *,
        propagation: str | None = None,
        grace_period_seconds: int | None = None,
        uid: str | None = None,
        resource_version: str | None = None,
    ) -> R | None:
        """The object as it is now, if the server says: it may stay for a while (finalizers, a pod's grace period)."""
        request = requests.delete(
            resource,
            namespace,
            name,
            propagation=propagation,
            grace_period_seconds=grace_period_seconds,
            uid=uid,
            resource_version=resource_version,
        )
        body = await self.send(request, bytes)
        if answers.decoded(body, codec.ObjectWithMeta, request.path).kind == "Status":
            return None
        return answers.decoded(body, resource.type, request.path)
