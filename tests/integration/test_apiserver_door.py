"""Who gets in, and what becomes of nonsense? The embedded API server, over HTTPS."""

from __future__ import annotations

import ssl
import stat
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
from apiserver_fixture import APPLY, DEFAULT, JSON_PATCH, MERGE, STRATEGIC, Api, config_map, pod, running
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

MAPS = f"{DEFAULT}/configmaps"


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[Api]:
    async with running(tmp_path) as api:
        yield api


@pytest.mark.parametrize("path", ["/api", "/apis", "/metrics", "/", "/nothing", MAPS, "/openapi/v3", "//"])
async def test_nobody_gets_in_without_a_token(api: Api, path: str) -> None:
    for token in ("", "wrong", api.server.token + "x"):
        answer = await api.ask("GET", path, token=token)
        assert (answer.code, answer.reason) == (401, "Unauthorized")


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz", "/version", "/version/", "/readyz?verbose"])
async def test_everybody_may_ask_whether_the_server_is_well(api: Api, path: str) -> None:
    assert (await api.ask("GET", path, token="")).code == 200


async def test_nobody_gets_in_without_tls(api: Api) -> None:
    async with aiohttp.ClientSession() as session:
        with pytest.raises(aiohttp.ClientError):
            await session.get(api.server.url.replace("https", "http") + "/version")


async def test_the_certificate_is_of_an_authority_of_our_own(api: Api) -> None:
    async with aiohttp.ClientSession() as session:
        with pytest.raises(aiohttp.ClientConnectorCertificateError):
            await session.get(api.server.url + "/version", ssl=ssl.create_default_context())


async def test_secrets_are_readable_by_their_owner_alone(api: Api) -> None:
    directory = api.server.kubeconfig.parent

    for file in directory.iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600, file
    assert api.server.token in api.server.kubeconfig.read_text()


async def test_paths_that_lead_nowhere_are_answered_as_by_the_real_server(api: Api) -> None:
    outside = await api.ask("GET", "/nothing")
    unknown = await api.ask("GET", "/api/v1/nothing")
    wrong_verb = await api.ask("PUT", MAPS, config_map("a"))
    empty_part = await api.ask("DELETE", "/api/v1/namespaces//configmaps")

    assert (outside.code, outside.body) == (404, b"404 page not found\n")
    assert (unknown.code, unknown.reason, unknown.body["details"]) == (404, "NotFound", {})
    assert (wrong_verb.code, wrong_verb.reason) == (405, "MethodNotAllowed")
    assert empty_part.code == 404


async def test_a_body_that_is_too_large_is_refused(api: Api) -> None:
    answer = await api.ask("POST", MAPS, config_map("a", k="x" * (3 * 1024 * 1024)))

    assert (answer.code, answer.reason) == (413, "RequestEntityTooLarge")
    assert (await api.ask("GET", "/version")).code == 200


async def test_a_slash_at_the_end_changes_nothing(api: Api) -> None:
    for path in ("/version/", "/api/", "/apis/", "/api/v1/", f"{MAPS}/"):
        assert (await api.ask("GET", path)).code == 200


async def test_yaml_is_read_and_written(api: Api) -> None:
    body = b"metadata: {name: a}\ndata: {k: 'yes'}\n"
    made = await api.ask("POST", MAPS, body, {"Content-Type": "application/yaml"})
    read = await api.ask("GET", f"{MAPS}/a", headers={"Accept": "application/yaml"})

    assert made.code == 201
    assert (read.headers["Content-Type"], b"kind: ConfigMap\n" in read.body) == ("application/yaml", True)


FIELDS = ["metadata", "spec", "status", "kind", "apiVersion", "name", "data", "finalizers", "op", "path"]
NONSENSE = st.one_of(
    st.binary(max_size=60),
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(max_size=8),
        lambda inner: (
            st.lists(inner, max_size=4)
            | st.dictionaries(
                st.sampled_from(
                    ["metadata", "spec", "status", "kind", "apiVersion", "name", "data", "finalizers", "op", "path"]
                )
                | st.text(max_size=5),
                inner,
                max_size=5,
            )
        ),
        max_leaves=12,
    ),
)
PATHS = st.sampled_from(
    [
        MAPS,
        f"{MAPS}/a",
        f"{DEFAULT}/pods",
        f"{DEFAULT}/pods/p/status",
        f"{DEFAULT}/pods/p/binding",
        f"{DEFAULT}/pods/p/eviction",
        "/apis/apps/v1/namespaces/default/deployments/d/scale",
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
        "/apis/authentication.k8s.io/v1/tokenreviews",
        "/apis/events.k8s.io/v1/namespaces/default/events",
        "/api/v1/namespaces",
    ]
)
HEADERS = st.sampled_from(
    [
        {},
        MERGE,
        JSON_PATCH,
        STRATEGIC,
        APPLY,
        {"Content-Type": "application/yaml"},
        {"Content-Type": "application/vnd.kubernetes.protobuf"},
        {"Accept": "application/json;as=Table;g=meta.k8s.io;v=v1"},
    ]
)
QUERIES = st.sampled_from(
    [
        "",
        "?fieldManager=m",
        "?dryRun=All",
        "?limit=-1",
        "?continue=e30",
        "?labelSelector=%00",
        "?fieldSelector=%5C",
        "?fieldValidation=Strict",
        "?resourceVersion=-1",
        "?gracePeriodSeconds=x",
        "?timeoutSeconds=1&watch=1&resourceVersion=7&labelSelector=nobody%3Dhas",
    ]
)


async def test_nonsense_is_refused_and_never_breaks_the_server(api: Api) -> None:
    seen: list[tuple[str, str, object, object, int]] = []
    await api.create(MAPS, config_map("a"))
    await api.create(f"{DEFAULT}/pods", pod("p"))
    cases: list[tuple[str, str, object, dict[str, str]]] = []

    @settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.sampled_from(["GET", "POST", "PUT", "PATCH", "DELETE"]), PATHS, QUERIES, NONSENSE, HEADERS)
    def gather(method: str, path: str, query: str, body: object, headers: dict[str, str]) -> None:
        cases.append((method, path + query, body, headers))

    gather()
    for method, path, body, headers in cases:
        answer = await api.ask(method, path, None if method == "GET" else body, headers)
        # 504 is right: a revision that is yet to come.
        if answer.code >= 500 and answer.code != 504:
            seen.append((method, path, body, headers, answer.code))

    assert seen == []
