"""Nobody gives away rights he does not have.

Whoever writes a role or a binding must hold all that it grants himself, or be allowed to `escalate` or `bind`.
"""

from __future__ import annotations

from octarbiter.api.meta import Json
from octarbiter.cluster.apiserver import admission, rbac, status
from octarbiter.cluster.apiserver.admission import Attempt
from octarbiter.cluster.apiserver.authn import MASTERS
from octarbiter.cluster.apiserver.authorization import Authorizer

_GROUP = "rbac.authorization.k8s.io"


class NoEscalation:
    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer

    async def admit(self, attempt: Attempt) -> None:
        """Nothing is added."""

    async def validate(self, attempt: Attempt) -> None:
        resource, obj, user = attempt.served.resource, attempt.obj, attempt.user
        if resource.group != _GROUP or obj is None or MASTERS in user.groups:
            return
        policy = self._authorizer.policy
        if resource.kind in ("Role", "ClusterRole"):
            if attempt.operation == admission.UPDATE and obj.get("rules") == (attempt.old or {}).get("rules"):
                return
            verb, plural, name, wanted = "escalate", resource.plural, attempt.name, obj.get("rules") or []
        else:
            reference = obj.get("roleRef") or {}
            plural = "roles" if reference.get("kind") == "Role" else "clusterroles"
            verb, name = "bind", reference.get("name") or ""
            wanted = policy.rules(reference, attempt.namespace)
        may = rbac.Attributes(verb=verb, namespace=attempt.namespace, group=_GROUP, resource=plural, name=name)
        if policy.allows(user, may):
            return
        held = [grant.rule for grant in policy.grants(user, attempt.namespace)]
        if lacking := rbac.missing(wanted, held):
            groups = " ".join(f'"{group}"' for group in user.groups)
            why = (
                f'user "{user.name}" (groups=[{groups}]) is attempting to grant RBAC permissions not currently held:\n'
                + "\n".join(_shown(rule) for rule in lacking)
            )
            raise status.forbidden(resource, attempt.name, why)


def _shown(rule: Json) -> str:
    words = (
        ("NonResourceURLs", "nonResourceURLs"),
        ("APIGroups", "apiGroups"),
        ("Resources", "resources"),
        ("ResourceNames", "resourceNames"),
        ("Verbs", "verbs"),
    )
    parts = (f"{word}:[{_quoted(rule[field])}]" for word, field in words if rule.get(field))
    return "{" + ", ".join(parts) + "}"


def _quoted(values: list[str]) -> str:
    return " ".join(f'"{value}"' for value in values)
