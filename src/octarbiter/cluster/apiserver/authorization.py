"""May this request be answered?

What it wants is read from its URL alone, before anything is looked up: whoever may not see a thing is not told whether
it is there.
"""

from __future__ import annotations

import msgspec
from multidict import MultiMapping

from octarbiter.api.meta import Json
from octarbiter.cluster.apiserver import kinds, objects, options, rbac, status
from octarbiter.cluster.apiserver.authn import AUTHENTICATED, User
from octarbiter.cluster.apiserver.catalogue import Served
from octarbiter.cluster.apiserver.rbac import Attributes
from octarbiter.cluster.apiserver.routing import Target
from octarbiter.cluster.store.store import Store

_ROWS = {row.plural: row for row in kinds.BUILT_IN if row.group == "rbac.authorization.k8s.io"}
NO_SNIFFING = {"X-Content-Type-Options": "nosniff"}
"""Names of whoever asks stand in the text: no browser shall take it for a page."""
_DOORS = frozenset({"pods/exec", "pods/attach", "pods/portforward"})
_ON_COLLECTIONS = {"GET": "list", "HEAD": "list", "POST": "create", "DELETE": "deletecollection"}
_ON_OBJECTS = {"GET": "get", "HEAD": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


class Authorizer:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._policy: rbac.Policy | None = None

    @property
    def policy(self) -> rbac.Policy:
        """Read anew only when a role or a binding has changed."""
        if self._policy is None:
            roles, cluster_roles, bindings, cluster_bindings = (
                [objects.loaded(entry.value, _ROWS[plural]) for entry in self._store.list(_ROWS[plural].root)]
                for plural in ("roles", "clusterroles", "rolebindings", "clusterrolebindings")
            )
            self._policy = rbac.Policy(
                roles=roles, cluster_roles=cluster_roles, bindings=bindings, cluster_bindings=cluster_bindings
            )
        return self._policy

    def witness(self, served: Served, obj: Json, gone: bool) -> None:
        if served.resource.group == "rbac.authorization.k8s.io":
            self._policy = None

    def acting_as(self, user: User, headers: MultiMapping[str]) -> User:
        """Whom the request is to be taken for: another, if it says so and its sender may. Raises a refusal (403)."""
        name = headers.get("Impersonate-User", "")
        groups = tuple(headers.getall("Impersonate-Group", []))
        if not name and not groups:
            return user
        if not name:
            raise status.bad_request("requested groups without impersonating a user")
        account = name.removeprefix(rbac.ACCOUNT_PREFIX).split(":") if name.startswith(rbac.ACCOUNT_PREFIX) else []
        if len(account) == 2:
            place, short = account
            self.check(user, Attributes(verb="impersonate", namespace=place, resource="serviceaccounts", name=short))
            groups = groups or ("system:serviceaccounts", f"system:serviceaccounts:{place}")
        else:
            self.check(user, Attributes(verb="impersonate", resource="users", name=name))
        for group in headers.getall("Impersonate-Group", []):
            self.check(user, Attributes(verb="impersonate", resource="groups", name=group))
        return User(name, tuple(dict.fromkeys((*groups, AUTHENTICATED))))

    def check(self, user: User, wanted: Attributes) -> None:
        """Raises a refusal (403)."""
        if not self.policy.allows(user, wanted):
            raise _forbidden(user, wanted)


def of_request(method: str, path: str, target: Target | None, query: options.Query) -> list[Attributes]:
    """All that must be allowed."""
    if target is None:
        return [Attributes(verb=method.lower(), path=path)]
    wanted = _of_target(method, target, query)
    if wanted.group == "" and wanted.resource in _DOORS and wanted.verb != "create":
        # A WebSocket begins with a GET, but whoever may only read shall not run commands.
        return [wanted, msgspec.structs.replace(wanted, verb="create")]
    return [wanted]


def _of_target(method: str, target: Target, query: options.Query) -> Attributes:
    name = target.name
    if target.watch or (method in ("GET", "HEAD") and not name and options.is_true(query.get("watch"))):
        verb = "watch"
    else:
        verb = (_ON_OBJECTS if name else _ON_COLLECTIONS).get(method, method.lower())
    if not name and verb in ("list", "watch"):
        name = _only_name(query.get("fieldSelector", ""))
    # To the rules a namespace lies in itself.
    namespace = target.name if not target.group and target.plural == "namespaces" else target.namespace
    resource = f"{target.plural}/{target.subresource}" if target.subresource else target.plural
    return Attributes(verb=verb, namespace=namespace, group=target.group, resource=resource, name=name)


def _only_name(field_selector: str) -> str:
    """A list of the one object of this name is allowed to whoever may list that object."""
    for requirement in field_selector.split(","):
        field, is_equal, value = requirement.partition("=")
        if field == "metadata.name" and is_equal:
            return value.removeprefix("=")
    return ""


def _forbidden(user: User, wanted: Attributes) -> status.Failure:
    who = f'User "{user.name}" cannot {wanted.verb}'
    if wanted.path:
        return status.Failure(403, "Forbidden", f'forbidden: {who} path "{wanted.path}"', {}, headers=dict(NO_SNIFFING))
    plural = wanted.resource.partition("/")[0]
    subject = f"{plural}.{wanted.group}" if wanted.group else plural
    named = f'{subject} "{wanted.name}"' if wanted.name else subject
    where = f'in the namespace "{wanted.namespace}"' if wanted.namespace else "at the cluster scope"
    message = f'{named} is forbidden: {who} resource "{wanted.resource}" in API group "{wanted.group}" {where}'
    details = {"name": wanted.name, "group": wanted.group, "kind": plural}
    details = {key: value for key, value in details.items() if value}
    return status.Failure(403, "Forbidden", message, details, headers=dict(NO_SNIFFING))
