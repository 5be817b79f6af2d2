"""Are services and endpoints in order? And what of them may change?"""

from __future__ import annotations

from octarbiter.cluster.apiserver.structural import wording
from octarbiter.cluster.apiserver.validation import containers, names, probes, rules
from octarbiter.cluster.apiserver.validation.rules import Json, Problems

_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_PUBLISHED = ("LoadBalancer", "NodePort")


def service(obj: Json, old: Json | None) -> Problems:
    spec = rules.part(obj, "spec")
    kind, address = spec.get("type"), spec.get("clusterIP")
    yield from rules.one_of(kind, "spec.type", _TYPES)
    if kind == "ExternalName":
        name = str(spec.get("externalName") or "").removesuffix(".")
        yield from rules.named(name, "spec.externalName", names.subdomain)
    else:
        if not spec.get("ports") and address != "None":
            yield wording.required("spec.ports")
        yield from _addresses(spec)
    yield from _ports(spec)
    yield from rules.labels(spec.get("selector"), "spec.selector")
    yield from rules.one_of(spec.get("sessionAffinity"), "spec.sessionAffinity", ("ClientIP", "None"))
    yield from _traffic(spec)
    if old is not None:
        yield from _update(spec, rules.part(old, "spec"))


def _addresses(spec: Json) -> Problems:
    for index, address in enumerate(spec.get("clusterIPs") or []):
        path = f"spec.clusterIPs[{index}]"
        if address == "None":
            if spec.get("type") in _PUBLISHED:
                yield wording.invalid(path, address, f"may not be set to 'None' for {spec['type']} services")
        else:
            yield from rules.well_formed(address, path, names.ip_address)


def _ports(spec: Json) -> Problems:
    ports = list(rules.each(spec.get("ports"), "spec.ports"))
    seen_names: set[str] = set()
    seen_ports: set[tuple[object, object]] = set()
    for path, port in ports:
        if name := port.get("name"):
            yield from rules.well_formed(name, f"{path}.name", names.label)
            if name in seen_names:
                yield wording.duplicate(f"{path}.name", name)
            seen_names.add(name)
        elif len(ports) > 1:
            yield wording.required(f"{path}.name")
        number = port.get("port") or 0
        for wrong in names.port(number):
            yield wording.invalid(f"{path}.port", number, wrong)
        yield from rules.one_of(port.get("protocol"), f"{path}.protocol", containers.PROTOCOLS)
        yield from probes.port(port.get("targetPort"), f"{path}.targetPort")
        key = (port.get("protocol"), number)
        if key in seen_ports:
            yield wording.duplicate(path, {"protocol": key[0], "port": number})
        seen_ports.add(key)
        if port.get("nodePort") and spec.get("type") == "ClusterIP":
            yield wording.forbidden(f"{path}.nodePort", "may not be used when `type` is 'ClusterIP'")


def _traffic(spec: Json) -> Problems:
    is_public = spec.get("type") in _PUBLISHED or (spec.get("type") == "ClusterIP" and spec.get("externalIPs"))
    if (policy := spec.get("externalTrafficPolicy")) and not is_public:
        rule = "may only be set for externally-accessible services"
        yield wording.invalid("spec.externalTrafficPolicy", policy, rule)
    for name in ("externalTrafficPolicy", "internalTrafficPolicy"):
        yield from rules.one_of(spec.get(name), f"spec.{name}", ("Cluster", "Local"))


def _update(new: Json, old: Json) -> Problems:
    if "ExternalName" in (new.get("type"), old.get("type")):
        return
    before, now = old.get("clusterIPs") or [], new.get("clusterIPs") or []
    if before and now[:1] != before[:1]:
        yield wording.invalid("spec.clusterIPs[0]", now, "may not change once set")


def endpoints(obj: Json, old: Json | None) -> Problems:
    for where, subset in rules.each(obj.get("subsets"), "subsets"):
        if not subset.get("addresses") and not subset.get("notReadyAddresses"):
            yield wording.required(where, "must specify `addresses` or `notReadyAddresses`")
        for kind in ("addresses", "notReadyAddresses"):
            for at, address in rules.each(subset.get(kind), f"{where}.{kind}"):
                yield from rules.well_formed(str(address.get("ip") or ""), f"{at}.ip", names.ip_address)
        for at, port in rules.each(subset.get("ports"), f"{where}.ports"):
            number = port.get("port") or 0
            yield from (wording.invalid(f"{at}.port", number, wrong) for wrong in names.port(number))


def endpoint_slice(obj: Json, old: Json | None) -> Problems:
    if not obj.get("addressType"):
        yield wording.required("addressType")
    else:
        yield from rules.one_of(obj["addressType"], "addressType", ("FQDN", "IPv4", "IPv6"))
    if old is not None:
        yield from rules.unchanged(obj.get("addressType"), old.get("addressType"), "addressType")


def ingress(obj: Json, old: Json | None) -> Problems:
    spec = rules.part(obj, "spec")
    if not spec.get("rules") and not spec.get("defaultBackend"):
        yield wording.invalid("spec", None, "either `defaultBackend` or `rules` must be specified")
    for where, rule in rules.each(spec.get("rules"), "spec.rules"):
        if host := str(rule.get("host") or ""):
            yield from (wording.invalid(f"{where}.host", host, wrong) for wrong in names.subdomain(host.lstrip("*.")))
        for at, path in rules.each(rules.part(rule, "http").get("paths"), f"{where}.http.paths"):
            if not path.get("pathType"):
                yield wording.required(f"{at}.pathType", "pathType must be specified")
                continue
            kinds = ("Exact", "ImplementationSpecific", "Prefix")
            yield from rules.one_of(path["pathType"], f"{at}.pathType", kinds)
            place = str(path.get("path") or "")
            if path["pathType"] != "ImplementationSpecific" and not place.startswith("/"):
                yield wording.invalid(f"{at}.path", place, "must be an absolute path")


def network_policy(obj: Json, old: Json | None) -> Problems:
    spec = rules.part(obj, "spec")
    yield from rules.selector(spec.get("podSelector"), "spec.podSelector")
    for index, kind in enumerate(spec.get("policyTypes") or []):
        yield from rules.one_of(kind, f"spec.policyTypes[{index}]", ("Ingress", "Egress"))
