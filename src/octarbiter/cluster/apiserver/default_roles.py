"""Which roles and bindings does every cluster have?

`cluster-admin`, `admin`, `edit` and `view` for people, and what everybody who is known may do: look what there is, and
ask what he may do. `admin`, `edit` and `view` gather their rules from others by label, so that whoever brings new kinds
can add to them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from octarbiter.api.meta import Json
from octarbiter.cluster.apiserver.authn import AUTHENTICATED, MASTERS, UNAUTHENTICATED

GROUP: Final = "rbac.authorization.k8s.io"
_LABELS: Final = {"kubernetes.io/bootstrapping": "rbac-defaults"}
_READ: Final = ("get", "list", "watch")
_CHANGE: Final = ("create", "delete", "deletecollection", "patch", "update")
_HEALTH: Final = ("/healthz", "/livez", "/readyz", "/version", "/version/")
_DISCOVERY: Final = ("/api", "/api/*", "/apis", "/apis/*", *_HEALTH, "/openapi", "/openapi/*")

_SEEN: Final = {
    "": (
        "bindings configmaps endpoints events limitranges namespaces namespaces/status persistentvolumeclaims "
        "persistentvolumeclaims/status pods pods/log pods/status replicationcontrollers replicationcontrollers/scale "
        "replicationcontrollers/status resourcequotas resourcequotas/status serviceaccounts services services/status"
    ),
    "apps": (
        "controllerrevisions daemonsets daemonsets/status deployments deployments/scale deployments/status replicasets "
        "replicasets/scale replicasets/status statefulsets statefulsets/scale statefulsets/status"
    ),
    "autoscaling": "horizontalpodautoscalers horizontalpodautoscalers/status",
    "batch": "cronjobs cronjobs/status jobs jobs/status",
    "discovery.k8s.io": "endpointslices",
    "events.k8s.io": "events",
    "networking.k8s.io": "ingresses ingresses/status networkpolicies",
    "policy": "poddisruptionbudgets poddisruptionbudgets/status",
    "resource.k8s.io": "resourceclaims resourceclaims/status resourceclaimtemplates",
}
_CHANGED: Final = {
    "": (
        "configmaps events persistentvolumeclaims pods pods/attach pods/exec pods/portforward pods/proxy "
        "replicationcontrollers replicationcontrollers/scale secrets serviceaccounts services services/proxy"
    ),
    "apps": (
        "daemonsets deployments deployments/rollback deployments/scale replicasets replicasets/scale statefulsets "
        "statefulsets/scale"
    ),
    "autoscaling": "horizontalpodautoscalers",
    "batch": "cronjobs jobs",
    "events.k8s.io": "events",
    "networking.k8s.io": "ingresses networkpolicies",
    "policy": "poddisruptionbudgets",
    "resource.k8s.io": "resourceclaims resourceclaimtemplates",
}


def cluster_roles() -> list[Json]:
    everything = [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}, _paths(("*",), ("*",))]
    view = [_rule(group, resources, _READ) for group, resources in _SEEN.items()]
    edit = [
        _rule("", "pods/attach pods/exec pods/portforward pods/proxy secrets services/proxy", _READ),
        _rule("", "serviceaccounts", ("impersonate",)),
        _rule("", "pods/eviction serviceaccounts/token", ("create",)),
        _rule("coordination.k8s.io", "leases", (*_READ, *_CHANGE)),
        *(_rule(group, resources, _CHANGE) for group, resources in _CHANGED.items()),
    ]
    admin = [
        _rule("authorization.k8s.io", "localsubjectaccessreviews", ("create",)),
        _rule(GROUP, "roles rolebindings", (*_READ, *_CHANGE)),
    ]
    asking = [
        _rule("authorization.k8s.io", "selfsubjectaccessreviews selfsubjectrulesreviews", ("create",)),
        _rule("authentication.k8s.io", "selfsubjectreviews", ("create",)),
    ]
    return [
        _role("cluster-admin", everything),
        _gathering("admin", [*admin, *edit, *view]),
        _gathering("edit", [*edit, *view], gathered_by="admin"),
        _gathering("view", view, gathered_by="edit"),
        _role("system:aggregate-to-admin", admin, gathered_by="admin"),
        _role("system:aggregate-to-edit", edit, gathered_by="edit"),
        _role("system:aggregate-to-view", view, gathered_by="view"),
        _role("system:basic-user", asking),
        _role("system:discovery", [_paths(_DISCOVERY, ("get",))]),
        _role("system:public-info-viewer", [_paths(_HEALTH, ("get",))]),
    ]


def cluster_bindings() -> list[Json]:
    who = {
        "cluster-admin": (MASTERS,),
        "system:basic-user": (AUTHENTICATED,),
        "system:discovery": (AUTHENTICATED,),
        "system:public-info-viewer": (AUTHENTICATED, UNAUTHENTICATED),
    }
    return [
        {
            "metadata": {"name": name, "labels": dict(_LABELS)},
            "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": name},
            "subjects": [{"apiGroup": GROUP, "kind": "Group", "name": group} for group in groups],
        }
        for name, groups in who.items()
    ]


def _role(name: str, rules: list[Json], *, gathered_by: str = "") -> Json:
    labels = {**_LABELS, **({f"{GROUP}/aggregate-to-{gathered_by}": "true"} if gathered_by else {})}
    return {"metadata": {"name": name, "labels": labels}, "rules": rules}


def _gathering(name: str, rules: list[Json], *, gathered_by: str = "") -> Json:
    """`rules`: what it gathers from the start, for people to see; what counts is found by the labels."""
    selector = {"matchLabels": {f"{GROUP}/aggregate-to-{name}": "true"}}
    return {**_role(name, rules, gathered_by=gathered_by), "aggregationRule": {"clusterRoleSelectors": [selector]}}


def _rule(group: str, resources: str, verbs: Sequence[str]) -> Json:
    return {"apiGroups": [group], "resources": resources.split(), "verbs": list(verbs)}


def _paths(paths: Sequence[str], verbs: Sequence[str]) -> Json:
    return {"nonResourceURLs": list(paths), "verbs": list(verbs)}
