"""What schemathesis makes of the API server's own OpenAPI documents is answered, and never with a crash.

Every operation of every group is tried with requests that fit its document and with some that do not. How many each:
`OCTARBITER_SCHEMATHESIS_EXAMPLES` (2 in ordinary runs, 11 make more than 5,000).
"""

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
import schemathesis
from apiserver_fixture import DEFAULT, Api, definition, running
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode

from octarbiter.cluster.store.store import Store

EXAMPLES = int(os.environ.get("OCTARBITER_SCHEMATHESIS_EXAMPLES", "2"))
PATIENCE_S = 60.0
PLACE = {"namespace": "default", "name": "a"}
AS_KUBERNETES = "ResourceVersionTooLarge"
"""A version that is yet to come: clients wait for it, because the answer is 504."""
OWN_OPERATIONS = 400
"""Fewer would mean that the documents were not read."""

POD = {"spec": {"containers": [{"name": "c", "image": "x"}]}}
WORKLOAD = {"selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}, **POD}}
JOB = {"template": {"spec": {"restartPolicy": "Never", **POD["spec"]}}}
APPS, BATCH, ROLES = (
    f"/apis/{group}/v1/namespaces/default" for group in ("apps", "batch", "rbac.authorization.k8s.io")
)
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"
WIDGET = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": PLACE["name"]}}
PRESENT: dict[str, Any] = {
    "/api/v1/namespaces": {},
    "/api/v1/nodes": {},
    f"{DEFAULT}/configmaps": {"data": {"k": "v"}},
    f"{DEFAULT}/secrets": {},
    f"{DEFAULT}/serviceaccounts": {},
    f"{DEFAULT}/services": {"spec": {"ports": [{"port": 80}]}},
    f"{DEFAULT}/pods": POD,
    f"{DEFAULT}/replicationcontrollers": {"spec": {**WORKLOAD, "selector": {"a": "b"}}},
    f"{APPS}/deployments": {"spec": WORKLOAD},
    f"{APPS}/replicasets": {"spec": WORKLOAD},
    f"{APPS}/statefulsets": {"spec": {"serviceName": "a", **WORKLOAD}},
    f"{APPS}/daemonsets": {"spec": WORKLOAD},
    f"{BATCH}/jobs": {"spec": JOB},
    f"{BATCH}/cronjobs": {"spec": {"schedule": "0 0 * * *", "jobTemplate": {"spec": JOB}}},
    f"{ROLES}/roles": {"rules": []},
    "/apis/scheduling.k8s.io/v1/priorityclasses": {"value": 1},
    "/apis/coordination.k8s.io/v1/namespaces/default/leases": {},
}
"""One of many kinds, so that more is tried than what happens to things that are not there."""


class Asker:
    def __init__(self, api: Api, authority: Path) -> None:
        self._url = api.server.url
        self._session = requests.Session()
        self._session.trust_env = False
        self._session.verify = str(authority)
        self._session.headers["Authorization"] = f"Bearer {api.server.token}"
        self.crashes: list[str] = []
        self.codes: dict[int, int] = {}

    def documents(self) -> list[Any]:
        """All of them first: some requests take definitions away."""
        index = self._get("/openapi/v3")["paths"].values()
        return [_with_plain_bodies(self._get(each["serverRelativeURL"])) for each in index]

    def _get(self, path: str) -> Any:
        return self._session.get(self._url + path, timeout=PATIENCE_S).json()

    def ask(self, case: schemathesis.Case) -> None:
        request = case.as_transport_kwargs(base_url=self._url)
        try:
            with self._session.request(timeout=PATIENCE_S, stream=True, **request) as response:
                code = response.status_code
                self.codes[code] = self.codes.get(code, 0) + 1
                is_stream = response.headers.get("Transfer-Encoding") == "chunked"  # it would go on for long
                text = "" if is_stream else response.text
        except (requests.exceptions.InvalidHeader, UnicodeError):
            return  # the client cannot say it
        if code >= 500 and AS_KUBERNETES not in text:
            self.crashes.append(f"{code} {text}: {case.as_curl_command()}")

    def close(self) -> None:
        self._session.close()


def _with_plain_bodies(document: Any) -> Any:
    """Where any type of body would be taken: JSON. Most of the others would be refused for their type alone."""
    for operations in document["paths"].values():
        for operation in operations.values():
            content = operation.get("requestBody", {}).get("content", {}) if isinstance(operation, dict) else {}
            if "*/*" in content:
                content["application/json"] = content.pop("*/*")
    return document


def _operations(documents: list[Any]) -> Iterator[Any]:
    for document in documents:
        for found in schemathesis.openapi.from_dict(document).get_all_operations():
            yield found.ok()


def _send_examples(asker: Asker) -> int:
    count = 0
    for operation in _operations(asker.documents()):
        count += 1
        cases = st.one_of(*(operation.as_strategy(generation_mode=mode) for mode in GenerationMode))

        @settings(
            max_examples=EXAMPLES,
            derandomize=True,
            database=None,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=cases, is_tamed=st.booleans())
        def send(case: schemathesis.Case, is_tamed: bool) -> None:
            asker.ask(_tamed(case) if is_tamed else case)

        send()
    return count


def _tamed(case: schemathesis.Case) -> schemathesis.Case:
    """About something that is there."""
    for name, value in PLACE.items():
        if name in case.path_parameters:
            case.path_parameters[name] = value
    if isinstance(case.body, dict):
        case.body.pop("kind", None)
        case.body.pop("apiVersion", None)
        if isinstance(case.body.get("metadata", {}), dict):
            case.body["metadata"] = {**case.body.get("metadata", {}), "name": PLACE["name"]}
    return case


@pytest.mark.timeout(60 + 240 * EXAMPLES)
def test_no_request_that_the_documents_lead_to_breaks_the_server(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    authority = tmp_path / "authority.pem"

    async def story() -> None:
        store = await Store.open(tmp_path / "store")
        async with running(tmp_path, store) as api:
            authority.write_bytes(api.server.ca_pem)
            await api.create(DEFINITIONS, definition())
            for path, content in PRESENT.items():
                await api.create(path, {"metadata": {"name": PLACE["name"]}, **content})
            await api.create(WIDGETS, WIDGET)
            before = len(asyncio.all_tasks())
            asker = Asker(api, authority)
            count = await asyncio.to_thread(_send_examples, asker)
            asker.close()
            print(f"{count} operations, answers by code: {asker.codes}")

            assert asker.crashes == []
            assert "a request broke" not in caplog.messages
            assert count > OWN_OPERATIONS
            assert (await api.ask("GET", "/readyz")).code == 200
            while len(asyncio.all_tasks()) > before:
                await asyncio.wait(asyncio.all_tasks() - {asyncio.current_task()}, timeout=0.1)  # type: ignore[type-var]
        await store.close()
        again = await Store.open(tmp_path / "store")
        assert again.revision == store.revision
        await again.close()

    asyncio.run(story())
