"""Events go by themselves, an hour after they were last written; and whoever makes what nobody acts on is told."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest

from octarbiter.api.meta import Json
from octarbiter.cluster.apiserver import admission, kinds, models, objects
from octarbiter.cluster.apiserver.authn import ADMIN
from octarbiter.cluster.apiserver.catalogue import Catalogue
from octarbiter.cluster.apiserver.expiry import KEPT, Expiry
from octarbiter.cluster.apiserver.registry import Call, Registry
from octarbiter.cluster.store.store import Store
from octarbiter.embedded.cluster import UNATTENDED

START = datetime(2030, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)


class World:
    """A registry over a store in memory, with a clock that stands still."""

    def __init__(self, store: Store) -> None:
        self.now = START
        self.store = store
        self.catalogue = Catalogue(models.built_in({}))
        self.registry = Registry(store, admission.Chain([]), lambda: self.now, UNATTENDED)
        self.expiry = Expiry(store, lambda: self.now)
        self.registry.witnesses.append(self.expiry.witness)

    async def make(self, group: str, version: str, plural: str, obj: Json) -> list[str]:
        """What its author is warned of."""
        served = self.catalogue.find(group, version, plural)
        assert served is not None
        call = Call(served=served, namespace="default", user=ADMIN, warnings=[])
        await self.registry.create(call, obj)
        return call.warnings

    async def event(self, name: str) -> None:
        await self.make("", "v1", "events", {"metadata": {"name": name}, "involvedObject": {"namespace": "default"}})

    async def change(self, name: str, count: int) -> None:
        served = self.catalogue.of(kinds.EVENTS)
        call = Call(served=served, namespace="default", name=name, user=ADMIN, warnings=[])
        await self.registry.modify(call, lambda old: {**(old or {}), "count": count})

    def events(self) -> list[str]:
        return [objects.meta(entry.value).name for entry in self.store.list(kinds.EVENTS.root)]


@pytest.fixture
async def world() -> AsyncIterator[World]:
    store = await Store.open(None)
    yield World(store)
    await store.close()


async def test_an_event_goes_an_hour_after_it_was_written(world: World) -> None:
    await world.event("a")
    world.now = START + KEPT - SECOND
    await world.expiry.sweep()
    before = world.events()
    world.now = START + KEPT
    await world.expiry.sweep()

    assert (before, world.events()) == (["a"], [])


async def test_an_event_that_is_written_again_stays_an_hour_longer(world: World) -> None:
    await world.event("a")
    world.now = START + KEPT / 2
    await world.change("a", 2)
    world.now = START + KEPT
    await world.expiry.sweep()
    between = world.events()
    world.now = START + KEPT * 1.5
    await world.expiry.sweep()

    assert (between, world.events()) == (["a"], [])


async def test_what_is_no_event_stays(world: World) -> None:
    await world.make("", "v1", "configmaps", {"metadata": {"name": "a"}})
    world.now = START + KEPT * 2
    await world.expiry.sweep()

    assert len(world.store.list("/")) == 1


async def test_events_of_an_earlier_life_of_the_server_go_too(world: World) -> None:
    for number in range(3):
        world.now = START + number * KEPT / 4
        await world.event(f"e{number}")
    again = Expiry(world.store, lambda: world.now)
    again.start()
    try:
        world.now = START + KEPT * 1.25
        await again.sweep()
    finally:
        await again.stop()

    assert world.events() == ["e2"]


async def test_watchers_are_told_that_an_event_is_gone(world: World) -> None:
    await world.event("a")
    watch = world.store.watch(kinds.EVENTS.root, world.store.revision)
    world.now = START + KEPT
    await world.expiry.sweep()
    changes = await anext(watch)

    assert [change.deleted for change in changes] == [True]
    assert objects.meta(changes[0].value).resource_version == str(changes[0].revision)


TEMPLATE: Json = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
WORKLOAD: Json = {"selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE}


@pytest.mark.parametrize(
    ("group", "plural", "spec"),
    [
        ("apps", "deployments", WORKLOAD),
        ("apps", "replicasets", WORKLOAD),
        ("apps", "daemonsets", WORKLOAD),
        ("apps", "statefulsets", {**WORKLOAD, "serviceName": "s"}),
        ("", "replicationcontrollers", {"selector": {"a": "b"}, "template": TEMPLATE}),
        (
            "batch",
            "cronjobs",
            {
                "schedule": "* * * * *",
                "jobTemplate": {"spec": {"template": {"spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}}}},
            },
        ),
    ],
)
async def test_whoever_makes_what_nobody_acts_on_is_told(world: World, group: str, plural: str, spec: Json) -> None:
    warnings = await world.make(group, "v1", plural, {"metadata": {"name": "a"}, "spec": objects.copied(spec)})

    assert [f"no controller for {plural} runs in this cluster" in each for each in warnings] == [True]


async def test_whoever_puts_a_container_beside_others_is_told_that_it_does_not_run(world: World) -> None:
    await world.make("", "v1", "pods", {"metadata": {"name": "a"}, "spec": objects.copied(TEMPLATE["spec"])})
    served = world.catalogue.of(kinds.PODS)
    call = Call(
        served=served, namespace="default", name="a", subresource="ephemeralcontainers", user=ADMIN, warnings=[]
    )

    def beside(old: Json | None) -> Json:
        assert old is not None
        old["spec"]["ephemeralContainers"] = [{"name": "x", "image": "i"}]
        return old

    written = await world.registry.modify(call, beside)

    assert objects.loaded(written.value, kinds.PODS)["spec"]["ephemeralContainers"][0]["name"] == "x"
    assert call.warnings == ["ephemeral containers are kept in this cluster, but not started: use exec instead"]


async def test_nobody_is_told_who_makes_a_job(world: World) -> None:
    spec = {"template": {"spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}}}

    assert await world.make("batch", "v1", "jobs", {"metadata": {"name": "a"}, "spec": objects.copied(spec)}) == []
