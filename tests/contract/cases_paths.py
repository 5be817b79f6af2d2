"""Paths and verbs, discovery, health and version, who may come in."""

from __future__ import annotations

from furniture import GADGETS, GROUP, config_map, definition, gadget
from harness import Api, case, each

_AGGREGATED = "application/json;g=apidiscovery.k8s.io;v={};as=APIGroupDiscoveryList,application/json"
_RESOURCES = {
    "v1": (
        "bindings configmaps endpoints events limitranges namespaces namespaces/finalize namespaces/status nodes "
        "nodes/status persistentvolumeclaims persistentvolumeclaims/status persistentvolumes pods pods/attach "
        "pods/binding pods/ephemeralcontainers pods/eviction pods/exec pods/log pods/resize pods/status podtemplates "
        "replicationcontrollers "
        "replicationcontrollers/scale resourcequotas resourcequotas/status secrets serviceaccounts "
        "serviceaccounts/token services services/status"
    ),
    "admissionregistration.k8s.io/v1": "mutatingwebhookconfigurations validatingwebhookconfigurations",
    "apiextensions.k8s.io/v1": "customresourcedefinitions customresourcedefinitions/status",
    "apps/v1": (
        "controllerrevisions daemonsets daemonsets/status deployments deployments/scale deployments/status replicasets "
        "replicasets/scale replicasets/status statefulsets statefulsets/scale statefulsets/status"
    ),
    "authentication.k8s.io/v1": "selfsubjectreviews tokenreviews",
    "authorization.k8s.io/v1": (
        "localsubjectaccessreviews selfsubjectaccessreviews selfsubjectrulesreviews subjectaccessreviews"
    ),
    "autoscaling/v2": "horizontalpodautoscalers horizontalpodautoscalers/status",
    "batch/v1": "cronjobs cronjobs/status jobs jobs/status",
    "certificates.k8s.io/v1": "certificatesigningrequests certificatesigningrequests/approval",
    "coordination.k8s.io/v1": "leases",
    "discovery.k8s.io/v1": "endpointslices",
    "events.k8s.io/v1": "events",
    "networking.k8s.io/v1": "ingressclasses ingresses ingresses/status networkpolicies",
    "node.k8s.io/v1": "runtimeclasses",
    "policy/v1": "poddisruptionbudgets poddisruptionbudgets/status",
    "rbac.authorization.k8s.io/v1": "clusterrolebindings clusterroles rolebindings roles",
    "resource.k8s.io/v1": "deviceclasses resourceclaims resourceclaims/status resourceclaimtemplates resourceslices",
    "scheduling.k8s.io/v1": "priorityclasses",
    "storage.k8s.io/v1": (
        "csidrivers csinodes csistoragecapacities storageclasses volumeattachments volumeattachments/status "
        "volumeattributesclasses"
    ),
    f"{GROUP}/v1": "gadgets gadgets/scale gadgets/status gizmos",
    f"{GROUP}/v1beta1": "gadgets gadgets/scale gadgets/status",
}


def _prefix(group_version: str) -> str:
    return "/api/v1" if group_version == "v1" else f"/apis/{group_version}"


@each(list(_RESOURCES))
def discovery_describes_the_resources(api: Api, group_version: str) -> None:
    answer = api.ask("GET", _prefix(group_version))
    rows = {row["name"]: {**row, "storageVersionHash": ""} for row in answer["resources"]}
    api.note("kind", [answer["kind"], answer.body.get("apiVersion"), answer["groupVersion"]])
    for name in _RESOURCES[group_version].split():
        api.note(name, rows.get(name))


@each([group_version for group_version in _RESOURCES if "/" in group_version and group_version != f"{GROUP}/v1beta1"])
def discovery_describes_the_group(api: Api, group_version: str) -> None:
    group = group_version.split("/")[0]
    answer = api.ask("GET", f"/apis/{group}")
    shown = answer.body
    api.note("group", [shown["kind"], shown["apiVersion"], shown["name"], shown["preferredVersion"]])
    listed = {found["name"]: found for found in api.ask("GET", "/apis")["groups"]}
    api.note("in the list", listed[group]["preferredVersion"])


@case
def an_older_form_of_aggregated_discovery_is_not_served(api: Api) -> None:
    for path in ("/api", "/apis"):
        answer = api.ask("GET", path, accept=_AGGREGATED.format("v2beta1"))
        api.note(path, [answer.code, answer.headers, answer["kind"]])


@case
def aggregated_discovery_describes_the_resources(api: Api) -> None:
    accept = _AGGREGATED.format("v2")
    for path in ("/api", "/apis"):
        answer = api.ask("GET", path, accept=accept)
        api.note(path, [answer.code, answer.headers, answer["kind"], answer.body.get("apiVersion"), answer["metadata"]])
        for group in answer["items"]:
            for served in group["versions"]:
                name = group["metadata"].get("name", "")
                asked = _RESOURCES.get(f"{name}/{served['version']}" if name else served["version"], "").split()
                for row in served["resources"]:
                    if row["resource"] not in asked:
                        continue
                    kept = [
                        sub for sub in row.pop("subresources", []) if f"{row['resource']}/{sub['subresource']}" in asked
                    ]
                    api.note(f"{name}/{served['version']}/{row['resource']}", [row, kept, served["freshness"]])


@case
def aggregated_discovery_is_not_sent_twice(api: Api) -> None:
    accept = _AGGREGATED.format("v2")
    for path in ("/api", "/apis"):
        connection = api.server.connect()
        headers = {"Authorization": f"Bearer {api.server.token}", "Accept": accept}
        connection.request("GET", path, headers=headers)
        response = connection.getresponse()
        response.read()
        connection.request("GET", path, headers={**headers, "If-None-Match": response.headers["ETag"]})
        again = connection.getresponse()
        api.note(path, [response.status, again.status, len(again.read()), again.headers["Content-Type"]])
        connection.close()


@case
def the_versions_of_the_core_are_told(api: Api) -> None:
    api.get("/api")
    api.get("/api/")


@each(
    [
        "/api/v2",
        "/api/v1/nonsense",
        "/api/v1/nonsense/x",
        "/apis/nonsense",
        "/apis/nonsense/v1",
        "/apis/nonsense/v1/things",
        "/apis/batch/v9",
        "/apis/batch/v9/jobs",
        "/apis/batch/v1/nonsense",
        "/apis/batch/v1/namespaces/default/nonsense/x",
        f"/apis/{GROUP}/v1/nonsense",
        f"/apis/{GROUP}/v9/gadgets",
        f"/apis/{GROUP}/v9",
        "/nonsense",
        "/api/v1/configmaps/x",
        "/api/v1/namespaces/default/nodes",
        "/api/v1/namespaces/default/nodes/x",
        "/apis/scheduling.k8s.io/v1/namespaces/default/priorityclasses",
        f"/apis/{GROUP}/v1/gadgets/x",
        f"/apis/{GROUP}/v1/namespaces/default/gizmos",
        "/api/v1/namespaces/default/configmaps/x/status",
        "/api/v1/namespaces/default/configmaps/x/nonsense",
        "/api/v1/namespaces/default/pods/x/nonsense",
        f"/apis/{GROUP}/v1/gizmos/x/status",
        f"/apis/{GROUP}/v1/gizmos/x/scale",
        "/api/v1/namespaces/default/bindings",
        "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
        "/api/v1/namespaces/default/pods/x/binding",
        "/api/v1/namespaces/default/pods/x/eviction",
        "/api/v1//namespaces",
        "/apis/apps/v1//deployments",
        "/api//v1",
        "/apis//apps",
        "/apis/contract.example.com//v1",
        "/api/v2/x",
        "/apis/apps/v9",
    ]
)
def a_path_that_leads_nowhere(api: Api, path: str) -> None:
    api.get(path)


@each(
    {
        "POST an object": ("POST", "configmaps/x"),
        "PUT a collection": ("PUT", "configmaps"),
        "PATCH a collection": ("PATCH", "configmaps"),
        "DELETE a status": ("DELETE", "pods/x/status"),
        "POST a status": ("POST", "pods/x/status"),
        "DELETE a scale": ("DELETE", "apps/v1/deployments/x/scale"),
        "POST over all namespaces": ("POST", "/api/v1/configmaps"),
        "DELETE over all namespaces": ("DELETE", "/api/v1/configmaps"),
        "DELETE all namespaces": ("DELETE", "/api/v1/namespaces"),
        "PUT a review": ("PUT", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"),
        "DELETE an eviction": ("DELETE", "pods/x/eviction"),
        "POST a custom object": ("POST", f"{GADGETS}/x"),
        "PUT custom objects": ("PUT", GADGETS),
        "POST custom objects over all namespaces": ("POST", f"/apis/{GROUP}/v1/gadgets"),
        "POST discovery": ("POST", "/api/v1"),
        "POST the version": ("POST", "/version"),
        "OPTIONS": ("OPTIONS", "configmaps"),
        "nonsense": ("BREW", "configmaps"),
    }
)
def a_verb_that_is_not_for_this_path(api: Api, request: tuple[str, str]) -> None:
    method, path = request
    api.request(method, path, config_map("x") if method in ("POST", "PUT", "PATCH") else None)


@case
def the_headers_alone_can_be_had(api: Api) -> None:
    api.made("configmaps", config_map("a"))
    api.request("HEAD", "configmaps/a")
    api.request("HEAD", "configmaps")
    api.request("HEAD", "configmaps/absent")
    api.request("HEAD", "/healthz")


@each(["/healthz", "/livez", "/readyz", "/healthz/ping", "/livez/ping", "/readyz/ping", "/healthz/nonsense"])
def health_is_told_in_a_word(api: Api, path: str) -> None:
    api.get(path)
    api.get(path, token="")


@case
def the_version_is_told(api: Api) -> None:
    for path in ("/version", "/version/"):
        answer = api.ask("GET", path)
        api.note(path, [answer.code, answer.headers, sorted(answer.body)])
        api.note("numbers", [answer["major"], answer["minor"]])


@case
def who_is_not_known_is_turned_away(api: Api) -> None:
    for path in ("configmaps", "/api", "/apis/batch/v1", "/version", "/nonsense"):
        api.get(path, token="wrong")
    api.post("configmaps", config_map("a"), token="wrong")


@case
def who_says_nothing_is_nobody(api: Api) -> None:
    for path in ("configmaps", "/api", "/nonsense"):
        api.get(path, token="")


@case
def custom_objects_are_made_by_any_path(api: Api) -> None:
    api.post(f"{GADGETS}/x", gadget("x"))
    api.post(f"{GADGETS}/x", gadget("y"))
    api.post(f"{GADGETS}/x", b"{")
    api.get(f"{GADGETS}/y")
    for body in (gadget("z"), b"{"):
        api.put(GADGETS, body)
        api.patch(GADGETS, body)
    api.patch(GADGETS, {}, type="text/plain")
    api.delete(f"/apis/{GADGETS}")
    api.put(f"/apis/{GADGETS}", gadget("x"))
    api.get(f"{GADGETS}/x/status/more")


@case
def refusals_are_spoken_in_yaml(api: Api) -> None:
    for path in ("configmaps/absent", f"{GADGETS}/absent", "/api/v1/nonsense", "/apis/apps/v1/nonsense", "/nonsense"):
        api.get(path, accept="application/yaml")
    api.post("configmaps", {"metadata": {"name": "-"}}, accept="application/yaml")
    api.get("configmaps", accept="application/yaml", token="wrong")


@case
def trailing_slashes_do_not_matter(api: Api) -> None:
    for path in ("/apis/", "/api/v1/", "/apis/batch/", "/apis/batch/v1/", "/healthz/"):
        answer = api.ask("GET", path)
        api.note(path, [answer.code, answer.headers])
    api.get("pods/")


@case
def a_definition_shows_in_discovery_at_once(api: Api) -> None:
    group = f"{api.namespace}.example.com"
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    api.made(crds, definition(group, "things", "Thing", schema))
    api.until("GET", f"/apis/{group}/v1", None, 200)
    api.until("GET", f"/apis/{group}", None, 200)
    api.get(f"/apis/{group}")
    answer = api.ask("GET", f"/apis/{group}/v1")
    api.note("resources", [{**row, "storageVersionHash": ""} for row in answer["resources"]])
    api.given("DELETE", f"{crds}/things.{group}")
    api.until("GET", f"/apis/{group}/v1", None, 404)
    api.until("GET", f"/apis/{group}", None, 404)
    api.get(f"/apis/{group}/v1")
    api.get(f"/apis/{group}")
    api.get(f"/apis/{group}/v1/namespaces/default/things")
