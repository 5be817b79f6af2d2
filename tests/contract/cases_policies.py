"""Limit ranges and quotas, events in two groups, leases, accounts, roles and access reviews."""

from __future__ import annotations

from typing import Any

from furniture import GADGETS, config_map, job, lease, pod
from harness import MERGE_PATCH, Api, case, each

_RESOURCES = {"limits": {"cpu": "2"}, "requests": {"cpu": "100m", "memory": "10Mi"}}


@case
def a_limit_range_fills_in_and_limits(api: Api) -> None:
    limits = [
        {
            "type": "Container",
            "default": {"cpu": "1", "memory": "1Gi"},
            "defaultRequest": {"cpu": "500m"},
            "max": {"cpu": "4"},
            "min": {"memory": "5Mi"},
        }
    ]
    api.made("limitranges", {"metadata": {"name": "limits"}, "spec": {"limits": limits}})
    answer = api.ask("POST", "pods", pod("a"))
    api.note("filled in", [answer["spec"]["containers"][0]["resources"], answer["metadata"].get("annotations")])
    for resources in (_RESOURCES, {"limits": {"cpu": "5"}}, {"requests": {"memory": "1Mi"}}):
        body = pod("b", containers=[{"name": "main", "image": "x", "resources": resources}])
        answer = api.ask("POST", "pods?dryRun=All", body)
        api.note(str(resources), [answer.code, answer.body if answer.code >= 300 else answer["spec"]["containers"]])


@each(
    {
        "of whole pods": {"type": "Pod", "max": {"cpu": "1"}},
        "as a ratio": {"type": "Container", "maxLimitRequestRatio": {"cpu": "2"}},
    }
)
def a_limit_range_limits(api: Api, item: dict[str, Any]) -> None:
    api.made("limitranges", {"metadata": {"name": "limits"}, "spec": {"limits": [item]}})
    for resources in ({"limits": {"cpu": "3"}, "requests": {"cpu": "1"}}, {}):
        body = pod("b", containers=[{"name": "main", "image": "x", "resources": resources}])
        answer = api.ask("POST", "pods?dryRun=All", body)
        api.note(str(resources), [answer.code, answer.body.get("message"), answer.body.get("details")])


@each(
    {
        "no type": [{}],
        "a default above the maximum": [{"type": "Container", "default": {"cpu": "2"}, "max": {"cpu": "1"}}],
        "a minimum above the maximum": [{"type": "Container", "min": {"cpu": "2"}, "max": {"cpu": "1"}}],
        "defaults for pods": [{"type": "Pod", "default": {"cpu": "2"}}],
        "two of one type": [{"type": "Pod", "max": {"cpu": "2"}}, {"type": "Pod", "max": {"cpu": "2"}}],
        "complete": [{"type": "Container", "max": {"cpu": "2"}}],
    }
)
def a_limit_range_with_something_odd(api: Api, limits: list[dict[str, Any]]) -> None:
    api.post("limitranges", {"metadata": {"name": "a"}, "spec": {"limits": limits}})


def _quota(api: Api, hard: dict[str, str], **spec: Any) -> None:
    api.made("resourcequotas", {"metadata": {"name": "quota"}, "spec": {"hard": hard, **spec}})
    used = dict.fromkeys(hard, "0")
    api.given("PATCH", "resourcequotas/quota/status", {"status": {"hard": hard, "used": used}}, type=MERGE_PATCH)


@case
def a_quota_counts_objects(api: Api) -> None:
    _quota(api, {"count/configmaps": "1", "pods": "1"})
    for name in ("a", "b"):
        answer = api.ask("POST", "configmaps", config_map(name))
        api.note(name, [answer.code, answer.body.get("message"), answer.body.get("details"), answer.body.get("reason")])
    for name in ("a", "b"):
        answer = api.ask("POST", "pods", pod(name))
        api.note(name, [answer.code, answer.body.get("message"), answer.body.get("details")])
    api.note("used", api.ask("GET", "resourcequotas/quota")["status"])


@case
def a_quota_limits_resources(api: Api) -> None:
    _quota(api, {"requests.cpu": "1", "limits.memory": "1Gi"})
    for resources in (
        {},
        {"requests": {"cpu": "500m"}},
        {"requests": {"cpu": "2"}, "limits": {"memory": "1Gi"}},
        {"requests": {"cpu": "500m"}, "limits": {"memory": "512Mi"}},
        {"requests": {"cpu": "600m"}, "limits": {"memory": "512Mi"}},
    ):
        body = pod("x", containers=[{"name": "main", "image": "x", "resources": resources}])
        body["metadata"] = {"generateName": "gen-"}
        answer = api.ask("POST", "pods", body)
        api.note(str(resources), [answer.code, answer.body.get("message")])
    api.note("used", api.ask("GET", "resourcequotas/quota")["status"])


@case
def a_quota_counts_jobs_and_custom_objects(api: Api) -> None:
    _quota(api, {"count/jobs.batch": "0", "count/gadgets.contract.example.com": "0"})
    api.post("batch/v1/jobs", job("a"))
    api.post("batch/v1/jobs?dryRun=All", job("a"))


@each(
    {
        "a negative amount": {"hard": {"pods": "-1"}},
        "a fraction of pods": {"hard": {"pods": "1500m"}},
        "an unknown resource": {"hard": {"nonsense": "1"}},
        "an unknown scope": {"hard": {"pods": "1"}, "scopes": ["Nonsense"]},
        "scopes that exclude each other": {"hard": {"pods": "1"}, "scopes": ["BestEffort", "NotBestEffort"]},
        "a device": {"hard": {"requests.example.com/x": "4"}},
    }
)
def a_quota_with_something_odd(api: Api, spec: dict[str, Any]) -> None:
    api.post("resourcequotas", {"metadata": {"name": "a"}, "spec": spec})


def _event(api: Api, name: str, **more: Any) -> dict[str, Any]:
    involved = {"kind": "Pod", "namespace": api.namespace, "name": "p", "uid": "u", "apiVersion": "v1"}
    return {
        "metadata": {"name": name},
        "involvedObject": involved,
        "reason": "Because",
        "message": "words",
        "type": "Normal",
        "source": {"component": "me"},
        "count": 2,
        "firstTimestamp": "2020-01-01T00:00:00Z",
        "lastTimestamp": "2020-01-01T00:00:01Z",
        **more,
    }


@case
def events_are_the_same_in_both_groups(api: Api) -> None:
    api.post("events", _event(api, "a"))
    api.get("events.k8s.io/v1/events/a")
    newer = {
        "metadata": {"name": "b"},
        "regarding": {"kind": "Pod", "namespace": api.namespace, "name": "p"},
        "reason": "Because",
        "note": "words",
        "type": "Normal",
        "action": "Doing",
        "reportingController": "example.com/me",
        "reportingInstance": "me-1",
        "eventTime": "2020-01-01T00:00:00.000001Z",
    }
    api.post("events.k8s.io/v1/events", newer)
    api.get("events/b")
    api.get("events.k8s.io/v1/events")
    api.patch("events.k8s.io/v1/events/b", {"series": {"count": 3, "lastObservedTime": "2020-01-01T00:00:00.000009Z"}})
    api.get("events/b")
    api.delete("events.k8s.io/v1/events/a")
    api.get("events/a")


@each(
    {
        "another namespace": ("events", {"involvedObject": {"namespace": "other", "name": "p"}}),
        "no object": ("events", {"involvedObject": {}}),
        "a new event without time": (
            "events.k8s.io/v1/events",
            {"regarding": {"name": "p"}, "reason": "x", "type": "Normal"},
        ),
        "an odd type": ("events", {"type": "Odd"}),
        "a series": ("events", {"series": {"count": 1, "lastObservedTime": "2020-01-01T00:00:00.000000Z"}}),
    }
)
def an_event_with_something_odd(api: Api, given: tuple[str, dict[str, Any]]) -> None:
    path, more = given
    body = _event(api, "a", **more) if path == "events" else {"metadata": {"name": "a"}, **more}
    api.post(path, body)


@each(
    [
        "involvedObject.name=p",
        "involvedObject.kind=Pod,involvedObject.uid=u",
        "reason=Because",
        "type=Warning",
        "source=me",
        "reportingComponent=me",
        "involvedObject.fieldPath=",
        "regarding.name=p",
    ]
)
def events_are_chosen_by_their_fields(api: Api, selector: str) -> None:
    api.made("events", _event(api, "a"))
    query = selector.replace("=", "%3D")
    for path in ("events", "events.k8s.io/v1/events"):
        answer = api.ask("GET", f"{path}?fieldSelector={query}")
        api.note(path, [answer.code, answer.body.get("message"), len(answer.body.get("items", []))])


@case
def events_have_their_own_table(api: Api) -> None:
    api.made("events", _event(api, "a"))
    answer = api.ask("GET", "events", accept="application/json;as=Table;v=v1;g=meta.k8s.io")
    cells = [cell for cell in answer["rows"][0]["cells"] if not str(cell).endswith(("y", "d"))]
    api.note("columns", {"columnDefinitions": answer["columnDefinitions"]})
    api.note("cells", cells)


@case
def a_lease_is_taken_and_renewed(api: Api) -> None:
    leases = "coordination.k8s.io/v1/leases"
    spec = {"holderIdentity": "me", "leaseDurationSeconds": 15, "renewTime": "2020-01-01T00:00:00.000000Z"}
    made = api.post(leases, lease("a", **spec))
    renewed = {**made.body, "spec": {**spec, "renewTime": "2020-01-01T00:00:05.000000Z"}}
    api.put(f"{leases}/a", renewed)
    api.put(f"{leases}/a", renewed)
    api.post(leases, lease("b", leaseDurationSeconds=0))
    api.post(leases, lease("c", leaseTransitions=-1))
    api.post(leases, lease("d", leaseDurationSeconds="x"))
    api.post(leases, lease("e", strategy="Nonsense"))


_REVIEWS = "/apis/authorization.k8s.io/v1"


@each(
    {
        "a resource": {"resourceAttributes": {"verb": "get", "resource": "pods", "namespace": "default"}},
        "a path": {"nonResourceAttributes": {"verb": "get", "path": "/healthz"}},
        "nothing": {},
        "both": {"resourceAttributes": {"verb": "get"}, "nonResourceAttributes": {"path": "/"}},
    }
)
def may_i(api: Api, spec: dict[str, Any]) -> None:
    answer = api.ask("POST", f"{_REVIEWS}/selfsubjectaccessreviews", {"spec": spec})
    allowed = answer.body.get("status", {})
    shown = {"allowed": allowed["allowed"]} if isinstance(allowed, dict) else answer.body
    api.note("answer", [answer.code, answer.body.get("kind"), answer.body.get("spec"), shown])


@each(
    {
        "a nobody": {"user": "nobody", "resourceAttributes": {"verb": "get", "resource": "pods"}},
        "a master": {"groups": ["system:masters"], "resourceAttributes": {"verb": "get", "resource": "pods"}},
        "no user": {"resourceAttributes": {"verb": "get"}},
        "nothing": {},
    }
)
def may_somebody(api: Api, spec: dict[str, Any]) -> None:
    for path in (f"{_REVIEWS}/subjectaccessreviews", "authorization.k8s.io/v1/localsubjectaccessreviews"):
        answer = api.ask("POST", path, {"spec": spec})
        found = answer.body.get("status", {})
        shown = {"allowed": found["allowed"]} if isinstance(found, dict) else answer.body
        api.note(path, [answer.code, shown])


@case
def who_am_i(api: Api) -> None:
    answer = api.ask("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", {})
    info = answer["status"]["userInfo"]
    api.note("answer", [answer.code, answer["kind"], sorted(info), sorted(info["groups"])])


@case
def whose_token_is_this(api: Api) -> None:
    reviews = "/apis/authentication.k8s.io/v1/tokenreviews"
    for token in (api.server.token, "wrong"):
        answer = api.ask("POST", reviews, {"spec": {"token": token}})
        found = answer["status"]
        user = found.get("user", {})
        api.note("answer", [answer.code, found.get("authenticated"), sorted(user), found.get("error")])
    api.post(reviews, {"spec": {}})


@case
def what_may_i_do(api: Api) -> None:
    answer = api.ask("POST", f"{_REVIEWS}/selfsubjectrulesreviews", {"spec": {"namespace": "default"}})
    rules = answer["status"]["resourceRules"]
    api.note(
        "answer", [answer.code, answer["status"].get("incomplete"), any("*" in rule["resources"] for rule in rules)]
    )
    api.post(f"{_REVIEWS}/selfsubjectrulesreviews", {"spec": {}})


@case
def an_account_is_given_a_token(api: Api) -> None:
    api.made("serviceaccounts", {"metadata": {"name": "a"}})
    answer = api.ask("POST", "serviceaccounts/a/token", {"spec": {"expirationSeconds": 700}})
    status = answer.body.get("status", {})
    api.note("answer", [answer.code, answer.body.get("kind"), sorted(status) if isinstance(status, dict) else status])
    api.post("serviceaccounts/absent/token", {"spec": {}})
    api.post("serviceaccounts/a/token", {"spec": {"expirationSeconds": 5}})
    if isinstance(status, dict):
        api.get("/api/v1/namespaces/default/configmaps", token=str(status.get("token")))


@each(
    {
        "an empty rule": [{}],
        "no verbs": [{"apiGroups": [""], "resources": ["pods"]}],
        "no groups": [{"verbs": ["get"], "resources": ["pods"]}],
        "a path": [{"verbs": ["get"], "nonResourceURLs": ["/x"]}],
        "both": [{"verbs": ["get"], "nonResourceURLs": ["/x"], "apiGroups": [""], "resources": ["pods"]}],
        "complete": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}],
    }
)
def a_role(api: Api, rules: list[dict[str, Any]]) -> None:
    api.post("rbac.authorization.k8s.io/v1/roles", {"metadata": {"name": "a"}, "rules": rules})


@case
def a_role_binding_with_something_odd(api: Api) -> None:
    path = "rbac.authorization.k8s.io/v1/rolebindings"
    role = {"kind": "Role", "name": "a", "apiGroup": "rbac.authorization.k8s.io"}
    for subject in ({"kind": "Nonsense", "name": "x"}, {"kind": "User"}, {"kind": "ServiceAccount", "name": "A!"}):
        api.post(path, {"metadata": {"name": "a"}, "roleRef": role, "subjects": [subject]})
    api.post(path, {"metadata": {"name": "a"}, "roleRef": {"kind": "X", "name": "a"}})


@case
def a_budget_with_something_odd(api: Api) -> None:
    path = "policy/v1/poddisruptionbudgets"
    for spec in (
        {"minAvailable": 1, "maxUnavailable": 1},
        {"minAvailable": "x"},
        {"minAvailable": "120%"},
        {"minAvailable": -1},
        {"maxUnavailable": "20%", "unhealthyPodEvictionPolicy": "X"},
        {"minAvailable": 1, "selector": {"matchExpressions": [{"key": "a", "operator": "X"}]}},
    ):
        answer = api.ask("POST", path, {"metadata": {"name": "a"}, "spec": spec})
        api.note(str(spec), [answer.code, answer.body.get("message"), answer.body.get("details")])


@case
def custom_objects_may_be_owned(api: Api) -> None:
    owner = api.made("configmaps", config_map("owner"))
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner.uid}
    body = {"apiVersion": "contract.example.com/v1", "kind": "Gadget", "spec": {"size": 1}}
    api.post(GADGETS, {**body, "metadata": {"name": "a", "ownerReferences": [{**reference, "controller": True}]}})
    api.post(GADGETS, {**body, "metadata": {"name": "b", "ownerReferences": [{"kind": "ConfigMap"}]}})
