from __future__ import annotations

import asyncio

from octarbiter.cluster.store.retention import Retention, keep
from octarbiter.cluster.store.store import Store


def test_what_is_older_than_the_age_may_be_forgotten() -> None:
    retention = Retention(kept_s=300, most=10**6)
    horizons = [
        retention.horizon(revision, now) for now, revision in ((0, 10), (100, 20), (299, 30), (300, 40), (405, 50))
    ]

    assert horizons == [0, 0, 0, 10, 20]


def test_more_changes_than_can_be_kept_are_forgotten_however_young() -> None:
    retention = Retention(kept_s=300, most=100)

    assert [retention.horizon(revision, now=0) for revision in (50, 100, 250)] == [0, 0, 150]


async def test_the_store_forgets_by_itself() -> None:
    store = await Store.open(None)
    for _ in range(20):
        await store.put("/core/pods/default/a", lambda revision: b"", expected=None)
    done = asyncio.Event()

    class AskedTwice(Retention):
        def horizon(self, revision: int, now: float) -> int:
            if store.horizon:
                done.set()
            return super().horizon(revision, now)

    keeping = asyncio.create_task(keep(store, AskedTwice(kept_s=300, most=5), pause_s=0))
    async with asyncio.timeout(30):
        await done.wait()
    keeping.cancel()

    assert store.horizon == 15
    await store.close()
