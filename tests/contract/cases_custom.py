"""Definitions of custom resources, and the objects they allow."""

from __future__ import annotations

import copy
from typing import Any

from furniture import GADGETS, GIZMOS, GROUP, definition, gadget
from harness import MERGE_PATCH, Api, case, each

_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_OPEN: dict[str, Any] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


@each(
    {
        "too small": {"size": 0},
        "too large": {"size": 11},
        "no integer": {"size": "x"},
        "a float": {"size": 1.5},
        "a whole float": {"size": 2.0},
        "null": {"size": None},
        "not in the list": {"colour": "blue"},
        "an empty choice": {"colour": ""},
        "too short": {"name": "a"},
        "too long": {"name": "abcdefghij"},
        "not the pattern": {"name": "A1"},
        "not above": {"ratio": 0},
        "no number": {"ratio": "x"},
        "no time": {"when": "yesterday"},
        "a time": {"when": "2020-01-01T00:00:00Z"},
        "no items": {"many": []},
        "too many items": {"many": ["a", "b", "c", "d"]},
        "a wrong item": {"many": ["a", 1]},
        "no list": {"many": "a"},
        "twice in a set": {"unique": ["a", "b", "a"]},
        "twice by key": {"parts": [{"name": "a"}, {"name": "a"}]},
        "without its key": {"parts": [{"weight": 1}]},
        "a default in an item": {"parts": [{"name": "a"}]},
        "int or string": {"port": "http"},
        "neither int nor string": {"port": 1.5},
        "anything goes": {"free": {"a": [1, {"b": None}], "c": None}},
        "a map": {"table": {"a": 1}},
        "too many entries": {"table": {"a": 1, "b": 2, "c": 3}},
        "a wrong entry": {"table": {"a": "x"}},
        "a nullable null": {"maybe": None},
        "a null where a default is": {"colour": None},
        "a null in an object": {"nested": {"deep": None}},
        "a nested default": {"nested": {}},
        "too many properties": {"either": {"a": "x", "b": "y"}},
        "an embedded object": {
            "embedded": {"apiVersion": "v1", "kind": "X", "metadata": {"name": "a", "odd": 1}, "x": 1}
        },
        "an embedded nobody": {"embedded": {"x": 1}},
        "an embedded bad name": {"embedded": {"apiVersion": "v1", "kind": "X", "metadata": {"name": "A!"}}},
        "a broken rule": {"low": 5, "high": 3},
        "another broken rule": {"low": -1},
        "both rules broken": {"low": -7, "high": -9},
        "an unknown field": {"nonsense": {"deep": 1}},
        "an object for a text": {"name": {}},
        "a list for an object": {"nested": []},
    }
)
def a_specification(api: Api, spec: dict[str, Any]) -> None:
    api.post(GADGETS, gadget("a", **spec))


@case
def several_problems_are_told_at_once(api: Api) -> None:
    answer = api.ask("POST", GADGETS, gadget("a", size=0, colour="blue", many=[], low=2, high=1))
    # Of a real server's problems, the order is chance.
    api.note("causes", [answer.code, sorted(answer["details"]["causes"], key=lambda each: str(each["field"]))])


@each(
    {
        "none": {},
        "null": {"spec": None},
        "empty": {"spec": {}},
        "text": {"spec": "x"},
        "only other fields": {"other": 1},
        "a bad status is ignored": {"spec": {"size": 1}, "status": {"phase": 7}},
    }
)
def an_object_without_a_proper_specification(api: Api, body: dict[str, Any]) -> None:
    api.post(GADGETS, {"apiVersion": f"{GROUP}/v1", "kind": "Gadget", "metadata": {"name": "a"}, **body})


@case
def versions_are_converted_by_name(api: Api) -> None:
    api.made(GADGETS, gadget("a"))
    api.get(f"{GROUP}/v1beta1/gadgets/a")
    api.get(f"{GROUP}/v1beta1/gadgets")
    body = {**gadget("b"), "apiVersion": f"{GROUP}/v1beta1"}
    api.post(f"{GROUP}/v1beta1/gadgets", body)
    api.get(f"{GADGETS}/b")
    api.patch(f"{GROUP}/v1beta1/gadgets/a", {"spec": {"size": 2}})
    api.get(f"{GADGETS}/a")


@case
def rules_about_changes_hold(api: Api) -> None:
    api.made(GADGETS, gadget("a", fixed="x"))
    api.patch(f"{GADGETS}/a", {"spec": {"fixed": "y"}})
    api.patch(f"{GADGETS}/a", {"spec": {"fixed": "x", "size": 2}})
    api.patch(f"{GADGETS}/a", {"spec": {"fixed": None}})
    api.patch(f"{GADGETS}/a", {"spec": {"fixed": "z"}})


@case
def objects_of_the_cluster(api: Api) -> None:
    name = f"g-{api.namespace}"
    body = {"apiVersion": f"{GROUP}/v1", "kind": "Gizmo", "metadata": {"name": name}, "any": {"thing": [1, 2]}}
    api.post(f"/apis/{GIZMOS}", body)
    api.patch(f"/apis/{GIZMOS}/{name}", {"any": {"other": None, "thing": None}, "status": {"x": 1}})
    api.get(f"/apis/{GIZMOS}/{name}")


@case
def names_of_custom_objects(api: Api) -> None:
    for name in ("A", "a.b", "-", "a" * 254):
        answer = api.ask("POST", f"{GADGETS}?dryRun=All", gadget(name))
        api.note(name, [answer.code, answer.body.get("message")])


def _thing(api: Api, schema: dict[str, Any] | None = None, **version: Any) -> dict[str, Any]:
    return definition(f"{api.namespace}.io", "things", "Thing", schema or _OPEN, **version)


@case
def a_definition_is_accepted(api: Api) -> None:
    body = _thing(api)
    made = api.post(_CRDS, body)
    api.until("GET", f"/apis/{api.namespace}.io/v1/things", None, 200)
    current = api.ask("GET", f"{_CRDS}/things.{api.namespace}.io").body
    conditions = sorted(current["status"].pop("conditions"), key=lambda each: str(each["type"]))
    api.note("conditions", conditions)
    api.note("status", current["status"])
    api.note("spec", current["spec"])
    api.note("generation", current["metadata"]["generation"])
    api.note("made", made["spec"] == current["spec"])
    api.post(_CRDS, body)


def _changed(api: Api, change: Any) -> dict[str, Any]:
    body = copy.deepcopy(_thing(api))
    change(body)
    return body


def _set(*path: Any) -> Any:
    *way, last, value = path

    def change(body: dict[str, Any]) -> None:
        place: Any = body
        for step in way:
            place = place[step]
        if value is None:
            place.pop(last, None)
        else:
            place[last] = value

    return change


_VERSION = ("spec", "versions", 0)
_SCHEMA = (*_VERSION, "schema", "openAPIV3Schema")


@each(
    {
        "another name": _set("metadata", "name", "wrong.example.com"),
        "no group": _set("spec", "group", None),
        "a bad group": _set("spec", "group", "nodots"),
        "no scope": _set("spec", "scope", None),
        "a bad scope": _set("spec", "scope", "Galaxy"),
        "no kind": _set("spec", "names", "kind", None),
        "a bad kind": _set("spec", "names", "kind", "Bad Kind"),
        "a bad plural": _set("spec", "names", "plural", "Things"),
        "a bad short name": _set("spec", "names", "shortNames", ["X!"]),
        "no versions": _set("spec", "versions", []),
        "no storage version": _set(*_VERSION, "storage", False),
        "a bad version": _set(*_VERSION, "name", "V 1"),
        "no schema": _set(*_VERSION, "schema", None),
        "an empty schema": _set(*_VERSION, "schema", {}),
        "a schema without type": _set(*_SCHEMA, "type", None),
        "a schema that is no object": _set(*_VERSION, "schema", "openAPIV3Schema", {"type": "string"}),
        "a property without type": _set(*_SCHEMA, "properties", {"spec": {}}),
        "an array without items": _set(*_SCHEMA, "properties", {"a": {"type": "array"}}),
        "an unknown type": _set(*_SCHEMA, "properties", {"a": {"type": "nonsense"}}),
        "a forbidden keyword": _set(*_SCHEMA, "properties", {"a": {"type": "string", "uniqueItems": True}}),
        "a bad default": _set(*_SCHEMA, "properties", {"a": {"type": "integer", "default": "x"}}),
        "a bad pattern": _set(*_SCHEMA, "properties", {"a": {"type": "string", "pattern": "("}}),
        "a rule that does not parse": _set(
            *_SCHEMA, "properties", {"a": {"type": "string", "x-kubernetes-validations": [{"rule": "self =="}]}}
        ),
        "a rule about nothing": _set(
            *_SCHEMA, "properties", {"a": {"type": "string", "x-kubernetes-validations": [{"rule": "self.nope == 1"}]}}
        ),
        "a rule that is no truth": _set(
            *_SCHEMA, "properties", {"a": {"type": "string", "x-kubernetes-validations": [{"rule": "size(self)"}]}}
        ),
        "a bad column": _set(
            *_VERSION, "additionalPrinterColumns", [{"name": "a", "type": "nonsense", "jsonPath": "x"}]
        ),
        "a bad scale": _set(*_VERSION, "subresources", {"scale": {"specReplicasPath": "replicas"}}),
        "a map list without keys": _set(
            *_SCHEMA,
            "properties",
            {"a": {"type": "array", "x-kubernetes-list-type": "map", "items": {"type": "object"}}},
        ),
        "a map list with an absent key": _set(
            *_SCHEMA,
            "properties",
            {
                "a": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["k"],
                    "items": {"type": "object", "properties": {"x": {"type": "string"}}},
                }
            },
        ),
        "conversion by webhook without one": _set("spec", "conversion", {"strategy": "Webhook"}),
        "an unknown conversion": _set("spec", "conversion", {"strategy": "Magic"}),
        "preserved unknown fields": _set("spec", "preserveUnknownFields", True),
        "an unknown field": _set("spec", "nonsense", 1),
        "the metadata's schema": _set(
            *_SCHEMA, "properties", {"metadata": {"type": "object", "properties": {"labels": {"type": "object"}}}}
        ),
        "a reference": _set(*_SCHEMA, "properties", {"a": {"$ref": "#/x"}}),
        "additional and named properties": _set(
            *_SCHEMA,
            "properties",
            {
                "a": {
                    "type": "object",
                    "properties": {"x": {"type": "string"}},
                    "additionalProperties": {"type": "string"},
                }
            },
        ),
        "any of several": _set(
            *_SCHEMA, "properties", {"a": {"type": "string", "anyOf": [{"type": "string"}, {"minLength": 2}]}}
        ),
        "a protected group": _set("spec", "group", "things.k8s.io"),
    }
)
def a_definition_with_something_odd(api: Api, change: Any) -> None:
    body = _changed(api, change)
    if body["spec"].get("group", "").endswith("k8s.io"):
        body["metadata"]["name"] = "things.things.k8s.io"
    api.post(f"{_CRDS}?dryRun=All", body)


@case
def a_definition_changes(api: Api) -> None:
    api.made(_CRDS, _thing(api))
    name = f"{_CRDS}/things.{api.namespace}.io"
    api.until("GET", f"/apis/{api.namespace}.io/v1/things", None, 200)
    changes: list[dict[str, Any]] = [
        {"spec": {"scope": "Cluster"}},
        {"spec": {"group": "other.io"}},
        {"spec": {"names": {"kind": "Other"}}},
        {"spec": {"names": {"plural": "others"}}},
        {"spec": {"versions": []}},
    ]
    for change in changes:
        answer = api.ask("PATCH", name, change, type=MERGE_PATCH)
        shown = answer.body if answer.code >= 300 else answer["spec"]
        api.note(str(change), [answer.code, shown])


@case
def a_definition_with_a_stored_version_keeps_it(api: Api) -> None:
    body = _thing(api)
    api.made(_CRDS, body)
    name = f"{_CRDS}/things.{api.namespace}.io"
    api.until("GET", f"/apis/{api.namespace}.io/v1/things", None, 200)
    second = [{**body["spec"]["versions"][0], "name": "v2"}]
    api.patch(name, {"spec": {"versions": second}})


@case
def a_definitions_end_is_its_objects_end(api: Api) -> None:
    group = f"{api.namespace}.io"
    api.made(_CRDS, _thing(api))
    path = f"/apis/{group}/v1/namespaces/{api.namespace}/things"
    api.until("GET", path, None, 200)
    api.made(path, {"apiVersion": f"{group}/v1", "kind": "Thing", "metadata": {"name": "a"}})
    answer = api.ask("DELETE", f"{_CRDS}/things.{group}")
    api.note("deletion", [answer.code, answer.body.get("kind"), answer["metadata"].get("finalizers")])
    gone = api.until("GET", f"{_CRDS}/things.{group}", None, 404)
    api.note("gone", [gone.code, gone.body])
    gone = api.until("GET", path, None, 404)
    api.note("objects", [gone.code, gone.body])
    api.made(_CRDS, _thing(api))
    again = api.until("GET", path, None, 200)
    api.note("after making it again", [again.code, again.body.get("items")])


@case
def two_definitions_may_not_have_the_same_names(api: Api) -> None:
    group = f"{api.namespace}.io"
    api.made(_CRDS, _thing(api))
    api.until("GET", f"/apis/{group}/v1/things", None, 200)
    other = definition(group, "others", "Thing", _OPEN)
    other["spec"]["names"]["singular"] = "other"
    api.made(_CRDS, other)

    def conditions() -> list[Any]:
        status = api.ask("GET", f"{_CRDS}/others.{group}").body.get("status", {})
        return [each for each in status.get("conditions") or [] if each["type"] == "NamesAccepted"]

    for _ in range(200):
        if conditions():
            break
    api.note("conditions", conditions())


@case
def defaults_are_filled_in_when_read(api: Api) -> None:
    group = f"{api.namespace}.io"
    path = f"/apis/{group}/v1/namespaces/{api.namespace}/things"
    schema: dict[str, Any] = {"type": "object", "properties": {"spec": {"type": "object", "properties": {}}}}
    api.made(_CRDS, _thing(api, schema))
    api.until("GET", path, None, 200)
    api.made(path, {"apiVersion": f"{group}/v1", "kind": "Thing", "metadata": {"name": "a"}, "spec": {"late": 1}})
    api.note("pruned", api.ask("GET", f"{path}/a").body.get("spec"))
    schema["properties"]["spec"]["properties"]["late"] = {"type": "integer", "default": 5}
    versions = _thing(api, schema)["spec"]["versions"]
    api.given("PATCH", f"{_CRDS}/things.{group}", {"spec": {"versions": versions}}, type=MERGE_PATCH)
    for _ in range(300):
        if api.ask("GET", f"{path}/a").body.get("spec"):
            break
    api.note("filled in", api.ask("GET", f"{path}/a").body.get("spec"))
