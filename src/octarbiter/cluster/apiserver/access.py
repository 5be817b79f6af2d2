"""May somebody do something? And who am I?

Reviews are questions in the form of objects: they are answered and not stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from octarbiter.api.meta import Json
from octarbiter.cluster.apiserver import objects, rbac, status
from octarbiter.cluster.apiserver.authn import AUDIENCE, AUTHENTICATED, MASTERS, Authenticator, User
from octarbiter.cluster.apiserver.registry import Call
from octarbiter.cluster.apiserver.validation.problems import Problem

GROUPS = frozenset({"authorization.k8s.io", "authentication.k8s.io"})


def answer(call: Call, review: Json, authenticator: Authenticator, policy: rbac.Policy, now: datetime) -> Json:
    resource, user = call.served.resource, call.user
    spec = review.get("spec")
    if not isinstance(spec, dict):
        spec = {}
    metadata: Json = review["metadata"]
    match resource.kind:
        case "SelfSubjectAccessReview":
            _refuse([*_problems(spec), *_decoration(metadata)])
            result: Json = _verdict(user, _wanted(spec), policy)
        case "SubjectAccessReview" | "LocalSubjectAccessReview":
            groups = tuple(spec.get("groups") or ())
            problems = _problems(spec)
            if not spec.get("user") and not groups:
                problems.append(_invalid("spec.user", '""', "at least one of user or group must be specified"))
            namespace = (spec.get("resourceAttributes") or {}).get("namespace", "")
            if resource.namespaced and spec.get("resourceAttributes") and namespace != call.namespace:
                where = "spec.resourceAttributes.namespace"
                problems.append(_invalid(where, f'"{namespace}"', "must match metadata.namespace"))
            _refuse([*problems, *([] if resource.namespaced else _decoration(metadata))])
            result = _verdict(User(spec.get("user") or "", groups), _wanted(spec), policy)
        case "SelfSubjectRulesReview":
            if not spec.get("namespace"):
                raise status.bad_request("no namespace on request")
            result = _rules(user, spec["namespace"], policy)
            review, metadata, spec = {"spec": {}}, {}, {}
        case "SelfSubjectReview":
            result = {"userInfo": _info(user)}
            metadata = {"creationTimestamp": objects.timestamp(now)}
        case "TokenReview":
            result = _token(spec, authenticator)
        case _:
            raise status.method_not_allowed()
    if resource.namespaced:
        metadata = {**metadata, "namespace": call.namespace}
    answered: Json = {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": metadata}
    if "spec" in review:
        answered["spec"] = spec
    return {**answered, "status": result}


def _problems(spec: Json) -> list[Problem]:
    asked, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if asked is None and path is None:
        rule = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        return [_invalid("spec.resourceAttributes", "null", rule)]
    if asked is not None and path is not None:
        shown = objects.encode({"Path": path.get("path", ""), "Verb": path.get("verb", "")}).decode()
        rule = "cannot be specified in combination with resourceAttributes"
        return [_invalid("spec.nonResourceAttributes", shown, rule)]
    return []


def _decoration(metadata: Json) -> list[Problem]:
    """A question has no name and no labels."""
    if metadata.keys() <= {"managedFields"}:
        return []
    return [_invalid("metadata", objects.encode(metadata).decode(), "must be empty")]


def _refuse(problems: Sequence[Problem]) -> None:
    if problems:
        raise status.invalid_review("authorization.k8s.io", problems)


def _wanted(spec: Json) -> rbac.Attributes:
    asked, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if asked is None:
        assert path is not None
        return rbac.Attributes(verb=path.get("verb", ""), path=path.get("path") or "/")
    resource, subresource = asked.get("resource", ""), asked.get("subresource", "")
    return rbac.Attributes(
        verb=asked.get("verb", ""),
        namespace=asked.get("namespace", ""),
        group=asked.get("group", ""),
        resource=f"{resource}/{subresource}" if subresource else resource,
        name=asked.get("name", ""),
    )


def _invalid(field: str, value: str, rule: str) -> Problem:
    return Problem("FieldValueInvalid", field, f"Invalid value: {value}: {rule}")


def _verdict(user: User, wanted: rbac.Attributes, policy: rbac.Policy) -> Json:
    reason = policy.reason(user, wanted)
    return {"allowed": reason is not None, **({"reason": reason} if reason else {})}


def _rules(user: User, namespace: str, policy: rbac.Policy) -> Json:
    rules = [grant.rule for grant in policy.grants(user, namespace)]
    if MASTERS in user.groups:
        rules = [
            {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]},
            {"verbs": ["*"], "nonResourceURLs": ["*"]},
            *rules,
        ]
    different = [rule for number, rule in enumerate(rules) if rule not in rules[:number]]
    return {
        "resourceRules": [rule for rule in different if rule.get("resources")],
        "nonResourceRules": [rule for rule in different if rule.get("nonResourceURLs")],
        "incomplete": False,
    }


def _token(spec: Json, authenticator: Authenticator) -> Json:
    token = spec.get("token")
    if not token:
        raise status.bad_request("token is required for TokenReview in authentication")
    audiences = list(spec.get("audiences") or [AUDIENCE])
    user = authenticator.by_token(str(token), audiences)
    if user is None:
        return {"user": {}, "error": "invalid bearer token"}
    return {"authenticated": True, "user": _info(user), "audiences": audiences}


def _info(user: User) -> Json:
    info: Json = {"username": user.name, "groups": list(dict.fromkeys([*user.groups, AUTHENTICATED]))}
    if user.uid:
        info["uid"] = user.uid
    if user.extra:
        info["extra"] = {name: list(values) for name, values in user.extra.items()}
    return info
