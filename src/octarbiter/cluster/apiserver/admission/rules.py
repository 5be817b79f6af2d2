"""Which requests does a webhook want to hear of? Pure."""

from __future__ import annotations

from collections.abc import Mapping

from octarbiter.api.meta import Json
from octarbiter.cluster.apiserver import selectors
from octarbiter.cluster.apiserver.admission import Attempt

_OWN = "admissionregistration.k8s.io"


def concerns(webhook: Json, attempt: Attempt, namespace_labels: Mapping[str, str] | None) -> bool:
    """`namespace_labels`: of the namespace the object is in, or is; None for objects outside of any."""
    resource = attempt.served.resource
    if resource.group == _OWN and resource.kind.endswith("WebhookConfiguration"):
        return False  # or a broken one could never be repaired
    if not any(_matches(rule, attempt) for rule in webhook.get("rules") or []):
        return False
    if namespace_labels is not None and not _selects(webhook.get("namespaceSelector"), namespace_labels):
        return False
    wanted = webhook.get("objectSelector")
    if not wanted:
        return True
    return any(
        _selects(wanted, (obj.get("metadata") or {}).get("labels") or {})
        for obj in (attempt.obj, attempt.old)
        if obj is not None
    )


def _matches(rule: Json, attempt: Attempt) -> bool:
    resource = attempt.served.resource
    scope = rule.get("scope") or "*"
    return (
        _has(rule.get("operations"), attempt.operation)
        and _has(rule.get("apiGroups"), resource.group)
        and _has(rule.get("apiVersions"), resource.version)
        and (scope == "*" or (scope == "Namespaced") == resource.namespaced)
        and any(_names(each, resource.plural, attempt.subresource) for each in rule.get("resources") or [])
    )


def _names(pattern: str, plural: str, subresource: str) -> bool:
    first, _, second = pattern.partition("/")
    if pattern == "*/*":
        return True
    return first in ("*", plural) and (second == subresource or (second == "*" and bool(subresource)))


def _has(known: object, wanted: str) -> bool:
    return isinstance(known, list) and ("*" in known or wanted in known)


def _selects(selector: object, labels: Mapping[str, str]) -> bool:
    return not selector or not isinstance(selector, dict) or selectors.from_object(selector).matches(labels)
