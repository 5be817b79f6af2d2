"""Which requests does a webhook want to hear of, and under which conditions?"""

from __future__ import annotations

from typing import Any

import pytest

from octarbiter.cluster.apiserver import models
from octarbiter.cluster.apiserver.admission import Attempt, conditions, rules
from octarbiter.cluster.apiserver.authn import ADMIN
from octarbiter.cluster.apiserver.catalogue import Catalogue

Json = dict[str, Any]
CATALOGUE = Catalogue(models.built_in({}))
POD: Json = {"metadata": {"name": "p", "labels": {"tier": "front"}}}


def attempt(plural: str = "pods", group: str = "", subresource: str = "", **more: Any) -> Attempt:
    served = CATALOGUE.find(group, "v1", plural)
    assert served is not None
    given = {"operation": "CREATE", "namespace": "default", "name": "p", "user": ADMIN, "obj": POD, **more}
    return Attempt(served=served, subresource=subresource, **given)


def webhook(resources: str = "pods", operations: str = "CREATE", groups: str = "", **more: Any) -> Json:
    rule = {
        "apiGroups": [groups],
        "apiVersions": ["v1"],
        "operations": operations.split(),
        "resources": resources.split(),
        "scope": more.pop("scope", "*"),
    }
    return {"name": "w", "rules": [rule], **more}


@pytest.mark.parametrize(
    ("hook", "what", "expected"),
    [
        (webhook(), attempt(), True),
        (webhook(operations="UPDATE"), attempt(), False),
        (webhook(operations="*"), attempt(), True),
        (webhook("services"), attempt(), False),
        (webhook("*"), attempt(), True),
        (webhook("*"), attempt(subresource="status"), False),
        (webhook("pods"), attempt(subresource="status"), False),
        (webhook("pods/*"), attempt(subresource="status"), True),
        (webhook("pods/*"), attempt(), False),
        (webhook("*/status"), attempt(subresource="status"), True),
        (webhook("*/*"), attempt(), True),
        (webhook(groups="batch"), attempt(), False),
        (webhook(groups="*"), attempt(), True),
        (webhook(scope="Cluster"), attempt(), False),
        (webhook(scope="Namespaced"), attempt(), True),
        (webhook("nodes", scope="Cluster"), attempt("nodes"), True),
        (webhook("*/*", groups="*"), attempt("validatingwebhookconfigurations", "admissionregistration.k8s.io"), False),
        (webhook(objectSelector={"matchLabels": {"tier": "front"}}), attempt(), True),
        (webhook(objectSelector={"matchLabels": {"tier": "back"}}), attempt(), False),
        (webhook(objectSelector={"matchLabels": {"tier": "front"}}, operations="DELETE"),
         attempt(operation="DELETE", obj=None, old=POD), True),
        (webhook(namespaceSelector={"matchLabels": {"team": "a"}}), attempt(), True),
        (webhook(namespaceSelector={"matchLabels": {"team": "b"}}), attempt(), False),
        (webhook(namespaceSelector={}), attempt(), True),
    ],
)  # fmt: skip
def test_a_webhook_is_concerned_by_what_its_rules_and_selectors_say(hook: Json, what: Attempt, expected: bool) -> None:
    assert rules.concerns(hook, what, {"team": "a"}) is expected


def test_a_selector_of_namespaces_says_nothing_about_what_is_in_none() -> None:
    hook = webhook("nodes", namespaceSelector={"matchLabels": {"team": "b"}})

    assert rules.concerns(hook, attempt("nodes"), None)


def conditional(*expressions: str) -> Json:
    return {"matchConditions": [{"name": str(n), "expression": each} for n, each in enumerate(expressions)]}


REQUEST: Json = {"object": POD, "oldObject": None, "operation": "CREATE", "userInfo": {"username": "u"}}


@pytest.mark.parametrize(
    ("expressions", "expected"),
    [
        ([], True),
        (["true"], True),
        (["request.userInfo.username == 'u' && oldObject == null", "object.metadata.labels.tier == 'front'"], True),
        (["request.operation == 'DELETE'"], False),
        (["object.nothing == 1", "false"], False),
    ],
)
def test_all_conditions_must_hold_and_one_that_is_false_decides(expressions: list[str], expected: bool) -> None:
    assert conditions.hold(conditional(*expressions), REQUEST) is expected


@pytest.mark.parametrize("expression", ["object.nothing == 1", "1 +", "'text'", ""])
def test_a_condition_without_a_value_is_undecided(expression: str) -> None:
    with pytest.raises(conditions.Undecided):
        conditions.hold(conditional("true", expression), REQUEST)
