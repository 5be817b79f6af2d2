"""Clients of the asyncio kind, by others: each makes a pod, waits for it, reads what it said."""

from __future__ import annotations

from typing import Any

import pytest

from octarbiter.testing.cluster import EmbeddedCluster


def pod(name: str, namespace: str) -> dict[str, Any]:
    container = {"name": "main", "image": "busybox", "command": ["sh", "-c", "echo hello; sleep 1000"]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"restartPolicy": "Never", "containers": [container]},
    }


async def test_kubernetes_asyncio_watches_a_pod_reads_its_log_and_executes(
    running_cluster: EmbeddedCluster, running_namespace: str
) -> None:
    pytest.importorskip("kubernetes_asyncio")
    from kubernetes_asyncio import client, config, watch
    from kubernetes_asyncio.stream import WsApiClient

    configuration = client.Configuration()
    await config.load_kube_config(str(running_cluster.kubeconfig), client_configuration=configuration)
    async with client.ApiClient(configuration) as api, WsApiClient(configuration) as sockets:
        core = client.CoreV1Api(api)
        await core.create_namespaced_pod(running_namespace, pod("talker", running_namespace))
        async with watch.Watch().stream(core.list_namespaced_pod, running_namespace, timeout_seconds=30) as events:
            async for event in events:
                if event["object"].status.phase == "Running":
                    break
        executed = client.CoreV1Api(sockets).connect_get_namespaced_pod_exec
        said = await executed(
            "talker", running_namespace, command=["echo", "there"], stdout=True, stdin=False, tty=False
        )

        assert said == "there\n"
        assert await core.read_namespaced_pod_log("talker", running_namespace) == "hello\n"
        await core.delete_namespaced_pod("talker", running_namespace, grace_period_seconds=0)


async def test_kr8s_waits_for_a_pod_reads_its_log_and_executes(
    running_cluster: EmbeddedCluster, running_namespace: str
) -> None:
    kr8s = pytest.importorskip("kr8s")
    from kr8s.asyncio.objects import Pod, new_class

    api = await kr8s.asyncio.api(kubeconfig=str(running_cluster.kubeconfig), namespace=running_namespace)
    talker = await Pod(pod("talker", running_namespace), api=api)
    await talker.create()
    await talker.wait("condition=Ready", timeout=30)

    assert [line async for line in talker.logs()] == ["hello"]
    done = await talker.exec(["sh", "-c", "echo there"])
    assert (done.returncode, done.stdout) == (0, b"there\n")
    await talker.label({"seen": "yes"})
    assert [found.name async for found in api.get("pods", label_selector={"seen": "yes"})] == ["talker"]
    tasksets = new_class("TaskSet", version="octopus.openi.pcl.cn/v1alpha1")
    assert [each async for each in api.get(tasksets)] == []
    await talker.delete(grace_period=0)
    await talker.wait("delete", timeout=30)
    assert not await talker.exists()
