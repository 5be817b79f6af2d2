"""Updating: conflicts, what may not change, generations, status and scale."""

from __future__ import annotations

from typing import Any

from furniture import GADGETS, config_map, deployment, gadget, job, lease, pod
from harness import Api, case, each


@case
def an_update_replaces_the_object(api: Api) -> None:
    api.made("configmaps", config_map("a", labels={"old": "x"}))
    api.put("configmaps/a", {"metadata": {"name": "a"}, "data": {"new": "y"}})


@case
def an_identical_update_changes_nothing(api: Api) -> None:
    made = api.made("configmaps", config_map("a"))
    api.put("configmaps/a", made.body)
    api.put("configmaps/a", config_map("a"))
    custom = api.made(GADGETS, gadget("a"))
    api.put(f"{GADGETS}/a", custom.body)


@case
def an_update_of_an_older_state_is_a_conflict(api: Api) -> None:
    old = api.made("configmaps", config_map("a"))
    api.given("PUT", "configmaps/a", config_map("a", data={"key": "other"}))
    api.put("configmaps/a", old.body)
    custom = api.made(GADGETS, gadget("a"))
    api.given("PUT", f"{GADGETS}/a", {**custom.body, "spec": {"size": 2}})
    api.put(f"{GADGETS}/a", custom.body)


@case
def an_update_with_a_revision_that_is_none(api: Api) -> None:
    api.made("configmaps", config_map("a"))
    for revision in ("x", "0", "-1", "999999999"):
        api.put("configmaps/a", {"metadata": {"name": "a", "resourceVersion": revision}})


@case
def an_update_of_another_life_is_a_conflict(api: Api) -> None:
    api.made("configmaps", config_map("a"))
    other = "00000000-0000-0000-0000-000000000000"
    api.put("configmaps/a", {"metadata": {"name": "a", "uid": other}})
    custom = api.made(GADGETS, gadget("a"))
    body = {**custom.body, "metadata": {**custom["metadata"], "uid": other}}
    api.put(f"{GADGETS}/a", body)


@case
def an_update_under_another_name_is_refused(api: Api) -> None:
    api.made("configmaps", config_map("a"))
    api.put("configmaps/a", config_map("b"))
    api.put("configmaps/a", {"data": {"x": "y"}})
    api.put("configmaps/a", {"metadata": {"name": "a", "namespace": "other"}})
    api.made(GADGETS, gadget("a"))
    api.put(f"{GADGETS}/a", gadget("b"))


@case
def an_update_without_a_revision(api: Api) -> None:
    api.made(GADGETS, gadget("a"))
    api.put(f"{GADGETS}/a", gadget("a", size=2))
    api.made("coordination.k8s.io/v1/leases", lease("a"))
    api.put("coordination.k8s.io/v1/leases/a", lease("a", holderIdentity="me"))
    api.made("policy/v1/poddisruptionbudgets", {"metadata": {"name": "a"}, "spec": {"maxUnavailable": 1}})
    api.put("policy/v1/poddisruptionbudgets/a", {"metadata": {"name": "a"}, "spec": {"maxUnavailable": 2}})
    api.made("batch/v1/jobs", job("a"))
    api.put("batch/v1/jobs/a", job("a", parallelism=2))


@each(
    {
        "configmaps": ("configmaps", config_map("a")),
        "pods": ("pods", pod("a")),
        "jobs": ("batch/v1/jobs", job("a")),
        "gadgets": (GADGETS, gadget("a")),
        "leases": ("coordination.k8s.io/v1/leases", lease("a")),
        "endpoints": ("endpoints", {"metadata": {"name": "a"}}),
        "services": ("services", {"metadata": {"name": "a"}, "spec": {"ports": [{"port": 1}]}}),
        "limitranges": ("limitranges", {"metadata": {"name": "a"}}),
        "roles": ("rbac.authorization.k8s.io/v1/roles", {"metadata": {"name": "a"}, "rules": []}),
        "events": ("events", {"metadata": {"name": "a"}, "involvedObject": {}}),
        "serviceaccounts": ("serviceaccounts", {"metadata": {"name": "a"}}),
        "secrets": ("secrets", {"metadata": {"name": "a"}}),
        "deployments": ("apps/v1/deployments", deployment("a")),
    }
)
def updating_what_is_not_there(api: Api, given: tuple[str, dict[str, Any]]) -> None:
    path, body = given
    answer = api.ask("PUT", f"{path}/a", body)
    api.note("answer", [answer.code, answer.body if answer.code >= 300 else answer["metadata"].get("name")])


@case
def updating_what_is_not_there_with_a_revision(api: Api) -> None:
    api.put("coordination.k8s.io/v1/leases/a", {**lease("a"), "metadata": {"name": "a", "resourceVersion": "5"}})
    api.put("configmaps/a", {"metadata": {"name": "a", "resourceVersion": "5"}})


@case
def generations_count_changes_of_the_specification(api: Api) -> None:
    def generation(path: str) -> None:
        api.note(path, api.ask("GET", path)["metadata"].get("generation"))

    api.made(GADGETS, gadget("a"))
    api.given("PATCH", f"{GADGETS}/a", {"spec": {"size": 2}}, type="application/merge-patch+json")
    generation(f"{GADGETS}/a")
    api.given("PATCH", f"{GADGETS}/a", {"metadata": {"labels": {"a": "b"}}}, type="application/merge-patch+json")
    generation(f"{GADGETS}/a")
    api.given("PATCH", f"{GADGETS}/a/status", {"status": {"phase": "x"}}, type="application/merge-patch+json")
    generation(f"{GADGETS}/a")
    api.made("batch/v1/jobs", job("a"))
    api.given("PATCH", "batch/v1/jobs/a", {"spec": {"parallelism": 3}}, type="application/merge-patch+json")
    generation("batch/v1/jobs/a")
    api.given("PATCH", "batch/v1/jobs/a", {"metadata": {"labels": {"x": "y"}}}, type="application/merge-patch+json")
    generation("batch/v1/jobs/a")
    api.made("configmaps", config_map("a"))
    api.given("PATCH", "configmaps/a", {"data": {"x": "y"}}, type="application/merge-patch+json")
    generation("configmaps/a")
    api.made("apps/v1/deployments", deployment("a"))
    api.given("PATCH", "apps/v1/deployments/a", {"spec": {"replicas": 3}}, type="application/merge-patch+json")
    generation("apps/v1/deployments/a")
    api.made("pods", pod("a", activeDeadlineSeconds=100))
    api.given("PATCH", "pods/a", {"spec": {"activeDeadlineSeconds": 50}}, type="application/merge-patch+json")
    generation("pods/a")
    api.given("PATCH", "pods/a/status", {"status": {"phase": "Running"}}, type="application/merge-patch+json")
    generation("pods/a")


@case
def status_and_specification_are_written_apart(api: Api) -> None:
    custom = api.made(GADGETS, {**gadget("a"), "status": {"phase": "ignored"}}).body
    api.put(f"{GADGETS}/a", {**custom, "spec": {"size": 2}, "status": {"phase": "ignored"}})
    now = api.ask("GET", f"{GADGETS}/a").body
    api.put(f"{GADGETS}/a/status", {**now, "spec": {"size": 3}, "status": {"phase": "set"}})
    api.patch(
        f"{GADGETS}/a/status", {"spec": {"size": 4}, "status": {"replicas": 1}, "metadata": {"labels": {"a": "b"}}}
    )
    api.get(f"{GADGETS}/a/status")


@case
def the_status_of_pods_is_written_apart(api: Api) -> None:
    api.made("pods", pod("a"))
    body = {"status": {"phase": "Running"}, "spec": {"priority": 5}, "metadata": {"labels": {"a": "b"}}}
    api.patch("pods/a/status", body)
    api.patch("pods/a", {"status": {"phase": "Failed"}})
    conditions = [{"type": "Ready", "status": "True"}, {"type": "Mine", "status": "False", "reason": "X"}]
    api.patch("pods/a/status", {"status": {"conditions": conditions}}, type="application/strategic-merge-patch+json")
    more = [{"type": "Mine", "status": "True"}]
    api.patch("pods/a/status", {"status": {"conditions": more}}, type="application/strategic-merge-patch+json")


@case
def the_status_of_jobs_is_written_apart(api: Api) -> None:
    api.made("batch/v1/jobs", job("a"))
    api.patch("batch/v1/jobs/a/status", {"status": {"active": 1, "startTime": "2020-01-01T00:00:00Z"}})
    api.patch("batch/v1/jobs/a", {"status": {"active": 2}})
    api.patch("batch/v1/jobs/a/status", {"status": {"succeeded": -1}})


@case
def the_status_of_nodes_and_namespaces_is_written_apart(api: Api) -> None:
    name = f"n-{api.namespace}"
    api.made("/api/v1/nodes", {"metadata": {"name": name}})
    api.patch(f"/api/v1/nodes/{name}/status", {"status": {"capacity": {"cpu": "4"}, "allocatable": {"cpu": "3"}}})
    api.patch(f"/api/v1/nodes/{name}", {"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}})
    api.patch(f"/api/v1/namespaces/{api.namespace}/status", {"status": {"phase": "Terminating"}})


@case
def what_is_no_status_is_refused(api: Api) -> None:
    api.made(GADGETS, gadget("a"))
    api.patch(f"{GADGETS}/a/status", {"status": {"phase": 1}})
    api.patch(f"{GADGETS}/a/status", {"status": {"conditions": [{"status": "x"}]}})
    api.patch(f"{GADGETS}/a/status", {"status": {"conditions": [{"type": "x"}, {"type": "x"}]}})
    api.put(f"{GADGETS}/absent/status", gadget("absent"))


@case
def workloads_are_scaled(api: Api) -> None:
    api.made("apps/v1/deployments", deployment("a"))
    scale = api.get("apps/v1/deployments/a/scale").body
    api.put("apps/v1/deployments/a/scale", {**scale, "spec": {"replicas": 3}})
    api.patch("apps/v1/deployments/a/scale", {"spec": {"replicas": 5}})
    api.put("apps/v1/deployments/a/scale", scale)
    api.patch("apps/v1/deployments/a/scale", {"spec": {"replicas": -1}})
    api.patch("apps/v1/deployments/a/scale", {"spec": {"replicas": "x"}})
    api.note("replicas", api.ask("GET", "apps/v1/deployments/a")["spec"]["replicas"])


@case
def custom_objects_are_scaled(api: Api) -> None:
    api.made(GADGETS, gadget("a", replicas=2))
    api.given(
        "PATCH",
        f"{GADGETS}/a/status",
        {"status": {"replicas": 1, "selector": "a=b"}},
        type="application/merge-patch+json",
    )
    scale = api.get(f"{GADGETS}/a/scale").body
    api.put(f"{GADGETS}/a/scale", {**scale, "spec": {"replicas": 3}})
    api.patch(f"{GADGETS}/a/scale", {"spec": {"replicas": 4}})
    api.get(f"{GADGETS}/a")
    api.made(GADGETS, gadget("b"))
    api.get(f"{GADGETS}/b/scale")
    api.patch(f"{GADGETS}/b/scale", {"spec": {"replicas": 4}})


@each(
    {
        "immutable for ever": ("configmaps", config_map("a", immutable=True), {"immutable": False}),
        "data of an immutable one": ("configmaps", config_map("a", immutable=True), {"data": {"key": "x"}}),
        "labels of an immutable one": (
            "configmaps",
            config_map("a", immutable=True),
            {"metadata": {"labels": {"a": "b"}}},
        ),
        "an immutable secret": (
            "secrets",
            {"metadata": {"name": "a"}, "immutable": True, "stringData": {"a": "b"}},
            {"stringData": {"a": "c"}},
        ),
        "a secret's type": ("secrets", {"metadata": {"name": "a"}}, {"type": "other"}),
        "a pod's image": ("pods", pod("a"), {"spec": {"containers": [{"name": "main", "image": "other"}]}}),
        "a pod's command": (
            "pods",
            pod("a"),
            {"spec": {"containers": [{"name": "main", "image": "busybox", "command": ["x"]}]}},
        ),
        "a pod's node": ("pods", pod("a"), {"spec": {"nodeName": "contract-node"}}),
        "a pod's grace": ("pods", pod("a"), {"spec": {"terminationGracePeriodSeconds": 5}}),
        "a pod's priority": ("pods", pod("a"), {"spec": {"priority": 5}}),
        "a pod's deadline": ("pods", pod("a"), {"spec": {"activeDeadlineSeconds": 5}}),
        "a pod's tolerations": ("pods", pod("a"), {"spec": {"tolerations": []}}),
        "more containers": (
            "pods",
            pod("a"),
            {"spec": {"containers": [{"name": "main", "image": "x"}, {"name": "b", "image": "y"}]}},
        ),
        "a pod's gates": ("pods", pod("a"), {"spec": {"schedulingGates": [{"name": "example.com/x"}]}}),
        "a job's template": (
            "batch/v1/jobs",
            job("a"),
            {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "other"}]}}}},
        ),
        "a job's completions": ("batch/v1/jobs", job("a"), {"spec": {"completions": 5}}),
        "a job's parallelism": ("batch/v1/jobs", job("a"), {"spec": {"parallelism": 5}}),
        "a job's selector": ("batch/v1/jobs", job("a"), {"spec": {"selector": {"matchLabels": {"a": "b"}}}}),
        "a job's mode": ("batch/v1/jobs", job("a"), {"spec": {"completionMode": "Indexed"}}),
        "a suspended job's template": (
            "batch/v1/jobs",
            job("a", suspend=True),
            {"spec": {"template": {"spec": {"nodeSelector": {"a": "b"}}}}},
        ),
        "a deployment's selector": (
            "apps/v1/deployments",
            deployment("a"),
            {"spec": {"selector": {"matchLabels": {"app": "b"}}}},
        ),
        "a role binding's role": (
            "rbac.authorization.k8s.io/v1/rolebindings",
            {
                "metadata": {"name": "a"},
                "roleRef": {"kind": "Role", "name": "a", "apiGroup": "rbac.authorization.k8s.io"},
            },
            {"roleRef": {"name": "b"}},
        ),
        "a service's address": (
            "services",
            {"metadata": {"name": "a"}, "spec": {"ports": [{"port": 80}], "clusterIP": "10.96.77.7"}},
            {"spec": {"clusterIP": "10.96.77.8"}},
        ),
        "a name": ("configmaps", config_map("a"), {"metadata": {"name": "b"}}),
        "a namespace": ("configmaps", config_map("a"), {"metadata": {"namespace": "b"}}),
        "a uid": ("configmaps", config_map("a"), {"metadata": {"uid": "b"}}),
        "a creation time": ("configmaps", config_map("a"), {"metadata": {"creationTimestamp": "2020-01-01T00:00:00Z"}}),
        "a creation time to nothing": ("configmaps", config_map("a"), {"metadata": {"creationTimestamp": None}}),
        "a deletion time": ("configmaps", config_map("a"), {"metadata": {"deletionTimestamp": "2020-01-01T00:00:00Z"}}),
        "a generation": (GADGETS, gadget("a"), {"metadata": {"generation": 9}}),
        "a kind": ("configmaps", config_map("a"), {"kind": "Secret"}),
        "a version": ("configmaps", config_map("a"), {"apiVersion": "v9"}),
        "a custom kind": (GADGETS, gadget("a"), {"kind": "Gizmo"}),
        "a fixed custom field": (GADGETS, gadget("a", fixed="x"), {"spec": {"fixed": "y"}}),
        "a fixed custom field to nothing": (GADGETS, gadget("a", fixed="x"), {"spec": {"fixed": None}}),
    }
)
def what_may_not_change(api: Api, given: tuple[str, dict[str, Any], dict[str, Any]]) -> None:
    path, body, change = given
    api.made(path, body)
    answer = api.ask("PATCH", f"{path}/a", change, type="application/merge-patch+json")
    api.note("answer", [answer.code, answer.headers, answer.body if answer.code >= 300 else answer["metadata"]])


@case
def a_priority_class_keeps_its_value(api: Api) -> None:
    classes = "/apis/scheduling.k8s.io/v1/priorityclasses"
    name = f"p-{api.namespace}"
    api.made(classes, {"metadata": {"name": name}, "value": 5})
    api.patch(f"{classes}/{name}", {"value": 6})
    api.patch(f"{classes}/{name}", {"preemptionPolicy": "Never"})
    api.patch(f"{classes}/{name}", {"description": "x"})
    api.post(classes, {"metadata": {"name": f"q-{api.namespace}"}, "value": 2000000000})
    api.post(classes, {"metadata": {"name": "system-x"}, "value": 5})
    api.post(classes, {"metadata": {"name": f"r-{api.namespace}"}, "value": 1, "preemptionPolicy": "Sometimes"})
    api.get(f"{classes}/system-node-critical", accept="application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io")
    system = api.ask("GET", f"{classes}/system-cluster-critical").body
    api.note("system", {**system, "metadata": system["metadata"].get("name")})
