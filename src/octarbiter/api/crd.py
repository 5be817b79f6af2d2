"""How does the API server learn what our kinds are?

`render` turns a tree of `schema` and the CEL of `rules` into a CustomResourceDefinition. Three ways of the server
shape it. A wrong type, a missing field or an `enum` makes it skip all CEL, so words are checked in CEL and every
problem is reported at once. A transition rule does not run where the field is absent on either side, so an optional
field is kept immutable by a rule on its parent. And lists with keys let transition rules follow an item by its name.
"""

from __future__ import annotations

from typing import Any

import msgspec

from octarbiter.api import rules
from octarbiter.api.kinds import Kind
from octarbiter.api.meta import Json
from octarbiter.api.schema import Node

IMMUTABLE = "cannot be changed after creation"


def render(kind: Kind) -> Json:
    metadata: Json = {"name": kind.definition}
    if kind.annotations:
        metadata["annotations"] = dict(kind.annotations)
    names: Json = {
        "kind": kind.kind,
        "listKind": f"{kind.kind}List",
        "plural": kind.resource.plural,
        "singular": kind.kind.lower(),
    }
    if kind.short_names:
        names["shortNames"] = list(kind.short_names)
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": metadata,
        "spec": {
            "group": kind.group,
            "scope": "Namespaced",
            "names": {**names, "categories": ["all"]},
            "versions": [
                {
                    "name": kind.resource.version,
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "additionalPrinterColumns": kind.columns,
                    "schema": {"openAPIV3Schema": _root(kind)},
                }
            ],
        },
    }


def _root(kind: Kind) -> Json:
    root = structural(kind.root)
    properties: Json = {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        # A rule can blame only a field that the schema names.
        "metadata": {"type": "object", "properties": {"name": {"type": "string"}}},
        **root["properties"],
    }
    return {"description": kind.meaning, **root, "properties": properties}


def structural(node: Node) -> Json:
    facts = node.facts
    out: Json = {}
    if node.meaning:
        out["description"] = node.meaning
    if node.type == "int-or-string":
        out["x-kubernetes-int-or-string"] = True
        if facts.form:
            out["pattern"] = facts.form.pattern
    else:
        out["type"] = "string" if node.type == "time" else node.type
    if node.type == "time":
        out["format"] = "date-time"
    if node.type == "integer":
        out["format"] = "int64" if facts.int64 else "int32"
    limits: dict[str, Any] = {
        "minimum": facts.minimum,
        "maximum": facts.maximum,
        "minItems": facts.min_items or None,
        "maxItems": facts.max_items,
        "maxLength": facts.max_length,
        "minProperties": facts.min_properties or None,
        "maxProperties": facts.max_properties,
    }
    out |= {name: limit for name, limit in limits.items() if limit is not None}
    if facts.default is not msgspec.UNSET:
        out["default"] = facts.default
    if required := [name for name, child in node.fields.items() if child.required]:
        out["required"] = required
    if node.fields:
        out["properties"] = {name: structural(child) for name, child in node.fields.items()}
    if node.is_open:
        out["x-kubernetes-preserve-unknown-fields"] = True
    if node.values:
        out["additionalProperties"] = structural(node.values)
    if node.items:
        out["items"] = structural(node.items)
    if facts.key:
        out["x-kubernetes-list-type"] = "map"
        out["x-kubernetes-list-map-keys"] = [facts.key]
    if validations := _validations(node):
        out["x-kubernetes-validations"] = validations
    return out


def _validations(node: Node) -> list[Json]:
    found = [*rules.RULES.get(node.key, ()), *rules.RULES.get(node.struct, ())]
    if node.facts.words:
        found.append(_words(node))
    if node.type == "string" and (form := node.facts.form):
        found.append(rules.Rule(cel=f"self.matches(r'{form.pattern}')", message=f"must be {form.words}"))
    if node.facts.immutable and node.is_always_there:
        found.append(rules.Rule(cel=_unchanged(node), message=IMMUTABLE, forbidden=True))
    for name, child in node.fields.items():
        if child.facts.immutable and not child.is_always_there:
            cel = f"has(self.{name}) == has(oldSelf.{name}) && (!has(self.{name}) || self.{name} == oldSelf.{name})"
            found.append(rules.Rule(cel=cel, message=IMMUTABLE, field=f".{name}", forbidden=True))
    return [_validation(rule) for rule in found]


def _words(node: Node) -> rules.Rule:
    words = node.facts.words
    because = f": {node.facts.because}" if node.facts.because else ""
    listed = ", ".join(f"'{word}'" for word in words)
    return rules.Rule(cel=f"self in [{listed}]", message=f"must be one of {', '.join(words)}{because}")


def _unchanged(node: Node) -> str:
    """CEL compares lists with keys without regard to order; we do not: the first container is the main one."""
    if node.facts.key:
        names = f"map(item, item.{node.facts.key})"
        return f"self == oldSelf && self.{names} == oldSelf.{names}"
    if node.key == "Role.template":
        names = "spec.containers.map(c, c.name)"
        return f"self == oldSelf && self.{names} == oldSelf.{names}"
    return "self == oldSelf"


def _validation(rule: rules.Rule) -> Json:
    out: Json = {"rule": rule.cel, "message": rule.message}
    if rule.explain:
        out["messageExpression"] = rule.explain
    if rule.field:
        out["fieldPath"] = rule.field
    if rule.forbidden:
        out["reason"] = "FieldValueForbidden"
    return out
