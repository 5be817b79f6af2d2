"""The verbs of the embedded API server, over HTTPS."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from apiserver_fixture import APPLY, DEFAULT, JSON_PATCH, MERGE, STRATEGIC, TABLE, Api, config_map, pod, running

MAPS = f"{DEFAULT}/configmaps"
PODS = f"{DEFAULT}/pods"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[Api]:
    async with running(tmp_path) as api:
        yield api


async def test_what_is_created_can_be_read_and_has_what_the_server_adds(api: Api) -> None:
    made = await api.create(MAPS, config_map("a", k="v"))
    read = await api.ask("GET", f"{MAPS}/a")

    assert read.body == made
    assert made["kind"] == "ConfigMap"
    assert made["metadata"]["namespace"] == "default"
    assert {"uid", "creationTimestamp", "resourceVersion", "managedFields"} <= made["metadata"].keys()
    assert "generation" not in made["metadata"]


async def test_the_second_of_two_creates_is_told_that_it_is_there_already(api: Api) -> None:
    answers = await asyncio.gather(*(api.ask("POST", MAPS, config_map("a")) for _ in range(8)))

    assert sorted(answer.code for answer in answers) == [201] + [409] * 7
    assert {answer.reason for answer in answers if answer.code == 409} == {"AlreadyExists"}


async def test_a_generated_name_starts_as_asked_and_is_always_new(api: Api) -> None:
    body = {"metadata": {"generateName": "gen-"}}
    made = await asyncio.gather(*(api.create(MAPS, body) for _ in range(50)))
    names = {obj["metadata"]["name"] for obj in made}

    assert len(names) == 50
    assert all(name.startswith("gen-") and len(name) == 9 for name in names)


async def test_a_dry_run_leaves_nothing_behind(api: Api) -> None:
    made = await api.ask("POST", f"{MAPS}?dryRun=All", config_map("a"))

    assert (made.code, "resourceVersion" in made.body["metadata"]) == (201, False)
    assert (await api.ask("GET", f"{MAPS}/a")).code == 404
    await api.create(MAPS, config_map("b", k="v"))
    await api.ask("PATCH", f"{MAPS}/b?dryRun=All", {"data": {"k": "w"}}, MERGE)
    await api.ask("DELETE", f"{MAPS}/b?dryRun=All")
    assert (await api.ask("GET", f"{MAPS}/b")).body["data"] == {"k": "v"}


async def test_a_put_with_an_old_version_is_a_conflict_and_without_one_wins(api: Api) -> None:
    old = await api.create(MAPS, config_map("a", k="1"))
    assert (await api.ask("PUT", f"{MAPS}/a", config_map("a", k="2"))).code == 200

    refused = await api.ask("PUT", f"{MAPS}/a", {**old, "data": {"k": "3"}})

    assert (refused.code, refused.reason) == (409, "Conflict")
    assert "the object has been modified" in refused.body["message"]
    assert (await api.ask("GET", f"{MAPS}/a")).body["data"] == {"k": "2"}


async def test_of_many_writers_with_the_same_version_one_wins(api: Api) -> None:
    old = await api.create(MAPS, config_map("a"))
    writes = (api.ask("PUT", f"{MAPS}/a", {**old, "data": {"k": str(number)}}) for number in range(10))
    codes = sorted([answer.code for answer in await asyncio.gather(*writes)])

    assert codes == [200] + [409] * 9


async def test_patches_of_many_writers_without_a_version_all_arrive(api: Api) -> None:
    await api.create(MAPS, config_map("a"))
    writes = (api.ask("PATCH", f"{MAPS}/a", {"data": {f"k{number}": "x"}}, MERGE) for number in range(20))
    assert {answer.code for answer in await asyncio.gather(*writes)} == {200}

    assert len((await api.ask("GET", f"{MAPS}/a")).body["data"]) == 20


async def test_a_lease_needs_a_version_and_a_put_may_create_it(api: Api) -> None:
    lease = {"metadata": {"name": "l"}, "spec": {"holderIdentity": "me"}}
    made = await api.ask("PUT", f"{LEASES}/l", lease)
    refused = await api.ask("PUT", f"{LEASES}/l", lease)

    assert (made.code, refused.code, refused.reason) == (201, 422, "Invalid")
    assert refused.body["details"]["causes"][0]["field"] == "metadata.resourceVersion"
    assert (await api.ask("PUT", f"{MAPS}/nobody", config_map("nobody"))).code == 404


async def test_a_write_that_changes_nothing_is_no_write(api: Api) -> None:
    made = await api.create(MAPS, config_map("a", k="v"))
    same = await api.ask("PATCH", f"{MAPS}/a?fieldManager=somebody", {"data": {"k": "v"}}, MERGE)
    again = await api.ask("PUT", f"{MAPS}/a", config_map("a", k="v"))

    version = made["metadata"]["resourceVersion"]
    assert same.body["metadata"]["resourceVersion"] == again.body["metadata"]["resourceVersion"] == version


async def test_every_kind_of_patch_arrives(api: Api) -> None:
    await api.create(MAPS, config_map("a", k="1"))
    await api.ask("PATCH", f"{MAPS}/a", [{"op": "add", "path": "/data/j", "value": "2"}], JSON_PATCH)
    await api.ask("PATCH", f"{MAPS}/a", {"data": {"m": "3", "k": None}}, MERGE)
    await api.ask("PATCH", f"{MAPS}/a", {"data": {"s": "4"}}, STRATEGIC)
    applied = await api.ask("PATCH", f"{MAPS}/a?fieldManager=me", config_map("a", p="5"), APPLY)

    assert applied.body["data"] == {"j": "2", "m": "3", "s": "4", "p": "5"}
    refused = await api.ask("PATCH", f"{MAPS}/a", [{"op": "test", "path": "/data/j", "value": "9"}], JSON_PATCH)
    assert (refused.code, refused.reason) == (422, "Invalid")
    assert (await api.ask("PATCH", f"{MAPS}/a", {})).code == 415


async def test_applying_creates_and_another_owner_is_a_conflict_unless_forced(api: Api) -> None:
    made = await api.ask("PATCH", f"{MAPS}/a?fieldManager=one", config_map("a", k="1"), APPLY)
    refused = await api.ask("PATCH", f"{MAPS}/a?fieldManager=two", config_map("a", k="2"), APPLY)
    forced = await api.ask("PATCH", f"{MAPS}/a?fieldManager=two&force=true", config_map("a", k="2"), APPLY)

    assert (made.code, refused.code, forced.code) == (201, 409, 200)
    assert refused.body["details"]["causes"][0]["reason"] == "FieldManagerConflict"
    assert forced.body["data"] == {"k": "2"}


async def test_status_and_spec_are_written_through_their_own_doors(api: Api) -> None:
    made = await api.create(PODS, pod("p"))
    through_main = await api.ask("PATCH", f"{PODS}/p", {"status": {"phase": "Running"}}, MERGE)
    patch = {"status": {"phase": "Running"}, "spec": {"nodeName": "n"}}
    through_status = await api.ask("PATCH", f"{PODS}/p/status", patch, MERGE)

    assert made["metadata"]["generation"] == 1
    assert through_main.body["status"]["phase"] == "Pending"
    assert through_status.body["status"]["phase"] == "Running"
    assert "nodeName" not in through_status.body["spec"]
    assert through_status.body["metadata"]["generation"] == 1


async def test_the_generation_counts_changes_of_the_spec(api: Api) -> None:
    path = "/apis/apps/v1/namespaces/default/deployments"
    labels = {"matchLabels": {"a": "b"}}
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "x"}]}}
    await api.create(path, {"metadata": {"name": "d"}, "spec": {"selector": labels, "template": template}})
    labelled = await api.ask("PATCH", f"{path}/d", {"metadata": {"labels": {"x": "y"}}}, MERGE)
    scaled = await api.ask("PATCH", f"{path}/d/scale", {"spec": {"replicas": 4}}, MERGE)
    changed = await api.ask("GET", f"{path}/d")

    assert labelled.body["metadata"]["generation"] == 1
    assert (scaled.body["kind"], scaled.body["spec"]["replicas"]) == ("Scale", 4)
    assert (changed.body["spec"]["replicas"], changed.body["metadata"]["generation"]) == (4, 2)


async def test_unknown_fields_are_refused_warned_about_or_dropped_as_the_client_wishes(api: Api) -> None:
    body = {**config_map("a"), "foo": 1}
    strict = await api.ask("POST", f"{MAPS}?fieldValidation=Strict", body)
    warned = await api.ask("POST", f"{MAPS}?dryRun=All", body)
    ignored = await api.ask("POST", f"{MAPS}?fieldValidation=Ignore", body)

    assert (strict.code, 'unknown field "foo"' in strict.body["message"]) == (400, True)
    assert warned.headers["Warning"] == '299 - "unknown field \\"foo\\""'
    assert "Warning" not in ignored.headers
    assert "foo" not in ignored.body


async def test_nothing_is_created_in_a_namespace_that_is_missing_or_going(api: Api) -> None:
    missing = await api.ask("POST", "/api/v1/namespaces/none/configmaps", config_map("a"))
    await api.create("/api/v1/namespaces", {"metadata": {"name": "team"}})
    going = await api.ask("DELETE", "/api/v1/namespaces/team")
    refused = await api.ask("POST", "/api/v1/namespaces/team/configmaps", config_map("a"))

    assert (missing.code, missing.reason) == (404, "NotFound")
    assert going.body["status"]["phase"] == "Terminating"
    assert (refused.code, refused.body["details"]["causes"][0]["reason"]) == (403, "NamespaceTerminating")
    finished = {"metadata": {"name": "team"}, "spec": {}}
    await api.ask("PUT", "/api/v1/namespaces/team/finalize", finished)
    assert (await api.ask("GET", "/api/v1/namespaces/team")).code == 404
    assert (await api.ask("DELETE", "/api/v1/namespaces/default")).code == 403


async def test_a_finalizer_holds_an_object_until_it_is_taken_away(api: Api) -> None:
    held = config_map("a")
    held["metadata"]["finalizers"] = ["example.com/hold"]
    await api.create(MAPS, held)
    marked = await api.ask("DELETE", f"{MAPS}/a")
    more = {"metadata": {"finalizers": ["example.com/hold", "example.com/more"]}}
    refused = await api.ask("PATCH", f"{MAPS}/a", more, MERGE)
    again = await api.ask("POST", MAPS, config_map("a"))

    assert (marked.code, "deletionTimestamp" in marked.body["metadata"]) == (200, True)
    assert (refused.code, refused.body["details"]["causes"][0]["field"]) == (422, "metadata.finalizers")
    assert (again.code, "is being deleted" in again.body["message"]) == (409, True)
    await api.ask("PATCH", f"{MAPS}/a", {"metadata": {"finalizers": None}}, MERGE)
    assert (await api.ask("GET", f"{MAPS}/a")).code == 404


async def test_a_running_pod_gets_its_grace_period_and_any_other_goes_at_once(api: Api) -> None:
    await api.create(PODS, pod("p"))
    await api.create(PODS, pod("q"))
    target = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}}
    assert (await api.ask("POST", f"{PODS}/p/binding", target)).code == 201
    dying = await api.ask("DELETE", f"{PODS}/p")
    shorter = await api.ask("DELETE", f"{PODS}/p", {"gracePeriodSeconds": 5})
    await api.ask("DELETE", f"{PODS}/q")

    assert dying.body["metadata"]["deletionGracePeriodSeconds"] == 30
    assert shorter.body["metadata"]["deletionGracePeriodSeconds"] == 5
    assert (await api.ask("GET", f"{PODS}/q")).code == 404
    assert (await api.ask("GET", f"{PODS}/p")).code == 200
    wrong = await api.ask("DELETE", f"{PODS}/p", {"gracePeriodSeconds": 0, "preconditions": {"uid": "other"}})
    assert (wrong.code, wrong.reason) == (409, "Conflict")
    await api.ask("DELETE", f"{PODS}/p", {"gracePeriodSeconds": 0})
    assert (await api.ask("GET", f"{PODS}/p")).code == 404


async def test_a_pod_is_bound_once(api: Api) -> None:
    await api.create(PODS, pod("p"))
    target = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}}
    answers = await asyncio.gather(*(api.ask("POST", f"{PODS}/p/binding", target) for _ in range(5)))
    bound = (await api.ask("GET", f"{PODS}/p")).body

    assert sorted(answer.code for answer in answers) == [201] + [409] * 4
    assert bound["spec"]["nodeName"] == "n"
    assert bound["metadata"]["generation"] == 1
    assert [each["type"] for each in bound["status"]["conditions"]] == ["PodScheduled"]


async def test_an_eviction_respects_the_budget(api: Api) -> None:
    budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
    await api.create(PODS, {**pod("p"), "metadata": {"name": "p", "labels": {"a": "b"}}})
    ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    await api.ask("PATCH", f"{PODS}/p/status", {"status": ready}, MERGE)
    selector = {"matchLabels": {"a": "b"}}
    await api.create(budgets, {"metadata": {"name": "b"}, "spec": {"minAvailable": 1, "selector": selector}})
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}}
    unseen = await api.ask("POST", f"{PODS}/p/eviction", eviction)
    counted = {"observedGeneration": 1, "disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 1}
    await api.ask("PATCH", f"{budgets}/b/status", {"status": {**counted, "expectedPods": 1}}, MERGE)
    refused = await api.ask("POST", f"{PODS}/p/eviction", eviction)
    await api.ask("PATCH", f"{budgets}/b/status", {"status": {"disruptionsAllowed": 1}}, MERGE)
    allowed = await api.ask("POST", f"{PODS}/p/eviction", eviction)

    assert (unseen.code, unseen.headers["Retry-After"]) == (429, "10")
    assert (refused.code, refused.body["details"]["causes"][0]["reason"]) == (429, "DisruptionBudget")
    assert (allowed.code, allowed.body["status"]) == (201, "Success")
    assert (await api.ask("GET", f"{PODS}/p")).code == 404
    spent = (await api.ask("GET", f"{budgets}/b")).body["status"]
    assert (spent["disruptionsAllowed"], list(spent["disruptedPods"])) == (0, ["p"])


async def test_jobs_leave_their_pods_unless_told_otherwise_and_say_so(api: Api) -> None:
    path = "/apis/batch/v1/namespaces/default/jobs"
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "x"}]}}
    for name in ("a", "b", "c"):
        await api.create(path, {"metadata": {"name": name}, "spec": {"template": template}})
    orphaning = await api.ask("DELETE", f"{path}/a")
    foreground = await api.ask("DELETE", f"{path}/b?propagationPolicy=Foreground")
    background = await api.ask("DELETE", f"{path}/c", {"propagationPolicy": "Background"})

    assert orphaning.body["metadata"]["finalizers"] == ["orphan"]
    assert "child pods are preserved by default" in orphaning.headers["Warning"]
    assert foreground.body["metadata"]["finalizers"] == ["foregroundDeletion"]
    assert (background.body["kind"], background.body["details"]["kind"]) == ("Status", "jobs")


async def test_deleting_a_collection_takes_what_was_selected(api: Api) -> None:
    for number in range(6):
        await api.create(MAPS, config_map(f"m{number}", labels={"even": str(number % 2 == 0).lower()}))
    answer = await api.ask("DELETE", f"{MAPS}?labelSelector=even%3Dtrue")

    assert [obj["metadata"]["name"] for obj in answer.body["items"]] == ["m0", "m2", "m4"]
    left = (await api.ask("GET", MAPS)).body["items"]
    assert [obj["metadata"]["name"] for obj in left] == ["m1", "m3", "m5"]


async def test_events_are_the_same_in_both_groups(api: Api) -> None:
    event = {
        "metadata": {"name": "e", "namespace": "default"},
        "involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"},
        "reason": "Started",
        "message": "hello",
        "type": "Normal",
    }
    await api.create(f"{DEFAULT}/events", event)
    newer = await api.ask("GET", "/apis/events.k8s.io/v1/namespaces/default/events?fieldSelector=regarding.name%3Dp")
    core = await api.ask("GET", f"{DEFAULT}/events?fieldSelector=involvedObject.name%3Dp,reason%3DStarted")

    assert [(each["note"], each["regarding"]["name"]) for each in newer.body["items"]] == [("hello", "p")]
    assert [each["message"] for each in core.body["items"]] == ["hello"]


async def test_a_table_has_columns_and_rows_with_metadata(api: Api) -> None:
    await api.create(MAPS, config_map("a", k="v"))
    table = (await api.ask("GET", MAPS, headers=TABLE)).body

    assert table["kind"] == "Table"
    assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "Data", "Age"]
    assert table["rows"][0]["cells"][:2] == ["a", 1]
    assert table["rows"][0]["object"]["kind"] == "PartialObjectMetadata"


async def test_pods_get_priority_and_tolerations(api: Api) -> None:
    made = await api.create(PODS, pod("p", priorityClassName="system-node-critical"))
    unknown = await api.ask("POST", PODS, pod("q", priorityClassName="nope"))

    assert made["spec"]["priority"] == 2_000_001_000
    assert [each["tolerationSeconds"] for each in made["spec"]["tolerations"]] == [300, 300]
    assert (unknown.code, "no PriorityClass with name nope was found" in unknown.body["message"]) == (403, True)
