"""Who may do what, and with which certificate."""

from __future__ import annotations

from datetime import datetime

from octarbiter.api.meta import Json
from octarbiter.cluster.apiserver.tables import ages
from octarbiter.cluster.apiserver.tables.cluster import age_of, name_of
from octarbiter.cluster.apiserver.tables.layout import Cells, Layout, columns
from octarbiter.cluster.apiserver.tables.reading import NONE, count, dig, labels, many, mapping, text


def _binding(binding: Json, now: datetime) -> Cells:
    role = mapping(binding, "roleRef")
    subjects = many(binding, "subjects")
    accounts = [each for each in subjects if each.get("kind") == "ServiceAccount"]
    return [
        name_of(binding),
        f"{text(role, 'kind')}/{text(role, 'name')}",
        age_of(binding, now),
        _names(subjects, "User"),
        _names(subjects, "Group"),
        ", ".join(f"{text(each, 'namespace')}/{text(each, 'name')}" for each in accounts),
    ]


def _names(subjects: list[Json], kind: str) -> str:
    return ", ".join(text(each, "name") for each in subjects if each.get("kind") == kind)


def _signing_request(request: Json, now: datetime) -> Cells:
    spec = mapping(request, "spec")
    lasting = spec.get("expirationSeconds")
    return [
        name_of(request),
        age_of(request, now),
        text(spec, "signerName") or NONE,
        text(spec, "username"),
        NONE if lasting is None else ages.human(count(spec, "expirationSeconds")),
        _signing_status(request),
    ]


def _signing_status(request: Json) -> str:
    types = {each.get("type") for each in many(request, "status", "conditions")}
    status = "Denied" if "Denied" in types else "Approved" if "Approved" in types else "Pending"
    failed = ",Failed" if "Failed" in types else ""
    issued = ",Issued" if text(request, "status", "certificate") else ""
    return f"{status}{failed}{issued}"


def _trust_bundle(bundle: Json, now: datetime) -> Cells:
    return [name_of(bundle), text(bundle, "spec", "signerName") or NONE]


def _pod_certificate(request: Json, now: datetime) -> Cells:
    spec = mapping(request, "spec")
    types = [text(each, "type") for each in many(request, "status", "conditions")]
    state = next((each for each in reversed(types) if each in ("Issued", "Denied", "Failed")), "Pending")
    return [
        name_of(request),
        text(spec, "podName"),
        text(spec, "serviceAccountName"),
        text(spec, "nodeName"),
        text(spec, "signerName"),
        state,
        labels(mapping(dig(spec, "unverifiedUserAnnotations"))),
    ]


_BINDINGS = Layout(columns("Name", "Role", "Age", "Users*", "Groups*", "ServiceAccounts*"), _binding)

LAYOUTS: dict[tuple[str, str], Layout] = {
    ("rbac.authorization.k8s.io", "RoleBinding"): _BINDINGS,
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): _BINDINGS,
    ("certificates.k8s.io", "CertificateSigningRequest"): Layout(
        columns("Name", "Age", "SignerName", "Requestor", "RequestedDuration", "Condition"), _signing_request
    ),
    ("certificates.k8s.io", "ClusterTrustBundle"): Layout(columns("Name", "SignerName"), _trust_bundle),
    ("certificates.k8s.io", "PodCertificateRequest"): Layout(
        columns(
            "Name",
            "PodName",
            "ServiceAccountName",
            "NodeName",
            "SignerName",
            "State",
            "UnverifiedUserAnnotations",
        ),
        _pod_certificate,
    ),
}
