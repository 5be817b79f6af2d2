"""May somebody do something? And who am I?

Reviews are questions in the form of objects: they are answered and not stored.
"""

from __future__ import annotations

from octarbiter.api.meta import Json
from octarbiter.cluster.apiserver import rbac, status
from octarbiter.cluster.apiserver.authn import AUDIENCE, AUTHENTICATED, MASTERS, Authenticator, User
from octarbiter.cluster.apiserver.registry import Call
from octarbiter.cluster.apiserver.validation.problems import Problem

GROUPS = frozenset({"authorization.k8s.io", "authentication.k8s.io"})


def answer(call: Call, review: Json, authenticator: Authenticator, policy: rbac.Policy) -> Json:
    resource, user = call.served.resource, call.user
    spec = review.get("spec")
    if not isinstance(spec, dict):
        spec = {}
    match resource.kind:
        case "SelfSubjectAccessReview":
            result: Json = _verdict(user, _wanted(spec), policy)
        case "SubjectAccessReview" | "LocalSubjectAccessReview":
            wanted = _wanted(spec)
            if resource.namespaced and wanted.namespace != call.namespace:
                why = f"must match metadata.namespace: {call.namespace}"
                raise _invalid("spec.resourceAttributes.namespace", f'"{wanted.namespace}"', why)
            groups = tuple(spec.get("groups") or ())
            if not spec.get("user") and not groups:
                raise _invalid("spec.user", '""', "at least one of user or group must be specified")
            result = _verdict(User(spec.get("user") or "", groups), wanted, policy)
        case "SelfSubjectRulesReview":
            if not spec.get("namespace"):
                raise status.bad_request("no namespace on request")
            result = _rules(user, spec["namespace"], policy)
        case "SelfSubjectReview":
            result = {"userInfo": _info(user)}
        case "TokenReview":
            result = _token(spec, authenticator)
        case _:
            raise status.method_not_allowed()
    metadata = review.get("metadata") if isinstance(review.get("metadata"), dict) else {}
    answered: Json = {
        "kind": resource.kind,
        "apiVersion": resource.api_version,
        "metadata": metadata or {},
    }
    if "spec" in review:
        answered["spec"] = spec
    return {**answered, "status": result}


def _wanted(spec: Json) -> rbac.Attributes:
    asked, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if (asked is None) == (path is None):
        rule = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        raise _invalid("spec.resourceAttributes", "null", rule)
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


def _invalid(field: str, value: str, rule: str) -> status.Failure:
    problem = Problem("FieldValueInvalid", field, f"Invalid value: {value}: {rule}")
    return status.invalid_review("authorization.k8s.io", problem)


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
