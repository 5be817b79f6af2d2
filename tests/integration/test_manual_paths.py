"""The six operations of the manual, under the paths that it prints, on the embedded cluster."""

import http.client
import json
import ssl
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from octarbiter.testing.cluster import EmbeddedCluster

GROUP = "tasksets.octopus.openi.pcl.cn/v1alpha1"
TASKSET = {
    "apiVersion": "octopus.openi.pcl.cn/v1alpha1",
    "kind": "TaskSet",
    "metadata": {"name": "job"},
    "spec": {
        "roles": [
            {
                "name": "worker",
                "replicas": 1,
                "template": {"spec": {"containers": [{"name": "main", "image": "any", "command": ["sleep", "600"]}]}},
            }
        ]
    },
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedCluster]:
    with EmbeddedCluster() as made:
        yield made


@pytest.fixture
def namespace(cluster: EmbeddedCluster) -> str:
    return cluster.create_namespace()


def ask(
    cluster: EmbeddedCluster, method: str, path: str, body: str = "", content_type: str = "application/json"
) -> tuple[int, Any]:
    connection = _open(cluster)
    headers = {"Authorization": f"Bearer {cluster.token}", "Content-Type": content_type, "Accept": content_type}
    connection.request(method, path, body or None, headers)
    answer = connection.getresponse()
    text = answer.read()
    connection.close()
    return answer.status, yaml.safe_load(text)


def _open(cluster: EmbeddedCluster) -> http.client.HTTPSConnection:
    parts = urlsplit(cluster.url)
    context = ssl.create_default_context(cadata=cluster.ca_pem.decode())
    return http.client.HTTPSConnection(parts.hostname or "", parts.port, timeout=30, context=context)


@pytest.mark.parametrize("content_type", ["application/json", "application/yaml"])
def test_create_get_list_and_delete_answer_under_the_manuals_path(
    cluster: EmbeddedCluster, namespace: str, content_type: str
) -> None:
    path = f"/apis/{GROUP}/namespaces/{namespace}/tasksets"
    written = json.dumps(TASKSET) if content_type.endswith("json") else yaml.safe_dump(TASKSET)

    assert ask(cluster, "POST", path, written, content_type)[0] == 201
    assert ask(cluster, "POST", path, written, content_type)[0] == 409
    code, got = ask(cluster, "GET", f"{path}/job", content_type=content_type)
    assert (code, got["apiVersion"], got["metadata"]["name"]) == (200, TASKSET["apiVersion"], "job")
    code, listed = ask(cluster, "GET", path, content_type=content_type)
    assert (code, listed["kind"], [each["metadata"]["name"] for each in listed["items"]]) == (
        200,
        "TaskSetList",
        ["job"],
    )
    everywhere = ask(cluster, "GET", f"/apis/{GROUP}/tasksets", content_type=content_type)[1]["items"]
    assert namespace in [each["metadata"]["namespace"] for each in everywhere]
    assert ask(cluster, "DELETE", f"{path}/job?propagationPolicy=Foreground", content_type=content_type)[0] == 200
    assert ask(cluster, "GET", f"{path}/other", content_type=content_type)[0] == 404


@pytest.mark.parametrize("scope", ["one", "all"])
def test_watches_answer_under_the_manuals_path(cluster: EmbeddedCluster, namespace: str, scope: str) -> None:
    path = f"/apis/{GROUP}/namespaces/{namespace}/tasksets"
    assert ask(cluster, "POST", path, json.dumps(TASKSET))[0] == 201
    watched = {
        "one": f"/apis/{GROUP}/watch/namespaces/{namespace}/tasksets/job",
        "all": f"/apis/{GROUP}/namespaces/{namespace}/tasksets?watch=true",
    }[scope]
    connection = _open(cluster)
    connection.request("GET", watched, headers={"Authorization": f"Bearer {cluster.token}"})
    event = json.loads(connection.getresponse().readline())
    connection.close()

    assert (event["type"], event["object"]["metadata"]["name"]) == ("ADDED", "job")
