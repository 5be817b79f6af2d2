from __future__ import annotations

import json

import pytest

from octarbiter.api.scheme import NODES, PODS, TASKSETS
from octarbiter.runtime import requests


def test_an_object_is_asked_for_by_its_path() -> None:
    assert requests.get(TASKSETS, "lab", "train").target == (
        "/apis/octopus.openi.pcl.cn/v1alpha1/namespaces/lab/tasksets/train"
    )
    assert requests.get(NODES, "", "n1").target == "/api/v1/nodes/n1"


def test_names_and_selectors_are_quoted() -> None:
    assert requests.get(PODS, "a b", "x?y").target == "/api/v1/namespaces/a%20b/pods/x%3Fy"
    assert requests.list_(PODS, "lab", label_selector="a in (b,c)").target == (
        "/api/v1/namespaces/lab/pods?labelSelector=a+in+%28b%2Cc%29"
    )


def test_a_forgotten_name_is_an_error_and_not_a_request_for_the_collection() -> None:
    with pytest.raises(ValueError):
        requests.delete(PODS, "lab", "")


@pytest.mark.parametrize("name", [".", "..", "a/status", "../b", "a%2Fstatus"])
def test_a_name_that_would_lead_to_another_path_is_an_error(name: str) -> None:
    with pytest.raises(ValueError):
        requests.get(PODS, "lab", name)
    with pytest.raises(ValueError):
        requests.list_(PODS, name)


def test_a_namespaced_object_needs_its_namespace() -> None:
    with pytest.raises(ValueError):
        requests.get(PODS, "", "p")
    with pytest.raises(ValueError):
        requests.create(PODS, "", {})


def test_a_list_says_only_what_was_asked() -> None:
    assert requests.list_(PODS).target == "/api/v1/pods"
    assert dict(requests.list_(PODS, "lab", limit=500, continue_="tok", resource_version="0").query) == {
        "limit": "500",
        "continue": "tok",
        "resourceVersion": "0",
    }


def test_a_watch_asks_for_bookmarks_and_goes_on_at_its_revision() -> None:
    assert dict(requests.watch(PODS, resource_version="7", timeout_s=60).query) == {
        "watch": "true",
        "allowWatchBookmarks": "true",
        "resourceVersion": "7",
        "timeoutSeconds": "60",
    }


def test_a_streamed_list_names_the_match_the_server_demands() -> None:
    query = dict(requests.watch(PODS, send_initial_events=True).query)

    assert (query["sendInitialEvents"], query["resourceVersionMatch"]) == ("true", "NotOlderThan")


def test_bytes_travel_as_they_are_and_objects_as_json() -> None:
    assert requests.create(PODS, "lab", b'{"a": 1}').body == b'{"a": 1}'
    assert requests.create(PODS, "lab", {"a": 1}).body == b'{"a":1}'


def test_each_kind_of_patch_has_its_content_type() -> None:
    merge = requests.merge_patch(PODS, "lab", "p", {"x": None}, subresource="status")
    steps = requests.json_patch(PODS, "lab", "p", [{"op": "remove", "path": "/x"}])
    applied = requests.apply(PODS, "lab", "p", {}, field_manager="me", force=True)

    assert (merge.method, merge.path, merge.body) == ("PATCH", "/api/v1/namespaces/lab/pods/p/status", b'{"x":null}')
    assert [r.content_type for r in (merge, steps, applied)] == [
        "application/merge-patch+json",
        "application/json-patch+json",
        "application/apply-patch+yaml",
    ]
    assert dict(applied.query) == {"fieldManager": "me", "force": "true"}
    assert merge.resource == "pods/status"


def test_a_delete_carries_its_preconditions_and_a_grace_period_of_zero() -> None:
    request = requests.delete(
        PODS, "lab", "p", propagation="Foreground", grace_period_seconds=0, uid="u1", resource_version="9"
    )

    assert json.loads(request.body) == {
        "kind": "DeleteOptions",
        "apiVersion": "v1",
        "propagationPolicy": "Foreground",
        "gracePeriodSeconds": 0,
        "preconditions": {"uid": "u1", "resourceVersion": "9"},
    }


def test_deleting_a_collection_needs_a_selector() -> None:
    assert requests.delete_collection(PODS, "lab", "a=b").target == "/api/v1/namespaces/lab/pods?labelSelector=a%3Db"
    with pytest.raises(ValueError):
        requests.delete_collection(PODS, "lab", "")


def test_a_log_can_be_asked_for_without_a_single_line_of_the_past() -> None:
    request = requests.log("lab", "p", container="c", follow=True, tail_lines=0)

    assert request.target == "/api/v1/namespaces/lab/pods/p/log?container=c&follow=true&tailLines=0"


def test_an_eviction_is_posted_to_its_pod() -> None:
    request = requests.evict("lab", "p", uid="u1")

    assert (request.method, request.path, request.resource) == (
        "POST",
        "/api/v1/namespaces/lab/pods/p/eviction",
        "pods/eviction",
    )
    assert json.loads(request.body)["deleteOptions"]["preconditions"] == {"uid": "u1"}
