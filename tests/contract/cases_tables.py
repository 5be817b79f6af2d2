"""Tables, as kubectl asks for them."""

from __future__ import annotations

from typing import Any

from furniture import GADGETS, GIZMOS, config_map, deployment, gadget, job, lease, pod, secret
from harness import MERGE_PATCH, TABLE, Api, case, each

_KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "pods": ("pods", pod("a")),
    "jobs": ("batch/v1/jobs", job("a", completions=3)),
    "cronjobs": (
        "batch/v1/cronjobs",
        {
            "metadata": {"name": "a"},
            "spec": {"schedule": "* * * * *", "timeZone": "Etc/UTC", "jobTemplate": {"spec": job("a")["spec"]}},
        },
    ),
    "deployments": ("apps/v1/deployments", deployment("a")),
    "replicasets": ("apps/v1/replicasets", {"metadata": {"name": "a"}, "spec": deployment("a")["spec"]}),
    "daemonsets": ("apps/v1/daemonsets", {"metadata": {"name": "a"}, "spec": deployment("a")["spec"]}),
    "statefulsets": (
        "apps/v1/statefulsets",
        {"metadata": {"name": "a"}, "spec": {**deployment("a")["spec"], "serviceName": "a"}},
    ),
    "configmaps": ("configmaps", config_map("a")),
    "secrets": ("secrets", secret("a")),
    "services": ("services", {"metadata": {"name": "a"}, "spec": {"ports": [{"port": 80}], "selector": {"a": "b"}}}),
    "serviceaccounts": ("serviceaccounts", {"metadata": {"name": "a"}}),
    "leases": ("coordination.k8s.io/v1/leases", lease("a", holderIdentity="me")),
    "limitranges": ("limitranges", {"metadata": {"name": "a"}}),
    "resourcequotas": ("resourcequotas", {"metadata": {"name": "a"}, "spec": {"hard": {"pods": "1"}}}),
    "poddisruptionbudgets": (
        "policy/v1/poddisruptionbudgets",
        {"metadata": {"name": "a"}, "spec": {"minAvailable": 1}},
    ),
    "endpoints": ("endpoints", {"metadata": {"name": "a"}, "subsets": [{"addresses": [{"ip": "10.0.0.1"}]}]}),
    "endpointslices": (
        "discovery.k8s.io/v1/endpointslices",
        {"metadata": {"name": "a"}, "addressType": "IPv4", "endpoints": [{"addresses": ["10.0.0.1"]}]},
    ),
    "roles": ("rbac.authorization.k8s.io/v1/roles", {"metadata": {"name": "a"}, "rules": []}),
    "rolebindings": (
        "rbac.authorization.k8s.io/v1/rolebindings",
        {
            "metadata": {"name": "a"},
            "roleRef": {"kind": "Role", "name": "a", "apiGroup": "rbac.authorization.k8s.io"},
        },
    ),
    "networkpolicies": ("networking.k8s.io/v1/networkpolicies", {"metadata": {"name": "a"}, "spec": {}}),
    "persistentvolumeclaims": (
        "persistentvolumeclaims",
        {
            "metadata": {"name": "a"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
        },
    ),
    "horizontalpodautoscalers": (
        "autoscaling/v2/horizontalpodautoscalers",
        {
            "metadata": {"name": "a"},
            "spec": {"maxReplicas": 3, "scaleTargetRef": {"kind": "Deployment", "name": "a", "apiVersion": "apps/v1"}},
        },
    ),
    "gadgets": (GADGETS, gadget("a", parts=[{"name": "x", "note": "n"}])),
}


@each(_KINDS)
def a_table_of_one_kind(api: Api, given: tuple[str, dict[str, Any]]) -> None:
    path, body = given
    api.made(path, body)
    answer = api.ask("GET", path, accept=TABLE)
    api.note("headers", [answer.code, answer.headers])
    api.note("columns", {"columnDefinitions": answer["columnDefinitions"]})
    api.note("cells", [{"cells": row["cells"]} for row in answer["rows"]])


@case
def a_table_holds_the_metadata_by_default(api: Api) -> None:
    api.made("configmaps", config_map("a"))
    api.get("configmaps", accept=TABLE)
    api.get("configmaps/a", accept=TABLE)
    api.get("configmaps?limit=1", accept=TABLE)


@each(["None", "Metadata", "Object", "Nonsense", ""])
def a_table_holds_as_much_as_is_asked(api: Api, include: str) -> None:
    api.made("configmaps", config_map("a"))
    api.get(f"configmaps?includeObject={include}", accept=TABLE)
    api.made(GADGETS, gadget("a"))
    api.get(f"{GADGETS}?includeObject={include}", accept=TABLE)


@case
def an_empty_table_has_its_columns(api: Api) -> None:
    for path in ("pods", "configmaps", "batch/v1/jobs", GADGETS, "events"):
        answer = api.ask("GET", path, accept=TABLE)
        api.note(path, {"columnDefinitions": answer["columnDefinitions"], "rows": answer.body.get("rows", "none")})


@case
def a_table_of_what_is_not_there_is_not_found(api: Api) -> None:
    api.get("configmaps/absent", accept=TABLE)


@case
def writes_answer_with_tables_if_asked(api: Api) -> None:
    api.post("configmaps", config_map("a"), accept=TABLE)
    api.delete("configmaps/a", accept=TABLE)


@case
def cluster_objects_have_tables(api: Api) -> None:
    name = f"t-{api.namespace}"
    api.made("/api/v1/nodes", {"metadata": {"name": name, "labels": {"node-role.kubernetes.io/worker": ""}}})
    api.made("/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": name}, "value": 3})
    api.made("/apis/storage.k8s.io/v1/storageclasses", {"metadata": {"name": name}, "provisioner": "example.com/x"})
    api.made(f"/apis/{GIZMOS}", {"apiVersion": "contract.example.com/v1", "kind": "Gizmo", "metadata": {"name": name}})
    for path in (
        f"/api/v1/nodes/{name}",
        f"/api/v1/namespaces/{api.namespace}",
        f"/apis/scheduling.k8s.io/v1/priorityclasses/{name}",
        f"/apis/storage.k8s.io/v1/storageclasses/{name}",
        f"/apis/{GIZMOS}/{name}",
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/gizmos.contract.example.com",
    ):
        answer = api.ask("GET", path, accept=TABLE)
        cells = answer["rows"][0]["cells"]
        if "customresourcedefinitions" in path:
            cells = cells[:1]
        api.note(path, {"columnDefinitions": answer["columnDefinitions"], "rows": [{"cells": cells}]})


_STARTED = "2020-01-01T00:00:00Z"


@each(
    {
        "running": {
            "phase": "Running",
            "containerStatuses": [{"state": {"running": {"startedAt": _STARTED}}, "ready": True}],
        },
        "not ready": {"phase": "Running", "containerStatuses": [{"state": {"running": {"startedAt": _STARTED}}}]},
        "creating": {
            "phase": "Pending",
            "containerStatuses": [{"state": {"waiting": {"reason": "ContainerCreating"}}}],
        },
        "crashing": {
            "phase": "Running",
            "containerStatuses": [{"state": {"waiting": {"reason": "CrashLoopBackOff"}}, "restartCount": 3}],
        },
        "completed": {
            "phase": "Succeeded",
            "containerStatuses": [{"state": {"terminated": {"exitCode": 0, "reason": "Completed"}}}],
        },
        "failed": {
            "phase": "Failed",
            "containerStatuses": [{"state": {"terminated": {"exitCode": 3, "reason": "Error"}}}],
        },
        "without a reason": {"phase": "Failed", "containerStatuses": [{"state": {"terminated": {"exitCode": 3}}}]},
        "by a signal": {
            "phase": "Failed",
            "containerStatuses": [{"state": {"terminated": {"exitCode": 0, "signal": 9}}}],
        },
        "evicted": {"phase": "Failed", "reason": "Evicted"},
        "with addresses": {"phase": "Running", "podIP": "10.0.0.7", "podIPs": [{"ip": "10.0.0.7"}]},
        "initialising": {
            "phase": "Pending",
            "initContainerStatuses": [{"name": "first", "state": {"waiting": {"reason": "PodInitializing"}}}],
        },
        "init failed": {
            "phase": "Pending",
            "initContainerStatuses": [{"name": "first", "state": {"terminated": {"exitCode": 2, "reason": "Error"}}}],
        },
    }
)
def the_row_of_a_pod(api: Api, status: dict[str, Any]) -> None:
    more: dict[str, Any] = {"nodeName": "contract-node"}
    if "initContainerStatuses" in status:
        more["initContainers"] = [{"name": "first", "image": "x"}]
    api.made("pods", pod("a", **more))
    filled = {**status}
    for key in ("containerStatuses", "initContainerStatuses"):
        filled[key] = [
            {"name": "main", "image": "x", "imageID": "", "ready": False, "restartCount": 0, **found}
            for found in status.get(key, [])
        ]
    api.given("PATCH", "pods/a/status", {"status": filled}, type=MERGE_PATCH)
    answer = api.ask("GET", "pods/a", accept=TABLE)
    api.note("row", {"rows": [{"cells": row["cells"], "conditions": row.get("conditions")} for row in answer["rows"]]})


@case
def the_row_of_a_pod_that_goes(api: Api) -> None:
    api.made("pods", pod("a", nodeName="contract-node"))
    api.given("DELETE", "pods/a")
    api.note("cells", {"cells": api.ask("GET", "pods/a", accept=TABLE)["rows"][0]["cells"]})


@case
def the_row_of_a_pod_that_is_gated(api: Api) -> None:
    api.made("pods", pod("a", schedulingGates=[{"name": "example.com/x"}], readinessGates=[{"conditionType": "x/y"}]))
    api.note("cells", {"cells": api.ask("GET", "pods/a", accept=TABLE)["rows"][0]["cells"]})


@each(
    {
        "complete": {
            "startTime": _STARTED,
            "completionTime": "2020-01-01T00:01:05Z",
            "succeeded": 1,
            "conditions": [
                {"type": "SuccessCriteriaMet", "status": "True"},
                {"type": "Complete", "status": "True"},
            ],
        },
        "failed": {
            "startTime": _STARTED,
            "failed": 1,
            "conditions": [{"type": "FailureTarget", "status": "True"}, {"type": "Failed", "status": "True"}],
        },
        "suspended": {"conditions": [{"type": "Suspended", "status": "True"}]},
    }
)
def the_row_of_a_job(api: Api, status: dict[str, Any]) -> None:
    api.made("batch/v1/jobs", job("a"))
    answer = api.ask("PATCH", "batch/v1/jobs/a/status", {"status": status}, type=MERGE_PATCH)
    api.note("written", [answer.code, answer.body.get("message")])
    api.note("cells", {"cells": api.ask("GET", "batch/v1/jobs/a", accept=TABLE)["rows"][0]["cells"]})
