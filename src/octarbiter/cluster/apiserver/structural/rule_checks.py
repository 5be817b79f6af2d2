"""Are the kinds of lists and the rules of a schema well said?"""

from __future__ import annotations

import json

from octarbiter.api.meta import Json
from octarbiter.cluster.apiserver.structural import parsing, wording
from octarbiter.cluster.apiserver.structural.cel import rules
from octarbiter.cluster.apiserver.types import ListType, Shape, Type
from octarbiter.cluster.apiserver.validation.problems import Problem

_REASONS = ["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"]
_LIST_TYPE = "x-kubernetes-list-type"
_MAP_TYPE = "x-kubernetes-map-type"
_KEYS = "x-kubernetes-list-map-keys"
_KEPT = "x-kubernetes-preserve-unknown-fields"


def list_problems(schema: Json, path: str) -> list[Problem]:
    problems = []
    type = schema.get("type") or ""
    if schema.get(_KEPT) is False:
        problems.append(wording.invalid(f"{path}.{_KEPT}", False, "must be true or undefined"))
    for name, wanted, known in (
        (_MAP_TYPE, "object", ["atomic", "granular"]),
        (_LIST_TYPE, "array", ["atomic", "set", "map"]),
    ):
        given = schema.get(name)
        if given is None:
            continue
        if type != wanted:
            detail = f"must be {wanted} if {name} is specified"
            problem = (
                wording.invalid(f"{path}.type", type, detail) if type else wording.required(f"{path}.type", detail)
            )
            problems.append(problem)
        elif given == "set":
            problems += _set_items(schema, path)
        if given not in known:
            problems.append(wording.not_supported(f"{path}.{name}", given, known))
    return problems + _keyed(schema, path)


def _set_items(schema: Json, path: str) -> list[Problem]:
    items = schema.get("items")
    if not isinstance(items, dict):
        return []
    detail = "must be atomic as item of a list with x-kubernetes-list-type=set"
    if items.get("type") == "array" and items.get(_LIST_TYPE) not in (None, "atomic"):
        return [wording.invalid(f"{path}.items.{_LIST_TYPE}", items.get(_LIST_TYPE), detail)]
    if items.get("type") == "object" and items.get(_MAP_TYPE) != "atomic":
        return [wording.invalid(f"{path}.items.{_MAP_TYPE}", items.get(_LIST_TYPE), detail)]
    return []


def _keyed(schema: Json, path: str) -> list[Problem]:
    problems = []
    keys, list_type, items = schema.get(_KEYS) or [], schema.get(_LIST_TYPE), schema.get("items")
    if keys and list_type != "map":
        detail = f"must be map if {_KEYS} is non-empty"
        here = f"{path}.{_LIST_TYPE}"
        problems.append(wording.invalid(here, list_type, detail) if list_type else wording.required(here, detail))
    if list_type == "map":
        if not keys:
            problems.append(wording.required(f"{path}.{_KEYS}", f"must not be empty if {_LIST_TYPE} is map"))
        if items is None:
            problems.append(wording.required(f"{path}.items", f"must have a schema if {_LIST_TYPE} is map"))
    if not isinstance(items, dict) or list_type not in ("set", "map"):
        return problems
    if list_type == "map":
        problems += _key_fields(keys, items, path)
    if items.get("nullable"):
        detail = f"cannot be nullable when {_LIST_TYPE} is {list_type}"
        problems.append(wording.forbidden(f"{path}.items.nullable", detail))
    if list_type == "map":
        problems += _key_presence(keys, items, path)
    return problems


def _key_fields(keys: list[str], items: Json, path: str) -> list[Problem]:
    type = items.get("type") or ""
    if type != "object":
        detail = f"must be object if parent array's {_LIST_TYPE} is map"
        return [wording.invalid(f"{path}.items.type", type, detail)]
    problems = []
    for index, key in enumerate(keys):
        field = parsing.properties(items).get(key)
        if field is None:
            problems.append(wording.invalid(f"{path}.{_KEYS}", keys, "entries must all be names of item properties"))
        elif field.get("type") in ("array", "object"):
            detail = f"must be a scalar type if parent array's {_LIST_TYPE} is map"
            problems.append(wording.invalid(f"{path}.items.properties[{key}].type", type, detail))
        if key in keys[:index]:
            problems.append(wording.invalid(f"{path}.{_KEYS}", keys, "must not contain duplicate entries"))
    return problems


def _key_presence(keys: list[str], items: Json, path: str) -> list[Problem]:
    problems = []
    reason = f"this property is in {_KEYS}, so it"
    for key in keys:
        field = parsing.properties(items).get(key)
        if field is None:
            continue
        here = f"{path}.items.properties[{key}]"
        if key not in (items.get("required") or ()) and field.get("default") is None:
            problems.append(
                wording.required(f"{here}.default", f"{reason} must have a default or be a required property")
            )
        if field.get("nullable"):
            problems.append(wording.forbidden(f"{here}.nullable", f"{reason} cannot be nullable"))
    return problems


def text_problems(schema: Json, path: str) -> list[Problem]:
    """Of the rules at one place: everything but what they mean."""
    problems = []
    written = schema.get("x-kubernetes-validations") or []
    for index, rule in enumerate(written if isinstance(written, list) else []):
        here = f"{path}.x-kubernetes-validations[{index}]"
        problems += _rule_text(rule, here)
        where = rule.get("fieldPath") or ""
        if where and rules.field_path(where, parsing.parse(schema)) is None:
            problems.append(wording.invalid(f"{here}.fieldPath", where, "must be a valid path"))
    return problems


def _rule_text(rule: Json, here: str) -> list[Problem]:
    problems = []
    text, message = str(rule.get("rule") or "").strip(), str(rule.get("message") or "")
    if not text:
        problems.append(wording.required(f"{here}.rule", "rule is not specified"))
    elif message and not message.strip():
        problems.append(wording.invalid(f"{here}.message", message, "must be non-empty if specified"))
    elif "\n" in message.strip():
        problems.append(wording.invalid(f"{here}.message", message, "must not contain line breaks"))
    elif "\n" in text and not message.strip():
        detail = "message must be specified if rule contains line breaks"
        problems.append(wording.required(f"{here}.message", detail))
    explain = str(rule.get("messageExpression") or "")
    if explain and not explain.strip():
        detail = "messageExpression must be non-empty if specified"
        problems.append(wording.required(f"{here}.messageExpression", detail))
    reason = rule.get("reason")
    if reason is not None and reason not in _REASONS:
        problems.append(wording.not_supported(f"{here}.reason", reason, _REASONS))
    return problems


def compile_problems(type: Type, path: str) -> list[Problem]:
    """Of all rules of a schema."""
    place = rules.place_of(type)
    return [] if place is None else _compiled(place, path, "")


def _compiled(place: rules.Place, path: str, no_past: str) -> list[Problem]:
    """`no_past` is the list whose items cannot be told apart, so that there is no `oldSelf` below it."""
    problems = []
    for index, rule in enumerate(place.rules):
        here = f"{path}.x-kubernetes-validations[{index}]"
        if rule.problem:
            problems.append(wording.invalid(f"{here}.rule", _as_kept(rule.written), rule.problem))
        if rule.message_problem:
            problems.append(wording.invalid(f"{here}.messageExpression", _as_kept(rule.written), rule.message_problem))
        if rule.uses_old and no_past:
            detail = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {no_past}"
            problems.append(wording.invalid(f"{here}.rule", rule.text, detail))
        if not rule.uses_old and not rule.problem and rule.written.get("optionalOldSelf") is not None:
            detail = "may not be set if oldSelf is not used in rule"
            problems.append(wording.invalid(f"{here}.optionalOldSelf", rule.optional_old, detail))
    for name, below in place.fields.items():
        problems += _compiled(below, f"{path}.properties[{name}]", no_past)
    if place.element is not None:
        is_list = place.type.shape is Shape.LIST
        unkeyed = is_list and place.type.list_type is not ListType.MAP
        inner = f"{path}.items" if is_list else f"{path}.additionalProperties"
        problems += _compiled(place.element, inner, path if unkeyed else no_past)
    return problems


def _as_kept(rule: Json) -> wording.Verbatim:
    """A rule as the server has it in mind."""
    texts = ("Rule", "Message", "MessageExpression")
    kept = {name: rule.get(name[0].lower() + name[1:], "") for name in texts}
    kept |= {"Reason": rule.get("reason"), "FieldPath": rule.get("fieldPath", "")}
    kept["OptionalOldSelf"] = rule.get("optionalOldSelf")
    return wording.Verbatim(wording.escaped(json.dumps(kept, separators=(",", ":"), ensure_ascii=False)))
