"""Watching: what comes first, what follows, and how it ends."""

from __future__ import annotations

from typing import Any

from furniture import GADGETS, config_map, gadget, pod
from harness import MERGE_PATCH, PARTIAL, TABLE, Api, case, each


def _labelled(api: Api, name: str, value: str | None) -> None:
    body = {"metadata": {"labels": {"app": value}}}
    api.given("PATCH", f"configmaps/{name}", body, type=MERGE_PATCH)


@each({"unset": "", "zero": "&resourceVersion=0"})
def the_state_comes_first(api: Api, query: str) -> None:
    api.made("configmaps", config_map("a"))
    last = api.made("configmaps", config_map("b"))
    if query:
        api.until("GET", f"configmaps?resourceVersion={last.revision}&resourceVersionMatch=NotOlderThan", None, 200)
    api.watch(f"configmaps?watch=true{query}", 2)


@case
def what_happens_after_a_revision_follows(api: Api) -> None:
    first = api.made("configmaps", config_map("a"))
    api.made("configmaps", config_map("b"))
    api.given("PATCH", "configmaps/a", {"data": {"x": "y"}}, type=MERGE_PATCH)
    api.given("DELETE", "configmaps/b")
    api.watch(f"configmaps?watch=true&resourceVersion={first.revision}", 3)


@case
def what_happens_later_follows(api: Api) -> None:
    with api.watching("configmaps?watch=true") as stream:
        api.made("configmaps", config_map("a"))
        stream.take(1)
        api.given("PUT", "configmaps/a", config_map("a", data={"key": "other"}))
        stream.take(1)
        api.given("PUT", "configmaps/a", config_map("a", data={"key": "other"}))
        api.given("DELETE", "configmaps/a")
        stream.take(1)


@case
def custom_objects_are_watched(api: Api) -> None:
    first = api.made(GADGETS, gadget("a"))
    api.given("PATCH", f"{GADGETS}/a/status", {"status": {"phase": "x"}}, type=MERGE_PATCH)
    api.given("DELETE", f"{GADGETS}/a")
    api.watch(f"{GADGETS}?watch=true&resourceVersion={first.revision}", 2)


@case
def other_namespaces_are_not_seen(api: Api) -> None:
    start = api.made("configmaps", config_map("a")).revision
    api.given("POST", "/api/v1/namespaces/default/configmaps", config_map(f"x-{api.namespace}"))
    api.made("configmaps", config_map("b"))
    api.watch(f"configmaps?watch=true&resourceVersion={start}", 1)


@case
def a_selector_lets_objects_come_and_go(api: Api) -> None:
    start = api.made("configmaps", config_map("a", labels={"app": "x"})).revision
    _labelled(api, "a", "y")
    _labelled(api, "a", "z")
    _labelled(api, "a", "x")
    api.given("PATCH", "configmaps/a", {"data": {"x": "y"}}, type=MERGE_PATCH)
    api.given("DELETE", "configmaps/a")
    api.watch(f"configmaps?watch=true&labelSelector=app%3Dx&resourceVersion={start}", 4)


@case
def a_field_selector_lets_objects_come_and_go(api: Api) -> None:
    start = api.made("pods", pod("a")).revision
    api.given("PATCH", "pods/a/status", {"status": {"phase": "Running"}}, type=MERGE_PATCH)
    api.given("PATCH", "pods/a/status", {"status": {"phase": "Failed"}}, type=MERGE_PATCH)
    events = api.ask("GET", "pods?watch=false")
    api.note("now", len(events["items"]))
    with api.watching(f"pods?watch=true&fieldSelector=status.phase%3DRunning&resourceVersion={start}") as stream:
        stream.take(2)


@case
def one_name_is_watched(api: Api) -> None:
    start = api.made("configmaps", config_map("a")).revision
    api.made("configmaps", config_map("b"))
    api.given("DELETE", "configmaps/a")
    api.watch(f"configmaps?watch=true&fieldSelector=metadata.name%3Da&resourceVersion={start}", 1)


@case
def the_old_paths_of_watches_still_lead_there(api: Api) -> None:
    api.made("configmaps", config_map("a"))
    api.watch(f"/api/v1/watch/namespaces/{api.namespace}/configmaps", 1)
    api.watch(f"/api/v1/watch/namespaces/{api.namespace}/configmaps/a", 1)


@case
def the_initial_events_end_with_a_bookmark(api: Api) -> None:
    api.made("configmaps", config_map("a"))
    query = "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    with api.watching(f"configmaps?{query}") as stream:
        stream.take(2)
        api.made("configmaps", config_map("b"))
        stream.take(1)


@case
def the_initial_events_of_nothing_end_with_a_bookmark(api: Api) -> None:
    query = "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    for path in ("configmaps", GADGETS, "batch/v1/jobs"):
        api.watch(f"{path}?{query}", 1)


@case
def no_initial_events_are_sent_if_not_wanted(api: Api) -> None:
    api.made("configmaps", config_map("a"))
    query = "watch=true&sendInitialEvents=false&resourceVersionMatch=NotOlderThan"
    with api.watching(f"configmaps?{query}") as stream:
        api.made("configmaps", config_map("b"))
        stream.take(1)


@each(
    [
        "sendInitialEvents=true",
        "sendInitialEvents=true&resourceVersionMatch=Exact",
        "sendInitialEvents=true&resourceVersionMatch=NotOlderThan",
        "resourceVersionMatch=NotOlderThan",
        "resourceVersionMatch=NotOlderThan&resourceVersion=1",
        "resourceVersion=x",
        "resourceVersion=-1",
        "timeoutSeconds=x",
        "labelSelector=a%3D%3D%3D",
        "fieldSelector=nonsense%3D1",
        "limit=x",
        "continue=x",
    ]
)
def a_watch_that_makes_no_sense(api: Api, query: str) -> None:
    if query == "sendInitialEvents=true&resourceVersionMatch=NotOlderThan":
        api.watch(f"configmaps?watch=true&timeoutSeconds=1&{query}", 1)
        return
    api.get(f"configmaps?watch=true&timeoutSeconds=1&{query}")


@case
def a_revision_from_the_future_is_an_error(api: Api) -> None:
    api.watch("configmaps?watch=true&resourceVersion=999999999&timeoutSeconds=1", 1)


@case
def a_watch_ends_after_its_time(api: Api) -> None:
    api.made("configmaps", config_map("a"))
    with api.watching("configmaps?watch=true&timeoutSeconds=1") as stream:
        stream.rest()


@case
def a_watch_with_bookmarks_ends_after_its_time(api: Api) -> None:
    api.made("configmaps", config_map("a"))
    with api.watching("configmaps?watch=true&timeoutSeconds=2&allowWatchBookmarks=true") as stream:
        events = stream.take(1)
    api.note("first", events[0]["type"])


@each(["True", "1", "yes", "", "true"])
def a_watch_is_wanted_by_any_true_word(api: Api, word: str) -> None:
    api.made("configmaps", config_map("a"))
    api.watch(f"configmaps?watch={word}", 1)


@case
def a_watch_gives_tables(api: Api) -> None:
    start = api.made("configmaps", config_map("a")).revision
    with api.watching("configmaps?watch=true", accept=TABLE) as stream:
        stream.take(1)
        api.made("configmaps", config_map("b"))
        api.given("DELETE", "configmaps/b")
        stream.take(2)
    api.watch(f"configmaps?watch=true&resourceVersion={start}&includeObject=Object", 1, accept=TABLE)


@case
def a_watch_gives_the_metadata_alone(api: Api) -> None:
    api.made("configmaps", config_map("a"))
    with api.watching("configmaps?watch=true", accept=PARTIAL) as stream:
        stream.take(1)
        api.given("DELETE", "configmaps/a")
        stream.take(1)


@each(["application/yaml", "text/plain", "application/json;stream=watch", "*/*"])
def a_watch_in_another_form(api: Api, accept: str) -> None:
    api.made("configmaps", config_map("a"))
    api.watch("configmaps?watch=true&timeoutSeconds=1", 1, accept=accept)


@case
def deletion_of_held_objects_is_a_change_first(api: Api) -> None:
    body: dict[str, Any] = {"metadata": {"name": "a", "finalizers": ["example.com/x"]}}
    start = api.made("configmaps", body).revision
    api.given("DELETE", "configmaps/a")
    api.given("PATCH", "configmaps/a", {"metadata": {"finalizers": None}}, type=MERGE_PATCH)
    api.watch(f"configmaps?watch=true&resourceVersion={start}", 2)


@case
def a_graceful_deletion_is_seen_step_by_step(api: Api) -> None:
    start = api.made("pods", pod("a", nodeName="contract-node")).revision
    api.given("DELETE", "pods/a")
    api.given("DELETE", "pods/a", {"gracePeriodSeconds": 0})
    with api.watching(f"pods?watch=true&resourceVersion={start}") as stream:
        stream.take(2)


@case
def a_collections_deletion_is_seen_object_by_object(api: Api) -> None:
    api.made("configmaps", config_map("a"))
    start = api.made("configmaps", config_map("b")).revision
    api.given("DELETE", "configmaps")
    with api.watching(f"configmaps?watch=true&resourceVersion={start}") as stream:
        stream.take(2)


@case
def a_deletion_without_grace_is_seen_in_two_steps(api: Api) -> None:
    api.made("pods", pod("unscheduled"))
    api.made("pods", pod("bound", nodeName="contract-node"))
    api.made("pods", pod("ended", nodeName="contract-node"))
    api.given("PATCH", "pods/ended/status", {"status": {"phase": "Succeeded"}}, type="application/merge-patch+json")
    start = api.ask("GET", "pods").body["metadata"]["resourceVersion"]
    for path in ("unscheduled", "bound?gracePeriodSeconds=0", "ended"):
        api.given("DELETE", f"pods/{path}")
    api.watch(f"pods?watch=true&resourceVersion={start}", 6)
