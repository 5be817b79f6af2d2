"""How things are said: warnings beside an answer, problems that are told more than once, other views of an answer."""

from __future__ import annotations

from typing import Any

from furniture import GADGETS, Json, config_map, deployment, gadget, job, lease, pod
from harness import PARTIAL, PARTIAL_LIST, TABLE, Api, case, each

_MAIN: Json = {"name": "main", "image": "busybox"}


@each(
    {
        "a variable twice": {"containers": [{**_MAIN, "env": [{"name": "A", "value": "1"}, {"name": "A"}]}]},
        "a variable that grows": {
            "containers": [{**_MAIN, "env": [{"name": "A", "value": "1"}, {"name": "A", "value": "$(A)2"}]}]
        },
        "a port twice": {
            "containers": [{**_MAIN, "ports": [{"containerPort": 80}, {"containerPort": 80, "name": "x"}]}]
        },
        "a port of the node": {
            "containers": [{**_MAIN, "ports": [{"containerPort": 80}, {"containerPort": 80, "hostPort": 8080}]}]
        },
        "a port of two containers": {
            "containers": [
                {**_MAIN, "ports": [{"containerPort": 80, "name": "x"}]},
                {**_MAIN, "name": "other", "ports": [{"containerPort": 81, "name": "x"}]},
            ]
        },
        "pull secrets": {"imagePullSecrets": [{"name": "a"}, {"name": "a"}, {}]},
        "aliases": {"hostAliases": [{"ip": "10.0.0.1"}, {"ip": "10.0.0.1"}]},
        "half a byte": {
            "containers": [{**_MAIN, "resources": {"requests": {"memory": "100m"}, "limits": {"memory": "1500m"}}}]
        },
        "a spread over nothing": {
            "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "x", "whenUnsatisfiable": "DoNotSchedule"}]
        },
        "negative grace": {"terminationGracePeriodSeconds": -1},
    }
)
def what_is_odd_about_a_pod_is_warned_of(api: Api, spec: Json) -> None:
    for path, made in (
        ("pods", pod("a", **spec)),
        ("batch/v1/jobs", job("a", template={"spec": {**pod("x")["spec"], "restartPolicy": "Never", **spec}})),
    ):
        answer = api.ask("POST", path, made)
        api.note(path, [answer.code, answer.headers, answer.body.get("message")])


@case
def a_changed_template_is_warned_of(api: Api) -> None:
    odd = [{**_MAIN, "env": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]}]
    api.made("apps/v1/deployments", deployment("a"))
    for body in (
        {"spec": {"template": {"spec": {"containers": odd}}}},
        {"spec": {"replicas": 2}},
        {"metadata": {"labels": {"x": "y"}}},
    ):
        answer = api.ask("PATCH", "apps/v1/deployments/a", body, type="application/merge-patch+json")
        api.note("answer", [answer.code, answer.headers])


@case
def names_that_become_host_names_are_warned_of(api: Api) -> None:
    for plural, made in (
        ("apps/v1/deployments", deployment("a.b")),
        ("apps/v1/replicasets", {**deployment("a.b"), "kind": "ReplicaSet"}),
        ("apps/v1/daemonsets", {**deployment("a.b"), "kind": "DaemonSet"}),
        (
            "batch/v1/cronjobs",
            {"metadata": {"name": "a.b"}, "spec": {"schedule": "* * * * *", "jobTemplate": job("x")}},
        ),
    ):
        answer = api.ask("POST", f"{plural}?fieldValidation=Ignore", made)
        api.note(plural, [answer.code, answer.headers, answer.body.get("message")])


_BAD: Json = {
    "labels": {"x": "-"},
    "annotations": {"a b": "c"},
    "ownerReferences": [{"apiVersion": "v1", "kind": "A", "name": "", "uid": "1"}],
    "finalizers": ["x"],
}


_CHANGED: Json = {
    "configmaps": config_map("a"),
    "pods": pod("a"),
    "apps/v1/deployments": deployment("a"),
    "batch/v1/jobs": job("a"),
    "coordination.k8s.io/v1/leases": lease("a"),
    "serviceaccounts": {"metadata": {"name": "a"}},
    "policy/v1/poddisruptionbudgets": {"metadata": {"name": "a"}, "spec": {"minAvailable": 1}},
    "rbac.authorization.k8s.io/v1/roles": {"metadata": {"name": "a"}},
    GADGETS: gadget("a"),
}


@each(list(_CHANGED))
def problems_of_metadata_are_told_as_often(api: Api, path: str) -> None:
    api.made(path, _CHANGED[path])
    api.patch(f"{path}/a", {"metadata": _BAD})


@each(["pods", "apps/v1/deployments", "batch/v1/jobs", "policy/v1/poddisruptionbudgets", GADGETS])
def problems_of_metadata_are_told_by_the_status(api: Api, path: str) -> None:
    api.made(path, _CHANGED[path])
    api.patch(f"{path}/a/status", {"metadata": _BAD})


@each(["apps/v1/deployments", "batch/v1/jobs", "events", "events.k8s.io/v1/events", GADGETS])
def a_list_is_not_shown_as_one_object(api: Api, path: str) -> None:
    api.get(path, accept=PARTIAL)
    api.delete(path, accept=PARTIAL)


@case
def one_object_is_not_shown_as_a_list(api: Api) -> None:
    api.post("configmaps", config_map("a"), accept=PARTIAL_LIST)
    api.get("configmaps/a", accept=PARTIAL_LIST)


@each({"table": TABLE, "metadata": PARTIAL, "list": PARTIAL_LIST, "yaml": "application/yaml"})
def a_scale_has_other_views(api: Api, accept: str) -> None:
    api.made("apps/v1/deployments", deployment("a"))
    api.get("apps/v1/deployments/a/scale", accept=accept)


_REVIEW: Json = {"spec": {"resourceAttributes": {"verb": "get"}}}


@each(
    {
        "selfsubjectaccessreviews": _REVIEW,
        "subjectaccessreviews": {"spec": {**_REVIEW["spec"], "user": "x"}},
        "with a name": {**_REVIEW, "metadata": {"labels": {"a": "b"}}},
    }
)
def a_review_says_who_asked(api: Api, review: Json) -> None:
    plural = "subjectaccessreviews" if "user" in review["spec"] else "selfsubjectaccessreviews"
    answer = api.ask("POST", f"/apis/authorization.k8s.io/v1/{plural}", review)
    causes = [(each["reason"], each["field"]) for each in (answer.body.get("details") or {}).get("causes") or []]
    api.note("answer", [answer.code, answer.body.get("metadata"), causes])


@each({"*": "*", "application/*": "application/*", "text/plain": "text/plain"})
def an_accept_header_of_a_list(api: Api, accept: str) -> None:
    for path in ("configmaps", "configmaps/absent", f"{GADGETS}/absent"):
        api.get(path, accept=accept)


@each({"known": {"a": 1.0, "b": 1e3, "c": 1.5, "d": 1e21, "e": -2.0}})
def whole_numbers_of_custom_objects(api: Api, free: Any) -> None:
    api.post(GADGETS, gadget("a", free=free))
    api.patch(f"{GADGETS}/a", {"spec": {"free": {"a": 3.0}}})
    api.patch("configmaps/absent", b'{"data": {"a": 2.0}}')
