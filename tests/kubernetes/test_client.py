"""The client against a real API server: what the server means by its answers, we understand."""

from __future__ import annotations

import asyncio
import base64
import json
import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import yaml

from octarbiter.api import codec, errors
from octarbiter.api.meta import Object
from octarbiter.api.scheme import CONFIGMAPS, NAMESPACES, PODS, Resource
from octarbiter.runtime import client as clients
from octarbiter.runtime import kubeconfig, requests
from octarbiter.testing.kubernetes.bed import Testbed

BUDGETS = Resource("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets", True, Object)


@pytest_asyncio.fixture
async def client(bed: Testbed) -> AsyncIterator[clients.Client]:
    async with clients.Client(kubeconfig.load(str(bed.control_plane.kubeconfig))) as made:
        yield made


def config_map(name: str, **more: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **more}, "data": {"a": "1"}}


def pod(name: str, **spec: Any) -> dict[str, Any]:
    container = {"name": "main", "image": "busybox"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {"containers": [container], **spec},
    }


async def test_what_is_created_can_be_read_listed_and_deleted(client: clients.Client, namespace: str) -> None:
    made = await client.create(CONFIGMAPS, namespace, config_map("a"))

    assert await client.get(CONFIGMAPS, namespace, "a") == made
    assert [
        found.metadata.uid for found in await client.list(CONFIGMAPS, namespace, field_selector="metadata.name=a")
    ] == [made.metadata.uid]
    assert await client.delete(CONFIGMAPS, namespace, "a") is None
    with pytest.raises(errors.NotFound, match='configmaps "a" not found'):
        await client.get(CONFIGMAPS, namespace, "a")


async def test_each_refusal_has_its_class(client: clients.Client, bed: Testbed, namespace: str) -> None:
    await client.create(CONFIGMAPS, namespace, config_map("a"))

    with pytest.raises(errors.AlreadyExists):
        await client.create(CONFIGMAPS, namespace, config_map("a"))
    with pytest.raises(errors.NotFound, match='namespaces "absent" not found'):
        await client.create(CONFIGMAPS, "absent", config_map("a"))
    with pytest.raises(errors.Invalid, match="lowercase RFC 1123"):
        await client.create(CONFIGMAPS, namespace, config_map("A_B"))
    with pytest.raises(errors.Invalid):
        await client.list(CONFIGMAPS, namespace, label_selector="((")
    with pytest.raises(errors.NotFound):
        await client.list(Resource("absent.example", "v1", "X", "xs", True, Object), namespace)
    lesser = kubeconfig.load(str(bed.control_plane.kubeconfig_of("scheduler")))
    async with clients.Client(lesser) as scheduler:
        with pytest.raises(errors.Forbidden, match="system:kube-scheduler"):
            await scheduler.create(NAMESPACES, "", {"metadata": {"name": "mine"}})


async def test_a_patch_on_an_old_version_is_a_conflict(client: clients.Client, namespace: str) -> None:
    old = await client.create(CONFIGMAPS, namespace, config_map("a"))
    new = await client.merge_patch(CONFIGMAPS, namespace, "a", {"data": {"a": "2"}})
    assert new.data == {"a": "2"}

    stale = {"metadata": {"resourceVersion": old.metadata.resource_version}, "data": {"a": "3"}}
    with pytest.raises(errors.Conflict):
        await client.merge_patch(CONFIGMAPS, namespace, "a", stale)
    with pytest.raises(errors.Conflict):
        await client.replace(CONFIGMAPS, namespace, "a", config_map("a", resourceVersion=old.metadata.resource_version))
    assert (await client.get(CONFIGMAPS, namespace, "a")).data == {"a": "2"}


async def test_a_json_patch_is_tested_before_it_is_done(client: clients.Client, namespace: str) -> None:
    await client.create(CONFIGMAPS, namespace, config_map("a"))
    change = {"op": "replace", "path": "/data/a", "value": "2"}

    done = await client.json_patch(
        CONFIGMAPS, namespace, "a", [{"op": "test", "path": "/data/a", "value": "1"}, change]
    )
    assert done.data == {"a": "2"}
    with pytest.raises(errors.Invalid):
        await client.json_patch(CONFIGMAPS, namespace, "a", [{"op": "test", "path": "/data/a", "value": "1"}, change])


async def test_apply_creates_keeps_to_its_own_fields_and_takes_over_by_force(
    client: clients.Client, namespace: str
) -> None:
    await client.apply(CONFIGMAPS, namespace, "a", config_map("a"), field_manager="one")
    other = {**config_map("a"), "data": {"a": "2"}}

    with pytest.raises(errors.Conflict, match='conflict with "one"'):
        await client.apply(CONFIGMAPS, namespace, "a", other, field_manager="two")
    taken = await client.apply(CONFIGMAPS, namespace, "a", other, field_manager="two", force=True)
    assert taken.data == {"a": "2"}


async def test_a_status_is_patched_on_its_own(client: clients.Client, namespace: str) -> None:
    await client.create(PODS, namespace, pod("a", schedulerName="nobody"))
    patch = {"status": {"message": "said"}, "spec": {"nodeName": "elsewhere"}}

    patched = await client.merge_patch(PODS, namespace, "a", patch, subresource="status")

    assert (patched.status.message, patched.spec.node_name) == ("said", "")


async def test_a_delete_with_preconditions_spares_a_successor(client: clients.Client, namespace: str) -> None:
    made = await client.create(CONFIGMAPS, namespace, config_map("a"))

    with pytest.raises(errors.Conflict):
        await client.delete(CONFIGMAPS, namespace, "a", uid="00000000-0000-0000-0000-000000000000")
    with pytest.raises(errors.Conflict):
        await client.delete(CONFIGMAPS, namespace, "a", resource_version="1")
    await client.delete(
        CONFIGMAPS, namespace, "a", uid=made.metadata.uid, resource_version=made.metadata.resource_version
    )


async def test_a_delete_tells_what_is_left_for_a_while(client: clients.Client, namespace: str) -> None:
    await client.create(CONFIGMAPS, namespace, config_map("held", finalizers=["example.com/hold"]))

    left = await client.delete(CONFIGMAPS, namespace, "held")

    assert left is not None
    assert left.metadata.deletion_timestamp is not None
    gone = await client.merge_patch(CONFIGMAPS, namespace, "held", {"metadata": {"finalizers": None}})
    assert gone.metadata.uid == left.metadata.uid
    with pytest.raises(errors.NotFound):
        await client.get(CONFIGMAPS, namespace, "held")


async def test_only_what_is_selected_of_a_collection_is_deleted(client: clients.Client, namespace: str) -> None:
    for name in ("a", "b", "c"):
        await client.create(CONFIGMAPS, namespace, config_map(name, labels={"kept": str(name == "c")}))

    await client.send(requests.delete_collection(CONFIGMAPS, namespace, "kept=False"), bytes)

    assert [found.metadata.name for found in await client.list(CONFIGMAPS, namespace, label_selector="kept")] == ["c"]


async def test_an_eviction_against_a_budget_is_refused_once_with_a_time(bed: Testbed, namespace: str) -> None:
    exchanges: list[tuple[str, str, int]] = []
    node = bed.control_plane.request("GET", "/api/v1/nodes")["items"][0]["metadata"]["name"]
    budget = {"metadata": {"name": "b"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "a"}}}}
    connection = kubeconfig.load(str(bed.control_plane.kubeconfig))
    async with clients.Client(connection, observer=lambda *told: exchanges.append(told)) as client:
        await client.create(PODS, namespace, pod("a", nodeName=node))
        await client.create(BUDGETS, namespace, budget)
        await asyncio.to_thread(
            bed.control_plane.kubectl, "-n", namespace, "wait", "pdb/b", "--for=jsonpath={.status.currentHealthy}=1"
        )
        exchanges.clear()
        with pytest.raises(errors.Retry, match="disruption budget"):
            await client.send(requests.evict(namespace, "a"), bytes)

    assert exchanges == [("create", "pods/eviction", 429)]


@pytest.mark.parametrize("page_size", [0, 1, 4, 100])
async def test_a_list_is_whole_whatever_its_pages(client: clients.Client, namespace: str, page_size: int) -> None:
    await asyncio.gather(
        *(client.create(CONFIGMAPS, namespace, config_map(f"c{n}", labels={"mine": ""})) for n in range(9))
    )

    whole = await client.list_raw(CONFIGMAPS, namespace, label_selector="mine", page_size=page_size)

    names = {codec.decode(item, codec.ObjectWithMeta).metadata.name for item in whole.items}
    assert (len(whole.items), names) == (9, {f"c{n}" for n in range(9)})
    assert int(whole.metadata.resource_version) > 0


Write = Callable[[dict[str, Any]], Path]


@pytest.fixture
def kubeconfig_with(bed: Testbed, tmp_path: Path) -> Write:
    """The admin's kubeconfig with another user in it."""

    def write(user: dict[str, Any]) -> Path:
        config = yaml.safe_load(bed.control_plane.kubeconfig.read_text())
        config["users"][0]["user"] = user
        path = tmp_path / "kubeconfig"
        path.write_text(yaml.safe_dump(config))
        return path

    return write


async def listed_namespaces(path: Path) -> set[str]:
    async with clients.Client(kubeconfig.load(str(path))) as client:
        return {found.metadata.name for found in await client.list(NAMESPACES)}


async def test_a_client_certificate_is_accepted(bed: Testbed, kubeconfig_with: Write) -> None:
    files = bed.control_plane.authority.issue_client("ada", "ada", ["system:masters"])
    certificate, key = (base64.b64encode(file.read_bytes()).decode() for file in files)

    path = kubeconfig_with({"client-certificate-data": certificate, "client-key-data": key})

    assert "default" in await listed_namespaces(path)


async def test_a_plugin_s_token_is_accepted(bed: Testbed, kubeconfig_with: Write, tmp_path: Path) -> None:
    version = "client.authentication.k8s.io/v1"
    credential = {"apiVersion": version, "kind": "ExecCredential", "status": {"token": bed.control_plane.admin_token}}
    plugin = tmp_path / "plugin"
    plugin.write_text(f"#!/bin/sh\necho '{json.dumps(credential)}'\n")
    os.chmod(plugin, 0o700)

    path = kubeconfig_with({"exec": {"apiVersion": version, "command": "./plugin", "interactiveMode": "Never"}})

    assert "default" in await listed_namespaces(path)


async def test_an_impersonated_user_has_only_that_user_s_rights(bed: Testbed, kubeconfig_with: Write) -> None:
    path = kubeconfig_with({"token": bed.control_plane.admin_token, "as": "ada", "as-groups": ["researchers"]})

    with pytest.raises(errors.Forbidden, match='User "ada"'):
        await listed_namespaces(path)


async def test_a_wrong_token_is_told_as_such(kubeconfig_with: Write) -> None:
    with pytest.raises(errors.Unauthorized):
        await listed_namespaces(kubeconfig_with({"token": "wrong"}))
