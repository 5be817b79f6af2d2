"""Nodes, namespaces, events and the small kinds around them."""

from __future__ import annotations

from datetime import datetime

from octarbiter.api.meta import Json
from octarbiter.cluster.apiserver.tables import ages
from octarbiter.cluster.apiserver.tables.ages import UNKNOWN
from octarbiter.cluster.apiserver.tables.layout import Cells, Layout, columns
from octarbiter.cluster.apiserver.tables.reading import (
    NONE,
    amount,
    condition,
    count,
    dig,
    flag,
    many,
    mapping,
    text,
)

_ROLE_PREFIX = "node-role.kubernetes.io/"


def name_of(obj: Json) -> str:
    return text(obj, "metadata", "name")


def age_of(obj: Json, now: datetime) -> str:
    return ages.since(dig(obj, "metadata", "creationTimestamp"), now)


def name_and_age(obj: Json, now: datetime) -> Cells:
    return [name_of(obj), age_of(obj, now)]


def _node(node: Json, now: datetime) -> Cells:
    info = mapping(node, "status", "nodeInfo")
    return [
        name_of(node),
        _node_status(node),
        ",".join(_node_roles(node)) or NONE,
        age_of(node, now),
        text(info, "kubeletVersion"),
        _node_address(node, "InternalIP"),
        _node_address(node, "ExternalIP"),
        text(info, "osImage") or UNKNOWN,
        text(info, "kernelVersion") or UNKNOWN,
        text(info, "containerRuntimeVersion") or UNKNOWN,
    ]


def _node_status(node: Json) -> str:
    words = {None: "Unknown", "True": "Ready"}
    status = words.get((condition(node, "Ready") or {}).get("status"), "NotReady")
    return f"{status},SchedulingDisabled" if flag(node, "spec", "unschedulable") else status


def _node_roles(node: Json) -> list[str]:
    roles = set()
    for label, value in mapping(node, "metadata", "labels").items():
        if label.startswith(_ROLE_PREFIX):
            roles.add(label.removeprefix(_ROLE_PREFIX))
        elif label == "kubernetes.io/role":
            roles.add(str(value))
    return sorted(roles - {""})


def _node_address(node: Json, type: str) -> str:
    return next((text(each, "address") for each in many(node, "status", "addresses") if each.get("type") == type), NONE)


def _namespace(namespace: Json, now: datetime) -> Cells:
    return [name_of(namespace), text(namespace, "status", "phase"), age_of(namespace, now)]


def _event(event: Json, now: datetime) -> Cells:
    """Both APIs of events: one names `involvedObject` and `message` what the other calls `regarding` and `note`."""
    about = mapping(event, "involvedObject") or mapping(event, "regarding")
    first = _seen(event, "firstTimestamp", "deprecatedFirstTimestamp", now)
    if first == UNKNOWN:
        first = ages.since(event.get("eventTime"), now)
    last = _seen(event, "lastTimestamp", "deprecatedLastTimestamp", now)
    if last == UNKNOWN:
        last = first
    times = count(event, "count") or count(event, "deprecatedCount") or 1
    if isinstance(event.get("series"), dict):
        last = ages.since(dig(event, "series", "lastObservedTime"), now)
        times = count(event, "series", "count")
    kind, name = text(about, "kind").lower(), text(about, "name")
    return [
        last,
        text(event, "type"),
        text(event, "reason"),
        f"{kind}/{name}" if name else kind,
        text(about, "fieldPath"),
        _event_source(event),
        (text(event, "message") or text(event, "note")).strip(),
        first,
        times,
        name_of(event),
    ]


def _seen(event: Json, core_name: str, other_name: str, now: datetime) -> str:
    return ages.since(event.get(core_name) or event.get(other_name), now)


def _event_source(event: Json) -> str:
    source = mapping(event, "source") or mapping(event, "deprecatedSource")
    component = text(source, "component") or text(event, "reportingComponent") or text(event, "reportingController")
    instance = text(source, "host") or text(event, "reportingInstance")
    return f"{component}, {instance}" if instance else component


def _config_map(config_map: Json, now: datetime) -> Cells:
    entries = len(mapping(config_map, "data")) + len(mapping(config_map, "binaryData"))
    return [name_of(config_map), entries, age_of(config_map, now)]


def _secret(secret: Json, now: datetime) -> Cells:
    return [name_of(secret), text(secret, "type"), len(mapping(secret, "data")), age_of(secret, now)]


def _resource_quota(quota: Json, now: datetime) -> Cells:
    hard, used = mapping(quota, "status", "hard"), mapping(quota, "status", "used")
    shown = {name: f"{name}: {amount(used.get(name))}/{amount(hard[name])}" for name in sorted(hard)}
    requests = [each for name, each in shown.items() if not name.startswith("limits.")]
    limits = [each for name, each in shown.items() if name.startswith("limits.")]
    return [name_of(quota), ", ".join(requests), ", ".join(limits), age_of(quota, now)]


def _lease(lease: Json, now: datetime) -> Cells:
    return [name_of(lease), text(lease, "spec", "holderIdentity"), age_of(lease, now)]


def _lease_candidate(candidate: Json, now: datetime) -> Cells:
    spec = mapping(candidate, "spec")
    versions = [text(spec, "leaseName"), text(spec, "binaryVersion"), text(spec, "emulationVersion")]
    return [name_of(candidate), *versions, age_of(candidate, now)]


def _priority_class(priority: Json, now: datetime) -> Cells:
    return [
        name_of(priority),
        count(priority, "value"),
        flag(priority, "globalDefault"),
        age_of(priority, now),
        text(priority, "preemptionPolicy"),
    ]


def _runtime_class(runtime: Json, now: datetime) -> Cells:
    return [name_of(runtime), text(runtime, "handler"), age_of(runtime, now)]


def _component(component: Json, now: datetime) -> Cells:
    healthy = next((each for each in many(component, "conditions") if each.get("type") == "Healthy"), None)
    if healthy is None:
        return [name_of(component), "Unknown", "", ""]
    status = "Healthy" if healthy.get("status") == "True" else "Unhealthy"
    return [name_of(component), status, text(healthy, "message"), text(healthy, "error")]


def _api_service(service: Json, now: datetime) -> Cells:
    backend = mapping(service, "spec", "service")
    available = condition(service, "Available") or {}
    status = text(available, "status") or "Unknown"
    if status != "True" and text(available, "reason"):
        status = f"{status} ({text(available, 'reason')})"
    where = f"{text(backend, 'namespace')}/{text(backend, 'name')}" if backend else "Local"
    return [name_of(service), where, status, age_of(service, now)]


_EVENTS = Layout(
    columns(
        "Last Seen",
        "Type",
        "Reason",
        "Object",
        "Subobject*",
        "Source*",
        "Message",
        "First Seen*",
        "Count*",
        "Name*",
    ),
    _event,
)

LAYOUTS: dict[tuple[str, str], Layout] = {
    ("", "Node"): Layout(
        columns(
            "Name",
            "Status",
            "Roles",
            "Age",
            "Version",
            "Internal-IP*",
            "External-IP*",
            "OS-Image*",
            "Kernel-Version*",
            "Container-Runtime*",
        ),
        _node,
    ),
    ("", "Namespace"): Layout(columns("Name", "Status", "Age"), _namespace),
    ("", "Event"): _EVENTS,
    ("events.k8s.io", "Event"): _EVENTS,
    ("", "ConfigMap"): Layout(columns("Name", "Data", "Age"), _config_map),
    ("", "Secret"): Layout(columns("Name", "Type", "Data", "Age"), _secret),
    ("", "ServiceAccount"): Layout(columns("Name", "Age"), name_and_age),
    ("", "ResourceQuota"): Layout(columns("Name", "Request", "Limit", "Age"), _resource_quota),
    ("", "ComponentStatus"): Layout(columns("Name", "Status", "Message", "Error"), _component),
    ("coordination.k8s.io", "Lease"): Layout(columns("Name", "Holder", "Age"), _lease),
    ("coordination.k8s.io", "LeaseCandidate"): Layout(
        columns("Name", "LeaseName", "BinaryVersion", "EmulationVersion", "Age"), _lease_candidate
    ),
    ("scheduling.k8s.io", "PriorityClass"): Layout(
        columns("Name", "Value:integer", "Global-Default:boolean", "Age", "PreemptionPolicy"), _priority_class
    ),
    ("scheduling.k8s.io", "Workload"): Layout(columns("Name", "Age"), name_and_age),
    ("node.k8s.io", "RuntimeClass"): Layout(columns("Name", "Handler", "Age"), _runtime_class),
    ("apiregistration.k8s.io", "APIService"): Layout(columns("Name", "Service", "Available", "Age"), _api_service),
}
