"""Watches and lists of the embedded API server, over HTTPS."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from apiserver_fixture import DEFAULT, MERGE, TABLE, Api, config_map, pod, running

MAPS = f"{DEFAULT}/configmaps"
PODS = f"{DEFAULT}/pods"
METADATA = {"Accept": "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json"}


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[Api]:
    async with running(tmp_path) as api:
        yield api


async def names(api: Api, query: str) -> list[str]:
    return [obj["metadata"]["name"] for obj in (await api.ask("GET", f"{MAPS}{query}")).body["items"]]


async def test_a_watch_without_a_version_shows_the_present_first_and_then_what_happens(api: Api) -> None:
    await api.create(MAPS, config_map("a"))
    async with api.watch(MAPS) as stream:
        assert await stream.events(1) == [("ADDED", "a")]
        await api.create(MAPS, config_map("b"))
        await api.ask("PATCH", f"{MAPS}/b", {"data": {"k": "v"}}, MERGE)
        await api.ask("DELETE", f"{MAPS}/b")

        assert await stream.events(3) == [("ADDED", "b"), ("MODIFIED", "b"), ("DELETED", "b")]


async def test_a_watch_from_a_version_shows_everything_after_it_once_and_in_order(api: Api) -> None:
    start = (await api.ask("GET", MAPS)).body["metadata"]["resourceVersion"]
    await asyncio.gather(*(api.create(MAPS, config_map(f"m{number}")) for number in range(30)))
    async with api.watch(f"{MAPS}?resourceVersion={start}") as stream:
        seen = [await stream.event() for _ in range(30)]
    versions = [int(obj["metadata"]["resourceVersion"]) for _, obj in seen]

    assert versions == sorted(set(versions))
    assert {obj["metadata"]["name"] for _, obj in seen} == {f"m{number}" for number in range(30)}
    assert all(obj["kind"] == "ConfigMap" and obj["apiVersion"] == "v1" for _, obj in seen)


async def test_a_deletion_is_told_with_its_own_version(api: Api) -> None:
    made = await api.create(MAPS, config_map("a", k="v"))
    async with api.watch(f"{MAPS}?resourceVersion={made['metadata']['resourceVersion']}") as stream:
        await api.ask("DELETE", f"{MAPS}/a")
        kind, obj = await stream.event()

    assert (kind, obj["data"]) == ("DELETED", {"k": "v"})
    assert int(obj["metadata"]["resourceVersion"]) > int(made["metadata"]["resourceVersion"])


async def test_what_enters_a_selector_is_added_and_what_leaves_it_is_deleted_as_it_last_matched(api: Api) -> None:
    await api.create(MAPS, config_map("a", k="1"))
    async with api.watch(f"{MAPS}?labelSelector=on&resourceVersion=1") as stream:
        await api.ask("PATCH", f"{MAPS}/a", {"metadata": {"labels": {"on": "yes"}}}, MERGE)
        await api.ask("PATCH", f"{MAPS}/a", {"data": {"k": "2"}}, MERGE)
        left = await api.ask("PATCH", f"{MAPS}/a", {"metadata": {"labels": None}, "data": {"k": "3"}}, MERGE)
        await api.ask("DELETE", f"{MAPS}/a")
        await api.create(MAPS, config_map("b", labels={"on": "yes"}))
        events = [await stream.event() for _ in range(4)]

    assert [kind for kind, _ in events] == ["ADDED", "MODIFIED", "DELETED", "ADDED"]
    assert events[2][1]["data"] == {"k": "2"}
    assert events[2][1]["metadata"]["resourceVersion"] == left.body["metadata"]["resourceVersion"]


async def test_a_node_sees_its_own_pods_only(api: Api) -> None:
    await api.create(PODS, pod("p"))
    await api.create(PODS, pod("q"))
    async with api.watch(f"{PODS}?fieldSelector=spec.nodeName%3Dn") as stream:
        for name, node in (("q", "other"), ("p", "n")):
            target = {"metadata": {"name": name}, "target": {"kind": "Node", "name": node}}
            await api.ask("POST", f"{PODS}/{name}/binding", target)

        assert await stream.events(1) == [("ADDED", "p")]


async def test_a_list_that_is_streamed_ends_with_a_bookmark_that_says_so(api: Api) -> None:
    await api.create(MAPS, config_map("a"))
    query = "?sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    async with api.watch(MAPS + query) as stream:
        first, bookmark = await stream.event(), await stream.event()
        await api.create(MAPS, config_map("b"))
        later = await stream.event()

    assert (first[0], later[0]) == ("ADDED", "ADDED")
    assert bookmark[0] == "BOOKMARK"
    assert bookmark[1]["kind"] == "ConfigMap"
    assert bookmark[1]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
    assert int(bookmark[1]["metadata"]["resourceVersion"]) < int(later[1]["metadata"]["resourceVersion"])


async def test_a_watch_ends_when_its_time_is_up(api: Api) -> None:
    await api.create(MAPS, config_map("a"))
    async with api.watch(f"{MAPS}?timeoutSeconds=1") as stream:
        assert [kind for kind, _ in await stream.rest()] == ["ADDED"]


async def test_a_bookmark_comes_shortly_before_the_end_and_names_a_version_to_go_on_from(api: Api) -> None:
    await api.create(MAPS, config_map("a"))
    async with api.watch(f"{MAPS}?timeoutSeconds=3&allowWatchBookmarks=true&resourceVersion=1") as stream:
        other = await api.create(f"{DEFAULT}/secrets", {"metadata": {"name": "other"}})
        events = await stream.rest()

    assert [kind for kind, _ in events] == ["ADDED", "BOOKMARK"]
    assert int(events[1][1]["metadata"]["resourceVersion"]) >= int(other["metadata"]["resourceVersion"])


async def test_a_version_that_was_forgotten_is_expired(api: Api) -> None:
    for number in range(5):
        await api.create(MAPS, config_map(f"m{number}"))
    await api.store.compact(api.store.revision)
    async with api.watch(f"{MAPS}?resourceVersion=2") as stream:
        events = await stream.rest()

    assert (stream.code, [kind for kind, _ in events]) == (200, ["ERROR"])
    assert (events[0][1]["code"], events[0][1]["reason"]) == (410, "Expired")


async def test_tables_and_metadata_can_be_watched(api: Api) -> None:
    await api.create(MAPS, config_map("a", k="v"))
    async with api.watch(MAPS, TABLE) as stream:
        _, first = await stream.event()
        await api.create(MAPS, config_map("b"))
        _, second = await stream.event()
    async with api.watch(MAPS, METADATA) as stream:
        _, partial = await stream.event()

    assert (first["rows"][0]["cells"][0], second["rows"][0]["cells"][0]) == ("a", "b")
    assert (len(first["columnDefinitions"]), second["columnDefinitions"]) == (3, None)
    assert (partial["kind"], "data" in partial) == ("PartialObjectMetadata", False)


async def test_a_server_that_stops_ends_its_watches(tmp_path: Path) -> None:
    async with running(tmp_path) as api, api.watch(MAPS) as stream:
        reading = asyncio.create_task(stream.rest())
        await asyncio.sleep(0)
        await api.server.__aexit__()

        assert await reading == []


async def test_the_pages_of_a_list_show_one_moment(api: Api) -> None:
    for number in range(5):
        await api.create(MAPS, config_map(f"m{number}"))
    first = (await api.ask("GET", f"{MAPS}?limit=2")).body
    await api.ask("DELETE", f"{MAPS}/m3")
    await api.create(MAPS, config_map("m2b"))
    second = (await api.ask("GET", f"{MAPS}?limit=2&continue={first['metadata']['continue']}")).body
    third = (await api.ask("GET", f"{MAPS}?limit=2&continue={second['metadata']['continue']}")).body

    pages = [[obj["metadata"]["name"] for obj in page["items"]] for page in (first, second, third)]
    assert pages == [["m0", "m1"], ["m2", "m3"], ["m4"]]
    assert first["metadata"]["remainingItemCount"] == 3
    assert len({page["metadata"]["resourceVersion"] for page in (first, second, third)}) == 1
    assert "continue" not in third["metadata"]


async def test_a_page_of_a_forgotten_moment_is_expired_and_shows_how_to_go_on(api: Api) -> None:
    for number in range(4):
        await api.create(MAPS, config_map(f"m{number}"))
    first = (await api.ask("GET", f"{MAPS}?limit=2")).body
    await api.create(MAPS, config_map("m9"))
    await api.store.compact(api.store.revision)
    expired = await api.ask("GET", f"{MAPS}?limit=2&continue={first['metadata']['continue']}")
    again = expired.body["metadata"]["continue"]

    assert (expired.code, expired.reason) == (410, "Expired")
    assert await names(api, f"?continue={again}") == ["m2", "m3", "m9"]


async def test_a_list_is_filtered_by_labels_and_fields(api: Api) -> None:
    await api.create(MAPS, config_map("a", labels={"x": "1"}))
    await api.create(MAPS, config_map("b", labels={"x": "2", "y": ""}))
    await api.create(MAPS, config_map("c"))

    assert await names(api, "?labelSelector=x%20in%20(1,2)") == ["a", "b"]
    assert await names(api, "?labelSelector=x!%3D1") == ["b", "c"]
    assert await names(api, "?labelSelector=!x") == ["c"]
    assert await names(api, "?fieldSelector=metadata.name%3Db") == ["b"]
    assert await names(api, "?fieldSelector=metadata.name!%3Db") == ["a", "c"]
    assert await names(api, "?fieldSelector=metadata.name%3Db&labelSelector=x%3D1") == []


async def test_versions_that_are_yet_to_come_are_too_large_and_past_ones_can_be_read(api: Api) -> None:
    made = await api.create(MAPS, config_map("a"))
    await api.create(MAPS, config_map("b"))
    future = await api.ask("GET", f"{MAPS}?resourceVersion=999999")
    version = made["metadata"]["resourceVersion"]

    assert (future.code, future.reason) == (504, "Timeout")
    assert future.body["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"
    assert await names(api, f"?resourceVersion={version}&resourceVersionMatch=Exact") == ["a"]
    assert await names(api, f"?resourceVersion={version}") == ["a", "b"]


async def test_lists_of_all_namespaces_and_of_one(api: Api) -> None:
    await api.create("/api/v1/namespaces", {"metadata": {"name": "team"}})
    await api.create(MAPS, config_map("a"))
    await api.create("/api/v1/namespaces/team/configmaps", config_map("b"))
    everywhere = (await api.ask("GET", "/api/v1/configmaps")).body
    chosen = (await api.ask("GET", "/api/v1/configmaps?fieldSelector=metadata.namespace%3Dteam")).body

    assert [obj["metadata"]["name"] for obj in everywhere["items"]] == ["a", "b"]
    assert [obj["metadata"]["name"] for obj in chosen["items"]] == ["b"]
    assert "kind" not in everywhere["items"][0]
    assert everywhere["kind"] == "ConfigMapList"
