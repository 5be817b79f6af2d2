"""Who may do what, by Roles, ClusterRoles and their bindings?

Pure: the objects go in as they are stored, a verdict comes out with the binding that is the reason. Everything that no
rule allows is forbidden. ClusterRoles that gather others by their labels are resolved here, at the time of the
question, so nobody has to copy rules from one role into another.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec

from octarbiter.api.meta import Json
from octarbiter.cluster.apiserver import selectors
from octarbiter.cluster.apiserver.authn import MASTERS, User

ACCOUNT_PREFIX: Final = "system:serviceaccount:"
_MOST_NESTED: Final = 8
"""Of roles that gather roles that gather roles."""


class Attributes(msgspec.Struct, frozen=True, kw_only=True):
    """One thing somebody wants to do: with a resource, or with a path that is none."""

    verb: str
    namespace: str = ""
    group: str = ""
    resource: str = ""
    """With its subresource: `pods/log`."""
    name: str = ""
    path: str = ""


class Grant(msgspec.Struct, frozen=True):
    rule: Json
    because: str


class Policy:
    def __init__(
        self,
        *,
        roles: Iterable[Json] = (),
        cluster_roles: Iterable[Json] = (),
        bindings: Iterable[Json] = (),
        cluster_bindings: Iterable[Json] = (),
    ) -> None:
        self._cluster_roles = {each["metadata"]["name"]: each for each in cluster_roles}
        self._roles = {(each["metadata"]["namespace"], each["metadata"]["name"]): each for each in roles}
        self._cluster_bindings = list(cluster_bindings)
        self._bindings: dict[str, list[Json]] = {}
        for binding in bindings:
            self._bindings.setdefault(binding["metadata"]["namespace"], []).append(binding)

    def allows(self, user: User, wanted: Attributes) -> bool:
        return self.reason(user, wanted) is not None

    def reason(self, user: User, wanted: Attributes) -> str | None:
        """Why it is allowed; empty where no rule is needed. None: it is not."""
        if MASTERS in user.groups:
            return ""
        return next((each.because for each in self.grants(user, wanted.namespace) if covers(each.rule, wanted)), None)

    def grants(self, user: User, namespace: str) -> Iterator[Grant]:
        """Everything the user has in the namespace; everywhere, where it is empty."""
        for binding in self._cluster_bindings:
            yield from self._granted(user, binding, "")
        for binding in self._bindings.get(namespace, ()) if namespace else ():
            yield from self._granted(user, binding, namespace)

    def _granted(self, user: User, binding: Json, namespace: str) -> Iterator[Grant]:
        subject = next((each for each in binding.get("subjects") or [] if is_meant(each, user, namespace)), None)
        if subject is None:
            return
        reference, name = binding.get("roleRef") or {}, binding["metadata"]["name"]
        kind, shown = ("RoleBinding", f"{name}/{namespace}") if namespace else ("ClusterRoleBinding", name)
        whom = f"{subject.get('namespace') or namespace}/" if subject["kind"] == "ServiceAccount" else ""
        because = (
            f'RBAC: allowed by {kind} "{shown}" of {reference.get("kind")} "{reference.get("name")}" '
            f'to {subject["kind"]} "{whom}{subject["name"]}"'
        )
        for rule in self.rules(reference, namespace):
            # A binding in a namespace gives rights in it and on nothing outside.
            if not (namespace and rule.get("nonResourceURLs")):
                yield Grant(rule, because)

    def rules(self, reference: Json, namespace: str) -> list[Json]:
        """Of the role that is referred to; none if there is no such role."""
        name = reference.get("name") or ""
        if reference.get("kind") == "Role":
            role = self._roles.get((namespace, name))
            return list((role or {}).get("rules") or [])
        return self._cluster_rules(name, _MOST_NESTED)

    def _cluster_rules(self, name: str, depth: int) -> list[Json]:
        role = self._cluster_roles.get(name) or {}
        gathered = (role.get("aggregationRule") or {}).get("clusterRoleSelectors")
        if not gathered or not depth:
            return list(role.get("rules") or [])
        wanted = [selectors.from_object(each) for each in gathered]
        found: list[Json] = []
        for other, each in sorted(self._cluster_roles.items()):
            labels = each["metadata"].get("labels") or {}
            if other != name and any(selector.matches(labels) for selector in wanted):
                found += [rule for rule in self._cluster_rules(other, depth - 1) if rule not in found]
        return found


def is_meant(subject: Json, user: User, namespace: str) -> bool:
    """`namespace`: of the binding."""
    name = subject.get("name", "")
    match subject.get("kind"):
        case "User":
            return bool(user.name == name)
        case "Group":
            return name in user.groups
        case "ServiceAccount":
            place = subject.get("namespace") or namespace
            return bool(place) and user.name == f"{ACCOUNT_PREFIX}{place}:{name}"
    return False


def covers(rule: Json, wanted: Attributes) -> bool:
    if not _has(rule.get("verbs"), wanted.verb):
        return False
    if wanted.path:
        return any(_is_path(each, wanted.path) for each in rule.get("nonResourceURLs") or [])
    names = rule.get("resourceNames")
    return (
        _has(rule.get("apiGroups"), wanted.group)
        and _has_resource(rule.get("resources"), wanted.resource)
        and (not names or bool(wanted.name and wanted.name in names))
    )


def missing(wanted: Sequence[Json], held: Sequence[Json]) -> list[Json]:
    """What of the wanted rules the held ones do not cover, in the smallest parts that can be named."""
    found: dict[tuple[str, str, str], list[str]] = {}
    for rule in wanted:
        for verb in rule.get("verbs") or []:
            for part in _parts(rule, verb):
                if not any(covers(each, part) for each in held):
                    key = (part.group, part.resource, part.name) if not part.path else ("", part.path, "")
                    verbs = found.setdefault(key, [])
                    if verb not in verbs:
                        verbs.append(verb)
    return [_rule(*key, verbs) for key, verbs in sorted(found.items())]


def _parts(rule: Json, verb: str) -> Iterator[Attributes]:
    for path in rule.get("nonResourceURLs") or []:
        yield Attributes(verb=verb, path=path)
    for group in rule.get("apiGroups") or []:
        for resource in rule.get("resources") or []:
            for name in rule.get("resourceNames") or [""]:
                yield Attributes(verb=verb, group=group, resource=resource, name=name)


def _rule(group: str, resource: str, name: str, verbs: list[str]) -> Json:
    if resource.startswith(("/", "*/")) or (resource == "*" and not group and not name):
        return {"nonResourceURLs": [resource], "verbs": verbs}
    named = {"resourceNames": [name]} if name else {}
    return {"apiGroups": [group], "resources": [resource], **named, "verbs": verbs}


def _has(known: object, wanted: str) -> bool:
    return isinstance(known, list) and ("*" in known or wanted in known)


def _has_resource(known: object, wanted: str) -> bool:
    if not isinstance(known, list):
        return False
    _, slash, subresource = wanted.partition("/")
    return "*" in known or wanted in known or (bool(slash) and f"*/{subresource}" in known)


def _is_path(known: str, wanted: str) -> bool:
    return known in ("*", wanted) or (known.endswith("*") and wanted.startswith(known[:-1]))
