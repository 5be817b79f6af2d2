"""What a TaskSet asks for on a real API server, on fake nodes: when it ends and how, retries, suspension, scaling,
order of roles, what stays and what its pods look like."""

import json
from datetime import datetime, timedelta
from typing import Any

import pytest
from eventual import eventually
from taskset_bench import Bench, Json, counts, message_of, needs, replicas_of, retries, role, role_of

from octarbiter.api import scheme
from octarbiter.core.lifecycle import names
from octarbiter.testing.kubernetes import fakepods

pytestmark = pytest.mark.xdist_group("bed")

NO_ACTION = [{"event": "RoleFailed", "action": "NoAction"}]


# --- when a role is done


def test_enough_successes_end_a_role_and_the_rest_is_stopped(tasksets: Bench) -> None:
    tasksets.submit(
        role("ps"),
        role("worker", 3, completionPolicy=needs(2), eventPolicy=_on("RoleSucceeded", "TaskSetSucceeded")),
    )
    tasksets.when_running("worker", 3)
    tasksets.when_running("ps", 1)
    tasksets.end(index=0)
    tasksets.end(index=2)

    status = tasksets.when_ended("Succeeded")
    assert (role_of(status, "worker")["succeeded"], role_of(status, "worker")["stopped"]) == (2, 1)
    ps = role_of(status, "ps")
    assert (ps["state"], ps["stopped"], replicas_of(status, "ps")[0]["stopped"]) == ("Succeeded", 1, True)
    assert status["trigger"]["role"] == "worker"
    tasksets.check_that_all_is_gone()


def test_a_role_fails_when_min_succeeded_can_no_longer_be_reached(tasksets: Bench) -> None:
    tasksets.submit(role(replicas=3, completionPolicy=needs(2, max_failed=3)))
    tasksets.end(index=0, exit_code=1)
    tasksets.end(index=1, exit_code=1)

    status = tasksets.when_ended("Failed")
    assert "minSucceeded can no longer be reached" in message_of(status)
    worker = role_of(status, "worker")
    assert (worker["failed"], worker["stopped"]) == (2, 1)


def test_max_failed_minus_one_never_fails_by_count(tasksets: Bench) -> None:
    tasksets.submit(role(replicas=3, completionPolicy=needs(1, max_failed=-1)))
    tasksets.end(index=0, exit_code=1)
    tasksets.end(index=1, exit_code=1)
    tasksets.when(lambda status: role_of(status, "worker").get("failed") == 2, "two failures")
    assert tasksets.status()["state"] == "Running"
    tasksets.end(index=2)

    tasksets.when_ended("Succeeded")


# --- retries


def test_a_replica_is_retried_after_its_delay_and_its_peers_keep_their_pods(tasksets: Bench) -> None:
    tasksets.submit(role(replicas=3, retryPolicy=retries(1, delay=4)))
    before = tasksets.when_running("worker", 3)
    tasksets.end(index=1, exit_code=9, message="boom")
    tasksets.when_told("worker-1: retry 1 of 1, at ")
    failed = tasksets.when_pod(index=1, phase="Failed")
    second = tasksets.when_pod(index=1)
    assert _time(second["metadata"]["creationTimestamp"]) - _ended(failed) >= timedelta(seconds=4)
    after = tasksets.when_running("worker", 3)
    assert [after[index] == before[index] for index in range(3)] == [True, False, True]
    tasksets.end(index=0)
    tasksets.end(index=2)
    # The second failure is one too many.
    tasksets.end(index=1, exit_code=9, message="boom")

    replica = replicas_of(tasksets.when_ended("Failed"))[1]
    assert counts(replica) == (1, 0)
    assert replica["terminatedInfo"] == {"exitCode": 9, "exitMessage": "boom", "reason": "Error"}
    assert len(tasksets.made()) == 4


def test_a_failed_attempt_is_cleared_away_before_the_next_one_begins_after_its_delay(tasksets: Bench) -> None:
    tasksets.submit(role("ps"), role("worker", 2), retryPolicy=retries(1, delay=4))
    tasksets.when_running("worker", 2)
    tasksets.when_running("ps", 1)
    tasksets.end(index=1, exit_code=3, message="no luck")
    status = tasksets.when_told("retry 1 of 1 at ")
    assert (status["state"], tasksets.pods()) == ("Waiting", [])
    (failed,) = status["history"]
    second = tasksets.when_pod()
    assert _time(second["metadata"]["creationTimestamp"]) - _time(failed["trigger"]["at"]) >= timedelta(seconds=4)
    for name, index in (("ps", 0), ("worker", 0), ("worker", 1)):
        tasksets.end(name, index)

    status = tasksets.when_ended("Succeeded")
    assert status["totalRetriedCount"] == 1
    assert [(record["attempt"], record["state"]) for record in status["history"]] == [(0, "Failed"), (1, "Succeeded")]
    assert failed["failedReplicas"] == [{"role": "worker", "index": 1, "exitCode": 3, "message": "no luck"}]
    made = tasksets.made()
    assert sorted(made[3:]) == ["job-ps-1-0-0", "job-worker-1-0-0", "job-worker-1-0-1"]
    assert second["metadata"]["labels"][names.ATTEMPT_LABEL] == "1"


def test_rules_of_the_failure_policy_decide_before_the_budget(tasksets: Bench) -> None:
    rules = [
        {"action": "Ignore", "exitCodes": [7]},
        {"action": "Fail", "podReasons": ["Hopeless"]},
        {"action": "Fail", "exitCodes": [42]},
    ]
    # One that was taken from us but matches a rule is not lost but judged.
    policy: Json = {"retryPolicy": retries(5, delay=1), "failurePolicy": {"rules": rules}}
    tasksets.submit(role(replicas=3, completionPolicy=needs(1, max_failed=-1), **policy))
    first = tasksets.when_running("worker", 3)
    tasksets.end(index=0, exit_code=7)
    tasksets.end(index=1, exit_code=42)
    tasksets.set_status(tasksets.when_pod(index=2), phase="Failed", reason="Hopeless", message="give up")
    tasksets.when_pod(index=0, not_uid=first[0])
    tasksets.end(index=0)

    status = tasksets.when_ended("Succeeded")
    worker, replicas = role_of(status, "worker"), replicas_of(status)
    assert (worker["succeeded"], worker["failed"]) == (1, 2)
    assert [counts(replicas[index]) for index in range(3)] == [(0, 0)] * 3
    assert replicas[2]["terminatedInfo"]["reason"] == "Hopeless"
    assert len(tasksets.made()) == 4


# --- suspension, scale, deadlines


def test_a_suspended_taskset_stops_uncharged_and_goes_on_in_the_same_attempt(tasksets: Bench) -> None:
    tasksets.submit(role(replicas=3, retryPolicy=retries(1)))
    before = tasksets.when_running("worker", 3)
    tasksets.end(index=0)
    tasksets.when(lambda status: role_of(status, "worker").get("succeeded") == 1, "one success")
    tasksets.change(suspend=True)
    status = tasksets.when(lambda status: message_of(status) == "suspended", "suspension")
    assert status["state"] == "Waiting"
    assert [pod["metadata"]["uid"] for pod in tasksets.pods() if pod["status"]["phase"] != "Succeeded"] == []
    tasksets.change(suspend=False)
    for index in (1, 2):
        tasksets.when_pod(index=index, not_uid=before[index])
        tasksets.end(index=index)

    status = tasksets.when_ended("Succeeded")
    assert [counts(each) for each in replicas_of(status).values()] == [(0, 0)] * 3
    assert (status["totalRetriedCount"], len(status["history"])) == (0, 1)
    assert sorted(tasksets.made()[3:]) == ["job-worker-0-1-1", "job-worker-0-1-2"]


def test_a_taskset_submitted_suspended_makes_nothing_until_it_may(tasksets: Bench) -> None:
    tasksets.submit(role(duration="0s"), suspend=True)
    tasksets.when_told("suspended")
    assert tasksets.left() == []
    tasksets.change(suspend=False)

    tasksets.when_ended("Succeeded")


def test_a_role_grows_and_shrinks_while_it_runs(tasksets: Bench) -> None:
    tasksets.submit(role(replicas=2))
    two = tasksets.when_running("worker", 2)
    tasksets.scale(4)
    four = tasksets.when_running("worker", 4)
    assert {index: four[index] for index in two} == two
    tasksets.scale(1)
    eventually(lambda: len(tasksets.pods()) == 1, "one pod")
    one = tasksets.when_running("worker", 1)
    assert one == {0: two[0]}
    tasksets.end()

    status = tasksets.when_ended("Succeeded")
    assert (role_of(status, "worker")["succeeded"], len(tasksets.made())) == (1, 4)


def test_a_taskset_past_its_deadline_fails_and_is_not_retried(tasksets: Bench) -> None:
    tasksets.submit(role(replicas=2), activeDeadlineSeconds=2, retryPolicy=retries(3))

    status = tasksets.when_ended("Failed")
    assert "activeDeadlineSeconds (2 s)" in message_of(status)
    assert (status["totalRetriedCount"], role_of(status, "worker")["stopped"]) == (0, 2)
    assert _time(status["finishAt"]) - _time(status["startAt"]) >= timedelta(seconds=2)
    tasksets.check_that_all_is_gone()


# --- what stays


def test_pod_retention_says_which_pods_stay_and_ttl_when_all_is_gone(tasksets: Bench) -> None:
    # Replica 0 succeeds at once, replica 1 fails later.
    told = {fakepods.EXIT_CODE: "$(TASKROLE_REPLICA_INDEX)", fakepods.DURATION: "$(TASKROLE_REPLICA_INDEX)s"}
    for retention in ("All", "Failed", "None"):
        tasksets.submit(role(replicas=2, annotations=told), name=retention.lower(), podRetention=retention)
    kept = {}
    for name in ("all", "failed", "none"):
        tasksets.when_ended("Failed", name)
        kept[name] = sorted(pod["metadata"]["name"] for pod in tasksets.pods() if _is_of(pod, name))

    assert kept["none"] == []
    assert kept["failed"] == ["failed-worker-0-0-1"]
    assert kept["all"] == ["all-worker-0-0-0", "all-worker-0-0-1"]
    # Control unit and Service stay as long as a pod does.
    beside = {"ConfigMap c-all-0", "ConfigMap c-failed-0", "Service all", "Service failed"}
    kept_pods = {f"Pod {pod}" for pods in kept.values() for pod in pods}
    eventually(
        lambda: set(tasksets.left()) == beside | kept_pods, lambda: f"{beside} alone; there are {tasksets.left()}"
    )
    # Time to live may be set after the end; what was kept goes as well.
    for name in ("all", "failed", "none"):
        tasksets.change(name, ttlSecondsAfterFinished=0)
    for name in ("all", "failed", "none"):
        tasksets.when_gone(name)
    eventually(lambda: tasksets.left() == [], lambda: f"all to be gone; there are {tasksets.left()}")


def test_a_finished_taskset_goes_when_its_time_to_live_is_over(tasksets: Bench) -> None:
    tasksets.submit(role(duration="0s"), ttlSecondsAfterFinished=2)
    ended = tasksets.when_ended("Succeeded")
    tasksets.when_gone()

    assert datetime.now().astimezone() - _time(ended["finishAt"]) >= timedelta(seconds=2)


# --- the order of roles


def test_a_role_begins_when_those_it_depends_on_run(tasksets: Bench) -> None:
    tasksets.submit(
        role("late", dependsOn=["early"]),
        role("early", 2, pod={"schedulerName": "nobody"}),
    )
    tasksets.when_told("late-0: waits until early runs")
    nodes = tasksets.bed.fake_nodes.names
    tasksets.bind(tasksets.when_pod("early", 0, phase="Pending"), nodes[0])
    tasksets.when_pod("early", 0)
    assert tasksets.pods("late") == []
    tasksets.bind(tasksets.when_pod("early", 1, phase="Pending"), nodes[1])
    for name, index in (("late", 0), ("early", 0), ("early", 1)):
        tasksets.end(name, index)

    tasksets.when_ended("Succeeded")
    assert tasksets.made()[-1] == "job-late-0-0-0"


def test_a_role_fails_with_the_one_it_depends_on(tasksets: Bench) -> None:
    tasksets.submit(
        role("late", dependsOn=["early"], eventPolicy=NO_ACTION),
        role("early", eventPolicy=NO_ACTION, pod={"schedulerName": "nobody"}),
    )
    pod = tasksets.when_pod("early", phase="Pending")
    tasksets.annotate(pod, {fakepods.DURATION: "0s", fakepods.EXIT_CODE: "1"})
    # It is never seen to run: from Pending to Failed.
    tasksets.set_status(pod, phase="Failed")

    status = tasksets.when_ended("Failed")
    late = role_of(status, "late")
    assert (late["state"], late["stateMessage"]) == ("Failed", "depends on early, which failed")
    assert tasksets.made() == ["job-early-0-0-0"]


# --- what pods look like


def test_pods_carry_names_labels_owner_environment_and_priority(tasksets: Bench) -> None:
    with tasksets.priority_class(7) as seven, tasksets.priority_class(8) as eight:
        own = {
            "metadata": {"labels": {"mine": "kept", "TaskSet": "overruled"}, "annotations": {"note": "kept"}},
            "spec": {
                "priorityClassName": eight,
                "initContainers": [{"name": "setup", "image": "busybox"}],
                "containers": [
                    {"name": "main", "image": "busybox", "env": [{"name": "ME", "value": "$(TASKROLE_NAME)"}]},
                    {"name": "side", "image": "busybox", "terminationMessagePolicy": "File"},
                ],
            },
        }
        tasksets.submit(
            role("plain"), {"name": "own", "replicas": 2, "template": own}, name="7th", priorityClassName=seven
        )
        plain, pod = tasksets.when_pod("plain"), tasksets.when_pod("own", 1)

    assert (plain["spec"]["priorityClassName"], pod["spec"]["priorityClassName"]) == (seven, eight)
    meta, spec = pod["metadata"], pod["spec"]
    assert meta["name"] == "7th-own-0-0-1"
    assert {"TaskSet": "7th", "PodTaskRole": "own", "PodTaskIndex": "1", "mine": "kept"}.items() <= meta[
        "labels"
    ].items()
    assert meta["annotations"]["note"] == "kept"
    (owner,) = meta["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["controller"]) == ("ConfigMap", "c-7th-0", True)
    tasksets.when(lambda status: status.get("controlUnitUID") == owner["uid"], "the control unit's UID", "7th")
    unit = tasksets.request("GET", scheme.CONFIGMAPS.path(tasksets.namespace, "c-7th-0"))
    assert [each["kind"] for each in unit["metadata"]["ownerReferences"]] == ["TaskSet"]
    assert (spec["hostname"], spec["subdomain"], spec["restartPolicy"]) == ("own-1", "t-7th", "Never")
    ours = {
        "TASKSET_NAMESPACE": tasksets.namespace,
        "TASKSET_NAME": "7th",
        "TASKROLE_NAME": "own",
        "TASKROLE_REPLICA_INDEX": "1",
        "TASKROLE_REPLICAS": "2",
        "TASKSET_ATTEMPT": "0",
    }
    main, side = spec["containers"]
    assert _env(spec["initContainers"][0]) == _env(side) == list(ours.items())
    assert _env(main) == [*ours.items(), ("ME", "$(TASKROLE_NAME)")]
    policies = [each["terminationMessagePolicy"] for each in (main, side)]
    assert policies == ["FallbackToLogsOnError", "File"]
    service = tasksets.request("GET", scheme.SERVICES.path(tasksets.namespace, "t-7th"))["spec"]
    assert (service["clusterIP"], service["publishNotReadyAddresses"]) == ("None", True)


def test_events_tell_the_story(tasksets: Bench) -> None:
    tasksets.submit(role(retryPolicy=retries(1)))
    tasksets.end(exit_code=2)
    tasksets.end()
    tasksets.when_ended("Succeeded")

    def reasons() -> set[str]:
        listed = tasksets.request("GET", scheme.EVENTS.path(tasksets.namespace))["items"]
        return {event["reason"] for event in listed if event["involvedObject"]["kind"] == "TaskSet"}

    eventually(
        lambda: {"Started", "ReplicaRetried", "Succeeded"} <= reasons(), lambda: f"events; there are {reasons()}"
    )


# --- many


def test_the_status_of_many_replicas_stays_small_and_names_those_that_matter(tasksets: Bench) -> None:
    """Most wait for a scheduler that is not there, until the others fail and print a lot."""
    loud = {fakepods.EXIT_CODE: "3", fakepods.MESSAGE: "\x1b[31m" + 4000 * "x"}
    tasksets.submit(
        role("many", 491, pod={"schedulerName": "nobody"}),
        role(
            "loud", 10, duration="2s", annotations=loud, dependsOn=["ready"], completionPolicy=needs(1, max_failed=10)
        ),
        role("ready", pod={"schedulerName": "nobody"}),
    )
    status = tasksets.when(lambda status: role_of(status, "many").get("active") == 491, "all to be made")
    assert "many-0, many-1, many-2 and 489 more: no word yet from scheduler nobody" in message_of(status)
    assert len(json.dumps(status)) < 20_000
    tasksets.bind(tasksets.when_pod("ready", phase="Pending"), tasksets.bed.fake_nodes.names[0])
    status = tasksets.when_ended("Failed", timeout_s=120)

    assert (role_of(status, "many")["stopped"], role_of(status, "loud")["failed"]) == (491, 10)
    assert (len(replicas_of(status, "many")), len(replicas_of(status, "loud"))) == (0, 10)
    assert all(each["terminatedInfo"]["exitCode"] == 3 for each in replicas_of(status, "loud").values())
    assert len(json.dumps(status)) < 20_000
    assert len(tasksets.made()) == 502
    tasksets.check_that_all_is_gone()
    outcomes = [json.loads(line)["outcome"] for line in _listed(tasksets)]
    assert (outcomes.count("Stopped"), outcomes.count("Failed"), len(outcomes)) == (492, 10, 502)
    # Written before it was completed: a controller that starts after that has nothing to write it from.
    completed = int((tasksets.find() or {})["metadata"]["resourceVersion"])
    assert all(int(each["metadata"]["resourceVersion"]) < completed for each in _lists(tasksets))
    tasksets.delete()
    eventually(lambda: not _listed(tasksets), "the list to go with its TaskSet")


# --- the means


def _on(event: str, action: str) -> list[Json]:
    return [{"event": event, "action": action}]


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _ended(pod: Json) -> datetime:
    return _time(pod["status"]["containerStatuses"][0]["state"]["terminated"]["finishedAt"])


def _is_of(pod: Json, name: str) -> bool:
    return bool(pod["metadata"]["labels"]["TaskSet"] == name)


def _lists(tasksets: Bench) -> list[Json]:
    """The ConfigMaps that hold the complete list of replicas."""
    maps = tasksets.request("GET", scheme.CONFIGMAPS.path(tasksets.namespace))["items"]
    return [each for each in maps if each["metadata"]["name"].startswith("r-job-")]


def _listed(tasksets: Bench) -> list[str]:
    """Its lines."""
    return "\n".join(each["data"][names.REPLICA_LIST_KEY] for each in _lists(tasksets)).splitlines()


def _env(container: Json) -> list[tuple[str, Any]]:
    return [(each["name"], each["value"]) for each in container["env"]]
