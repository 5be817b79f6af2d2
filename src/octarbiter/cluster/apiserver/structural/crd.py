"""Is a CustomResourceDefinition one?

Names, versions, columns, subresources; what it says about its objects is asked in `crd_schema`.
"""

from __future__ import annotations

import json
import re
from typing import Any

from octarbiter.api.meta import Json
from octarbiter.cluster.apiserver.structural import crd_parts, crd_schema, wording
from octarbiter.cluster.apiserver.structural.embedded import dns_label_problems
from octarbiter.cluster.apiserver.validation.problems import Problem

_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_SUBDOMAIN_WORDS = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_PROTECTED = re.compile(r"(.*\.)?(k8s\.io|kubernetes\.io)")
_APPROVAL = "api-approved.kubernetes.io"


def check_crd(crd: Json, old: Json | None = None) -> list[Problem]:
    """Of a definition with its defaults (listKind, singular, conversion); `old` in an update."""
    spec = _mapping(crd.get("spec"))
    names = _mapping(spec.get("names"))
    problems = _name(crd, spec, names) if old is None else []
    problems += _group(spec) + _scope(spec) + _versions(spec) + _names(names) + _shared(spec) + _conversion(spec)
    problems += _stored_versions(crd, spec) if old is None else _unchanged(crd, old)
    problems += _approval(crd, spec)
    return problems


def _mapping(value: Any) -> Json:
    return value if isinstance(value, dict) else {}


def _objects(value: Any) -> list[Json]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _text(value: Json, name: str) -> str:
    found = value.get(name)
    return found if isinstance(found, str) else ""


def _name(crd: Json, spec: Json, names: Json) -> list[Problem]:
    name = _text(_mapping(crd.get("metadata")), "name")
    problems: list[Problem] = []
    if not name:
        return problems
    if not _is_subdomain(name):
        problems.append(wording.invalid("metadata.name", name, _SUBDOMAIN_WORDS))
    if name != f"{_text(names, 'plural')}.{_text(spec, 'group')}":
        problems.append(wording.invalid("metadata.name", name, 'must be spec.names.plural+"."+spec.group'))
    return problems


def _is_subdomain(text: str) -> bool:
    return len(text) <= 253 and _SUBDOMAIN.fullmatch(text) is not None


def _group(spec: Json) -> list[Problem]:
    group = _text(spec, "group")
    if not group:
        return [wording.required("spec.group")]
    if not _is_subdomain(group):
        return [wording.invalid("spec.group", group, _SUBDOMAIN_WORDS)]
    if "." not in group:
        return [wording.invalid("spec.group", group, "should be a domain with at least one dot")]
    return []


def _scope(spec: Json) -> list[Problem]:
    scope = _text(spec, "scope")
    if not scope:
        return [wording.required("spec.scope")]
    known = ["Cluster", "Namespaced"]
    return [] if scope in known else [wording.not_supported("spec.scope", scope, known)]


_PARTS = ("schema", "subresources", "additionalPrinterColumns", "selectableFields")


def _is_shared(part: str, versions: list[Json]) -> bool:
    """The server keeps what all versions say alike in one place, and problems with it are problems there."""
    return bool(versions) and all(version.get(part) and version[part] == versions[0][part] for version in versions)


def _versions(spec: Json) -> list[Problem]:
    versions = _objects(spec.get("versions"))
    problems = []
    for index, version in enumerate(versions):
        if not isinstance(_mapping(version.get("schema")).get("openAPIV3Schema"), dict):
            problems.append(wording.required(f"spec.versions[{index}].schema.openAPIV3Schema"))
    own = [part for part in _PARTS if not _is_shared(part, versions)]
    for index, version in enumerate(versions):
        path = f"spec.versions[{index}]"
        if words := dns_label_problems(_text(version, "name")):
            problems.append(wording.invalid(f"{path}.name", _text(version, "name"), ",".join(words)))
        problems += _deprecation(version, path)
        problems += _parts(version, own, {part: f"{path}.{part}" for part in _PARTS})
    if len({_text(version, "name") for version in versions}) < len(versions):
        problems.append(wording.invalid("spec.versions", _as_kept(versions), "must contain unique version names"))
    if sum(version.get("storage") is True for version in versions) != 1:
        detail = "must have exactly one version marked as storage version"
        shown = _as_kept(versions) if spec.get("versions") is not None else None
        problems.append(wording.invalid("spec.versions", shown, detail))
    first = _text(versions[0], "name") if versions else ""
    if first and (words := dns_label_problems(first)):
        problems.append(wording.invalid("spec.version", first, ",".join(words)))
    return problems


def _as_kept(versions: list[Json]) -> wording.Verbatim:
    """Versions as the server has them in mind, without what they describe."""
    kept = [
        {
            "Name": _text(version, "name"),
            "Served": version.get("served") is True,
            "Storage": version.get("storage") is True,
            "Deprecated": version.get("deprecated") is True,
            "DeprecationWarning": version.get("deprecationWarning"),
            "Schema": None,
            "Subresources": None,
            "AdditionalPrinterColumns": None,
            "SelectableFields": None,
        }
        for version in versions
    ]
    return wording.Verbatim(json.dumps(kept, separators=(",", ":")))


def _shared(spec: Json) -> list[Problem]:
    versions = _objects(spec.get("versions"))
    shared = [part for part in _PARTS if _is_shared(part, versions)]
    paths = {part: f"spec.{'validation' if part == 'schema' else part}" for part in _PARTS}
    return _parts(versions[0], shared, paths) if versions else []


def _parts(version: Json, parts: list[str], paths: dict[str, str]) -> list[Problem]:
    problems = []
    schema = _mapping(version.get("schema")).get("openAPIV3Schema")
    subresources = _mapping(version.get("subresources"))
    if "schema" in parts and isinstance(schema, dict):
        problems += crd_schema.check(schema, f"{paths['schema']}.openAPIV3Schema", has_status="status" in subresources)
    if "subresources" in parts:
        problems += crd_parts.scale(subresources, paths["subresources"])
    if "additionalPrinterColumns" in parts:
        for index, column in enumerate(_objects(version.get("additionalPrinterColumns"))):
            problems += crd_parts.column(column, f"{paths['additionalPrinterColumns']}[{index}]")
    if "selectableFields" in parts and isinstance(schema, dict):
        problems += crd_parts.selectable(_objects(version.get("selectableFields")), schema, paths["selectableFields"])
    return problems


def _deprecation(version: Json, path: str) -> list[Problem]:
    warning = version.get("deprecationWarning")
    if not isinstance(warning, str):
        return []
    words = []
    if not version.get("deprecated"):
        words.append("can only be set for deprecated versions")
    elif len(warning) > 256:
        words.append("must be <= 256 characters long")
    elif not warning:
        words.append("must not be an empty string")
    return [wording.invalid(f"{path}.deprecationWarning", warning, each) for each in words]


def _names(names: Json) -> list[Problem]:
    path = "spec.names"
    kind, list_kind = _text(names, "kind"), _text(names, "listKind")
    required = ("plural", "singular", "kind", "listKind")
    problems = [wording.required(f"{path}.{name}") for name in required if not _text(names, name)]
    for name in required:
        given = _text(names, name)
        mixed = name in ("kind", "listKind")
        if given and (words := dns_label_problems(given.lower() if mixed else given)):
            prefix = "may have mixed case, but should otherwise match: " if mixed else ""
            problems.append(wording.invalid(f"{path}.{name}", given, prefix + ",".join(words)))
    for name in ("shortNames", "categories"):
        if name == "categories" and kind and kind == list_kind:
            problems.append(wording.invalid(f"{path}.listKind", list_kind, "kind and listKind may not be the same"))
        given_names: Any = names.get(name)
        for index, each in enumerate(given_names if isinstance(given_names, list) else []):
            if words := dns_label_problems(str(each)):
                problems.append(wording.invalid(f"{path}.{name}[{index}]", each, ",".join(words)))
    return problems


def _conversion(spec: Json) -> list[Problem]:
    conversion = spec.get("conversion")
    if not isinstance(conversion, dict):
        return []
    path = "spec.conversion"
    strategy = _text(conversion, "strategy")
    if not strategy:
        return [wording.required(f"{path}.strategy")]
    known = ["None", "Webhook"]
    problems = [] if strategy in known else [wording.not_supported(f"{path}.strategy", strategy, known)]
    webhook = _mapping(conversion.get("webhook"))
    client = webhook.get("clientConfig")
    if strategy != "Webhook":
        if client is not None:
            detail = "should not be set when strategy is not set to Webhook"
            problems.append(wording.forbidden(f"{path}.webhookClientConfig", detail))
        return problems
    if not isinstance(client, dict):
        problems.append(wording.required(f"{path}.webhookClientConfig", "required when strategy is set to Webhook"))
    elif ("url" in client) == ("service" in client):
        problems.append(wording.required(f"{path}.webhookClientConfig", "exactly one of url or service is required"))
    versions = webhook.get("conversionReviewVersions")
    if not isinstance(versions, list) or not versions:
        problems.append(wording.required(f"{path}.conversionReviewVersions"))
    elif not {"v1", "v1beta1"} & {str(version) for version in versions}:
        detail = "must include at least one of v1, v1beta1"
        problems.append(wording.invalid(f"{path}.conversionReviewVersions", versions, detail))
    return problems


def _unchanged(crd: Json, old: Json) -> list[Problem]:
    spec, before = _mapping(crd.get("spec")), _mapping(old.get("spec"))
    names, names_before = _mapping(spec.get("names")), _mapping(before.get("names"))
    conditions = _objects(_mapping(old.get("status")).get("conditions"))
    established = any(each.get("type") == "Established" and each.get("status") == "True" for each in conditions)
    asked = [("group", spec, before, "spec.group"), ("plural", names, names_before, "spec.names.plural")]
    if established:
        asked = [("scope", spec, before, "spec.scope"), ("kind", names, names_before, "spec.names.kind"), *asked]
    problems = [
        wording.invalid(path, now.get(name), "field is immutable")
        for name, now, was, path in asked
        if now.get(name) != was.get(name)
    ]
    return problems + _stored_versions(crd, spec)


def _stored_versions(crd: Json, spec: Json) -> list[Problem]:
    """A version that objects may still be stored in must stay."""
    versions = _objects(spec.get("versions"))
    storage = [_text(version, "name") for version in versions if version.get("storage") is True]
    stored: Any = _mapping(crd.get("status")).get("storedVersions") or storage[:1]
    if not stored or not isinstance(stored, list):
        return [wording.invalid("status.storedVersions", None, "must have at least one stored version")]
    known = {_text(version, "name") for version in versions}
    problems = [
        wording.invalid("status.storedVersions", stored, f"must have the storage version {name}")
        for name in storage
        if name not in stored
    ]
    for index, version in enumerate(stored if isinstance(stored, list) else []):
        if version not in known:
            detail = (
                f"missing from spec.versions; {version} was previously a storage version, and must remain in "
                f"spec.versions until a storage migration ensures no data remains persisted in {version} and removes "
                f"{version} from status.storedVersions"
            )
            problems.append(wording.invalid(f"status.storedVersions[{index}]", version, detail))
    return problems


def _approval(crd: Json, spec: Json) -> list[Problem]:
    """Groups of Kubernetes itself are not for everybody."""
    if not _PROTECTED.fullmatch(_text(spec, "group")):
        return []
    annotations = _mapping(_mapping(crd.get("metadata")).get("annotations"))
    path = f"metadata.annotations[{_APPROVAL}]"
    given = _text(annotations, _APPROVAL)
    see = "see https://github.com/kubernetes/enhancements/pull/1111"
    if not given:
        return [
            wording.required(path, f"protected groups must have approval annotation {wording.quoted(_APPROVAL)}, {see}")
        ]
    if given.startswith("unapproved") or re.match(r"https?://\S+", given):
        return []
    detail = (
        f"protected groups must have approval annotation {wording.quoted(_APPROVAL)} "
        f'with either a URL or a reason starting with "unapproved", {see}'
    )
    return [wording.invalid(path, given, detail)]
