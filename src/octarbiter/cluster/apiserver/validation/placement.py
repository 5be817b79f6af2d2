"""Is what a pod says about where it may run in order?"""

from __future__ import annotations

from octarbiter.cluster.apiserver.structural import wording
from octarbiter.cluster.apiserver.validation import names, rules
from octarbiter.cluster.apiserver.validation.rules import Json, Problems

EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def of_pod(spec: Json, path: str) -> Problems:
    yield from rules.labels(spec.get("nodeSelector"), f"{path}.nodeSelector")
    yield from _affinity(rules.part(spec, "affinity"), f"{path}.affinity")
    for where, toleration in rules.each(spec.get("tolerations"), f"{path}.tolerations"):
        yield from _toleration(toleration, where)
    for where, constraint in rules.each(spec.get("topologySpreadConstraints"), f"{path}.topologySpreadConstraints"):
        yield from _spread(constraint, where)


def _toleration(toleration: Json, path: str) -> Problems:
    key, value = str(toleration.get("key") or ""), str(toleration.get("value") or "")
    operator, effect = toleration.get("operator") or "", toleration.get("effect") or ""
    if key:
        yield from rules.well_formed(key, f"{path}.key", names.qualified)
    elif operator != "Exists":
        rule = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        yield wording.invalid(f"{path}.operator", operator, rule)
    if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
        rule = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        yield wording.invalid(f"{path}.effect", effect, rule)
    if operator in ("", "Equal"):
        yield from rules.well_formed(value, f"{path}.operator", names.label_value)
    elif operator == "Exists":
        if value:
            yield wording.invalid(f"{path}.operator", value, "value must be empty when `operator` is 'Exists'")
    else:
        yield wording.not_supported(f"{path}.operator", operator, ["Equal", "Exists"])
    if effect:
        yield from rules.one_of(effect, f"{path}.effect", EFFECTS)


def _affinity(affinity: Json, path: str) -> Problems:
    node = rules.part(affinity, "nodeAffinity")
    where = f"{path}.nodeAffinity"
    if isinstance(required := node.get(_REQUIRED), dict):
        terms = f"{where}.{_REQUIRED}.nodeSelectorTerms"
        if not required.get("nodeSelectorTerms"):
            yield wording.required(terms, "must have at least one node selector term")
        for at, term in rules.each(required.get("nodeSelectorTerms"), terms):
            yield from _node_term(term, at)
    for at, preference in rules.each(node.get(_PREFERRED), f"{where}.{_PREFERRED}"):
        yield from _weight(preference, at)
        yield from _node_term(rules.part(preference, "preference"), f"{at}.preference")
    for kind in ("podAffinity", "podAntiAffinity"):
        pods = rules.part(affinity, kind)
        for at, term in rules.each(pods.get(_REQUIRED), f"{path}.{kind}.{_REQUIRED}"):
            yield from _pod_term(term, at)
        for at, preference in rules.each(pods.get(_PREFERRED), f"{path}.{kind}.{_PREFERRED}"):
            yield from _weight(preference, at)
            yield from _pod_term(rules.part(preference, "podAffinityTerm"), f"{at}.podAffinityTerm")


def _weight(preference: Json, path: str) -> Problems:
    weight = preference.get("weight") or 0
    if not 1 <= weight <= 100:
        yield wording.invalid(f"{path}.weight", weight, "must be in the range 1-100")


def _node_term(term: Json, path: str) -> Problems:
    for where, expression in rules.each(term.get("matchExpressions"), f"{path}.matchExpressions"):
        yield from rules.requirement(expression, where, compares=True)
        yield from rules.well_formed(str(expression.get("key") or ""), f"{where}.key", names.qualified)


def _pod_term(term: Json, path: str) -> Problems:
    yield from rules.selector(term.get("labelSelector"), f"{path}.labelSelector")
    key = str(term.get("topologyKey") or "")
    if not key:
        yield wording.required(f"{path}.topologyKey", "can not be empty")
    yield from rules.well_formed(key, f"{path}.topologyKey", names.qualified)


def _spread(constraint: Json, path: str) -> Problems:
    skew = constraint.get("maxSkew") or 0
    if skew <= 0:
        yield wording.invalid(f"{path}.maxSkew", skew, "must be greater than zero")
    if not constraint.get("topologyKey"):
        yield wording.required(f"{path}.topologyKey", "can not be empty")
    else:
        yield from rules.well_formed(constraint["topologyKey"], f"{path}.topologyKey", names.qualified)
    answers = ("DoNotSchedule", "ScheduleAnyway")
    yield from rules.one_of(constraint.get("whenUnsatisfiable"), f"{path}.whenUnsatisfiable", answers)
    yield from rules.selector(constraint.get("labelSelector"), f"{path}.labelSelector")
