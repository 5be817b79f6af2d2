"""What absent means in everything that is neither a pod nor makes pods."""

from __future__ import annotations

import base64

from octarbiter.cluster.apiserver.defaults.filling import Json, absent, empty, items, part

_RBAC = "rbac.authorization.k8s.io"


def secret(obj: Json) -> None:
    empty(obj, "type", "Opaque")
    if plain := obj.pop("stringData", None):
        data = part(obj, "data")
        for name, text in plain.items():
            data[name] = base64.b64encode(text.encode()).decode()


def service(obj: Json) -> None:
    spec = part(obj, "spec")
    empty(spec, "sessionAffinity", "None")
    if spec["sessionAffinity"] == "None":
        spec.pop("sessionAffinityConfig", None)
    elif spec["sessionAffinity"] == "ClientIP":
        absent(part(part(spec, "sessionAffinityConfig"), "clientIP"), "timeoutSeconds", 10800)
    empty(spec, "type", "ClusterIP")
    for port in items(spec, "ports"):
        empty(port, "protocol", "TCP")
        empty(port, "targetPort", port.get("port", 0))
    is_published = spec["type"] in ("NodePort", "LoadBalancer")
    if is_published or (spec["type"] == "ClusterIP" and spec.get("externalIPs")):
        empty(spec, "externalTrafficPolicy", "Cluster")
    if is_published or spec["type"] == "ClusterIP":
        absent(spec, "internalTrafficPolicy", "Cluster")
    if spec["type"] == "LoadBalancer":
        absent(spec, "allocateLoadBalancerNodePorts", True)
        for ingress in items(obj, "status", "loadBalancer", "ingress"):
            if ingress.get("ip"):
                absent(ingress, "ipMode", "VIP")


def endpoints(obj: Json) -> None:
    for subset in items(obj, "subsets"):
        for port in items(subset, "ports"):
            empty(port, "protocol", "TCP")


def endpoint_slice(obj: Json) -> None:
    for port in items(obj, "ports"):
        absent(port, "name", "")
        absent(port, "protocol", "TCP")


def namespace(obj: Json) -> None:
    metadata = part(obj, "metadata")
    if name := metadata.get("name"):
        part(metadata, "labels")["kubernetes.io/metadata.name"] = name
    empty(part(obj, "status"), "phase", "Active")


def node(obj: Json) -> None:
    status, spec = part(obj, "status"), part(obj, "spec")
    if status.get("capacity"):
        absent(status, "allocatable", dict(status["capacity"]))
    # One range of addresses has two names; the older one counts.
    ranges = spec.get("podCIDRs") or []
    if (first := spec.get("podCIDR")) and ranges[:1] != [first]:
        spec["podCIDRs"] = [first]
    elif ranges:
        spec["podCIDR"] = ranges[0]


def volume(obj: Json) -> None:
    spec = part(obj, "spec")
    empty(part(obj, "status"), "phase", "Pending")
    empty(spec, "persistentVolumeReclaimPolicy", "Retain")
    absent(spec, "volumeMode", "Filesystem")
    if isinstance(host_path := spec.get("hostPath"), dict):
        absent(host_path, "type", "")


def volume_claim(obj: Json) -> None:
    empty(part(obj, "status"), "phase", "Pending")
    absent(part(obj, "spec"), "volumeMode", "Filesystem")


def limit_range(obj: Json) -> None:
    for limit in items(obj, "spec", "limits"):
        if limit.get("type") != "Container":
            continue
        usual, requested = dict(limit.get("default") or {}), dict(limit.get("defaultRequest") or {})
        usual = (limit.get("max") or {}) | usual
        requested = (limit.get("min") or {}) | usual | requested
        limit |= {key: value for key, value in (("default", usual), ("defaultRequest", requested)) if value}


def priority_class(obj: Json) -> None:
    absent(obj, "preemptionPolicy", "PreemptLowerPriority")


def role_binding(obj: Json) -> None:
    empty(part(obj, "roleRef"), "apiGroup", _RBAC)
    for subject in items(obj, "subjects"):
        if subject.get("kind") in ("User", "Group"):
            empty(subject, "apiGroup", _RBAC)


def webhooks(obj: Json) -> None:
    for webhook in items(obj, "webhooks"):
        absent(webhook, "failurePolicy", "Fail")
        absent(webhook, "matchPolicy", "Equivalent")
        absent(webhook, "namespaceSelector", {})
        absent(webhook, "objectSelector", {})
        absent(webhook, "timeoutSeconds", 10)
        if obj.get("kind") == "MutatingWebhookConfiguration":
            absent(webhook, "reinvocationPolicy", "Never")
        for rule in items(webhook, "rules"):
            absent(rule, "scope", "*")
        _service_port(webhook.get("clientConfig"))


def admission_policy(obj: Json) -> None:
    spec = part(obj, "spec")
    absent(spec, "failurePolicy", "Fail")
    _match_resources(spec.get("matchConstraints"))


def admission_policy_binding(obj: Json) -> None:
    _match_resources(part(obj, "spec").get("matchResources"))


def _match_resources(found: object) -> None:
    if isinstance(found, dict):
        absent(found, "matchPolicy", "Equivalent")
        absent(found, "namespaceSelector", {})
        absent(found, "objectSelector", {})
        for name in ("resourceRules", "excludeResourceRules"):
            for rule in items(found, name):
                absent(rule, "scope", "*")


def _service_port(client_config: object) -> None:
    if isinstance(client_config, dict) and isinstance(found := client_config.get("service"), dict):
        absent(found, "port", 443)


def custom_resource_definition(obj: Json) -> None:
    spec = part(obj, "spec")
    names = part(spec, "names")
    kind = str(names.get("kind") or "")
    empty(names, "singular", kind.lower())
    if kind:
        empty(names, "listKind", f"{kind}List")
    absent(spec, "conversion", {"strategy": "None"})
    _service_port((spec["conversion"].get("webhook") or {}).get("clientConfig"))
    stored = [version.get("name") for version in items(spec, "versions") if version.get("storage")]
    empty(part(obj, "status"), "storedVersions", stored[:1] or None)


def api_service(obj: Json) -> None:
    _service_port(obj.get("spec"))


def network_policy(obj: Json) -> None:
    spec = part(obj, "spec")
    empty(spec, "policyTypes", ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"])
    for rule in (*items(spec, "ingress"), *items(spec, "egress")):
        for port in items(rule, "ports"):
            absent(port, "protocol", "TCP")


def ingress_class(obj: Json) -> None:
    if isinstance(parameters := part(obj, "spec").get("parameters"), dict):
        absent(parameters, "scope", "Cluster")


def storage_class(obj: Json) -> None:
    absent(obj, "reclaimPolicy", "Delete")
    absent(obj, "volumeBindingMode", "Immediate")


def csi_driver(obj: Json) -> None:
    spec = part(obj, "spec")
    absent(spec, "attachRequired", True)
    absent(spec, "podInfoOnMount", False)
    absent(spec, "storageCapacity", False)
    absent(spec, "fsGroupPolicy", "ReadWriteOnceWithFSType")
    empty(spec, "volumeLifecycleModes", ["Persistent"])
    absent(spec, "requiresRepublish", False)
    absent(spec, "seLinuxMount", False)


def device_requests(obj: Json) -> None:
    """Of a ResourceClaim."""
    _device_requests(part(obj, "spec"))


def device_requests_of_template(obj: Json) -> None:
    _device_requests(part(part(obj, "spec"), "spec"))


def _device_requests(spec: Json) -> None:
    for request in items(spec, "devices", "requests"):
        exact = request.get("exactly")
        for wanted in ([exact] if isinstance(exact, dict) else []) + items(request, "firstAvailable"):
            empty(wanted, "allocationMode", "ExactCount")
            if wanted["allocationMode"] == "ExactCount":
                empty(wanted, "count", 1)


def token_request(obj: Json) -> None:
    absent(part(obj, "spec"), "expirationSeconds", 3600)
