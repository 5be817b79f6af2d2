"""Who may do what, by roles and bindings."""

from __future__ import annotations

from typing import Any

import pytest

from octarbiter.cluster.apiserver import default_roles, rbac
from octarbiter.cluster.apiserver.authn import ADMIN, User
from octarbiter.cluster.apiserver.rbac import Attributes, Policy, covers, missing

Json = dict[str, Any]
ACCOUNT = User("system:serviceaccount:team:worker", ("system:serviceaccounts", "system:authenticated"))


def role(name: str, *rules: Json, namespace: str = "", **more: Any) -> Json:
    place = {"namespace": namespace} if namespace else {}
    return {"metadata": {"name": name, **place, **more.pop("metadata", {})}, "rules": list(rules), **more}


def rule(resources: str, verbs: str = "get list", groups: str = "", **more: Any) -> Json:
    return {"apiGroups": groups.split(",") or [""], "resources": resources.split(), "verbs": verbs.split(), **more}


def binding(kind: str, name: str, *subjects: Json, namespace: str = "") -> Json:
    place = {"namespace": namespace} if namespace else {}
    return {
        "metadata": {"name": f"to-{name}", **place},
        "roleRef": {"kind": kind, "name": name},
        "subjects": list(subjects),
    }


WORKER: Json = {"kind": "ServiceAccount", "name": "worker", "namespace": "team"}


@pytest.mark.parametrize(
    ("given", "wanted", "expected"),
    [
        (rule("pods"), Attributes(verb="get", resource="pods"), True),
        (rule("pods"), Attributes(verb="delete", resource="pods"), False),
        (rule("pods"), Attributes(verb="get", resource="pods/log"), False),
        (rule("pods/log"), Attributes(verb="get", resource="pods/log"), True),
        (rule("*/log"), Attributes(verb="get", resource="pods/log"), True),
        (rule("*"), Attributes(verb="get", resource="pods/log"), True),
        (rule("pods"), Attributes(verb="get", resource="pods", group="other"), False),
        (rule("pods", groups="*"), Attributes(verb="get", resource="pods", group="other"), True),
        (rule("pods", "*"), Attributes(verb="anything", resource="pods"), True),
        (rule("pods", resourceNames=["a"]), Attributes(verb="get", resource="pods", name="a"), True),
        (rule("pods", resourceNames=["a"]), Attributes(verb="get", resource="pods", name="b"), False),
        (rule("pods", resourceNames=["a"]), Attributes(verb="list", resource="pods"), False),
        (rule("pods"), Attributes(verb="get", path="/metrics"), False),
        ({"verbs": ["get"], "nonResourceURLs": ["/metrics"]}, Attributes(verb="get", path="/metrics"), True),
        ({"verbs": ["get"], "nonResourceURLs": ["/apis/*"]}, Attributes(verb="get", path="/apis/x/v1"), True),
        ({"verbs": ["get"], "nonResourceURLs": ["/apis/*"]}, Attributes(verb="get", path="/api"), False),
    ],
)
def test_a_rule_covers_what_it_names_and_no_more(given: Json, wanted: Attributes, expected: bool) -> None:
    assert covers(given, wanted) is expected


def test_a_binding_in_a_namespace_gives_rights_there_only() -> None:
    policy = Policy(
        roles=[role("reads", rule("pods"), namespace="team")],
        bindings=[binding("Role", "reads", WORKER, namespace="team")],
    )
    here, there, everywhere = (
        Attributes(verb="list", resource="pods", namespace=namespace) for namespace in ("team", "other", "")
    )

    assert policy.reason(ACCOUNT, here) == (
        'RBAC: allowed by RoleBinding "to-reads/team" of Role "reads" to ServiceAccount "team/worker"'
    )
    assert not policy.allows(ACCOUNT, there)
    assert not policy.allows(ACCOUNT, everywhere)


def test_a_role_for_the_cluster_bound_in_a_namespace_reaches_no_further() -> None:
    rules = [rule("pods"), {"verbs": ["get"], "nonResourceURLs": ["*"]}]
    policy = Policy(
        cluster_roles=[role("reads", *rules)], bindings=[binding("ClusterRole", "reads", WORKER, namespace="team")]
    )

    assert policy.allows(ACCOUNT, Attributes(verb="get", resource="pods", namespace="team"))
    assert not policy.allows(ACCOUNT, Attributes(verb="get", resource="pods", namespace="other"))
    assert not policy.allows(ACCOUNT, Attributes(verb="get", path="/metrics"))


@pytest.mark.parametrize(
    ("subject", "expected"),
    [
        ({"kind": "User", "name": ACCOUNT.name}, True),
        ({"kind": "Group", "name": "system:serviceaccounts"}, True),
        ({"kind": "ServiceAccount", "name": "worker", "namespace": "team"}, True),
        ({"kind": "ServiceAccount", "name": "worker", "namespace": "other"}, False),
        ({"kind": "ServiceAccount", "name": "worker"}, False),
        ({"kind": "User", "name": "worker"}, False),
        ({"kind": "Group", "name": "worker"}, False),
    ],
)
def test_a_binding_means_its_subjects(subject: Json, expected: bool) -> None:
    assert rbac.is_meant(subject, ACCOUNT, "") is expected


def test_whoever_has_no_binding_may_do_nothing_and_masters_everything() -> None:
    wanted = Attributes(verb="get", resource="pods", namespace="team")

    assert not Policy().allows(ACCOUNT, wanted)
    assert Policy().allows(ADMIN, wanted)


def test_a_binding_to_a_role_that_is_gone_gives_nothing() -> None:
    policy = Policy(cluster_bindings=[binding("ClusterRole", "gone", WORKER)])

    assert not policy.allows(ACCOUNT, Attributes(verb="get", resource="pods"))


def test_a_role_gathers_the_rules_of_others_by_label() -> None:
    labelled = role("part", rule("widgets", groups="example.com"), metadata={"labels": {"to": "whole"}})
    whole = role("whole", aggregationRule={"clusterRoleSelectors": [{"matchLabels": {"to": "whole"}}]})
    policy = Policy(cluster_roles=[labelled, whole], cluster_bindings=[binding("ClusterRole", "whole", WORKER)])

    assert policy.allows(ACCOUNT, Attributes(verb="get", resource="widgets", group="example.com"))


def test_roles_that_gather_each_other_come_to_an_end() -> None:
    selector = {"clusterRoleSelectors": [{"matchLabels": {"to": "x"}}]}
    circle = [role(name, aggregationRule=selector, metadata={"labels": {"to": "x"}}) for name in ("a", "b")]
    policy = Policy(cluster_roles=circle, cluster_bindings=[binding("ClusterRole", "a", WORKER)])

    assert not policy.allows(ACCOUNT, Attributes(verb="get", resource="pods"))


@pytest.mark.parametrize(
    ("name", "can", "cannot"),
    [
        ("view", [("list", "pods"), ("get", "pods/log")], [("get", "secrets"), ("create", "pods"), ("list", "roles")]),
        (
            "edit",
            [("get", "secrets"), ("create", "pods"), ("list", "pods"), ("create", "pods/exec")],
            [("list", "roles")],
        ),
        ("admin", [("create", "roles"), ("create", "pods"), ("list", "pods")], [("delete", "resourcequotas")]),
        ("cluster-admin", [("create", "roles"), ("delete", "resourcequotas")], []),
    ],
)
def test_the_roles_every_cluster_has_contain_each_other(
    name: str, can: list[tuple[str, str]], cannot: list[tuple[str, str]]
) -> None:
    policy = Policy(
        cluster_roles=default_roles.cluster_roles(), bindings=[binding("ClusterRole", name, WORKER, namespace="team")]
    )

    def allowed(verb: str, resource: str) -> bool:
        group = default_roles.GROUP if resource == "roles" else ""
        return policy.allows(ACCOUNT, Attributes(verb=verb, resource=resource, group=group, namespace="team"))

    assert [allowed(*each) for each in can] == [True] * len(can)
    assert [allowed(*each) for each in cannot] == [False] * len(cannot)


def test_what_is_missing_is_named_in_its_smallest_parts() -> None:
    wanted = [rule("pods secrets", "get list watch"), rule("pods", "get", resourceNames=["a"])]
    held = [rule("pods", "get list")]

    assert missing(wanted, held) == [
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["watch"]},
        {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "list", "watch"]},
    ]


def test_rights_on_one_name_are_not_rights_on_all() -> None:
    assert missing([rule("pods", "get")], [rule("pods", "get", resourceNames=["a"])])
    assert not missing([rule("pods", "get", resourceNames=["a"])], [rule("pods", "get")])
    assert missing([rule("*", "get")], [rule("pods", "get")])
