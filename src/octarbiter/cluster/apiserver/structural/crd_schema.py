"""Is a schema structural?

Every field has one type, said at one place; what alternatives say about a field (`anyOf` and the like) only narrows it.
So objects can be pruned, defaulted and merged without guessing. Then lists, defaults and rules: each is checked only
when everything before it is right, as the server does.
"""

from __future__ import annotations

import copy
from typing import Any

from octarbiter.api.meta import Json
from octarbiter.cluster.apiserver.structural import embedded, parsing, pruning, regexes, rule_checks, values, wording
from octarbiter.cluster.apiserver.structural.correlation import same
from octarbiter.cluster.apiserver.validation.problems import Problem

DEEPEST = 100
"""Levels of a schema; bounds the stack of everything that walks along it."""

_TYPES = ["array", "boolean", "integer", "number", "object", "string"]
_ROOT_FIELDS = frozenset(
    [
        "description",
        "type",
        "format",
        "title",
        "maximum",
        "exclusiveMaximum",
        "minimum",
        "exclusiveMinimum",
        "maxLength",
        "minLength",
        "pattern",
        "maxItems",
        "minItems",
        "uniqueItems",
        "multipleOf",
        "required",
        "items",
        "properties",
        "externalDocs",
        "example",
        "x-kubernetes-preserve-unknown-fields",
        "x-kubernetes-validations",
    ]
)
_ROOT_FIELDS_WORDS = (
    "only [Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength MinLength Pattern "
    "MaxItems MinItems UniqueItems MultipleOf Required Items Properties ExternalDocs Example XPreserveUnknownFields "
    "XValidations] fields are allowed at the root of the schema if the status subresource is enabled"
)
_INT_OR_STRING = [{"type": "integer"}, {"type": "string"}]
_MUST_BE_EMPTY = {
    "type": "must be empty to be structural",
    "additionalProperties": "must be undefined to be structural",
    "default": "must be undefined to be structural",
    "title": "must be empty to be structural",
    "description": "must be empty to be structural",
    "nullable": "must be false to be structural",
    "x-kubernetes-preserve-unknown-fields": "must be false to be structural",
    "x-kubernetes-embedded-resource": "must be false to be structural",
    "x-kubernetes-int-or-string": "must be false to be structural",
    "x-kubernetes-list-map-keys": "must be empty to be structural",
    "x-kubernetes-list-type": "must be undefined to be structural",
    "x-kubernetes-map-type": "must be undefined to be structural",
    "x-kubernetes-validations": "must be empty to be structural",
}
_LEVEL_WORDS = {
    "root": "must not be empty at the root",
    "item": "must not be empty for specified array items",
    "field": "must not be empty for specified object fields",
}


def check(schema: Json, path: str, *, has_status: bool) -> list[Problem]:
    if _too_deep(schema):
        return [wording.invalid(path, wording.OMITTED, f"a schema may have at most {DEEPEST} levels")]
    problems = _root(schema, path) if has_status else []
    if schema.get("nullable"):
        problems.append(wording.forbidden(f"{path}.nullable", "nullable cannot be true at the root"))
    structural = _invariants(schema, "root", path) + _completeness(schema, schema, path, path)
    problems += sorted(structural, key=lambda problem: f"{problem.field}: {problem.message}")
    if not structural:
        problems += _defaults(parsing.parse(schema).schema, path)
    keywords = _keywords(schema, path, is_root=True)
    problems += keywords
    if not problems:
        problems += rule_checks.compile_problems(parsing.parse(schema), path)
    return problems


def _too_deep(schema: Json) -> bool:
    # Level by level and not by recursion, which is what it guards against.
    found: list[Any] = [schema]
    for _ in range(2 * DEEPEST):
        found = [below for each in found for below in _below(each)]
        if not found:
            return False
    return True


def _below(value: Any) -> list[Any]:
    return list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []


def schema_at(schema: Json, path: str) -> Json | None:
    """The schema of the field at `.spec.name`."""
    found: Any = schema
    for name in path.split(".")[1:]:
        properties = parsing.properties(found)
        found = properties.get(name) if properties else parsing.values_schema(found)
        if not isinstance(found, dict):
            return None
    return found if path.startswith(".") else None


def _root(schema: Json, path: str) -> list[Problem]:
    if schema.get("type") not in (None, "object"):
        detail = 'only "object" is allowed as the type at the root of the schema if the status subresource is enabled'
        return [wording.invalid(f"{path}.type", schema["type"], detail)]
    if all(name in _ROOT_FIELDS or not value for name, value in schema.items()):
        return []
    return [wording.invalid(path, schema, _ROOT_FIELDS_WORDS)]


def _invariants(schema: Json, level: str, path: str) -> list[Problem]:
    problems = []
    type = schema.get("type") or ""
    items = schema.get("items")
    if type == "array" and items is None:
        problems.append(wording.required(f"{path}.items", "must be specified"))
    if isinstance(items, dict):
        problems += _invariants(items, "item", f"{path}.items")
    for name, below in parsing.properties(schema).items():
        problems += _invariants(below, "field", f"{path}.properties[{name}]")
    if schema.get("additionalProperties") is not None:
        if level == "root":
            problems.append(wording.forbidden(f"{path}.additionalProperties", "must not be used at the root"))
        if (inner := parsing.values_schema(schema)) is not None:
            problems += _invariants(inner, "field", f"{path}.additionalProperties")
    problems += _extensions(schema, path)
    problems += _narrowings(schema, path, level=level, skip=_is_int_or_string(schema))
    problems += _type_present(schema, type, level, path)
    if level == "root" and type and type != "object":
        problems.append(wording.invalid(f"{path}.type", type, "must be object at the root"))
    return problems + _meta_fields(schema, level, path)


def _extensions(schema: Json, path: str) -> list[Problem]:
    problems = []
    if schema.get("x-kubernetes-int-or-string"):
        for name in ("x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"):
            if schema.get(name):
                detail = "must be false if x-kubernetes-int-or-string is true"
                problems.append(wording.invalid(f"{path}.{name}", True, detail))
    return problems


def _type_present(schema: Json, type: str, level: str, path: str) -> list[Problem]:
    is_embedded = bool(schema.get("x-kubernetes-embedded-resource"))
    keeps = bool(schema.get("x-kubernetes-preserve-unknown-fields"))
    problems = []
    if is_embedded and type != "object":
        detail = "must be object if x-kubernetes-embedded-resource is true"
        here = f"{path}.type"
        problems.append(wording.invalid(here, type, detail) if type else wording.required(here, detail))
    elif not type and not schema.get("x-kubernetes-int-or-string") and not keeps and not schema.get("$ref"):
        problems.append(wording.required(f"{path}.type", _LEVEL_WORDS[level]))
    if is_embedded and schema.get("additionalProperties") is not None:
        detail = "must not be used if x-kubernetes-embedded-resource is set"
        problems.append(wording.forbidden(f"{path}.additionalProperties", detail))
    if is_embedded and not keeps and not parsing.properties(schema):
        detail = (
            "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields"
        )
        problems.append(wording.required(f"{path}.properties", detail))
    return problems


def _meta_fields(schema: Json, level: str, path: str) -> list[Problem]:
    problems = []
    properties = parsing.properties(schema)
    is_object = level == "root" or bool(schema.get("x-kubernetes-embedded-resource"))
    for name in ("kind", "apiVersion"):
        if is_object and name in properties and properties[name].get("type") != "string":
            given = properties[name].get("type") or ""
            problems.append(wording.invalid(f"{path}.properties[{name}].type", given, "must be string"))
    metadata = properties.get("metadata")
    if metadata is None:
        return problems
    here = f"{path}.properties[metadata]"
    if is_object and metadata.get("type") != "object":
        problems.append(wording.invalid(f"{here}.type", metadata.get("type") or "", "must be object"))
    if level == "root":
        inner = parsing.properties(metadata)
        rest = {name for name, value in metadata.items() if value} - {"type", "properties", "description"}
        if rest or not set(inner) <= {"name", "generateName"}:
            detail = "must not specify anything other than name and generateName, but metadata is implicitly specified"
            problems.append(wording.forbidden(here, detail))
    return problems


def _is_int_or_string(schema: Json) -> bool:
    return bool(schema.get("anyOf") == _INT_OR_STRING)


def _narrowings(schema: Json, path: str, *, level: str, skip: bool = False, skip_first: bool = False) -> list[Problem]:
    """`anyOf`, `allOf`, `oneOf`, `not` and the pattern."""
    problems = []
    for name in ("anyOf", "allOf", "oneOf"):
        for index, each in enumerate(schema.get(name) or ()):
            if name == "anyOf" and skip:
                continue
            inner_skip = name == "allOf" and index == 0 and _is_int_or_string(each)
            problems += _nested(each, f"{path}.{name}[{index}]", level, skip=inner_skip)
    if isinstance(schema.get("not"), dict):
        problems += _nested(schema["not"], f"{path}.not", level)
    if pattern := schema.get("pattern"):
        try:
            regexes.compile(pattern)
        except regexes.BadPattern as problem:
            detail = f"must be a valid regular expression, but isn't: {problem}"
            problems.append(wording.invalid(f"{path}.pattern", pattern, detail))
    return problems


def _nested(schema: Json, path: str, level: str, *, skip: bool = False) -> list[Problem]:
    problems = _narrowings(schema, path, level=level, skip=skip)
    if isinstance(schema.get("items"), dict):
        problems += _nested(schema["items"], f"{path}.items", level)
    for name, below in parsing.properties(schema).items():
        problems += _nested(below, f"{path}.properties[{name}]", "field")
    for name, detail in _MUST_BE_EMPTY.items():
        if schema.get(name) not in (None, False, "", []):
            problems.append(wording.forbidden(f"{path}.{name}", detail))
    if "metadata" in parsing.properties(schema):
        detail = "must not be specified in a nested context"
        problems.append(wording.forbidden(f"{path}.properties[metadata]", detail))
    return problems


def _completeness(narrowing: Json, schema: Json | None, path: str, narrowing_path: str) -> list[Problem]:
    """Whatever an alternative speaks of is declared outside of it."""
    problems = []
    if isinstance(narrowing.get("not"), dict):
        problems += _complete(narrowing["not"], schema, path, f"{narrowing_path}.not")
    for name in ("allOf", "anyOf", "oneOf"):
        for index, each in enumerate(narrowing.get(name) or ()):
            problems += _complete(each, schema, path, f"{narrowing_path}.{name}[{index}]")
    return problems


def _complete(narrowing: Json, schema: Json | None, path: str, narrowing_path: str) -> list[Problem]:
    if schema is None:
        return [wording.required(path, f"because it is defined in {narrowing_path}")]
    problems = _completeness(narrowing, schema, path, narrowing_path)
    if isinstance(narrowing.get("items"), dict):
        problems += _complete(narrowing["items"], schema.get("items"), f"{path}.items", f"{narrowing_path}.items")
    for name, below in parsing.properties(narrowing).items():
        own = parsing.properties(schema).get(name)
        inner = f"properties[{name}]"
        problems += _complete(below, own, f"{path}.{inner}", f"{narrowing_path}.{inner}")
    return problems


def _defaults(schema: Json, path: str, *, in_meta: bool = False, is_object: bool = True) -> list[Problem]:
    """A default must be a value that could have been written."""
    problems = []
    given = schema.get("default")
    if given is not None and not in_meta:
        here = f"{path}.default"
        type = parsing.parse(schema)
        type.embedded = bool(schema.get("x-kubernetes-embedded-resource"))
        pruned = copy.deepcopy(given)
        pruning.prune(pruned, type)
        if not same(pruned, given):
            problems.append(wording.invalid(here, given, "must not have unknown fields"))
        problems += embedded.check(given, type, here)
        problems += [_moved(problem, here) for problem in values.check(given, schema).problems]
    if isinstance(schema.get("items"), dict):
        problems += _defaults(schema["items"], f"{path}.items", in_meta=in_meta, is_object=False)
    for name, below in parsing.properties(schema).items():
        meta = in_meta or (is_object and name in pruning.META_FIELDS)
        inner_object = bool(below.get("x-kubernetes-embedded-resource"))
        problems += _defaults(below, f"{path}.properties[{name}]", in_meta=meta, is_object=inner_object)
    return problems


def _moved(problem: Problem, path: str) -> Problem:
    where = path if problem.field == wording.ROOT else f"{path}.{problem.field}"
    return Problem(problem.reason, where, problem.message)


def _keywords(
    schema: Json, path: str, *, is_root: bool = False, no_defaults: str = "", in_meta: bool = False
) -> list[Problem]:
    """What OpenAPI may say here, and what Kubernetes adds to it."""
    problems = _vocabulary(schema, path, no_defaults)
    inner = parsing.values_schema(schema)
    if schema.get("additionalProperties") is not None:
        if parsing.properties(schema) and schema["additionalProperties"] is not True:
            detail = "additionalProperties and properties are mutual exclusive"
            problems.append(wording.forbidden(f"{path}.additionalProperties", detail))
        if inner is not None:
            why = "inside additionalProperties applying to object metadata" if in_meta else no_defaults
            problems += _keywords(inner, f"{path}.additionalProperties", no_defaults=why, in_meta=in_meta)
    is_object = is_root or bool(schema.get("x-kubernetes-embedded-resource"))
    for name, below in parsing.properties(schema).items():
        is_meta = is_object and name in pruning.META_FIELDS
        why = f"in top-level {name}" if is_meta and is_root else no_defaults
        here = f"{path}.properties[{name}]"
        problems += _keywords(below, here, no_defaults=why, in_meta=in_meta or is_meta)
    for name in ("allOf", "oneOf", "anyOf"):
        for index, each in enumerate(schema.get(name) or ()):
            problems += _keywords(each, f"{path}.{name}[{index}]", no_defaults=no_defaults, in_meta=in_meta)
    for name in ("not", "items"):
        if isinstance(schema.get(name), dict):
            problems += _keywords(schema[name], f"{path}.{name}", no_defaults=no_defaults, in_meta=in_meta)
    return problems + rule_checks.list_problems(schema, path) + rule_checks.text_problems(schema, path)


def _vocabulary(schema: Json, path: str, no_defaults: str) -> list[Problem]:
    problems = []
    if schema.get("default") is not None and no_defaults:
        problems.append(wording.forbidden(f"{path}.default", f"must not be set {no_defaults}"))
    for name in ("id", "$schema", "definitions", "dependencies", "patternProperties", "additionalItems"):
        if schema.get(name):
            problems.append(wording.forbidden(f"{path}.{name}", f"{name} is not supported"))
    type = schema.get("type")
    if type is not None and type not in _TYPES:
        problems.append(wording.not_supported(f"{path}.type", type, _TYPES))
    if type is None and schema.get("$ref"):
        problems.append(wording.forbidden(f"{path}.$ref", "$ref is not supported"))
    if isinstance(schema.get("items"), list):
        detail = "items must be a schema object and not an array"
        problems.append(wording.forbidden(f"{path}.items", detail))
    if schema.get("uniqueItems"):
        detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        problems.append(wording.forbidden(f"{path}.uniqueItems", detail))
    return problems
