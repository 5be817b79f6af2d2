"""Which resources does the server have, and how do they differ from each other?

One row per built-in resource; everything that is said about one is said here: the verbs are written once, for all.
"""

from __future__ import annotations

from typing import Final

from octarbiter.cluster.apiserver.resources import (
    CHANGE_VERBS,
    CREATE_ONLY,
    STANDARD_VERBS,
    Propagation,
    Resource,
    Subresource,
)

__all__ = [
    "BUDGETS",
    "BUILT_IN",
    "CHANGE_VERBS",
    "CRDS",
    "CREATE_ONLY",
    "EVENTS",
    "NAMESPACES",
    "PODS",
    "PRIORITIES",
    "STANDARD_VERBS",
    "Propagation",
    "Resource",
    "Subresource",
]


def _status(kind: str) -> Subresource:
    return Subresource("status", kind, CHANGE_VERBS)


def _row(
    group_version: str,
    plural: str,
    kind: str,
    *,
    namespaced: bool = True,
    short: str = "",
    category: str = "",
    verbs: tuple[str, ...] = STANDARD_VERBS,
    status: bool = False,
    scale: bool = False,
    more: tuple[Subresource, ...] = (),
    tracks_generation: bool = False,
    put_creates: bool = False,
    put_needs_version: bool = False,
    graceful: bool = False,
    propagation: Propagation = Propagation.BACKGROUND,
    returns_deleted: bool = False,
    status_on_create: bool = False,
    selectable: tuple[str, ...] = (),
    stored_as: str = "",
) -> Resource:
    group, _, version = group_version.rpartition("/")
    subresources = list(more)
    if status:
        subresources.append(_status(kind))
    if scale:
        subresources.append(Subresource("scale", "Scale", CHANGE_VERBS, "autoscaling", "v1"))
    return Resource(
        group=group,
        version=version,
        plural=plural,
        singular=kind.lower(),
        kind=kind,
        list_kind=f"{kind}List",
        namespaced=namespaced,
        short_names=tuple(short.split()),
        categories=tuple(category.split()),
        verbs=verbs,
        subresources=tuple(sorted(subresources, key=lambda each: each.name)),
        tracks_generation=tracks_generation,
        put_creates=put_creates,
        put_needs_version=put_needs_version,
        graceful=graceful,
        propagation=propagation,
        returns_deleted=returns_deleted,
        status_on_create=status_on_create,
        selectable=selectable,
        stored_as=stored_as,
    )


_POD_FIELDS: Final = (
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.schedulerName",
    "spec.serviceAccountName",
    "spec.hostNetwork",
    "status.phase",
    "status.podIP",
    "status.podIPs",
    "status.nominatedNodeName",
)
_EVENT_FIELDS: Final = (
    *(f"involvedObject.{name}" for name in ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion")),
    "involvedObject.fieldPath",
    "reason",
    "reportingComponent",
    "source",
    "type",
)
_NEWER_EVENT_FIELDS: Final = (
    *(name.replace("involvedObject.", "regarding.") for name in _EVENT_FIELDS if name.startswith("involvedObject.")),
    "reason",
    "reportingController",
    "type",
)
_WITHOUT_COLLECTION: Final = tuple(verb for verb in STANDARD_VERBS if verb != "deletecollection")
_RBAC: Final = "rbac.authorization.k8s.io/v1"
_STORAGE: Final = "storage.k8s.io/v1"
_HOOKS: Final = "admissionregistration.k8s.io/v1"

_CORE_ROWS: Final = (
    _row("v1", "bindings", "Binding", verbs=CREATE_ONLY),
    _row("v1", "configmaps", "ConfigMap", short="cm"),
    _row("v1", "endpoints", "Endpoints", short="ep", put_creates=True),
    _row(
        "v1",
        "events",
        "Event",
        short="ev",
        put_creates=True,
        propagation=Propagation.NONE,
        selectable=_EVENT_FIELDS,
    ),
    _row("v1", "limitranges", "LimitRange", short="limits", put_creates=True),
    _row(
        "v1",
        "namespaces",
        "Namespace",
        namespaced=False,
        short="ns",
        verbs=_WITHOUT_COLLECTION,
        status=True,
        more=(Subresource("finalize", "Namespace", ("update",)),),
        returns_deleted=True,
        selectable=("status.phase",),
    ),
    _row(
        "v1",
        "nodes",
        "Node",
        namespaced=False,
        short="no",
        status=True,
        status_on_create=True,
        selectable=("spec.unschedulable",),
    ),
    _row("v1", "persistentvolumeclaims", "PersistentVolumeClaim", short="pvc", status=True, returns_deleted=True),
    _row(
        "v1", "persistentvolumes", "PersistentVolume", namespaced=False, short="pv", status=True, returns_deleted=True
    ),
    _row(
        "v1",
        "pods",
        "Pod",
        short="po",
        category="all",
        status=True,
        more=(
            Subresource("binding", "Binding", CREATE_ONLY),
            Subresource("eviction", "Eviction", CREATE_ONLY, "policy", "v1"),
            Subresource("log", "Pod", ("get",)),
            Subresource("exec", "PodExecOptions", ("create", "get")),
            Subresource("attach", "PodAttachOptions", ("create", "get")),
            Subresource("portforward", "PodPortForwardOptions", ("create", "get")),
            Subresource("ephemeralcontainers", "Pod", CHANGE_VERBS),
            Subresource("resize", "Pod", CHANGE_VERBS),
        ),
        tracks_generation=True,
        graceful=True,
        returns_deleted=True,
        selectable=_POD_FIELDS,
    ),
    _row("v1", "podtemplates", "PodTemplate", tracks_generation=True, returns_deleted=True),
    _row(
        "v1",
        "replicationcontrollers",
        "ReplicationController",
        short="rc",
        category="all",
        status=True,
        scale=True,
        tracks_generation=True,
        propagation=Propagation.ORPHAN,
        selectable=("status.replicas",),
    ),
    _row("v1", "resourcequotas", "ResourceQuota", short="quota", status=True, returns_deleted=True),
    _row("v1", "secrets", "Secret", selectable=("type",)),
    _row(
        "v1",
        "serviceaccounts",
        "ServiceAccount",
        short="sa",
        more=(Subresource("token", "TokenRequest", CREATE_ONLY, "authentication.k8s.io", "v1"),),
        returns_deleted=True,
    ),
    _row(
        "v1",
        "services",
        "Service",
        short="svc",
        category="all",
        status=True,
        put_creates=True,
        returns_deleted=True,
        selectable=("spec.clusterIP", "spec.type"),
    ),
)

# In the order in which clients get to see the groups: where a name is in two of them, the first one wins.
_GROUP_ROWS: Final = (
    _row("apps/v1", "controllerrevisions", "ControllerRevision"),
    _row("apps/v1", "daemonsets", "DaemonSet", short="ds", category="all", status=True, tracks_generation=True),
    _row(
        "apps/v1",
        "deployments",
        "Deployment",
        short="deploy",
        category="all",
        status=True,
        scale=True,
        tracks_generation=True,
    ),
    _row(
        "apps/v1",
        "replicasets",
        "ReplicaSet",
        short="rs",
        category="all",
        status=True,
        scale=True,
        tracks_generation=True,
    ),
    _row(
        "apps/v1",
        "statefulsets",
        "StatefulSet",
        short="sts",
        category="all",
        status=True,
        scale=True,
        tracks_generation=True,
    ),
    _row(
        "events.k8s.io/v1",
        "events",
        "Event",
        short="ev",
        put_creates=True,
        propagation=Propagation.NONE,
        selectable=_NEWER_EVENT_FIELDS,
        stored_as="core/events",
    ),
    _row("authentication.k8s.io/v1", "selfsubjectreviews", "SelfSubjectReview", namespaced=False, verbs=CREATE_ONLY),
    _row("authentication.k8s.io/v1", "tokenreviews", "TokenReview", namespaced=False, verbs=CREATE_ONLY),
    _row("authorization.k8s.io/v1", "localsubjectaccessreviews", "LocalSubjectAccessReview", verbs=CREATE_ONLY),
    _row(
        "authorization.k8s.io/v1",
        "selfsubjectaccessreviews",
        "SelfSubjectAccessReview",
        namespaced=False,
        verbs=CREATE_ONLY,
    ),
    _row(
        "authorization.k8s.io/v1",
        "selfsubjectrulesreviews",
        "SelfSubjectRulesReview",
        namespaced=False,
        verbs=CREATE_ONLY,
    ),
    _row("authorization.k8s.io/v1", "subjectaccessreviews", "SubjectAccessReview", namespaced=False, verbs=CREATE_ONLY),
    _row(
        "autoscaling/v2",
        "horizontalpodautoscalers",
        "HorizontalPodAutoscaler",
        short="hpa",
        category="all",
        status=True,
    ),
    _row(
        "batch/v1",
        "cronjobs",
        "CronJob",
        short="cj",
        category="all",
        status=True,
        tracks_generation=True,
    ),
    _row(
        "batch/v1",
        "jobs",
        "Job",
        category="all",
        status=True,
        tracks_generation=True,
        propagation=Propagation.ORPHAN,
        selectable=("status.successful",),
    ),
    _row(
        "certificates.k8s.io/v1",
        "certificatesigningrequests",
        "CertificateSigningRequest",
        namespaced=False,
        short="csr",
        status=True,
        more=(Subresource("approval", "CertificateSigningRequest", CHANGE_VERBS),),
        selectable=("spec.signerName",),
    ),
    _row("networking.k8s.io/v1", "ingressclasses", "IngressClass", namespaced=False, tracks_generation=True),
    _row("networking.k8s.io/v1", "ingresses", "Ingress", short="ing", status=True, tracks_generation=True),
    _row("networking.k8s.io/v1", "networkpolicies", "NetworkPolicy", short="netpol", tracks_generation=True),
    _row(
        "policy/v1",
        "poddisruptionbudgets",
        "PodDisruptionBudget",
        short="pdb",
        status=True,
        tracks_generation=True,
        put_needs_version=True,
    ),
    _row(_RBAC, "clusterrolebindings", "ClusterRoleBinding", namespaced=False, put_creates=True),
    _row(_RBAC, "clusterroles", "ClusterRole", namespaced=False, put_creates=True),
    _row(_RBAC, "rolebindings", "RoleBinding", put_creates=True),
    _row(_RBAC, "roles", "Role", put_creates=True),
    _row(_STORAGE, "csidrivers", "CSIDriver", namespaced=False, put_needs_version=True, returns_deleted=True),
    _row(_STORAGE, "csinodes", "CSINode", namespaced=False, put_needs_version=True, returns_deleted=True),
    _row(_STORAGE, "csistoragecapacities", "CSIStorageCapacity", put_needs_version=True),
    _row(_STORAGE, "storageclasses", "StorageClass", namespaced=False, short="sc", returns_deleted=True),
    _row(
        _STORAGE,
        "volumeattachments",
        "VolumeAttachment",
        namespaced=False,
        status=True,
        put_needs_version=True,
        returns_deleted=True,
    ),
    _row(
        _STORAGE,
        "volumeattributesclasses",
        "VolumeAttributesClass",
        namespaced=False,
        short="vac",
        returns_deleted=True,
    ),
    _row(
        _HOOKS,
        "mutatingwebhookconfigurations",
        "MutatingWebhookConfiguration",
        namespaced=False,
        category="api-extensions",
        tracks_generation=True,
        put_needs_version=True,
    ),
    _row(
        _HOOKS,
        "validatingwebhookconfigurations",
        "ValidatingWebhookConfiguration",
        namespaced=False,
        category="api-extensions",
        tracks_generation=True,
        put_needs_version=True,
    ),
    _row(
        "apiextensions.k8s.io/v1",
        "customresourcedefinitions",
        "CustomResourceDefinition",
        namespaced=False,
        short="crd crds",
        category="api-extensions",
        status=True,
        tracks_generation=True,
        put_needs_version=True,
        returns_deleted=True,
    ),
    _row(
        "scheduling.k8s.io/v1", "priorityclasses", "PriorityClass", namespaced=False, short="pc", tracks_generation=True
    ),
    _row("coordination.k8s.io/v1", "leases", "Lease", put_creates=True, put_needs_version=True),
    _row(
        "node.k8s.io/v1", "runtimeclasses", "RuntimeClass", namespaced=False, put_creates=True, put_needs_version=True
    ),
    _row("discovery.k8s.io/v1", "endpointslices", "EndpointSlice", tracks_generation=True),
    _row(
        "resource.k8s.io/v1",
        "deviceclasses",
        "DeviceClass",
        namespaced=False,
        tracks_generation=True,
        returns_deleted=True,
    ),
    _row("resource.k8s.io/v1", "resourceclaims", "ResourceClaim", status=True, returns_deleted=True),
    _row("resource.k8s.io/v1", "resourceclaimtemplates", "ResourceClaimTemplate", returns_deleted=True),
    _row(
        "resource.k8s.io/v1",
        "resourceslices",
        "ResourceSlice",
        namespaced=False,
        tracks_generation=True,
        returns_deleted=True,
        selectable=("spec.nodeName", "spec.driver"),
    ),
)

BUILT_IN: Final[tuple[Resource, ...]] = _CORE_ROWS + _GROUP_ROWS

NAMESPACES: Final = next(row for row in BUILT_IN if row.plural == "namespaces")
PODS: Final = next(row for row in BUILT_IN if row.plural == "pods")
CRDS: Final = next(row for row in BUILT_IN if row.plural == "customresourcedefinitions")
EVENTS: Final = next(row for row in BUILT_IN if row.plural == "events" and not row.group)
BUDGETS: Final = next(row for row in BUILT_IN if row.plural == "poddisruptionbudgets")
PRIORITIES: Final = next(row for row in BUILT_IN if row.plural == "priorityclasses")
