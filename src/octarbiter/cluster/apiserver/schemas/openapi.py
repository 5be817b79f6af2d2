"""What does a group version look like as an OpenAPI v3 document?

kubectl reads three things: which kinds understand `fieldValidation` (else it refuses to create anything), how lists are
merged (`apply`, `edit`, `diff`) and what fields mean (`explain`). The documents have that and what hangs together with
it; operations that no client looks up, such as the old watch paths, are left out.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import msgspec

from octarbiter.cluster.apiserver import kinds
from octarbiter.cluster.apiserver.schemas import table

Json = dict[str, Any]

_PREFIX: Final = "#/components/schemas/"
_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1"
_PATCHES: Final = ("application/apply-patch+yaml", "application/json-patch+json", "application/merge-patch+json")
_STRATEGIC: Final = "application/strategic-merge-patch+json"
_ANSWERS: Final = ("application/json", "application/yaml")
_LISTING: Final = {
    "allowWatchBookmarks": "boolean",
    "continue": "string",
    "fieldSelector": "string",
    "labelSelector": "string",
    "limit": "integer",
    "resourceVersion": "string",
    "resourceVersionMatch": "string",
    "sendInitialEvents": "boolean",
    "timeoutSeconds": "integer",
    "watch": "boolean",
}
_WRITING: Final = {"dryRun": "string", "fieldManager": "string", "fieldValidation": "string"}
_PATCHING: Final = {**_WRITING, "force": "boolean"}
_DELETING: Final = {
    "dryRun": "string",
    "gracePeriodSeconds": "integer",
    "orphanDependents": "boolean",
    "propagationPolicy": "string",
}


class _Kind(msgspec.Struct, frozen=True):
    """One resource of a document."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool
    verbs: tuple[str, ...]
    component: str
    list_component: str
    subresources: tuple[str, ...] = ()
    custom: bool = False


def document(api_version: str, crds: Sequence[Json]) -> bytes:
    """Of `v1`, `batch/v1`, ...; `crds` may be all there are, those of other groups are passed over."""
    group, _, version = api_version.rpartition("/")
    custom = [(crd, each) for crd in crds for each in _served(crd, group, version)]
    kinds_here = [*_built_in(group, version), *(_custom_kind(crd, each) for crd, each in custom)]
    schemas: Json = {}
    for crd, each in custom:
        schemas |= _custom_schemas(crd, each)
    paths: Json = {}
    for kind in sorted(kinds_here, key=lambda each: each.plural):
        paths |= _paths(kind)
    _collect(schemas, _components_of(group, version))
    _collect(schemas, [*_references({"paths": paths, "schemas": schemas})])
    return msgspec.json.encode(
        {
            "openapi": "3.0.0",
            "info": {"title": "Kubernetes", "version": table.version()},
            "paths": paths,
            "components": {
                "schemas": dict(sorted(schemas.items())),
                "securitySchemes": {
                    "BearerToken": {"type": "apiKey", "name": "authorization", "in": "header"},
                },
            },
        }
    )


def _built_in(group: str, version: str) -> Iterator[_Kind]:
    for row in kinds.BUILT_IN:
        component = table.component_of(row.group, row.version, row.kind)
        if (row.group, row.version) != (group, version) or component is None:
            continue
        yield _Kind(
            group,
            version,
            row.plural,
            row.kind,
            row.namespaced,
            row.verbs,
            component,
            table.component_of(group, version, row.list_kind) or component,
            tuple(each.name for each in row.subresources if each.name == "status"),
        )


def _served(crd: Json, group: str, version: str) -> Iterator[Json]:
    if crd["spec"]["group"] == group:
        yield from (each for each in crd["spec"]["versions"] if each["name"] == version and each.get("served"))


def _custom_kind(crd: Json, version: Json) -> _Kind:
    spec, names = crd["spec"], crd["spec"]["names"]
    return _Kind(
        spec["group"],
        version["name"],
        names["plural"],
        names["kind"],
        spec.get("scope") == "Namespaced",
        kinds.STANDARD_VERBS,
        _component(crd, version, names["kind"]),
        _component(crd, version, _list_kind(crd)),
        tuple(name for name in ("status",) if name in (version.get("subresources") or {})),
        custom=True,
    )


def _list_kind(crd: Json) -> str:
    names = crd["spec"]["names"]
    return str(names.get("listKind") or f"{names['kind']}List")


def _component(crd: Json, version: Json, kind: str) -> str:
    """The group backwards, as Java would name it."""
    return ".".join([*reversed(crd["spec"]["group"].split(".")), version["name"], kind])


def _custom_schemas(crd: Json, version: Json) -> Json:
    kind, list_kind = crd["spec"]["names"]["kind"], _list_kind(crd)
    schema = copy.deepcopy((version.get("schema") or {}).get("openAPIV3Schema") or {})
    name, list_name = _component(crd, version, kind), _component(crd, version, list_kind)
    own = table.schema(f"{_META}.Status")["properties"]
    common = {"apiVersion": own["apiVersion"], "kind": own["kind"]}
    schema |= {
        "type": "object",
        "properties": {
            **(schema.get("properties") or {}),
            **common,
            "metadata": {"description": "Standard object's metadata.", "allOf": [_reference(f"{_META}.ObjectMeta")]},
        },
        "x-kubernetes-group-version-kind": [_named(crd, version, kind)],
    }
    listed = {
        "description": f"{list_kind} is a list of {kind}",
        "type": "object",
        "required": ["items"],
        "properties": {
            **common,
            "items": {"type": "array", "items": _reference(name)},
            "metadata": {"description": "Standard list metadata.", "allOf": [_reference(f"{_META}.ListMeta")]},
        },
        "x-kubernetes-group-version-kind": [_named(crd, version, list_kind)],
    }
    return {name: schema, list_name: listed}


def _named(crd: Json, version: Json, kind: str) -> Json:
    return {"group": crd["spec"]["group"], "version": version["name"], "kind": kind}


def _paths(kind: _Kind) -> Json:
    root = f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"
    scoped = f"{root}/namespaces/{{namespace}}" if kind.namespaced else root
    collection = f"{scoped}/{kind.plural}"
    found = {collection: _operations(kind, {"list": "get", "create": "post", "deletecollection": "delete"})}
    single = {"get": "get", "update": "put", "patch": "patch", "delete": "delete"}
    found[f"{collection}/{{name}}"] = _operations(kind, single)
    for name in kind.subresources:
        found[f"{collection}/{{name}}/{name}"] = _operations(kind, {"get": "get", "update": "put", "patch": "patch"})
    if kind.namespaced and "list" in kind.verbs:
        found[f"{root}/{kind.plural}"] = _operations(kind, {"list": "get"})
    for path, operations in found.items():
        placeholders = [name for name in ("name", "namespace") if f"{{{name}}}" in path]
        operations["parameters"] = [
            {"name": name, "in": "path", "required": True, **_of("string")} for name in placeholders
        ]
    return {path: operations for path, operations in found.items() if len(operations) > 1}


def _operations(kind: _Kind, methods: dict[str, str]) -> Json:
    return {method: _operation(kind, verb) for verb, method in methods.items() if verb in kind.verbs}


def _operation(kind: _Kind, verb: str) -> Json:
    parameters, body, answer = _exchange(kind, verb)
    found: Json = {
        "tags": [f"{(kind.group or 'core').partition('.')[0]}_{kind.version}"],
        "operationId": f"{verb}-{kind.group or 'core'}-{kind.version}-{kind.plural}",
        "parameters": [{"name": name, "in": "query", **_of(type_)} for name, type_ in parameters.items()],
        "responses": {"200": {"description": "OK", "content": _content(_ANSWERS, answer)}},
        "x-kubernetes-action": {"create": "post", "update": "put"}.get(verb, verb),
        "x-kubernetes-group-version-kind": {"group": kind.group, "version": kind.version, "kind": kind.kind},
    }
    if body:
        found["requestBody"] = {"content": body, "required": "delete" not in verb}
    return found


def _exchange(kind: _Kind, verb: str) -> tuple[dict[str, str], Json, str]:
    """Parameters, contents of the body, component of the answer."""
    match verb:
        case "list":
            return _LISTING, {}, kind.list_component
        case "create" | "update":
            return _WRITING, _content(("*/*",), kind.component), kind.component
        case "patch":
            types = _PATCHES if kind.custom else (*_PATCHES, _STRATEGIC)
            return _PATCHING, _content(types, f"{_META}.Patch"), kind.component
        case "delete" | "deletecollection":
            return _DELETING, _content(("*/*",), f"{_META}.DeleteOptions"), f"{_META}.Status"
    return {}, {}, kind.component


def _of(type_: str) -> Json:
    return {"schema": {"type": type_, "uniqueItems": True}}


def _content(types: Iterable[str], component: str) -> Json:
    return {type_: {"schema": _reference(component)} for type_ in types}


def _reference(component: str) -> Json:
    return {"$ref": _PREFIX + component}


def _components_of(group: str, version: str) -> list[str]:
    """Also kinds without a path of their own: what subresources speak."""
    rows = [key for key in table.kinds() if key[:2] == (group, version)]
    return [component for key in rows if (component := table.component_of(*key))]


def _collect(schemas: Json, components: list[str]) -> None:
    """Components of the table, and what they refer to."""
    waiting = list(components)
    while waiting:
        component = waiting.pop()
        if component not in schemas:
            schemas[component] = schema = table.schema(component)
            waiting += _references(schema)


def _references(value: Any) -> Iterator[str]:
    waiting = [value]
    while waiting:
        inner = waiting.pop()
        if isinstance(inner, dict):
            # A JSON schema of JSON schemas has a field that is called $ref and is none.
            if isinstance(inner.get("$ref"), str):
                yield inner["$ref"].removeprefix(_PREFIX)
            waiting += inner.values()
        elif isinstance(inner, list):
            waiting += inner
