"""The official Python client: typed, dynamic, and with a terminal's stream."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kubernetes import client, config, dynamic, stream, watch
from octarbiter.testing.cluster import EmbeddedCluster


def connect(cluster: EmbeddedCluster) -> client.ApiClient:
    return config.new_client_from_config(str(cluster.kubeconfig))


@pytest.fixture
def api(cluster: EmbeddedCluster) -> Iterator[client.ApiClient]:
    with connect(cluster) as made:
        yield made


@pytest.fixture
def found(api: client.ApiClient, tmp_path: Path) -> dynamic.DynamicClient:
    """Without a cache of its own it would share one with every other server that ever had this port."""
    return dynamic.DynamicClient(api, cache_file=str(tmp_path / "discovery.json"))


@pytest.fixture
def running_core(running_cluster: EmbeddedCluster) -> Iterator[client.CoreV1Api]:
    with connect(running_cluster) as made:
        yield client.CoreV1Api(made)


def pod(name: str, script: str) -> client.V1Pod:
    container = client.V1Container(name="main", image="busybox", command=["sh", "-c", script])
    spec = client.V1PodSpec(containers=[container], restart_policy="Never")
    return client.V1Pod(metadata=client.V1ObjectMeta(name=name, labels={"app": "demo"}), spec=spec)


def wait_for(core: client.CoreV1Api, namespace: str, name: str, phase: str) -> client.V1Pod:
    watching = watch.Watch()
    selector = f"metadata.name={name}"
    for event in watching.stream(core.list_namespaced_pod, namespace, field_selector=selector, timeout_seconds=30):
        if event["object"].status.phase == phase:
            watching.stop()
            return event["object"]
    raise AssertionError(f"{name} was never {phase}")


def test_typed_objects_are_made_listed_changed_and_deleted(api: client.ApiClient, namespace: str) -> None:
    core = client.CoreV1Api(api)
    body = client.V1ConfigMap(metadata=client.V1ObjectMeta(name="settings"), data={"a": "1"})
    made = core.create_namespaced_config_map(namespace, body)
    made.data = {"a": "2"}
    replaced = core.replace_namespaced_config_map("settings", namespace, made)

    assert replaced.data == {"a": "2"}
    assert replaced.metadata.creation_timestamp.tzinfo is not None
    with pytest.raises(client.ApiException) as refusal:
        core.replace_namespaced_config_map("settings", namespace, made)
    assert (refusal.value.status, refusal.value.reason) == (409, "Conflict")
    core.delete_namespaced_config_map("settings", namespace)
    with pytest.raises(client.ApiException, match="404"):
        core.read_namespaced_config_map("settings", namespace)


def test_a_long_list_comes_in_pages(api: client.ApiClient, namespace: str) -> None:
    core = client.CoreV1Api(api)
    for name in ("one", "two"):
        core.create_namespaced_secret(namespace, {"metadata": {"name": name}})
    first = core.list_namespaced_secret(namespace, limit=1)
    rest = core.list_namespaced_secret(namespace, limit=1, _continue=first.metadata._continue)

    assert first.metadata.remaining_item_count == 1
    assert [[item.metadata.name for item in page.items] for page in (first, rest)] == [["one"], ["two"]]
    assert not rest.metadata._continue


def test_a_patch_is_strategic_for_a_mapping_and_a_json_patch_for_a_list(api: client.ApiClient, namespace: str) -> None:
    core = client.CoreV1Api(api)
    core.create_namespaced_config_map(namespace, {"metadata": {"name": "settings"}, "data": {"a": "1", "b": "2"}})
    core.patch_namespaced_config_map("settings", namespace, {"data": {"a": None, "c": "3"}})
    operation = [{"op": "replace", "path": "/data/b", "value": "7"}]

    assert core.patch_namespaced_config_map("settings", namespace, operation).data == {"b": "7", "c": "3"}


def test_a_watch_goes_on_from_a_list(api: client.ApiClient, namespace: str) -> None:
    core = client.CoreV1Api(api)
    listed = core.list_namespaced_config_map(namespace)
    core.create_namespaced_config_map(namespace, {"metadata": {"name": "new"}})
    core.patch_namespaced_config_map("new", namespace, {"data": {"a": "1"}})
    core.delete_namespaced_config_map("new", namespace)
    seen = []
    watching = watch.Watch()
    version = listed.metadata.resource_version
    for event in watching.stream(
        core.list_namespaced_config_map,
        namespace,
        resource_version=version,
        field_selector="metadata.name=new",
        timeout_seconds=30,
    ):
        seen.append((event["type"], event["object"].data))
        if event["type"] == "DELETED":
            watching.stop()

    assert seen == [("ADDED", None), ("MODIFIED", {"a": "1"}), ("DELETED", {"a": "1"})]


def test_a_job_runs_to_its_end(api: client.ApiClient, namespace: str) -> None:
    batch = client.BatchV1Api(api)
    template = client.V1PodTemplateSpec(spec=pod("ignored", "exit 0").spec)
    spec = client.V1JobSpec(completions=3, parallelism=2, template=template)
    batch.create_namespaced_job(namespace, client.V1Job(metadata=client.V1ObjectMeta(name="work"), spec=spec))
    watching = watch.Watch()
    for event in watching.stream(batch.list_namespaced_job, namespace, timeout_seconds=30):
        conditions = event["object"].status.conditions or []
        if any(each.type == "Complete" and each.status == "True" for each in conditions):
            watching.stop()
            assert event["object"].status.succeeded == 3
            return
    raise AssertionError("the job did not complete")


def test_the_dynamic_client_finds_kinds_by_itself(found: dynamic.DynamicClient, namespace: str) -> None:
    tasksets = found.resources.get(api_version="octopus.openi.pcl.cn/v1alpha1", kind="TaskSet")
    container = {"name": "main", "image": "busybox", "command": ["sh", "-c", "sleep 1000"]}
    role: dict[str, Any] = {
        "name": "worker",
        "replicas": 1,
        "template": {"spec": {"restartPolicy": "Never", "containers": [container]}},
    }
    body = {"apiVersion": "octopus.openi.pcl.cn/v1alpha1", "kind": "TaskSet", "metadata": {"name": "demo"}}
    made = tasksets.create(body=body | {"spec": {"roles": [role]}}, namespace=namespace)
    assert made.metadata.uid

    changes = tasksets.watch(namespace=namespace, name="demo", timeout=30)
    running = next(event["object"] for event in changes if (event["object"].status or {}).get("state") == "Running")
    assert running.metadata.name == "demo"
    label = {"metadata": {"labels": {"x": "y"}}}
    content_type = "application/merge-patch+json"
    tasksets.patch(body=label, name="demo", namespace=namespace, content_type=content_type)
    assert [item.metadata.name for item in tasksets.get(namespace=namespace, label_selector="x=y").items] == ["demo"]


def test_the_dynamic_client_applies_on_the_server(found: dynamic.DynamicClient, namespace: str) -> None:
    maps = found.resources.get(api_version="v1", kind="ConfigMap")
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"a": "1"}}
    applied = maps.server_side_apply(body=body, namespace=namespace, field_manager="me")

    assert [(each.manager, each.operation) for each in applied.metadata.managedFields] == [("me", "Apply")]


def test_a_pod_runs_talks_and_executes_commands(running_core: client.CoreV1Api, running_namespace: str) -> None:
    running_core.create_namespaced_pod(running_namespace, pod("talker", "echo hello; sleep 1000"))
    ready = wait_for(running_core, running_namespace, "talker", "Running")
    assert ready.status.container_statuses[0].state.running.started_at is not None

    execute = running_core.connect_get_namespaced_pod_exec
    said = stream.stream(
        execute,
        "talker",
        running_namespace,
        command=["sh", "-c", "echo out; echo err >&2; cat; exit 3"],
        stdin=True,
        stdout=True,
        stderr=True,
        tty=False,
        _preload_content=False,
    )
    said.write_stdin("in\n")
    while "in" not in said.peek_stdout(timeout=30):
        assert said.is_open()
    assert said.read_stdout().split() == ["out", "in"]
    assert said.read_stderr() == "err\n"
    said.close()
    logs = watch.Watch().stream(running_core.read_namespaced_pod_log, "talker", running_namespace)
    assert next(iter(logs)) == "hello"


def test_the_exit_code_of_a_command_is_told(running_core: client.CoreV1Api, running_namespace: str) -> None:
    running_core.create_namespaced_pod(running_namespace, pod("sleeper", "sleep 1000"))
    wait_for(running_core, running_namespace, "sleeper", "Running")
    execute = running_core.connect_get_namespaced_pod_exec
    command = ["sh", "-c", "exit 3"]
    said = stream.stream(execute, "sleeper", running_namespace, command=command, stdout=True, _preload_content=False)
    said.run_forever(timeout=30)

    assert said.returncode == 3
