"""Creating: names, generated names, namespaces, dry runs."""

from __future__ import annotations

from furniture import GADGETS, GIZMOS, config_map, deployment, gadget, job, pod, secret
from harness import Api, case, each

_NAMES = ["A", "a_b", "-a", "a-", "a..b", "a.b", "a" * 253, "a" * 254, "ä", "a/b", "a%b", ".", "..", "1", "a b"]


@case
def an_object_is_made(api: Api) -> None:
    api.post("configmaps", config_map("a"))
    api.get("configmaps/a")


@each(
    {
        "configmaps": ("configmaps", config_map("a")),
        "secrets": ("secrets", secret("a")),
        "pods": ("pods", pod("a")),
        "jobs": ("batch/v1/jobs", job("a")),
        "deployments": ("apps/v1/deployments", deployment("a")),
        "gadgets": (GADGETS, gadget("a")),
        "serviceaccounts": ("serviceaccounts", {"metadata": {"name": "a"}}),
        "leases": ("coordination.k8s.io/v1/leases", {"metadata": {"name": "a"}}),
        "roles": ("rbac.authorization.k8s.io/v1/roles", {"metadata": {"name": "a"}}),
        "limitranges": ("limitranges", {"metadata": {"name": "a"}}),
        "services": ("services", {"metadata": {"name": "a"}, "spec": {"ports": [{"port": 80}]}}),
        "headless services": (
            "services",
            {"metadata": {"name": "a"}, "spec": {"clusterIP": "None", "selector": {"a": "b"}}},
        ),
        "endpoints": ("endpoints", {"metadata": {"name": "a"}}),
        "statefulsets": (
            "apps/v1/statefulsets",
            {"metadata": {"name": "a"}, "spec": {**deployment("a")["spec"], "serviceName": "a"}},
        ),
        "daemonsets": ("apps/v1/daemonsets", {"metadata": {"name": "a"}, "spec": deployment("a")["spec"]}),
        "replicasets": ("apps/v1/replicasets", {"metadata": {"name": "a"}, "spec": deployment("a")["spec"]}),
        "cronjobs": (
            "batch/v1/cronjobs",
            {"metadata": {"name": "a"}, "spec": {"schedule": "* * * * *", "jobTemplate": {"spec": job("a")["spec"]}}},
        ),
        "poddisruptionbudgets": (
            "policy/v1/poddisruptionbudgets",
            {"metadata": {"name": "a"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"a": "b"}}}},
        ),
        "persistentvolumeclaims": (
            "persistentvolumeclaims",
            {
                "metadata": {"name": "a"},
                "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
            },
        ),
        "networkpolicies": ("networking.k8s.io/v1/networkpolicies", {"metadata": {"name": "a"}, "spec": {}}),
        "podtemplates": ("podtemplates", {"metadata": {"name": "a"}, "template": job("a")["spec"]["template"]}),
        "controllerrevisions": ("apps/v1/controllerrevisions", {"metadata": {"name": "a"}, "revision": 1}),
        "horizontalpodautoscalers": (
            "autoscaling/v2/horizontalpodautoscalers",
            {
                "metadata": {"name": "a"},
                "spec": {
                    "maxReplicas": 3,
                    "scaleTargetRef": {"kind": "Deployment", "name": "a", "apiVersion": "apps/v1"},
                },
            },
        ),
        "ingresses": (
            "networking.k8s.io/v1/ingresses",
            {
                "metadata": {"name": "a"},
                "spec": {"defaultBackend": {"service": {"name": "a", "port": {"number": 80}}}},
            },
        ),
        "endpointslices": (
            "discovery.k8s.io/v1/endpointslices",
            {"metadata": {"name": "a"}, "addressType": "IPv4", "endpoints": [{"addresses": ["10.0.0.1"]}]},
        ),
        "resourcequotas": ("resourcequotas", {"metadata": {"name": "a"}, "spec": {"hard": {"pods": "1"}}}),
        "rolebindings": (
            "rbac.authorization.k8s.io/v1/rolebindings",
            {
                "metadata": {"name": "a"},
                "roleRef": {"kind": "Role", "name": "a", "apiGroup": "rbac.authorization.k8s.io"},
                "subjects": [{"kind": "ServiceAccount", "name": "a"}],
            },
        ),
        "replicationcontrollers": (
            "replicationcontrollers",
            {"metadata": {"name": "a"}, "spec": {"template": deployment("a")["spec"]["template"]}},
        ),
    }
)
def the_smallest_object_gets_its_defaults(api: Api, given: tuple[str, dict[str, object]]) -> None:
    path, body = given
    made = api.post(path, body)
    api.post(path, body)
    answer = api.get(f"{path}/a")
    api.note("kept as it was made", answer.body == made.body)


@each(
    {
        "namespaces": ("/api/v1/namespaces", {}),
        "nodes": ("/api/v1/nodes", {"spec": {"unschedulable": True}}),
        "priorityclasses": ("/apis/scheduling.k8s.io/v1/priorityclasses", {"value": 5}),
        "clusterroles": ("/apis/rbac.authorization.k8s.io/v1/clusterroles", {"rules": []}),
        "storageclasses": ("/apis/storage.k8s.io/v1/storageclasses", {"provisioner": "example.com/x"}),
        "runtimeclasses": ("/apis/node.k8s.io/v1/runtimeclasses", {"handler": "x"}),
        "csidrivers": ("/apis/storage.k8s.io/v1/csidrivers", {"spec": {}}),
        "ingressclasses": ("/apis/networking.k8s.io/v1/ingressclasses", {"spec": {"controller": "example.com/x"}}),
        "persistentvolumes": (
            "/api/v1/persistentvolumes",
            {
                "spec": {
                    "capacity": {"storage": "1Gi"},
                    "accessModes": ["ReadWriteOnce"],
                    "hostPath": {"path": "/tmp"},
                }
            },
        ),
        "validatingwebhookconfigurations": (
            "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
            {
                "webhooks": [
                    {
                        "name": "a.example.com",
                        "clientConfig": {"url": "https://127.0.0.1:1/x"},
                        "sideEffects": "None",
                        "admissionReviewVersions": ["v1"],
                        "rules": [
                            {
                                "apiGroups": ["nobody"],
                                "apiVersions": ["v1"],
                                "operations": ["CREATE"],
                                "resources": ["x"],
                            }
                        ],
                    }
                ]
            },
        ),
        "gizmos": (f"/apis/{GIZMOS}", {"apiVersion": "contract.example.com/v1", "kind": "Gizmo", "any": [1, "x"]}),
    }
)
def the_smallest_cluster_object_gets_its_defaults(api: Api, given: tuple[str, dict[str, object]]) -> None:
    path, body = given
    api.post(path, {"metadata": {"name": f"a-{api.namespace}"}, **body})
    api.post(path, {"metadata": {"name": f"a-{api.namespace}"}, **body})
    api.delete(f"{path}/a-{api.namespace}")


@each(
    {
        "configmaps": ("configmaps", {}),
        "jobs": ("batch/v1/jobs", {}),
        "pods": ("pods", {}),
        "pods with nothing in them": ("pods", {"spec": {"containers": []}}),
        "pods with a nameless container": ("pods", {"spec": {"containers": [{}]}}),
        "deployments": ("apps/v1/deployments", {}),
        "cronjobs": ("batch/v1/cronjobs", {}),
        "services": ("services", {}),
        "poddisruptionbudgets": ("policy/v1/poddisruptionbudgets", {}),
        "persistentvolumeclaims": ("persistentvolumeclaims", {}),
        "rolebindings": ("rbac.authorization.k8s.io/v1/rolebindings", {}),
        "horizontalpodautoscalers": ("autoscaling/v2/horizontalpodautoscalers", {}),
        "ingresses": ("networking.k8s.io/v1/ingresses", {}),
        "replicationcontrollers": ("replicationcontrollers", {}),
        "statefulsets": ("apps/v1/statefulsets", {}),
        "daemonsets": ("apps/v1/daemonsets", {}),
        "endpointslices": ("discovery.k8s.io/v1/endpointslices", {}),
        "priorityclasses": ("/apis/scheduling.k8s.io/v1/priorityclasses", {}),
        "storageclasses": ("/apis/storage.k8s.io/v1/storageclasses", {}),
        "gadgets": (GADGETS, {"apiVersion": "contract.example.com/v1", "kind": "Gadget"}),
        "definitions": ("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", {}),
    }
)
def an_object_that_says_nothing_is_invalid(api: Api, given: tuple[str, dict[str, object]]) -> None:
    path, body = given
    api.post(path, body)
    api.post(path, {"metadata": {"name": "a"}, **body} if path != "configmaps" else {"metadata": {}})


@each(_NAMES)
def a_name(api: Api, name: str) -> None:
    api.post("configmaps?dryRun=All", {"metadata": {"name": name}})
    api.post(f"{GADGETS}?dryRun=All", gadget(name))


@each(["A", "a.b", "a" * 64, "-", "a"])
def a_name_of_a_namespace(api: Api, name: str) -> None:
    api.post("/api/v1/namespaces?dryRun=All", {"metadata": {"name": name}})


@each(["a.b", "a" * 64, "1a", "A", "a" * 63])
def a_name_of_a_service_or_pod(api: Api, name: str) -> None:
    api.post("services?dryRun=All", {"metadata": {"name": name}, "spec": {"ports": [{"port": 1}]}})
    api.post("pods?dryRun=All", pod(name))
    api.post("batch/v1/jobs?dryRun=All", job(name))


@each(["a/b/c", "-a", "a" * 64, "a/", "", "example.com/A_b.c", "Example.com/a"])
def a_key_of_labels_and_annotations(api: Api, key: str) -> None:
    api.post("configmaps", {"metadata": {"name": "a", "labels": {key: "x"}}})
    api.post("configmaps", {"metadata": {"name": "b", "annotations": {key: "x"}}})
    api.post("configmaps", {"metadata": {"name": "c"}, "data": {key: "x"}})


@each(["a b", "-", "a" * 64, "", "A_b.c", "ä"])
def a_value_of_a_label(api: Api, value: str) -> None:
    api.post("configmaps", {"metadata": {"name": "a", "labels": {"key": value}, "annotations": {"key": value}}})


@case
def names_are_generated(api: Api) -> None:
    api.post("configmaps", {"metadata": {"generateName": "gen-"}})
    api.post(GADGETS, {**gadget("x"), "metadata": {"generateName": "gen-"}})
    api.post("configmaps", {"metadata": {"name": "a", "generateName": "gen-"}})
    api.post("configmaps", {"metadata": {"generateName": "Gen-"}})
    api.post("pods", {**pod("x"), "metadata": {"generateName": "gen-"}})


@case
def a_long_generated_name_is_cut(api: Api) -> None:
    answer = api.ask("POST", "configmaps", {"metadata": {"generateName": "g" * 100}})
    api.note("length", [answer.code, len(answer["metadata"]["name"])])


@case
def the_namespace_is_that_of_the_path(api: Api) -> None:
    api.post("configmaps", {"metadata": {"name": "a", "namespace": api.namespace}})
    api.post("configmaps", {"metadata": {"name": "b", "namespace": "other"}})
    api.post(GADGETS, {**gadget("b"), "metadata": {"name": "b", "namespace": "other"}})
    api.post("/api/v1/namespaces", {"metadata": {"name": "x", "namespace": "other"}})
    api.post(
        f"/apis/{GIZMOS}",
        {"apiVersion": "contract.example.com/v1", "kind": "Gizmo", "metadata": {"name": "x", "namespace": "y"}},
    )


@case
def nothing_is_made_in_a_namespace_that_is_not_there(api: Api) -> None:
    api.post("/api/v1/namespaces/absent/configmaps", config_map("a"))
    api.post("/apis/batch/v1/namespaces/absent/jobs", job("a"))
    api.post("/apis/contract.example.com/v1/namespaces/absent/gadgets", gadget("a"))
    api.post("/api/v1/namespaces/absent/configmaps?dryRun=All", config_map("a"))
    api.delete("/api/v1/namespaces/absent/configmaps/a")
    api.apply("/api/v1/namespaces/absent/configmaps/a?fieldManager=m", config_map("a"))


@case
def nothing_is_made_in_a_namespace_that_goes(api: Api) -> None:
    api.given("DELETE", f"/api/v1/namespaces/{api.namespace}")
    api.until("POST", "configmaps?dryRun=All", config_map("probe"), 403)
    api.post("configmaps", config_map("a"))
    api.post("batch/v1/jobs", job("a"))
    api.post(GADGETS, gadget("a"))


@case
def what_the_server_sets_cannot_be_given(api: Api) -> None:
    metadata = {
        "name": "a",
        "uid": "mine",
        "creationTimestamp": "2020-01-01T00:00:00Z",
        "generation": 7,
        "selfLink": "/x",
        "deletionTimestamp": "2020-01-01T00:00:00Z",
        "deletionGracePeriodSeconds": 5,
    }
    api.post("configmaps", {"metadata": metadata})
    api.post(GADGETS, {**gadget("a"), "metadata": metadata, "status": {"phase": "mine"}})
    api.post("pods", {**pod("a"), "status": {"phase": "Running"}})
    api.post("batch/v1/jobs", {**job("a"), "status": {"succeeded": 1}})


@case
def an_object_with_a_revision_cannot_be_made(api: Api) -> None:
    api.post("configmaps", {"metadata": {"name": "a", "resourceVersion": "1"}})
    api.post("configmaps", {"metadata": {"name": "b", "resourceVersion": "0"}})
    api.post(GADGETS, {**gadget("a"), "metadata": {"name": "a", "resourceVersion": "1"}})


@case
def a_dry_run_leaves_nothing(api: Api) -> None:
    api.post("configmaps?dryRun=All", config_map("a"))
    api.get("configmaps/a")
    api.post("configmaps?dryRun=All&dryRun=All", config_map("a"))
    api.made("configmaps", config_map("a"))
    api.post("configmaps?dryRun=All", config_map("a"))
    api.put("configmaps/a?dryRun=All", config_map("a", data={"key": "other"}))
    api.patch("configmaps/a?dryRun=All", {"data": {"key": "third"}})
    api.delete("configmaps/a?dryRun=All")
    api.delete("configmaps/a", {"dryRun": ["All"]})
    api.get("configmaps/a")


@each(["nonsense", "all", ""])
def a_dry_run_of_another_kind(api: Api, value: str) -> None:
    api.post(f"configmaps?dryRun={value}", config_map("a"))
    api.put(f"configmaps/a?dryRun={value}", config_map("a"))
    api.patch(f"configmaps/a?dryRun={value}", {})
    api.delete(f"configmaps/a?dryRun={value}")


@each({"long": "m" * 129, "unprintable": "a%01b", "spaces": "a%20b", "empty": ""})
def a_field_manager(api: Api, manager: str) -> None:
    api.post(f"configmaps?fieldManager={manager}", config_map("a"))


@each(["", "curl/8.0", "Mozilla/5.0 (X11)", "OpenAPI-Generator/35.0.0/python", "a" * 200 + "/1", "/x", "kubectl"])
def the_manager_is_named_after_the_agent(api: Api, agent: str) -> None:
    api.post("configmaps", config_map("a"), agent=agent)


@each(
    {
        "incomplete": {"kind": "ConfigMap"},
        "two controllers": None,
        "without version": {"apiVersion": "", "kind": "ConfigMap", "name": "x", "uid": "u"},
        "a bad version": {"apiVersion": "a/b/c", "kind": "ConfigMap", "name": "x", "uid": "u"},
        "an event": {"apiVersion": "v1", "kind": "Event", "name": "x", "uid": "u"},
        "complete": {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "u"},
    }
)
def an_owner(api: Api, owner: dict[str, object] | None) -> None:
    one = {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "u", "controller": True}
    owners = [owner] if owner else [one, {**one, "uid": "v"}]
    api.post("configmaps", {"metadata": {"name": "a", "ownerReferences": owners}})


@each(["", "no slash", "example.com/x", "foregroundDeletion", "orphan", "kubernetes", "a/b/c"])
def a_finalizer(api: Api, finalizer: str) -> None:
    api.post("configmaps", {"metadata": {"name": "a", "finalizers": [finalizer]}})
