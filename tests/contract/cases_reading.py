"""Reading one object and lists of them: selectors, pages, revisions."""

from __future__ import annotations

from furniture import GADGETS, config_map, gadget, job, pod, secret
from harness import PARTIAL, PARTIAL_LIST, Api, case, each


def three(api: Api) -> None:
    api.made("configmaps", config_map("a", labels={"app": "x", "tier": "1"}))
    api.made("configmaps", config_map("b", labels={"app": "y"}))
    last = api.made("configmaps", config_map("c"))
    # Answers from a real server's cache may lag behind; this one waits for it.
    api.given("GET", f"configmaps?resourceVersion={last.revision}&resourceVersionMatch=NotOlderThan")


@case
def getting_what_is_not_there_is_not_found(api: Api) -> None:
    api.get("configmaps/absent")
    api.get("batch/v1/jobs/absent")
    api.get("pods/absent/status")
    api.get("/api/v1/namespaces/absent")
    api.get(f"{GADGETS}/absent")
    api.get(f"{GADGETS}/absent/scale")
    api.get("apps/v1/deployments/absent/scale")


@case
def one_object_is_got(api: Api) -> None:
    api.made("configmaps", config_map("a"))
    api.get("configmaps/a")
    api.get("configmaps/a/")
    api.get("configmaps/a?pretty=true")


@case
def a_list_has_the_items_without_kind(api: Api) -> None:
    three(api)
    api.get("configmaps")
    api.get("configmaps/")


@case
def custom_items_keep_their_kind(api: Api) -> None:
    api.made(GADGETS, gadget("a"))
    api.get(GADGETS)


@case
def an_empty_list_is_a_list(api: Api) -> None:
    api.get("configmaps")
    api.get("batch/v1/jobs")
    api.get(GADGETS)
    api.get("coordination.k8s.io/v1/leases")


@case
def a_list_in_a_namespace_that_is_not_there_is_empty(api: Api) -> None:
    api.get("/api/v1/namespaces/absent/configmaps")


@each(
    [
        "app=x",
        "app==x",
        "app!=x",
        "app",
        "!app",
        "app in (x,y)",
        "app notin (x)",
        "app in (x),tier",
        "app=x,tier=2",
        "app=",
        "tier>0",
        "tier<1",
        "app in ()",
        "",
    ]
)
def a_label_selector_chooses(api: Api, selector: str) -> None:
    three(api)
    answer = api.ask("GET", "configmaps?labelSelector=" + _quoted(selector))
    api.note("names", [item["metadata"]["name"] for item in answer["items"]])


@each(["a b", "=x", "app in x", "app in (x", "a=b=c", "a,,b", "_=1", "app=x y", "a/b/c=d", "app>x", "!", "x in"])
def a_label_selector_that_makes_no_sense_is_refused(api: Api, selector: str) -> None:
    api.get("configmaps?labelSelector=" + _quoted(selector))


@each(
    [
        "metadata.name=a",
        "metadata.name!=a",
        "metadata.name==a,metadata.name=a",
        "metadata.name=a,metadata.name=b",
        "metadata.namespace=default",
        "metadata.name=",
    ]
)
def a_field_selector_chooses(api: Api, selector: str) -> None:
    three(api)
    answer = api.ask("GET", "configmaps?fieldSelector=" + _quoted(selector))
    api.note("names", [item["metadata"]["name"] for item in answer["items"]])


@each(["spec.unknown=a", "metadata.uid=1", "metadata.name", "metadata.name=a=b", "nonsense", "data.key=value"])
def a_field_selector_that_makes_no_sense_is_refused(api: Api, selector: str) -> None:
    three(api)
    api.get("configmaps?fieldSelector=" + _quoted(selector))
    api.get(f"{GADGETS}?fieldSelector=" + _quoted(selector))


@each(
    [
        "spec.nodeName=",
        "spec.nodeName!=",
        "spec.restartPolicy=Always",
        "spec.schedulerName=default-scheduler",
        "spec.serviceAccountName=x",
        "spec.hostNetwork=false",
        "spec.hostNetwork=true",
        "status.phase=Pending",
        "status.phase!=Succeeded,status.phase!=Failed",
        "status.podIP=",
        "status.podIPs=",
        "status.nominatedNodeName=",
        "status.reason=x",
    ]
)
def pods_are_chosen_by_their_fields(api: Api, selector: str) -> None:
    api.made("pods", pod("a"))
    api.made("pods", pod("b", nodeName="contract-node", restartPolicy="Never"))
    answer = api.ask("GET", "pods?fieldSelector=" + _quoted(selector))
    api.note("code", answer.code)
    api.note("names", [item["metadata"]["name"] for item in answer.body.get("items", [])])
    api.note("message", answer.body.get("message"))


@case
def other_kinds_have_fields_of_their_own(api: Api) -> None:
    api.made("secrets", secret("a", type="example.com/x"))
    api.made("secrets", secret("b"))
    api.made("batch/v1/jobs", job("a"))
    api.made(GADGETS, gadget("a", colour="green"))
    api.made(GADGETS, gadget("b"))
    for path in (
        "secrets?fieldSelector=type%3DOpaque",
        "secrets?fieldSelector=type%3Dexample.com/x",
        "batch/v1/jobs?fieldSelector=status.successful%3D0",
        "batch/v1/jobs?fieldSelector=status.successful%3D1",
        f"{GADGETS}?fieldSelector=spec.colour%3Dgreen",
        f"{GADGETS}?fieldSelector=spec.colour%21%3Dgreen",
        f"{GADGETS}?fieldSelector=spec.size%3D1",
        "services?fieldSelector=spec.type%3DClusterIP",
        "replicationcontrollers?fieldSelector=status.replicas%3D0",
    ):
        answer = api.ask("GET", path)
        api.note(path, [answer.code, [item["metadata"]["name"] for item in answer.body.get("items", [])]])


@case
def nodes_and_namespaces_are_chosen_by_their_fields(api: Api) -> None:
    for path in (
        "/api/v1/nodes?fieldSelector=spec.unschedulable%3Dfalse",
        "/api/v1/nodes?fieldSelector=spec.unschedulable%3Dtrue",
        f"/api/v1/namespaces?fieldSelector=metadata.name%3D{api.namespace}",
        f"/api/v1/namespaces?fieldSelector=status.phase%3DActive,metadata.name%3D{api.namespace}",
        f"/api/v1/namespaces?fieldSelector=status.phase%3DTerminating,metadata.name%3D{api.namespace}",
        f"/api/v1/namespaces?labelSelector=kubernetes.io/metadata.name%3D{api.namespace}",
    ):
        answer = api.ask("GET", path)
        api.note(path, [answer.code, [item["metadata"]["name"] for item in answer.body.get("items", [])]])


@case
def pages_follow_one_another(api: Api) -> None:
    three(api)
    first = api.get("configmaps?limit=1")
    token = first["metadata"]["continue"]
    second = api.get(f"configmaps?limit=1&continue={token}")
    api.made("configmaps", config_map("bb"))
    token = second["metadata"]["continue"]
    api.get(f"configmaps?limit=1&continue={token}")
    api.get(f"configmaps?continue={token}")


@case
def pages_keep_the_first_pages_state(api: Api) -> None:
    three(api)
    token = api.ask("GET", "configmaps?limit=2")["metadata"]["continue"]
    api.given("DELETE", "configmaps/c")
    api.made("configmaps", config_map("d"))
    api.get(f"configmaps?limit=2&continue={token}")


@case
def pages_of_a_selection_do_not_count_what_remains(api: Api) -> None:
    three(api)
    api.get("configmaps?limit=1&labelSelector=app")
    api.get("configmaps?limit=2&labelSelector=app")
    api.get("configmaps?limit=1&fieldSelector=metadata.name%21%3Da")


@case
def a_page_that_holds_everything_has_no_next(api: Api) -> None:
    three(api)
    api.get("configmaps?limit=3")
    api.get("configmaps?limit=500")
    api.get("configmaps?limit=0")


@case
def custom_objects_are_paged_too(api: Api) -> None:
    api.made(GADGETS, gadget("a"))
    api.made(GADGETS, gadget("b"))
    token = api.get(f"{GADGETS}?limit=1")["metadata"]["continue"]
    api.get(f"{GADGETS}?limit=1&continue={token}")


@each(["nonsense", "e30", "eyJ2IjoieCJ9", "%21"])
def a_continue_token_that_was_never_given_is_refused(api: Api, token: str) -> None:
    api.get(f"configmaps?limit=1&continue={token}")


@case
def a_continue_token_and_a_revision_exclude_each_other(api: Api) -> None:
    three(api)
    token = api.ask("GET", "configmaps?limit=1")["metadata"]["continue"]
    api.get(f"configmaps?limit=1&continue={token}&resourceVersion=1")
    api.get(f"configmaps?limit=1&continue={token}&resourceVersion=0")
    api.get(f"configmaps?limit=1&continue={token}&resourceVersionMatch=Exact")


@each(["-1", "x", "1.5", ""])
def a_limit_that_is_no_count(api: Api, limit: str) -> None:
    three(api)
    api.get(f"configmaps?limit={limit}")


@each(
    [
        "resourceVersion=0",
        "resourceVersion=1&resourceVersionMatch=NotOlderThan",
        "resourceVersion=0&resourceVersionMatch=NotOlderThan",
        "resourceVersion=0&resourceVersionMatch=Exact",
        "resourceVersionMatch=Exact",
        "resourceVersionMatch=NotOlderThan",
        "resourceVersion=1&resourceVersionMatch=Sometimes",
        "resourceVersion=x",
        "resourceVersion=-1",
        "resourceVersion=999999999",
        "resourceVersion=0&limit=1",
        "sendInitialEvents=true",
        "sendInitialEvents=false&resourceVersionMatch=NotOlderThan",
        "allowWatchBookmarks=true",
        "timeoutSeconds=x",
        "watch=0",
        "watch=false",
        "watch=FALSE",
    ]
)
def a_list_obeys_the_rules_of_revisions(api: Api, query: str) -> None:
    three(api)
    api.get(f"configmaps?{query}")


@case
def a_list_at_a_past_revision_shows_the_past(api: Api) -> None:
    api.made("configmaps", config_map("a"))
    then = api.made("configmaps", config_map("b")).revision
    api.given("DELETE", "configmaps/a")
    api.made("configmaps", config_map("c"))
    api.get(f"configmaps?resourceVersion={then}&resourceVersionMatch=Exact")
    api.get(f"configmaps?resourceVersion={then}&resourceVersionMatch=NotOlderThan")
    api.get(f"configmaps?resourceVersion={then}")


@each(["0", "1", "x", "-1", "999999999"])
def a_get_obeys_the_rules_of_revisions(api: Api, revision: str) -> None:
    api.made("configmaps", config_map("a"))
    if revision == "0":
        # Any state will do for it, also one from before: only once the server's cache has it, it must be there.
        api.until("GET", "configmaps/a?resourceVersion=0", None, 200)
    api.get(f"configmaps/a?resourceVersion={revision}")


@case
def the_metadata_alone_can_be_had(api: Api) -> None:
    api.made("configmaps", config_map("a", labels={"a": "b"}))
    api.get("configmaps/a", accept=PARTIAL)
    api.get("configmaps", accept=PARTIAL_LIST)
    api.get("configmaps?limit=1", accept=PARTIAL_LIST)
    api.get("configmaps/absent", accept=PARTIAL)


@case
def the_metadata_of_custom_objects_alone_can_be_had(api: Api) -> None:
    api.made(GADGETS, gadget("a"))
    api.get(f"{GADGETS}/a", accept=PARTIAL)
    api.get(GADGETS, accept=PARTIAL_LIST)


@case
def a_list_is_no_single_thing(api: Api) -> None:
    api.made("configmaps", config_map("a"))
    api.get("configmaps", accept=PARTIAL)
    api.get("configmaps/a", accept=PARTIAL_LIST)


@case
def writes_answer_with_the_metadata_alone_if_asked(api: Api) -> None:
    api.post("configmaps", config_map("a"), accept=PARTIAL)
    api.patch("configmaps/a", {"data": {"x": "y"}}, accept=PARTIAL)
    api.delete("configmaps/a", accept=PARTIAL)


@case
def a_list_over_all_namespaces_has_that_of_each(api: Api) -> None:
    api.made("configmaps", config_map("only", labels={"case": api.namespace}))
    api.get(f"/api/v1/configmaps?labelSelector=case%3D{api.namespace}")
    api.get(f"/api/v1/configmaps?fieldSelector=metadata.namespace%3D{api.namespace}")
    api.get(f"/api/v1/configmaps?fieldSelector=metadata.name%3Donly,metadata.namespace%3D{api.namespace}")


def _quoted(text: str) -> str:
    from urllib.parse import quote

    return quote(text, safe="")
