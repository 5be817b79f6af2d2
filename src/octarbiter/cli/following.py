"""What happens to these objects from now on? Watches them for commands that wait.

The informer does the work. It tries again whatever the server answers, which is right for a controller; a person who
may not watch wants to know it, so the question is put to the server once more here, where the answer counts.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from typing import TypeVar

from octarbiter.api import errors
from octarbiter.api.meta import Object
from octarbiter.api.scheme import Resource
from octarbiter.runtime import informer as informers
from octarbiter.runtime import requests
from octarbiter.runtime.client import Client

T = TypeVar("T", bound=Object)


async def changes(
    client: Client, resource: Resource[T], namespace: str, *, label_selector: str = "", field_selector: str = ""
) -> AsyncGenerator[dict[str, T | None], None]:
    """First all there is, perhaps nothing; then what has changed, by key. None: it is gone.

    Whoever is slow sees the last state only, and not each on the way. Close it, with `aclosing`.
    """
    changed: dict[str, T | None] = {}
    news = asyncio.Event()

    def note(key: str, old: T | None, new: T | None) -> None:
        changed[key] = new
        news.set()

    informer = informers.Informer(
        client,
        resource,
        namespace=namespace,
        label_selector=label_selector,
        field_selector=field_selector,
        on_change=note,
    )
    probe = requests.watch(
        resource, namespace, label_selector=label_selector, field_selector=field_selector, timeout_s=1
    )
    running = asyncio.create_task(informer.run())
    asked = asyncio.create_task(_ask(client, probe))
    synced = asyncio.create_task(informer.synced.wait())
    for task in (running, asked, synced):
        task.add_done_callback(lambda _: news.set())
    first = True
    try:
        while True:
            await news.wait()
            news.clear()
            for task in (running, asked):
                if task.done():
                    task.result()
            if informer.synced.is_set() and (changed or first):
                batch, first = dict(changed), False
                changed.clear()
                yield batch
    finally:
        for task in (running, asked, synced):
            task.cancel()
        await asyncio.gather(running, asked, synced, return_exceptions=True)


async def states(client: Client, resource: Resource[T], namespace: str, name: str) -> AsyncGenerator[T | None, None]:
    """One object: as it is now, and each time it has changed; None while there is none."""
    async with aclosing(changes(client, resource, namespace, field_selector=f"metadata.name={name}")) as batches:
        async for batch in batches:
            yield next(iter(batch.values()), None)


async def _ask(client: Client, probe: requests.Request) -> None:
    with suppress(errors.Retry):  # away for the moment: the informer is patient
        async with aclosing(client.stream_lines(probe)) as lines:
            async for _ in lines:
                return
