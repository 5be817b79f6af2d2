"""When does the API server ask us, and what if we do not answer?

| asked about | where | without an answer |
|---|---|---|
| new pods | namespaces whose label says `deny` or `gate` | refused: deny must mean deny |
| new pods | namespaces without the label, if the installation manages them | let through |
| our gate taken off a pod | namespaces of mode `gate` | refused |
| changed or deleted quotas that follow a queue | everywhere | let through, and repaired later |
| our own kinds | everywhere | let through: their schema guards them, and a TaskSet is suspended later |

`kube-system` and our own namespace are exempt from all of it, so whoever has to repair something always can. The API
server does not ask where we would certainly agree: about our own changes, those of the cluster's controllers, pods of
mode `default-queue`, TaskSets without a queue. Defaults need no webhook: the kinds' schemas have them.
"""

from __future__ import annotations

import base64
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from octarbiter.api import arbitrator, scheme
from octarbiter.api.arbitrator import Mode
from octarbiter.api.errors import FieldProblem, Refused
from octarbiter.api.meta import Json, Object
from octarbiter.api.scheme import Resource
from octarbiter.core.quota import admission, names

NAME: Final = "octarbiter-webhook"
"""Of both configurations, and of the Service."""
DOMAIN: Final = f"webhook.{arbitrator.GROUP}"
PORT: Final = 443
TIMEOUT_S: Final = 5

MUTATING: Final = Resource(
    "admissionregistration.k8s.io",
    "v1",
    "MutatingWebhookConfiguration",
    "mutatingwebhookconfigurations",
    False,
    Object,
)
VALIDATING: Final = Resource(
    "admissionregistration.k8s.io",
    "v1",
    "ValidatingWebhookConfiguration",
    "validatingwebhookconfigurations",
    False,
    Object,
)

_LABELLED: Final[Json] = {"key": arbitrator.MODE, "operator": "Exists"}
_UNLABELLED: Final[Json] = {"key": arbitrator.MODE, "operator": "DoesNotExist"}
_GATE: Final[Json] = {"key": arbitrator.MODE, "operator": "In", "values": [Mode.GATE]}
# What a label says that we do not know was meant to manage, and an empty one not to: see `core.quota.names`.
_DENY: Final[Json] = {"key": arbitrator.MODE, "operator": "NotIn", "values": ["", Mode.GATE, Mode.DEFAULT_QUEUE]}
_GATE_OR_UNLABELLED: Final[Json] = {**_DENY, "values": ["", Mode.DENY, Mode.DEFAULT_QUEUE]}


class Reach(msgspec.Struct, frozen=True, kw_only=True):
    """How the API server gets to us."""

    url: str = ""
    """`https://host:port`; empty: by our Service."""
    namespace: str = names.OWN_NAMESPACE
    """Of the Service, and of the Secret; it is exempt."""

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if self.url and (parts.scheme != "https" or not parts.hostname or parts.query or parts.fragment):
            problem = f"must be https://host:port, as the API server reaches this process; is {self.url!r}"
            raise Refused([FieldProblem("--webhook-url", problem)])

    @property
    def hosts(self) -> tuple[str, ...]:
        """What our certificate must say."""
        if self.url:
            return (urlsplit(self.url).hostname or "",)
        service = f"{NAME}.{self.namespace}.svc"
        return (service, f"{service}.cluster.local")

    def client_config(self, path: str, bundle: bytes) -> Json:
        trusted = {"caBundle": base64.b64encode(bundle).decode()}
        if self.url:
            return {"url": f"{self.url.rstrip('/')}/{path}", **trusted}
        return {"service": {"name": NAME, "namespace": self.namespace, "port": PORT, "path": f"/{path}"}, **trusted}


def configurations(reach: Reach, bundle: bytes, us: str, everywhere: Mode | None) -> tuple[Json, Json]:
    """The mutating and the validating one. `everywhere`: the mode of namespaces that have no label."""

    def webhook(name: str, path: str, policy: str, rule: Json, *namespaces: Json, **others: Any) -> Json:
        exempt = sorted(names.exempt(reach.namespace))
        selector = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": exempt}
        return {
            "name": f"{name}.{DOMAIN}",
            "clientConfig": reach.client_config(path, bundle),
            "rules": [rule],
            "failurePolicy": policy,
            "namespaceSelector": {"matchExpressions": [selector, *namespaces]},
            "matchPolicy": "Equivalent",
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "timeoutSeconds": TIMEOUT_S,
            **others,
        }

    pods, quotas = _rule("CREATE", scheme.PODS), _rule("UPDATE DELETE", scheme.RESOURCEQUOTAS)
    mutating = [
        webhook("gate-pods", "pods/gate", "Fail", pods, _GATE),
        webhook(
            "hold-tasksets",
            "tasksets/hold",
            "Ignore",
            _rule("CREATE", scheme.TASKSETS),
            matchConditions=[_condition("names-a-queue", "has(object.spec.queue) && object.spec.queue != ''")],
        ),
    ]
    validating = [
        webhook("deny-pods", "pods/deny", "Fail", pods, _LABELLED, _DENY),
        webhook(
            "ungate-pods",
            "pods/ungate",
            "Fail",
            _rule("UPDATE", scheme.PODS),
            _GATE_OR_UNLABELLED if everywhere is Mode.GATE else _GATE,
            matchConditions=[
                _condition("not-us", f"request.userInfo.username != {_literal(us)}"),
                _condition("had-the-gate", _has_gate("oldObject")),
                _condition("has-it-no-more", f"!({_has_gate('object')})"),
            ],
        ),
        webhook(
            "resourcequotas",
            "resourcequotas",
            "Ignore",
            quotas,
            objectSelector={"matchExpressions": [{"key": arbitrator.QUEUE, "operator": "Exists"}]},
            matchConditions=[
                _condition("not-us", f"request.userInfo.username != {_literal(us)}"),
                _condition("not-the-cluster", f"!({_literal(admission.KUBE_SYSTEM_GROUP)} in request.userInfo.groups)"),
            ],
        ),
        webhook("queues", "queues", "Ignore", _rule("CREATE UPDATE", scheme.QUEUES)),
        webhook("queuejobs", "queuejobs", "Ignore", _rule("CREATE UPDATE", scheme.QUEUEJOBS, "tasksets")),
        webhook("tasksets", "tasksets", "Ignore", _rule("CREATE UPDATE", scheme.TASKSETS)),
    ]
    # Who did not ask for it by a label must not be stopped by our absence.
    if everywhere is Mode.GATE:
        mutating.append(webhook("gate-other-pods", "pods/gate", "Ignore", pods, _UNLABELLED))
    if everywhere is Mode.DENY:
        validating.append(webhook("deny-other-pods", "pods/deny", "Ignore", pods, _UNLABELLED))
    return _object(MUTATING, mutating), _object(VALIDATING, validating)


def _object(resource: Resource[Object], webhooks: list[Json]) -> Json:
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": NAME, "labels": {names.MADE_BY_LABEL: arbitrator.MANAGER}},
        "webhooks": webhooks,
    }


def _rule(operations: str, resource: Resource[Object], *others: str) -> Json:
    """The objects themselves, never their subresources: statuses, bindings and evictions are not our affair."""
    return {
        "operations": operations.split(),
        "apiGroups": [resource.group],
        "apiVersions": [resource.version],
        "resources": [resource.plural, *others],
        "scope": "Namespaced",
    }


def _condition(name: str, expression: str) -> Json:
    return {"name": name, "expression": expression}


def _has_gate(obj: str) -> str:
    gates = f"{obj}.spec.schedulingGates"
    return f"has({gates}) && {gates}.exists(g, g.name == {_literal(arbitrator.QUEUE)})"


def _literal(text: str) -> str:
    """As CEL writes it."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
