"""Are roles, their bindings and webhook configurations in order? And what of them may change?"""

from __future__ import annotations

from urllib.parse import urlsplit

from octarbiter.cluster.apiserver.structural import wording
from octarbiter.cluster.apiserver.validation import names, rules
from octarbiter.cluster.apiserver.validation.rules import Json, Problems

_GROUP = "rbac.authorization.k8s.io"
_SUBJECTS = ("ServiceAccount", "User", "Group")
_OPERATIONS = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")


def role(obj: Json, old: Json | None) -> Problems:
    yield from _rules(obj, is_namespaced=True)


def cluster_role(obj: Json, old: Json | None) -> Problems:
    yield from _rules(obj, is_namespaced=False)


def _rules(obj: Json, *, is_namespaced: bool) -> Problems:
    for where, rule in rules.each(obj.get("rules"), "rules"):
        if not rule.get("verbs"):
            yield wording.required(f"{where}.verbs", "verbs must contain at least one value")
        if urls := rule.get("nonResourceURLs"):
            if is_namespaced:
                what = "namespaced rules cannot apply to non-resource URLs"
                yield wording.invalid(f"{where}.nonResourceURLs", urls, what)
            if any(rule.get(name) for name in ("apiGroups", "resources", "resourceNames")):
                what = "rules cannot apply to both regular resources and non-resource URLs"
                yield wording.invalid(f"{where}.nonResourceURLs", urls, what)
            continue
        if not rule.get("apiGroups"):
            yield wording.required(f"{where}.apiGroups", "resource rules must supply at least one api group")
        if not rule.get("resources"):
            yield wording.required(f"{where}.resources", "resource rules must supply at least one resource")


def role_binding(obj: Json, old: Json | None) -> Problems:
    yield from _binding(obj, old, ("Role", "ClusterRole"))


def cluster_role_binding(obj: Json, old: Json | None) -> Problems:
    yield from _binding(obj, old, ("ClusterRole",))


def _binding(obj: Json, old: Json | None, kinds: tuple[str, ...]) -> Problems:
    reference = rules.part(obj, "roleRef")
    yield from rules.one_of(reference.get("apiGroup"), "roleRef.apiGroup", (_GROUP,))
    yield from rules.one_of(reference.get("kind") or "", "roleRef.kind", kinds)
    yield from rules.named(reference.get("name"), "roleRef.name", names.path_segment)
    for where, subject in rules.each(obj.get("subjects"), "subjects"):
        yield from _subject(subject, where)
    if old is not None and reference != rules.part(old, "roleRef"):
        shown = {"APIGroup": reference.get("apiGroup", ""), "Kind": reference.get("kind", "")}
        shown["Name"] = reference.get("name", "")
        yield wording.invalid("roleRef", wording.in_order(shown), "cannot change roleRef")


def _subject(subject: Json, path: str) -> Problems:
    if not subject.get("name"):
        yield wording.required(f"{path}.name")
    match subject.get("kind"):
        case "ServiceAccount":
            if name := subject.get("name"):
                yield from rules.well_formed(name, f"{path}.name", names.subdomain)
            if group := subject.get("apiGroup"):
                yield wording.not_supported(f"{path}.apiGroup", group, [""])
        case "User" | "Group":
            yield from rules.one_of(subject.get("apiGroup"), f"{path}.apiGroup", (_GROUP,))
        case kind:
            yield wording.not_supported(f"{path}.kind", kind or "", list(_SUBJECTS))


def webhooks(obj: Json, old: Json | None) -> Problems:
    seen: set[str] = set()
    for where, webhook in rules.each(obj.get("webhooks"), "webhooks"):
        name = str(webhook.get("name") or "")
        yield from _webhook_name(name, f"{where}.name")
        if name in seen:
            yield wording.duplicate(f"{where}.name", name)
        seen.add(name)
        yield from _webhook(webhook, where)


def _webhook_name(name: str, path: str) -> Problems:
    if not name:
        yield wording.required(path)
        return
    wrong = list(rules.well_formed(name, path, names.subdomain))
    yield from wrong
    if not wrong and name.count(".") < 2:
        yield wording.invalid(path, name, "should be a domain with at least three segments separated by dots")


def _webhook(webhook: Json, path: str) -> Problems:
    versions = webhook.get("admissionReviewVersions") or []
    if not versions:
        yield wording.required(f"{path}.admissionReviewVersions", "must specify one of v1, v1beta1")
    elif not {"v1", "v1beta1"} & {*versions}:
        rule = "must include at least one of v1, v1beta1"
        yield wording.invalid(f"{path}.admissionReviewVersions", versions, rule)
    for at, rule_ in rules.each(webhook.get("rules"), f"{path}.rules"):
        for name in ("operations", "apiGroups", "apiVersions", "resources"):
            if not rule_.get(name):
                yield wording.required(f"{at}.{name}")
        for index, operation in enumerate(rule_.get("operations") or []):
            yield from rules.one_of(operation, f"{at}.operations[{index}]", _OPERATIONS)
    yield from rules.one_of(webhook.get("failurePolicy"), f"{path}.failurePolicy", ("Fail", "Ignore"))
    yield from rules.one_of(webhook.get("matchPolicy"), f"{path}.matchPolicy", ("Equivalent", "Exact"))
    if webhook.get("sideEffects") is None:
        yield wording.required(f"{path}.sideEffects", "must specify one of None, NoneOnDryRun")
    yield from rules.one_of(webhook.get("sideEffects"), f"{path}.sideEffects", ("None", "NoneOnDryRun"))
    seconds = webhook.get("timeoutSeconds")
    if isinstance(seconds, int) and not 1 <= seconds <= 30:
        rule = "the timeout value must be between 1 and 30 seconds"
        yield wording.invalid(f"{path}.timeoutSeconds", seconds, rule)
    for name in ("namespaceSelector", "objectSelector"):
        yield from rules.selector(webhook.get(name), f"{path}.{name}")
    yield from _client(rules.part(webhook, "clientConfig"), f"{path}.clientConfig")


def _client(client: Json, path: str) -> Problems:
    url, service = client.get("url"), client.get("service")
    if (url is None) == (service is None):
        yield wording.required(path, "exactly one of url or service is required")
    elif url is not None:
        scheme = urlsplit(url).scheme
        if scheme != "https":
            rule = "'https' is the only allowed URL scheme; desired format: https://host[/path]"
            yield wording.invalid(f"{path}.url", scheme, rule)
    elif isinstance(service, dict):
        yield from _service(service, f"{path}.service")


def _service(service: Json, path: str) -> Problems:
    for name in ("name", "namespace"):
        if not service.get(name):
            yield wording.required(f"{path}.{name}")
    port, place = service.get("port"), service.get("path")
    if isinstance(port, int):
        for wrong in names.port(port):
            yield wording.invalid(f"{path}.port", port, f"port is not valid: {wrong}")
    if place and not place.startswith("/"):
        yield wording.invalid(f"{path}.path", place, "must start with a '/'")
        yield wording.invalid(f"{path}.path", place, "segment[0] may not be empty")
