"""Real clients of the embedded API server: our own, and kubectl."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from apiserver_fixture import DEFAULT, Api, config_map, definition, pod, running

from octarbiter.api import errors
from octarbiter.api.scheme import PODS
from octarbiter.runtime import client, kubeconfig
from octarbiter.testing.kubernetes import build


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[Api]:
    async with running(tmp_path / "server") as api:
        yield api


class Kubectl:
    def __init__(self, program: Path, api: Api, home: Path) -> None:
        self._program = program
        self._api = api
        self._home = home

    async def __call__(self, *arguments: str, stdin: str = "") -> str:
        process = await self.start(*arguments)
        out, problem = await asyncio.wait_for(process.communicate(stdin.encode()), 60)
        assert process.returncode == 0, problem.decode()
        return out.decode()

    async def start(self, *arguments: str) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            self._program,
            f"--kubeconfig={self._api.server.kubeconfig}",
            *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={"PATH": os.environ.get("PATH", ""), "HOME": str(self._home)},
        )


@pytest.fixture
async def kubectl(api: Api, tmp_path: Path) -> Kubectl:
    program = build.find("kubectl")
    if program is None:
        pytest.skip(f"there is no kubectl in {build.binaries_home()}; the tests on a real Kubernetes build one")
    return Kubectl(program, api, tmp_path)


async def test_our_client_creates_patches_lists_and_deletes(api: Api) -> None:
    connection = kubeconfig.load(str(api.server.kubeconfig))
    async with client.Client(connection) as ours:
        made = await ours.create(PODS, "default", pod("p"))
        patched = await ours.merge_patch(PODS, "default", "p", {"metadata": {"labels": {"a": "b"}}})
        listed = await ours.list(PODS, "default", label_selector="a=b")
        with pytest.raises(errors.AlreadyExists):
            await ours.create(PODS, "default", pod("p"))
        await ours.delete(PODS, "default", "p")
        with pytest.raises(errors.NotFound):
            await ours.get(PODS, "default", "p")

    assert made.metadata.uid == patched.metadata.uid
    assert [each.metadata.name for each in listed] == ["p"]


async def test_kubectl_creates_shows_labels_scales_and_deletes(kubectl: Kubectl) -> None:
    assert "default" in await kubectl("get", "namespaces")
    await kubectl("create", "configmap", "x", "--from-literal=a=b", "--validate=false")
    await kubectl("label", "configmap", "x", "on=yes")
    await kubectl("create", "deployment", "d", "--image=nginx", "--validate=false")
    await kubectl("scale", "deployment", "d", "--replicas=3")

    assert (await kubectl("get", "cm", "-l", "on=yes", "-o", "name")).split() == ["configmap/x"]
    assert "0/3" in await kubectl("get", "deploy", "d")
    found = json.loads(await kubectl("get", "cm", "x", "-o", "json"))
    assert found["data"] == {"a": "b"}
    await kubectl("delete", "cm,deploy", "--all", "--timeout=20s")
    assert "x" not in (await kubectl("get", "cm", "-o", "name")).split()


async def test_kubectl_sees_what_happens(kubectl: Kubectl, api: Api) -> None:
    watching = await kubectl.start("get", "configmaps", "--watch", "--no-headers", "-o", "name")
    assert watching.stdout is not None
    await api.create(f"{DEFAULT}/configmaps", config_map("first"))
    assert await asyncio.wait_for(watching.stdout.readline(), 30) == b"configmap/first\n"
    await api.create(f"{DEFAULT}/configmaps", config_map("second"))
    assert await asyncio.wait_for(watching.stdout.readline(), 30) == b"configmap/second\n"
    watching.terminate()
    await watching.communicate()


async def test_kubectl_applies_and_applies_again(kubectl: Kubectl) -> None:
    text = json.dumps(config_map("x", a="1"))
    changed = json.dumps(config_map("x", b="2"))
    for options in (["--server-side"], []):
        assert "x" in await kubectl("apply", "--validate=false", "-f", "-", *options, stdin=text)
        assert "x" in await kubectl("apply", "--validate=false", "-f", "-", *options, stdin=changed)

        assert json.loads(await kubectl("get", "cm", "x", "-o", "json"))["data"] == {"b": "2"}
        await kubectl("delete", "cm", "x")


async def test_kubectl_finds_new_kinds_and_waits_for_them(kubectl: Kubectl) -> None:
    await kubectl("create", "--validate=false", "-f", "-", stdin=json.dumps(definition()))
    await kubectl("wait", "--for=condition=Established", "crd/widgets.example.com", "--timeout=20s")
    widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}}
    await kubectl("create", "--validate=false", "-f", "-", stdin=json.dumps(widget))

    assert (await kubectl("get", "wix", "-o", "name")).strip() == "widget.example.com/w"
    await kubectl("delete", "crd", "widgets.example.com", "--timeout=20s")


async def test_kubectl_checks_fields_against_what_the_server_publishes(kubectl: Kubectl, api: Api) -> None:
    await kubectl("create", "-f", "-", stdin=json.dumps(config_map("x", a="1")))
    await kubectl("apply", "-f", "-", stdin=json.dumps(pod("p")))
    wrong = await kubectl.start("create", "-f", "-")
    _, problem = await asyncio.wait_for(wrong.communicate(json.dumps({**config_map("y"), "foo": 1}).encode()), 60)
    await kubectl("create", "-f", "-", stdin=json.dumps(definition()))
    widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"colour": "red"}}
    await kubectl("apply", "-f", "-", stdin=json.dumps(widget))

    assert b'unknown field "foo"' in problem
    assert "FIELD: colour <string>" in await kubectl("explain", "widgets.spec.colour")
    assert "PodSpec" in await kubectl("explain", "pods.spec")


async def test_a_published_document_may_be_kept_until_its_address_changes(api: Api) -> None:
    before = (await api.ask("GET", "/openapi/v3")).body["paths"]
    address = before["apis/batch/v1"]["serverRelativeURL"]
    read = await api.ask("GET", address)
    stale = await api.ask("GET", address.partition("?")[0] + "?hash=ABC")
    await api.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition())
    after = (await api.ask("GET", "/openapi/v3")).body["paths"]

    assert read.headers["Cache-Control"] == "public, immutable"
    assert stale.code == 200
    assert after["apis/batch/v1"] == before["apis/batch/v1"]
    assert "apis/example.com/v1" in after.keys() - before.keys()
