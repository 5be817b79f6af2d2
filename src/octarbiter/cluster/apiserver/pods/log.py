"""What did a container say? `GET pods/NAME/log`, as plain text, as long as there is any."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from datetime import datetime, timedelta
from typing import Final

import msgspec
from aiohttp import web

from octarbiter.api.meta import Json
from octarbiter.cluster.apiserver import kinds, options, status
from octarbiter.cluster.apiserver.pods import containers
from octarbiter.cluster.apiserver.pods.kubelet import Kubelet, LogQuery
from octarbiter.cluster.apiserver.validation.problems import Problem

_MOST_WAITING: Final = 256 * 1024
"""Bytes that are read ahead of a client."""
_HEADERS: Final = {"Cache-Control": "no-cache, private"}
_KIND: Final = "PodLogOptions"
_LONGEST_S: Final = 100 * 365 * 24 * 3600
"""Nothing was said before; and a time must remain one."""


async def serve(request: web.BaseRequest, pod: Json, kubelet: Kubelet | None, now: datetime) -> web.StreamResponse:
    query = asked(request.query, pod, now)
    if not pod["spec"].get("nodeName"):
        return web.Response(status=204, headers=_HEADERS)
    behind = containers.run_with_logs(pod, query.container, previous=query.previous)
    query = msgspec.structs.replace(query, previous=behind == 1)
    if kubelet is None:
        raise no_kubelet(pod)
    try:
        pieces = kubelet.logs(pod, query)
    except LookupError as problem:
        raise status.bad_request(problem.args[0]) from None
    answer = web.StreamResponse(headers={**_HEADERS, "Content-Type": "text/plain"})
    answer.enable_chunked_encoding()
    await answer.prepare(request)
    async with aclosing(_gathered(pieces)) as batches:
        async for batch in batches:
            await answer.write(batch)
    await answer.write_eof()
    return answer


def no_kubelet(pod: Json) -> status.Failure:
    return status.Failure(500, "", f"no kubelet answers for node {pod['spec']['nodeName']}")


def asked(query: options.Query, pod: Json, now: datetime) -> LogQuery:
    """Raises a refusal (400, 422)."""
    tail, limit, seconds = (_number(query, name) for name in ("tailLines", "limitBytes", "sinceSeconds"))
    since = _time(query.get("sinceTime", ""))
    problems: list[Problem] = []
    if tail is not None and tail < 0:
        problems.append(_invalid("tailLines", tail, "must be greater than or equal to 0"))
    if limit is not None and limit < 1:
        problems.append(_invalid("limitBytes", limit, "must be greater than 0"))
    if seconds is not None and since is not None:
        rule = "Forbidden: at most one of `sinceTime` or `sinceSeconds` may be specified"
        problems.append(Problem("FieldValueForbidden", "[]", rule))
    elif seconds is not None and seconds < 1:
        problems.append(_invalid("sinceSeconds", seconds, "must be greater than 0"))
    if query.get("stream"):
        problems.append(Problem("FieldValueForbidden", "stream", "Forbidden: may not be specified"))
    if problems:
        raise status.invalid(kinds.PODS, pod["metadata"]["name"], problems, kind=_KIND)
    if seconds is not None:
        since = now - timedelta(seconds=min(seconds, _LONGEST_S))
    return LogQuery(
        container=containers.chosen(pod, query.get("container", "")),
        follow=options.is_true(query.get("follow")),
        previous=options.is_true(query.get("previous")),
        since=since,
        timestamps=options.is_true(query.get("timestamps")),
        tail_lines=tail,
        limit_bytes=limit,
    )


def _number(query: options.Query, name: str) -> int | None:
    text = query.get(name, "")
    if not text:
        return None
    try:
        number = int(text) if text.isascii() and len(text) < 20 else None
    except ValueError:
        number = None
    if number is None:
        raise status.bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax')
    return number


def _time(text: str) -> datetime | None:
    if not text:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        found = None
    if found is None or found.tzinfo is None or "T" not in text:
        raise status.bad_request(f'parsing time "{text}" as "2006-01-02T15:04:05Z07:00": cannot parse it')
    return found


def _invalid(field: str, value: int, rule: str) -> Problem:
    return Problem("FieldValueInvalid", field, f"Invalid value: {value}: {rule}")


async def _gathered(pieces: AsyncIterator[bytes]) -> AsyncGenerator[bytes]:
    """The same bytes in fewer pieces: all that came while the client took the last one."""
    waiting = bytearray()
    came, taken = asyncio.Event(), asyncio.Event()

    async def read() -> None:
        try:
            async for piece in pieces:
                waiting.extend(piece)
                came.set()
                if len(waiting) > _MOST_WAITING:
                    taken.clear()
                    await taken.wait()
        finally:
            came.set()

    reading = asyncio.create_task(read(), name="log")
    try:
        while not reading.done() or waiting:
            await came.wait()
            came.clear()
            batch = bytes(waiting)
            waiting.clear()
            taken.set()
            if batch:
                yield batch
            elif reading.done():
                break
        await reading
    finally:
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
