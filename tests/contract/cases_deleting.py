"""Deleting: preconditions, grace, finalizers, propagation, whole collections, namespaces."""

from __future__ import annotations

from typing import Any

from furniture import GADGETS, GIZMOS, config_map, deployment, gadget, job, lease, pod, secret
from harness import MERGE_PATCH, Api, case, each


@each(
    {
        "configmaps": ("configmaps", config_map("a")),
        "secrets": ("secrets", secret("a")),
        "pods": ("pods", pod("a")),
        "jobs": ("batch/v1/jobs", job("a")),
        "deployments": ("apps/v1/deployments", deployment("a")),
        "gadgets": (GADGETS, gadget("a")),
        "leases": ("coordination.k8s.io/v1/leases", lease("a")),
        "serviceaccounts": ("serviceaccounts", {"metadata": {"name": "a"}}),
        "services": ("services", {"metadata": {"name": "a"}, "spec": {"ports": [{"port": 1}]}}),
        "resourcequotas": ("resourcequotas", {"metadata": {"name": "a"}}),
        "roles": ("rbac.authorization.k8s.io/v1/roles", {"metadata": {"name": "a"}, "rules": None}),
        "poddisruptionbudgets": ("policy/v1/poddisruptionbudgets", {"metadata": {"name": "a"}}),
        "events": ("events", {"metadata": {"name": "a"}, "involvedObject": {}}),
    }
)
def deleting_answers_in_the_kinds_way(api: Api, given: tuple[str, dict[str, Any]]) -> None:
    path, body = given
    if path == "events":
        body = {**body, "involvedObject": {"namespace": api.namespace}}
    api.made(path, body)
    api.delete(f"{path}/a")
    api.delete(f"{path}/a")


@case
def deleting_what_is_not_there_is_not_found(api: Api) -> None:
    api.delete("configmaps/absent")
    api.delete("pods/absent", {"gracePeriodSeconds": 0})
    api.delete(f"{GADGETS}/absent")
    api.delete("configmaps/absent?dryRun=All")


@each(
    {
        "nothing": "",
        "an empty object": {},
        "with kind": {"kind": "DeleteOptions", "apiVersion": "v1"},
        "in another group": {"kind": "DeleteOptions", "apiVersion": "batch/v1"},
        "in the meta group": {"kind": "DeleteOptions", "apiVersion": "meta.k8s.io/v1"},
        "another kind": {"kind": "ConfigMap", "apiVersion": "v1"},
        "a list": [],
        "half": "{",
        "an unknown field": {"nonsense": 1},
        "grace as text": {"gracePeriodSeconds": "1"},
        "negative grace": {"gracePeriodSeconds": -1},
        "very negative grace": {"gracePeriodSeconds": -5},
        "an unknown policy": {"propagationPolicy": "Nonsense"},
        "orphans and a policy": {"orphanDependents": True, "propagationPolicy": "Orphan"},
        "orphans": {"orphanDependents": True},
        "no orphans": {"orphanDependents": False},
        "background": {"propagationPolicy": "Background"},
        "foreground": {"propagationPolicy": "Foreground"},
        "orphan": {"propagationPolicy": "Orphan"},
        "unknown dry run": {"dryRun": ["Some"]},
        "another uid": {"preconditions": {"uid": "00000000-0000-0000-0000-000000000000"}},
        "another revision": {"preconditions": {"resourceVersion": "1"}},
    }
)
def deleting_with_options(api: Api, options: Any) -> None:
    api.made("configmaps", config_map("a"))
    api.delete("configmaps/a", options)
    api.get("configmaps/a")


@each(
    {
        "configmaps": ("configmaps", config_map("a")),
        "pods": ("pods", pod("a")),
        "gadgets": (GADGETS, gadget("a")),
        "namespaces": ("/api/v1/namespaces", {}),
    }
)
def deleting_with_the_wrong_uid_or_revision(api: Api, given: tuple[str, dict[str, Any]]) -> None:
    path, body = given
    name = "a" if body else f"a-{api.namespace}"
    made = api.made(path, body or {"metadata": {"name": name}})
    api.delete(f"{path}/{name}", {"preconditions": {"uid": "00000000-0000-0000-0000-000000000000"}})
    api.delete(f"{path}/{name}", {"preconditions": {"resourceVersion": "1"}})
    api.delete(f"{path}/{name}", {"preconditions": {"uid": made.uid, "resourceVersion": made.revision}})


@each(
    [
        "gracePeriodSeconds=5",
        "gracePeriodSeconds=x",
        "propagationPolicy=Foreground",
        "propagationPolicy=Nonsense",
        "orphanDependents=true",
        "orphanDependents=false",
        "dryRun=All",
    ]
)
def deleting_with_options_in_the_query(api: Api, query: str) -> None:
    api.made("configmaps", config_map("a"))
    api.delete(f"configmaps/a?{query}")
    api.get("configmaps/a")


@each(["Background", "Foreground", "Orphan", ""])
def a_job_is_deleted_with_or_without_its_dependents(api: Api, policy: str) -> None:
    api.made("batch/v1/jobs", job("a"))
    api.delete("batch/v1/jobs/a", {"propagationPolicy": policy} if policy else None)
    api.get("batch/v1/jobs/a")


@each(["Background", "Foreground", "Orphan", ""])
def a_custom_object_is_deleted_with_or_without_its_dependents(api: Api, policy: str) -> None:
    api.made(GADGETS, gadget("a"))
    api.delete(f"{GADGETS}/a", {"propagationPolicy": policy} if policy else None)
    api.get(f"{GADGETS}/a")


@case
def foreground_deletion_ends_with_its_finalizer(api: Api) -> None:
    api.made(GADGETS, gadget("a"))
    api.given("DELETE", f"{GADGETS}/a", {"propagationPolicy": "Foreground"})
    api.delete(f"{GADGETS}/a", {"propagationPolicy": "Background"})
    api.get(f"{GADGETS}/a")


@case
def finalizers_hold_what_is_deleted(api: Api) -> None:
    api.made("configmaps", {"metadata": {"name": "a", "finalizers": ["example.com/x", "example.com/y"]}})
    api.delete("configmaps/a")
    api.delete("configmaps/a")
    api.post("configmaps", config_map("a"))
    api.patch("configmaps/a", {"metadata": {"finalizers": ["example.com/x", "example.com/z"]}})
    api.patch("configmaps/a", {"metadata": {"finalizers": ["example.com/y"]}, "data": {"late": "x"}})
    api.patch("configmaps/a", {"metadata": {"finalizers": None}})
    api.get("configmaps/a")


@case
def finalizers_hold_custom_objects(api: Api) -> None:
    api.made(GADGETS, {**gadget("a"), "metadata": {"name": "a", "finalizers": ["example.com/x"]}})
    api.delete(f"{GADGETS}/a")
    current = api.get(f"{GADGETS}/a").body
    api.patch(f"{GADGETS}/a", {"spec": {"size": 3}})
    current = api.ask("GET", f"{GADGETS}/a").body
    del current["metadata"]["finalizers"]
    api.put(f"{GADGETS}/a", current)
    api.get(f"{GADGETS}/a")


@case
def a_bound_pod_is_given_grace(api: Api) -> None:
    api.made("pods", pod("a", nodeName="contract-node"))
    api.delete("pods/a")
    api.delete("pods/a", {"gracePeriodSeconds": 60})
    api.delete("pods/a", {"gracePeriodSeconds": 10})
    api.get("pods/a")
    api.delete("pods/a", {"gracePeriodSeconds": 0})
    api.get("pods/a")


@each({"1": 1, "-1": -1, "own": None})
def a_pods_grace(api: Api, grace: int | None) -> None:
    api.made("pods", pod("a", nodeName="contract-node", terminationGracePeriodSeconds=7))
    api.delete("pods/a", {"gracePeriodSeconds": grace} if grace is not None else None)


@case
def a_pod_that_is_not_bound_goes_at_once(api: Api) -> None:
    api.made("pods", pod("a"))
    api.delete("pods/a")
    api.get("pods/a")


@case
def a_pod_that_has_ended_goes_at_once(api: Api) -> None:
    api.made("pods", pod("a", nodeName="contract-node"))
    api.given("PATCH", "pods/a/status", {"status": {"phase": "Succeeded"}}, type=MERGE_PATCH)
    api.delete("pods/a")
    api.get("pods/a")


@case
def a_pod_with_a_finalizer_waits_for_it(api: Api) -> None:
    body = pod("a")
    body["metadata"]["finalizers"] = ["example.com/x"]
    api.made("pods", body)
    api.delete("pods/a", {"gracePeriodSeconds": 0})
    api.patch("pods/a", {"metadata": {"finalizers": None}})
    api.get("pods/a")


@case
def a_collection_is_deleted(api: Api) -> None:
    api.made("configmaps", config_map("a", labels={"a": "b"}))
    api.made("configmaps", config_map("b"))
    api.made("configmaps", {"metadata": {"name": "c", "finalizers": ["example.com/x"]}})
    api.delete("configmaps?labelSelector=a%3Db")
    api.delete("configmaps?fieldSelector=metadata.name%3Db")
    api.delete("configmaps")
    api.delete("configmaps")
    api.get("configmaps")


@case
def a_collection_of_custom_objects_is_deleted(api: Api) -> None:
    api.made(GADGETS, gadget("a"))
    api.made(GADGETS, gadget("b"))
    api.delete(GADGETS, {"propagationPolicy": "Background"})
    api.get(GADGETS)
    api.delete(GADGETS, {"propagationPolicy": "Nonsense"})


@case
def a_collection_of_pods_is_deleted(api: Api) -> None:
    api.made("pods", pod("a"))
    api.made("pods", pod("b", nodeName="contract-node"))
    answer = api.ask("DELETE", "pods", {"gracePeriodSeconds": 3})
    api.note("deleted", [answer.code, answer["kind"], [item["metadata"]["name"] for item in answer["items"]]])
    left = api.ask("GET", "pods")["items"]
    api.note("left", [[item["metadata"]["name"], item["metadata"].get("deletionGracePeriodSeconds")] for item in left])
    answer = api.ask("DELETE", "pods?dryRun=All")
    api.note("dry", [answer.code, len(answer["items"])])


@case
def a_namespace_goes_in_two_steps(api: Api) -> None:
    name = f"x-{api.namespace}"
    namespaces = "/api/v1/namespaces"
    api.post(namespaces, {"metadata": {"name": name}})
    api.delete(f"{namespaces}/{name}")
    current = api.get(f"{namespaces}/{name}").body
    api.delete(f"{namespaces}/{name}")
    api.put(f"{namespaces}/{name}/finalize", {**current, "spec": {"finalizers": []}})
    api.get(f"{namespaces}/{name}")


@each(["default", "kube-system", "kube-public"])
def a_namespace_that_must_stay(api: Api, name: str) -> None:
    api.delete(f"/api/v1/namespaces/{name}")


@case
def a_namespaces_finalizers_are_its_own(api: Api) -> None:
    api.patch(f"/api/v1/namespaces/{api.namespace}", {"spec": {"finalizers": []}})
    api.patch(f"/api/v1/namespaces/{api.namespace}", {"metadata": {"labels": {"kubernetes.io/metadata.name": "x"}}})
    api.put(f"/api/v1/namespaces/{api.namespace}/finalize", {"metadata": {"name": "other"}, "spec": {}})
    body = {"metadata": {"name": api.namespace}, "spec": {"finalizers": ["example.com/x", "kubernetes"]}}
    api.put(f"/api/v1/namespaces/{api.namespace}/finalize", body)


@case
def a_cluster_object_is_deleted(api: Api) -> None:
    name = f"g-{api.namespace}"
    api.made(f"/apis/{GIZMOS}", {"apiVersion": "contract.example.com/v1", "kind": "Gizmo", "metadata": {"name": name}})
    api.delete(f"/apis/{GIZMOS}/{name}")
    api.made("/api/v1/nodes", {"metadata": {"name": name}})
    api.delete(f"/api/v1/nodes/{name}")
