"""What is asked, what is answered, and when is the webhook asked at all?"""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from octarbiter.api import arbitrator
from octarbiter.api.arbitrator import Mode
from octarbiter.api.errors import FieldProblem, Refused
from octarbiter.core.quota import names
from octarbiter.services.webhook import configuration, reviews, server


def review(**request: Any) -> bytes:
    whole = {"uid": "u", "operation": "CREATE", **request}
    return json.dumps({"apiVersion": reviews.API_VERSION, "kind": reviews.KIND, "request": whole}).encode()


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"{}",
        b'"\xff"',
        review().replace(b"admission.k8s.io/v1", b"admission.k8s.io/v1beta1"),
        b'{"apiVersion": "v1", "kind": "Pod", "metadata": {}}',
        review()[:-2] + b', "object": ' + b"[" * 100_000 + b"]" * 100_000 + b"}}",
    ],
)
def test_what_is_no_review_is_unreadable(body: bytes) -> None:
    with pytest.raises(reviews.Unreadable):
        reviews.read(body).new(dict)


def test_a_review_without_the_object_it_should_have_is_unreadable() -> None:
    with pytest.raises(reviews.Unreadable):
        reviews.read(review(object=None)).new(dict)


def test_an_answer_names_every_problem_and_its_field() -> None:
    problems = [FieldProblem("spec.weight", "must be at least 1, is 0"), FieldProblem("spec.policy", "no such")]
    answer = json.loads(reviews.written("u", reviews.invalid("Queue", "q", problems)))["response"]

    assert (answer["uid"], answer["allowed"]) == ("u", False)
    assert answer["status"]["code"] == 422
    assert answer["status"]["message"] == (
        "Queue q is invalid: spec.weight: must be at least 1, is 0; spec.policy: no such"
    )
    assert [cause["field"] for cause in answer["status"]["details"]["causes"]] == ["spec.weight", "spec.policy"]


def test_a_change_is_a_json_patch() -> None:
    patch = {"op": "add", "path": "/spec/suspend", "value": True}
    answer = json.loads(reviews.written("u", reviews.Answer(patch=(patch,))))["response"]

    assert (answer["allowed"], answer["patchType"]) == (True, "JSONPatch")
    assert json.loads(base64.b64decode(answer["patch"])) == [patch]


# Configurations.

URL = configuration.Reach(url="https://127.0.0.1:9443/")
MODES = [None, *Mode]


def webhooks(reach: configuration.Reach = URL, everywhere: Mode | None = None) -> dict[str, Any]:
    both = configuration.configurations(reach, b"ca", "us", everywhere)
    found = [each for body in both for each in body["webhooks"]]
    assert len({each["name"] for each in found}) == len(found)
    return {each["name"].partition(".")[0]: each for each in found}


@pytest.mark.parametrize("everywhere", MODES)
def test_nobody_is_ever_locked_out(everywhere: Mode | None) -> None:
    for each in webhooks(configuration.Reach(namespace="elsewhere"), everywhere).values():
        first = each["namespaceSelector"]["matchExpressions"][0]
        assert (first["key"], first["operator"]) == ("kubernetes.io/metadata.name", "NotIn")
        assert {"kube-system", names.OWN_NAMESPACE, "elsewhere"} == set(first["values"])
        assert each["rules"][0]["scope"] == "Namespaced"
        assert not [resource for resource in each["rules"][0]["resources"] if "/" in resource or "*" in resource]


@pytest.mark.parametrize("everywhere", MODES)
def test_only_labelled_namespaces_depend_on_our_answer(everywhere: Mode | None) -> None:
    failing = {name: each for name, each in webhooks(everywhere=everywhere).items() if each["failurePolicy"] == "Fail"}

    assert set(failing) == {"deny-pods", "gate-pods", "ungate-pods"}
    for name in ("deny-pods", "gate-pods"):
        operators = [
            each["operator"]
            for each in failing[name]["namespaceSelector"]["matchExpressions"]
            if each["key"] == arbitrator.MODE
        ]
        assert "Exists" in operators or "In" in operators


def test_every_path_that_is_asked_is_answered_and_none_in_vain() -> None:
    asked = {each["clientConfig"]["url"].removeprefix("https://127.0.0.1:9443") for each in webhooks().values()}

    assert asked == set(server.PATHS)


def test_in_a_cluster_the_service_is_asked() -> None:
    reach = configuration.Reach()
    service = webhooks(reach)["queues"]["clientConfig"]["service"]

    assert service == {"name": "octarbiter-webhook", "namespace": "octarbiter-system", "port": 443, "path": "/queues"}
    assert "octarbiter-webhook.octarbiter-system.svc" in reach.hosts


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "127.0.0.1:1", "https://", "https://h/?x"])
def test_a_url_by_which_nobody_reaches_us_is_refused(url: str) -> None:
    with pytest.raises(Refused, match="--webhook-url"):
        configuration.Reach(url=url)


def test_a_strange_name_of_ours_stays_a_text_in_conditions() -> None:
    (_, validating) = configuration.configurations(URL, b"", "o'us\\", None)
    expression = validating["webhooks"][1]["matchConditions"][0]["expression"]

    assert expression == "request.userInfo.username != 'o\\'us\\\\'"
