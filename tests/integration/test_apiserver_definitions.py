"""Custom resources on the embedded API server, over HTTPS."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from apiserver_fixture import MERGE, STRATEGIC, TABLE, Api, definition, running

from octarbiter.api import crd, kinds
from octarbiter.cluster.store.store import Store

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"
AGGREGATED = {"Accept": "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"}


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[Api]:
    async with running(tmp_path) as api:
        yield api


def widget(name: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec}


def conditions(obj: dict[str, Any]) -> dict[str, str]:
    return {each["type"]: each["status"] for each in obj["status"]["conditions"]}


async def until(
    api: Api, path: str, name: str, since: dict[str, Any], wanted: Callable[[str, dict[str, Any]], bool]
) -> None:
    """Watches an object from an earlier state of anything on."""
    query = f"?fieldSelector=metadata.name%3D{name}&resourceVersion={since['metadata']['resourceVersion']}"
    async with api.watch(path + query) as stream:
        while not wanted(*await stream.event()):
            pass


def is_gone(kind: str, _: dict[str, Any]) -> bool:
    return kind == "DELETED"


async def test_a_definition_is_served_with_the_next_request(api: Api) -> None:
    assert (await api.ask("GET", WIDGETS)).code == 404
    made = await api.create(CRDS, definition())
    listed = await api.ask("GET", WIDGETS)
    groups = (await api.ask("GET", "/apis")).body["groups"]

    assert conditions(made) == {"NamesAccepted": "True", "Established": "True"}
    assert made["status"]["storedVersions"] == ["v1"]
    assert made["status"]["acceptedNames"]["listKind"] == "WidgetList"
    assert (listed.code, listed.body["kind"]) == (200, "WidgetList")
    assert "example.com" in [group["name"] for group in groups]


async def test_discovery_changes_with_the_definitions_and_only_then(api: Api) -> None:
    before = await api.ask("GET", "/apis", headers=AGGREGATED)
    unchanged = await api.ask("GET", "/apis", headers={**AGGREGATED, "If-None-Match": before.headers["ETag"]})
    await api.create(CRDS, definition())
    after = await api.ask("GET", "/apis", headers={**AGGREGATED, "If-None-Match": before.headers["ETag"]})

    assert unchanged.code == 304
    assert after.code == 200
    found = next(group for group in after.body["items"] if group["metadata"].get("name") == "example.com")
    resource = found["versions"][0]["resources"][0]
    assert (resource["resource"], resource["scope"], resource["shortNames"]) == ("widgets", "Namespaced", ["wix"])
    assert [each["subresource"] for each in resource["subresources"]] == ["status"]


async def test_custom_objects_are_pruned_filled_and_checked(api: Api) -> None:
    await api.create(CRDS, definition())
    made = await api.create(WIDGETS, widget("a", colour="red", nonsense=1))
    refused = await api.ask("POST", WIDGETS, widget("b", size=0))
    unnamed = await api.ask("POST", WIDGETS, {"metadata": {"name": "c"}})

    assert made["spec"] == {"colour": "red", "size": 3}
    assert made["metadata"]["generation"] == 1
    assert (refused.code, refused.body["details"]["causes"][0]["field"]) == (422, "spec.size")
    assert (unnamed.code, "Object 'Kind' is missing" in unnamed.body["message"]) == (400, True)


async def test_custom_objects_keep_spec_and_status_apart_and_need_a_version_for_a_put(api: Api) -> None:
    await api.create(CRDS, definition())
    made = await api.create(WIDGETS, {**widget("a", size=5), "status": {"ready": True}})
    patch = {"status": {"ready": True}, "spec": {"size": 9}, "metadata": {"labels": {"x": "y"}}}
    changed = await api.ask("PATCH", f"{WIDGETS}/a/status", patch, MERGE)
    refused = await api.ask("PUT", f"{WIDGETS}/a", widget("a", size=6))

    assert "status" not in made
    assert (changed.body["status"], changed.body["spec"]["size"]) == ({"ready": True}, 5)
    assert "labels" not in changed.body["metadata"]
    assert changed.body["metadata"]["generation"] == 1
    assert refused.code == 422
    assert (await api.ask("PATCH", f"{WIDGETS}/a", {}, STRATEGIC)).code == 415
    raised = await api.ask("PATCH", f"{WIDGETS}/a", {"spec": {"size": 6}}, MERGE)
    assert raised.body["metadata"]["generation"] == 2


async def test_custom_columns_are_shown(api: Api) -> None:
    columns = [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}]
    await api.create(CRDS, definition(additionalPrinterColumns=columns))
    await api.create(WIDGETS, widget("a", size=7))
    table = (await api.ask("GET", WIDGETS, headers=TABLE)).body

    assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "Size"]
    assert table["rows"][0]["cells"] == ["a", 7]


async def test_a_custom_object_scales_where_its_definition_says(api: Api) -> None:
    scale = {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"}
    await api.create(CRDS, definition(subresources={"status": {}, "scale": scale}))
    await api.create(WIDGETS, widget("a", size=2))
    before = (await api.ask("GET", f"{WIDGETS}/a/scale")).body
    after = (await api.ask("PATCH", f"{WIDGETS}/a/scale", {"spec": {"replicas": 8}}, MERGE)).body

    assert (before["spec"]["replicas"], after["spec"]["replicas"]) == (2, 8)
    assert (await api.ask("GET", f"{WIDGETS}/a")).body["spec"]["size"] == 8


async def test_a_definition_that_goes_takes_its_objects_with_it(api: Api) -> None:
    await api.create(CRDS, definition())
    held = widget("held")
    held["metadata"]["finalizers"] = ["example.com/hold"]
    await api.create(WIDGETS, widget("free"))
    await api.create(WIDGETS, held)
    going = await api.ask("DELETE", f"{CRDS}/widgets.example.com")
    await until(api, WIDGETS, "free", going.body, is_gone)
    late = await api.ask("POST", WIDGETS, widget("late"))
    still = await api.ask("GET", f"{CRDS}/widgets.example.com")
    patch = {"metadata": {"finalizers": None}}

    assert conditions(going.body)["Terminating"] == "True"
    assert (late.code, late.reason) == (403, "Forbidden")
    assert still.code == 200
    assert (await api.ask("PATCH", f"{WIDGETS}/held", patch, MERGE)).code == 200
    await until(api, CRDS, "widgets.example.com", going.body, is_gone)
    assert (await api.ask("GET", WIDGETS)).code == 404
    await api.create(CRDS, definition())
    assert (await api.ask("GET", WIDGETS)).body["items"] == []


async def test_a_name_belongs_to_the_first_and_to_the_next_when_it_is_free(api: Api) -> None:
    await api.create(CRDS, definition())
    rival = definition("gadgets", "Widget")
    made = await api.create(CRDS, rival)
    assert conditions(made) == {"NamesAccepted": "False", "Established": "False"}
    await api.ask("DELETE", f"{CRDS}/widgets.example.com")

    await until(api, CRDS, "gadgets.example.com", made, lambda _, crd: conditions(crd)["Established"] == "True")
    assert (await api.ask("GET", "/apis/example.com/v1/namespaces/default/gadgets")).code == 200


async def test_a_default_that_comes_later_is_seen_in_older_objects(api: Api) -> None:
    made = await api.create(CRDS, definition())
    await api.create(WIDGETS, widget("a"))
    colour = made["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["colour"]
    colour["default"] = "blue"
    assert (await api.ask("PUT", f"{CRDS}/widgets.example.com", made)).code == 200
    await api.create(WIDGETS, widget("b", colour="red"))

    read = (await api.ask("GET", f"{WIDGETS}/a")).body
    listed = (await api.ask("GET", WIDGETS)).body["items"]
    async with api.watch(WIDGETS) as stream:
        seen = [await stream.event() for _ in range(2)]
    assert read["spec"]["colour"] == "blue"
    assert [each["spec"]["colour"] for each in listed] == ["blue", "red"]
    assert [obj["spec"]["colour"] for _, obj in seen] == ["blue", "red"]


async def test_one_object_is_shown_in_every_version(api: Api) -> None:
    body = definition()
    (first,) = body["spec"]["versions"]
    body["spec"]["versions"].append({**first, "name": "v2", "storage": False})
    await api.create(CRDS, body)
    await api.create(WIDGETS, widget("a"))
    other = (await api.ask("GET", WIDGETS.replace("/v1/", "/v2/") + "/a")).body
    group = (await api.ask("GET", "/apis/example.com")).body

    assert (other["apiVersion"], other["metadata"]["name"]) == ("example.com/v2", "a")
    assert group["preferredVersion"]["version"] == "v2"


async def test_definitions_and_objects_survive_a_restart(tmp_path: Path) -> None:
    store = await Store.open(tmp_path / "state.db")
    async with running(tmp_path / "server", store) as api:
        await api.create(CRDS, definition())
        await api.create(WIDGETS, widget("a"))
        token = api.server.token
    await store.close()
    store = await Store.open(tmp_path / "state.db")
    async with running(tmp_path / "server", store) as api:
        assert api.server.token == token
        assert (await api.ask("GET", f"{WIDGETS}/a")).code == 200
    await store.close()


async def test_our_own_definition_is_accepted(api: Api) -> None:
    made = await api.create(CRDS, crd.render(kinds.TASKSET))

    assert conditions(made)["Established"] == "True"
    assert (await api.ask("GET", "/apis/octopus.openi.pcl.cn/v1alpha1/tasksets")).code == 200
