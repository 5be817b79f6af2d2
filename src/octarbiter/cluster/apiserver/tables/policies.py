"""What admission asks, and whose requests go first."""

from __future__ import annotations

from datetime import datetime

from octarbiter.api.meta import Json
from octarbiter.cluster.apiserver.tables.cluster import age_of, name_of
from octarbiter.cluster.apiserver.tables.layout import Cells, Layout, columns
from octarbiter.cluster.apiserver.tables.reading import NONE, UNSET, condition, count, many, mapping, selector, text


def _webhooks(configuration: Json, now: datetime) -> Cells:
    return [name_of(configuration), len(many(configuration, "webhooks")), age_of(configuration, now)]


def _policy(policy: Json, now: datetime) -> Cells:
    kind = mapping(policy, "spec", "paramKind")
    steps = many(policy, "spec", "validations") or many(policy, "spec", "mutations")
    parameters = f"{text(kind, 'apiVersion')}/{text(kind, 'kind')}" if kind else UNSET
    return [name_of(policy), len(steps), parameters, age_of(policy, now)]


def _policy_binding(binding: Json, now: datetime) -> Cells:
    reference = mapping(binding, "spec", "paramRef")
    shown = UNSET
    if text(reference, "name"):
        shown = f"{text(reference, 'namespace') or '*'}/{text(reference, 'name')}"
    elif "selector" in reference:
        shown = selector(reference["selector"])
    return [name_of(binding), text(binding, "spec", "policyName"), shown, age_of(binding, now)]


def _flow_schema(schema: Json, now: datetime) -> Cells:
    spec = mapping(schema, "spec")
    dangling = condition(schema, "Dangling")
    return [
        name_of(schema),
        text(spec, "priorityLevelConfiguration", "name"),
        count(spec, "matchingPrecedence"),
        text(spec, "distinguisherMethod", "type") or NONE,
        age_of(schema, now),
        "?" if dangling is None else text(dangling, "status"),
    ]


def _priority_level(level: Json, now: datetime) -> Cells:
    limited = mapping(level, "spec", "limited")
    queuing = mapping(limited, "limitResponse", "queuing")
    return [
        name_of(level),
        text(level, "spec", "type"),
        count(limited, "nominalConcurrencyShares") if limited else NONE,
        *(count(queuing, name) if queuing else NONE for name in ("queues", "handSize", "queueLengthLimit")),
        age_of(level, now),
    ]


_WEBHOOKS = Layout(columns("Name", "Webhooks:integer", "Age"), _webhooks)
_BINDINGS = Layout(columns("Name", "PolicyName", "ParamRef", "Age"), _policy_binding)
_ADMISSION = "admissionregistration.k8s.io"
_FLOW = "flowcontrol.apiserver.k8s.io"

LAYOUTS: dict[tuple[str, str], Layout] = {
    (_ADMISSION, "MutatingWebhookConfiguration"): _WEBHOOKS,
    (_ADMISSION, "ValidatingWebhookConfiguration"): _WEBHOOKS,
    (_ADMISSION, "ValidatingAdmissionPolicy"): Layout(
        columns("Name", "Validations:integer", "ParamKind", "Age"), _policy
    ),
    (_ADMISSION, "MutatingAdmissionPolicy"): Layout(columns("Name", "Mutations:integer", "ParamKind", "Age"), _policy),
    (_ADMISSION, "ValidatingAdmissionPolicyBinding"): _BINDINGS,
    (_ADMISSION, "MutatingAdmissionPolicyBinding"): _BINDINGS,
    (_FLOW, "FlowSchema"): Layout(
        columns("Name", "PriorityLevel", "MatchingPrecedence", "DistinguisherMethod", "Age", "MissingPL"), _flow_schema
    ),
    (_FLOW, "PriorityLevelConfiguration"): Layout(
        columns("Name", "Type", "NominalConcurrencyShares", "Queues", "HandSize", "QueueLengthLimit", "Age"),
        _priority_level,
    ),
}
