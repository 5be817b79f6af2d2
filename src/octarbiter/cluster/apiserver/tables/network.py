"""Services, endpoints, ingresses."""

from __future__ import annotations

from datetime import datetime

from octarbiter.api.meta import Json
from octarbiter.cluster.apiserver.tables.cluster import age_of, name_of
from octarbiter.cluster.apiserver.tables.layout import Cells, Layout, columns
from octarbiter.cluster.apiserver.tables.reading import (
    NONE,
    UNSET,
    count,
    dig,
    labels,
    many,
    mapping,
    selector,
    shortened,
    text,
    words,
)


def _service(service: Json, now: datetime) -> Cells:
    spec = mapping(service, "spec")
    return [
        name_of(service),
        text(spec, "type"),
        next(iter(words(spec, "clusterIPs")), NONE),
        _external(service),
        ",".join(_port(port) for port in many(spec, "ports")) or NONE,
        age_of(service, now),
        labels(mapping(spec, "selector")),
    ]


def _external(service: Json) -> str:
    type = text(service, "spec", "type")
    own = words(service, "spec", "externalIPs")
    if type in ("ClusterIP", "NodePort"):
        return ",".join(own) or NONE
    if type == "LoadBalancer":
        return ",".join([*_balancers(service), *own]) or "<pending>"
    return text(service, "spec", "externalName") if type == "ExternalName" else "<unknown>"


def _balancers(obj: Json) -> list[str]:
    found = many(obj, "status", "loadBalancer", "ingress")
    return sorted({text(each, "ip") or text(each, "hostname") for each in found} - {""})


def _port(port: Json) -> str:
    node_port = count(port, "nodePort")
    number = f"{count(port, 'port')}:{node_port}" if node_port else str(count(port, "port"))
    return f"{number}/{text(port, 'protocol')}"


def _endpoints(endpoints: Json, now: datetime) -> Cells:
    found = []
    for subset in many(endpoints, "subsets"):
        addresses = [text(each, "ip") for each in many(subset, "addresses")]
        ports = [count(each, "port") for each in many(subset, "ports")]
        found += [_host_port(each, port) for port in ports for each in addresses] if ports else addresses
    shown = shortened(found, len(found)) if many(endpoints, "subsets") else NONE
    return [name_of(endpoints), shown, age_of(endpoints, now)]


def _host_port(address: str, port: int) -> str:
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def _endpoint_slice(found: Json, now: datetime) -> Cells:
    ports = [str(port.get("port") or text(port, "name") or "*") for port in many(found, "ports")]
    addresses = [address for each in many(found, "endpoints") for address in words(each, "addresses")]
    return [
        name_of(found),
        text(found, "addressType"),
        shortened(ports, len(ports)) or UNSET,
        shortened(addresses, len(addresses)) or UNSET,
        age_of(found, now),
    ]


def _ingress(ingress: Json, now: datetime) -> Cells:
    return [
        name_of(ingress),
        text(ingress, "spec", "ingressClassName") or NONE,
        _hosts(ingress),
        ",".join(_balancers(ingress)),
        "80, 443" if many(ingress, "spec", "tls") else "80",
        age_of(ingress, now),
    ]


def _hosts(ingress: Json) -> str:
    rules = many(ingress, "spec", "rules")
    shown: list[str] = []
    for index, rule in enumerate(rules):
        if len(shown) == 3:
            return f"{','.join(shown)} + {len(rules) - 3} more..." if index < len(rules) else ",".join(shown)
        shown += [text(rule, "host")] if text(rule, "host") else []
    return ",".join(shown) or "*"


def _ingress_class(found: Json, now: datetime) -> Cells:
    parameters = mapping(found, "spec", "parameters")
    shown = NONE
    if parameters:
        group = text(parameters, "apiGroup")
        kind = f"{text(parameters, 'kind')}.{group}" if group else text(parameters, "kind")
        shown = f"{kind}/{text(parameters, 'name')}"
    return [name_of(found), text(found, "spec", "controller"), shown, age_of(found, now)]


def _network_policy(policy: Json, now: datetime) -> Cells:
    return [name_of(policy), selector(dig(policy, "spec", "podSelector")) or NONE, age_of(policy, now)]


def _service_cidr(found: Json, now: datetime) -> Cells:
    return [name_of(found), ",".join(words(found, "spec", "cidrs")), age_of(found, now)]


def _ip_address(found: Json, now: datetime) -> Cells:
    parent = mapping(found, "spec", "parentRef")
    shown = NONE
    if parent:
        resource = ".".join(part for part in (text(parent, "resource"), text(parent, "group")) if part)
        where = [resource.lower(), text(parent, "namespace"), text(parent, "name")]
        shown = "/".join(part for part in where if part)
    # One cell more than there are columns; the real server does so, too.
    return [name_of(found), shown, age_of(found, now)]


LAYOUTS: dict[tuple[str, str], Layout] = {
    ("", "Service"): Layout(
        columns("Name", "Type", "Cluster-IP", "External-IP", "Port(s)", "Age", "Selector*"), _service
    ),
    ("", "Endpoints"): Layout(columns("Name", "Endpoints", "Age"), _endpoints),
    ("discovery.k8s.io", "EndpointSlice"): Layout(
        columns("Name", "AddressType", "Ports", "Endpoints", "Age"), _endpoint_slice
    ),
    ("networking.k8s.io", "Ingress"): Layout(columns("Name", "Class", "Hosts", "Address", "Ports", "Age"), _ingress),
    ("networking.k8s.io", "IngressClass"): Layout(columns("Name", "Controller", "Parameters", "Age"), _ingress_class),
    ("networking.k8s.io", "NetworkPolicy"): Layout(columns("Name", "Pod-Selector", "Age"), _network_policy),
    ("networking.k8s.io", "ServiceCIDR"): Layout(columns("Name", "CIDRs", "Age"), _service_cidr),
    ("networking.k8s.io", "IPAddress"): Layout(columns("Name", "ParentRef"), _ip_address),
}
