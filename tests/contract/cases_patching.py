"""Patches of all kinds, and server-side apply with its records of who owns what."""

from __future__ import annotations

from typing import Any

from furniture import GADGETS, config_map, deployment, gadget, pod
from harness import APPLY_PATCH, JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, Api, case, each

_JSON_PATCHES: dict[str, Any] = {
    "add": [{"op": "add", "path": "/data/x", "value": "y"}],
    "add over": [{"op": "add", "path": "/data/key", "value": "y"}],
    "add deep": [{"op": "add", "path": "/data/a/b", "value": "y"}],
    "add a list's end": [{"op": "add", "path": "/metadata/finalizers/-", "value": "example.com/x"}],
    "add finalizers": [{"op": "add", "path": "/metadata/finalizers", "value": ["example.com/x"]}],
    "remove": [{"op": "remove", "path": "/data/key"}],
    "remove nothing": [{"op": "remove", "path": "/data/absent"}],
    "remove the name": [{"op": "remove", "path": "/metadata/name"}],
    "replace": [{"op": "replace", "path": "/data/key", "value": "y"}],
    "replace nothing": [{"op": "replace", "path": "/data/absent", "value": "y"}],
    "replace all": [{"op": "replace", "path": "", "value": {}}],
    "move": [{"op": "move", "from": "/data/key", "path": "/data/moved"}],
    "copy": [{"op": "copy", "from": "/data/key", "path": "/data/copied"}],
    "copy nothing": [{"op": "copy", "from": "/data/absent", "path": "/data/copied"}],
    "test that holds": [{"op": "test", "path": "/data/key", "value": "value"}, {"op": "remove", "path": "/data/key"}],
    "test that fails": [{"op": "test", "path": "/data/key", "value": "other"}, {"op": "remove", "path": "/data/key"}],
    "test of nothing": [{"op": "test", "path": "/data/absent", "value": "other"}],
    "test of null": [{"op": "test", "path": "/data/absent", "value": None}],
    "an unknown operation": [{"op": "frobnicate", "path": "/data"}],
    "no operation": [{"path": "/data"}],
    "no path": [{"op": "add", "value": 1}],
    "no value": [{"op": "add", "path": "/data/x"}],
    "a wrong type": [{"op": "add", "path": "/data/x", "value": 1}],
    "a path without slash": [{"op": "add", "path": "data", "value": {}}],
    "escapes": [
        {"op": "add", "path": "/metadata/annotations", "value": {}},
        {"op": "add", "path": "/metadata/annotations/a~1b", "value": "x"},
    ],
    "nothing": [],
    "an object": {},
    "a null": None,
    "another name": [{"op": "replace", "path": "/metadata/name", "value": "b"}],
    "an old revision": [{"op": "replace", "path": "/metadata/resourceVersion", "value": "1"}],
}
_MERGE_PATCHES: dict[str, Any] = {
    "a value": {"data": {"x": "y"}},
    "a removal": {"data": {"key": None}},
    "a removal of all": {"data": None},
    "a removal of nothing": {"data": {"absent": None}},
    "labels": {"metadata": {"labels": {"a": "b"}}},
    "a wrong type": {"data": {"x": 1}},
    "a wrong container": {"data": []},
    "a text": "text",
    "a list": [],
    "null": None,
    "nothing": {},
    "an old revision": {"metadata": {"resourceVersion": "1"}},
    "a nested null": {"metadata": {"annotations": {"a": None, "b": "c"}}},
    "an unknown field": {"nonsense": {"a": 1}},
    "a bad label": {"metadata": {"labels": {"a": "-"}}},
}


@each(_JSON_PATCHES)
def a_json_patch(api: Api, patch: Any) -> None:
    api.made("configmaps", config_map("a"))
    api.patch("configmaps/a", patch, type=JSON_PATCH)


@each({label: _JSON_PATCHES[label] for label in ("add", "add deep", "replace nothing", "test that fails", "an object")})
def a_json_patch_of_a_custom_object(api: Api, patch: Any) -> None:
    api.made(GADGETS, {**gadget("a"), "data": {"key": "value"}})
    api.patch(f"{GADGETS}/a", patch, type=JSON_PATCH)
    api.patch(f"{GADGETS}/a", [{"op": "add", "path": "/spec/many", "value": ["x"]}], type=JSON_PATCH)
    api.patch(f"{GADGETS}/a", [{"op": "add", "path": "/spec/many/0", "value": "y"}], type=JSON_PATCH)
    api.patch(f"{GADGETS}/a", [{"op": "add", "path": "/spec/many/7", "value": "z"}], type=JSON_PATCH)
    api.patch(f"{GADGETS}/a", [{"op": "remove", "path": "/spec/many/x"}], type=JSON_PATCH)


@each(_MERGE_PATCHES)
def a_merge_patch(api: Api, patch: Any) -> None:
    api.made("configmaps", config_map("a"))
    api.patch("configmaps/a", patch, type=MERGE_PATCH)


@each({label: value for label, value in _MERGE_PATCHES.items() if label not in ("a value", "a removal")})
def a_strategic_patch(api: Api, patch: Any) -> None:
    api.made("configmaps", config_map("a"))
    api.patch("configmaps/a", patch, type=STRATEGIC_PATCH)


@each({"json": JSON_PATCH, "merge": MERGE_PATCH, "strategic": STRATEGIC_PATCH, "apply": APPLY_PATCH})
def a_patch_that_is_no_document(api: Api, content_type: str) -> None:
    api.made("configmaps", config_map("a"))
    for body in ("", "{", "nonsense: [", "{} {}"):
        api.patch("configmaps/a?fieldManager=m", body, type=content_type)


@each({"json": JSON_PATCH, "merge": MERGE_PATCH, "strategic": STRATEGIC_PATCH})
def patching_what_is_not_there(api: Api, content_type: str) -> None:
    api.patch("configmaps/absent", [] if content_type == JSON_PATCH else {}, type=content_type)
    api.patch(f"{GADGETS}/absent", [] if content_type == JSON_PATCH else {}, type=content_type)


@each(
    {
        "a container changes": {"containers": [{"name": "main", "image": "other"}]},
        "a container is added": {"containers": [{"name": "second", "image": "x"}]},
        "a container is deleted": {"containers": [{"name": "second", "$patch": "delete"}]},
        "containers are replaced": {"containers": [{"$patch": "replace"}, {"name": "only", "image": "x"}]},
        "the order is given": {
            "$setElementOrder/containers": [{"name": "second"}, {"name": "main"}],
            "containers": [{"name": "second", "image": "y"}],
        },
        "a variable is added": {"containers": [{"name": "main", "env": [{"name": "B", "value": "2"}]}]},
        "a variable is deleted": {"containers": [{"name": "main", "env": [{"name": "A", "$patch": "delete"}]}]},
        "a container without its key": {"containers": [{"image": "x"}]},
        "an unknown directive": {"containers": [{"name": "main", "$patch": "nonsense"}]},
        "a list that is none": {"containers": {"name": "main"}},
        "a volume source is exchanged": {
            "volumes": [{"name": "v", "$retainKeys": ["name", "hostPath"], "hostPath": {"path": "/x"}}]
        },
        "a selector is replaced": {"nodeSelector": {"$patch": "replace", "only": "this"}},
        "tolerations are replaced": {"tolerations": [{"key": "b", "operator": "Exists"}]},
        "a port is added": {"containers": [{"name": "main", "ports": [{"containerPort": 80}]}]},
    }
)
def a_strategic_patch_of_lists(api: Api, change: dict[str, Any]) -> None:
    made = deployment("a")
    made["spec"]["template"]["spec"] |= {
        "containers": [
            {"name": "main", "image": "x", "env": [{"name": "A", "value": "1"}]},
            {"name": "second", "image": "x"},
        ],
        "volumes": [{"name": "v", "emptyDir": {}}],
        "nodeSelector": {"one": "1"},
        "tolerations": [{"key": "a", "operator": "Exists"}],
    }
    api.made("apps/v1/deployments", made)
    answer = api.ask("PATCH", "apps/v1/deployments/a", {"spec": {"template": {"spec": change}}}, type=STRATEGIC_PATCH)
    shown = answer["spec"]["template"]["spec"] if answer.code == 200 else answer.body
    api.note("answer", [answer.code, shown, answer["metadata"].get("managedFields")])


@each(
    {
        "add": {"metadata": {"finalizers": ["example.com/b"]}},
        "delete": {"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.com/a"]}},
    }
)
def a_strategic_patch_of_finalizers(api: Api, change: dict[str, Any]) -> None:
    api.made("configmaps", {"metadata": {"name": "a", "finalizers": ["example.com/a"]}})
    api.patch("configmaps/a", change, type=STRATEGIC_PATCH)


@case
def custom_objects_know_no_strategic_patch(api: Api) -> None:
    api.made(GADGETS, gadget("a"))
    api.patch(f"{GADGETS}/a", {"spec": {"size": 2}}, type=STRATEGIC_PATCH)


@case
def a_patch_that_changes_nothing_changes_nothing(api: Api) -> None:
    api.made("configmaps", config_map("a"))
    api.patch("configmaps/a", {"data": {"key": "value"}})
    api.patch("configmaps/a?fieldManager=other", {"data": {"key": "value"}})


@case
def applying_makes_the_object(api: Api) -> None:
    api.apply("configmaps/a?fieldManager=m", config_map("a"))
    api.apply("configmaps/a?fieldManager=m", config_map("a"))
    api.apply("configmaps/a?fieldManager=m", "apiVersion: v1\nkind: ConfigMap\ndata: {other: x}\n")


@case
def applying_needs_a_manager(api: Api) -> None:
    api.apply("configmaps/a", config_map("a"))
    api.apply("configmaps/a?fieldManager=", config_map("a"))
    api.patch("configmaps/a?force=true", {}, type=MERGE_PATCH)


@each(
    {
        "no kind": {"apiVersion": "v1", "metadata": {"name": "a"}},
        "no version": {"kind": "ConfigMap", "metadata": {"name": "a"}},
        "another kind": {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}},
        "another name": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b"}},
        "no name": {"apiVersion": "v1", "kind": "ConfigMap"},
        "managed fields": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "managedFields": [{}]}},
        "an unknown field": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "nonsense": 1},
        "a wrong type": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"x": 1}},
        "a list for a map": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": []},
        "a null": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": None},
        "a uid": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "uid": "x"}},
        "a revision": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "resourceVersion": "1"}},
        "another namespace": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "b"}},
    }
)
def applying_something_odd(api: Api, body: dict[str, Any]) -> None:
    api.apply("configmaps/a?fieldManager=m", body)
    api.made("configmaps", config_map("a")) if api.ask("GET", "configmaps/a").code == 404 else None
    api.apply("configmaps/a?fieldManager=n", body)


@case
def what_is_no_longer_applied_goes(api: Api) -> None:
    api.apply("configmaps/a?fieldManager=m", config_map("a", data={"x": "1", "y": "2"}))
    api.apply("configmaps/a?fieldManager=m", config_map("a", data={"x": "1"}))
    api.apply("configmaps/a?fieldManager=m", {"apiVersion": "v1", "kind": "ConfigMap"})


@case
def two_who_apply_may_share_or_quarrel(api: Api) -> None:
    api.given("PATCH", "configmaps/a?fieldManager=one", config_map("a", data={"x": "1"}), type=APPLY_PATCH)
    api.apply("configmaps/a?fieldManager=two", config_map("a", data={"x": "1", "y": "2"}))
    api.apply("configmaps/a?fieldManager=two", config_map("a", data={"x": "9"}))
    api.apply("configmaps/a?fieldManager=two&force=true", config_map("a", data={"x": "9"}))
    api.apply("configmaps/a?fieldManager=one", config_map("a", data={}))


@case
def applying_over_an_update_is_a_conflict(api: Api) -> None:
    api.made("configmaps?fieldManager=creator", config_map("a"))
    api.apply("configmaps/a?fieldManager=m", config_map("a", data={"key": "other"}))
    api.apply("configmaps/a?fieldManager=m", config_map("a", data={"key": "value"}))
    api.patch("configmaps/a?fieldManager=patcher", {"data": {"key": "third"}})
    api.apply("configmaps/a?fieldManager=m&force=true", config_map("a", data={"key": "other"}))


@case
def applying_to_lists_by_key(api: Api) -> None:
    api.given("PATCH", f"{GADGETS}/a?fieldManager=one", gadget("a", parts=[{"name": "x"}]), type=APPLY_PATCH)
    two = {"apiVersion": "contract.example.com/v1", "kind": "Gadget", "spec": {"parts": [{"name": "y", "note": "n"}]}}
    api.apply(f"{GADGETS}/a?fieldManager=two", two)
    api.apply(f"{GADGETS}/a?fieldManager=one", gadget("a", parts=[]))
    api.apply(f"{GADGETS}/a?fieldManager=two", gadget("a", unique=["a", "b"]))
    api.apply(f"{GADGETS}/a?fieldManager=three&force=true", gadget("a", unique=["b", "c"], many=["q"]))
    api.apply(f"{GADGETS}/a?fieldManager=three", gadget("a", parts=[{"note": "no key"}]))
    api.apply(f"{GADGETS}/a?fieldManager=three", gadget("a", parts=[{"name": "x"}, {"name": "x"}]))


@case
def applying_to_a_pods_containers(api: Api) -> None:
    api.apply("pods/a?fieldManager=m", pod("a"))
    second = {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [{"name": "main", "image": "other"}]}}
    api.apply("pods/a?fieldManager=n", second)
    api.apply("pods/a?fieldManager=n&force=true", second)


@case
def applying_to_the_status(api: Api) -> None:
    api.made(GADGETS, gadget("a"))
    body = {"apiVersion": "contract.example.com/v1", "kind": "Gadget", "status": {"phase": "x"}}
    api.apply(f"{GADGETS}/a/status?fieldManager=m", body)
    api.apply(f"{GADGETS}/absent/status?fieldManager=m", body)
    ready = {"apiVersion": "v1", "kind": "Pod", "status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    api.made("pods", pod("a"))
    api.apply("pods/a/status?fieldManager=m", ready)


@case
def applying_dry_leaves_nothing(api: Api) -> None:
    api.apply("configmaps/a?fieldManager=m&dryRun=All", config_map("a"))
    api.get("configmaps/a")


@case
def managers_are_recorded_by_what_they_write(api: Api) -> None:
    api.post("configmaps?fieldManager=one", config_map("a", labels={"a": "b"}))
    api.patch("configmaps/a?fieldManager=two", {"data": {"more": "x"}})
    api.put("configmaps/a?fieldManager=three", config_map("a", data={"key": "other", "more": "x"}))
    api.patch("configmaps/a?fieldManager=two", {"data": {"more": None}})


@case
def managed_fields_can_be_reset_but_not_broken(api: Api) -> None:
    api.made("configmaps", config_map("a"))
    api.patch("configmaps/a", {"metadata": {"managedFields": [{}]}})
    api.patch("configmaps/a", {"metadata": {"managedFields": [{"manager": "x", "operation": "Nonsense"}]}})
    api.patch("configmaps/a", {"metadata": {"managedFields": []}})
    api.patch("configmaps/a", {"data": {"x": "y"}})


@case
def the_records_of_pods_leave_out_what_the_server_sets(api: Api) -> None:
    answer = api.ask("POST", "pods", pod("a"))
    api.note("managed", answer["metadata"]["managedFields"])
    answer = api.ask("PATCH", "pods/a/status?fieldManager=kubelet", {"status": {"phase": "Running"}}, type=MERGE_PATCH)
    api.note("managed", answer["metadata"]["managedFields"])
