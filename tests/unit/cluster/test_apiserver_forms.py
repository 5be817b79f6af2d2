"""Paths, media types, options and tables of the API server: everything that is read from a request's head."""

from __future__ import annotations

from urllib.parse import parse_qsl

import pytest
from hypothesis import given
from hypothesis import strategies as st
from multidict import MultiDict

from octarbiter.cluster.apiserver import (
    catalogue,
    discovery,
    kinds,
    listing,
    negotiation,
    objects,
    options,
    routing,
    status,
)
from octarbiter.cluster.apiserver.negotiation import Form, View

TABLE = (
    "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json"
)


@pytest.mark.parametrize(
    ("path", "target"),
    [
        ("/api/v1/pods", routing.Target("", "v1", "pods")),
        ("/api/v1/namespaces/x/pods/p", routing.Target("", "v1", "pods", "x", "p")),
        ("/api/v1/namespaces/x/pods/p/log", routing.Target("", "v1", "pods", "x", "p", "log")),
        ("/api/v1/namespaces/x", routing.Target("", "v1", "namespaces", "", "x")),
        ("/api/v1/namespaces/x/finalize", routing.Target("", "v1", "namespaces", "", "x", "finalize")),
        ("/apis/batch/v1/namespaces/x/jobs/j/status", routing.Target("batch", "v1", "jobs", "x", "j", "status")),
        ("/apis/example.com/v1/namespaces/x/status", routing.Target("example.com", "v1", "status", "x")),
        ("/api/v1/watch/namespaces/x/pods", routing.Target("", "v1", "pods", "x", watch=True)),
        ("/api/v1/nodes/n/proxy/a/b", routing.Target("", "v1", "nodes", "", "n", "proxy", ("a", "b"))),
    ],
)
def test_a_path_names_a_resource(path: str, target: routing.Target) -> None:
    parts = routing.parts_of(path)

    assert parts is not None
    assert routing.target(parts) == target


def test_a_path_with_an_empty_part_names_nothing() -> None:
    assert routing.parts_of("/api/v1/namespaces//pods") is None
    assert routing.parts_of("/") == ("",)


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        ("", Form()),
        ("*/*", Form()),
        ("application/json", Form()),
        ("application/yaml", Form(media_type="application/yaml")),
        ("application/vnd.kubernetes.protobuf, */*", Form()),
        ("application/vnd.kubernetes.protobuf", Form()),
        ("application/yaml;q=0.5, application/json", Form()),
        (TABLE, Form(view=View.TABLE)),
        ("application/json;as=Table;v=v1beta1;g=meta.k8s.io", Form(view=View.TABLE, version="v1beta1")),
        ("application/json;as=Unknown;v=v1;g=meta.k8s.io,application/json", Form()),
        ("application/json;pretty=1", Form(pretty=True)),
    ],
)
def test_the_form_of_an_answer_is_what_the_client_likes_best(accept: str, form: Form) -> None:
    assert negotiation.negotiate(accept) == form


@pytest.mark.parametrize("accept", ["text/html", "application/*", "application/json;as=Unknown;v=v1;g=meta.k8s.io"])
def test_what_cannot_be_written_is_not_acceptable(accept: str) -> None:
    with pytest.raises(status.Failure) as refused:
        negotiation.negotiate(accept)

    assert refused.value.code == 406


def test_custom_objects_are_never_protobuf() -> None:
    with pytest.raises(status.Failure) as refused:
        negotiation.negotiate("application/vnd.kubernetes.protobuf", custom=True)
    with pytest.raises(status.Failure) as unread:
        negotiation.body_type("application/vnd.kubernetes.protobuf", custom=True)

    assert (refused.value.code, unread.value.code) == (406, 415)


@pytest.mark.parametrize(
    ("text", "meant"),
    [("true", True), ("True", True), ("", True), ("x", True), ("0", False), ("False", False), (None, False)],
)
def test_booleans_are_read_as_the_real_server_reads_them(text: str | None, meant: bool) -> None:
    assert options.is_true(text) is meant


@pytest.mark.parametrize(
    "query",
    [
        "resourceVersionMatch=Exact",
        "resourceVersion=0&resourceVersionMatch=Exact",
        "resourceVersion=1&resourceVersionMatch=Nonsense",
        "sendInitialEvents=true",
        "watch=1&sendInitialEvents=true",
        "watch=1&resourceVersionMatch=NotOlderThan",
    ],
)
def test_contradictions_are_invalid(query: str) -> None:
    with pytest.raises(status.Failure) as refused:
        options.listing(MultiDict(parse_qsl(query)), kinds.PODS)

    assert refused.value.code == 422


@pytest.mark.parametrize(
    ("agent", "manager"), [("kubectl/v1.35 (linux)", "kubectl"), ("", "unknown"), ("a\tb/1", "ab")]
)
def test_whoever_names_no_manager_is_known_by_the_programs_name(agent: str, manager: str) -> None:
    assert options.write(MultiDict(), agent).manager == manager


@given(st.text(max_size=40))
def test_a_token_is_understood_or_refused(text: str) -> None:
    codes = set()
    try:
        listing.decode_token(text)
    except status.Failure as failure:
        codes.add(failure.code)

    assert codes <= {400}


def test_every_row_has_a_place_of_its_own_and_a_list_kind() -> None:
    rows = kinds.BUILT_IN
    places = [row.root for row in rows if not row.stored_as]

    assert len(places) == len(set(places))
    assert {row.list_kind for row in rows} == {f"{row.kind}List" for row in rows}
    assert all(row.key("x", "y").startswith(row.prefix("x" if row.namespaced else "")) for row in rows)


def test_versions_are_ranked_as_clients_expect() -> None:
    versions = ["v1alpha1", "v2", "nonsense", "v1", "v10", "v1beta2", "v1beta1", "v11alpha2"]

    ranked = ["v10", "v2", "v1", "v1beta2", "v1beta1", "v11alpha2", "v1alpha1", "nonsense"]
    assert sorted(versions, key=catalogue.version_rank) == ranked


@pytest.mark.parametrize(
    ("accept", "is_aggregated"),
    [
        ("", False),
        ("application/json", False),
        ("application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json", True),
        ("application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json", False),
        ("application/json;g=apidiscovery.k8s.io;v=v9;as=APIGroupDiscoveryList,application/json", False),
    ],
)
def test_discovery_is_told_in_the_form_that_was_asked_for(accept: str, is_aggregated: bool) -> None:
    assert discovery.is_aggregated(accept) is is_aggregated


def test_selectors_see_labels_names_and_the_fields_of_the_kind() -> None:
    value = objects.encode(
        {
            "metadata": {"name": "p", "namespace": "x", "labels": {"a": "b"}, "uid": "u"},
            "spec": {"nodeName": "n", "hostNetwork": True, "containers": [{"name": "c"}]},
            "status": {"phase": "Running"},
        }
    )
    seen = objects.glimpser(kinds.PODS.selectable)(value)

    assert seen.labels == {"a": "b"}
    assert [seen.field(name) for name in ("metadata.name", "spec.nodeName", "spec.hostNetwork", "status.podIP")] == [
        "p",
        "n",
        "true",
        "",
    ]
    bare = objects.glimpser(kinds.PODS.selectable)(b'{"metadata":{"name":"q"}}')
    assert (bare.field("spec.hostNetwork"), bare.labels) == ("false", {})
