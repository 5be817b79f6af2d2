"""What is reported of a pod: words and order of the kubelet."""

from __future__ import annotations

from typing import Any

from nodeagent_builders import Bench, container, moment, pod

from octarbiter.api import codec
from octarbiter.cluster.nodeagent import news, patches
from octarbiter.cluster.nodeagent.pods import Pod

T0 = "2026-01-01T00:00:00Z"
T9 = "2026-01-01T00:00:09Z"
PROBE = {"exec": {"command": ["true"]}}


def condition(type_: str, status: str, reason: str = "", message: str = "", at: str = T0) -> dict[str, Any]:
    words = {name: value for name, value in (("reason", reason), ("message", message)) if value}
    return {"type": type_, "status": status, **words, "observedGeneration": 1, "lastTransitionTime": at}


def test_a_pod_that_was_just_accepted() -> None:
    unready = ("ContainersNotReady", "containers with unready status: [main]")

    assert Bench(pod()).status() == {
        "phase": "Pending",
        "observedGeneration": 1,
        "startTime": T0,
        "hostIP": "127.0.0.1",
        "hostIPs": [{"ip": "127.0.0.1"}],
        "conditions": [
            condition("PodReadyToStartContainers", "False"),
            condition("Initialized", "True"),
            condition("Ready", "False", *unready),
            condition("ContainersReady", "False", *unready),
            condition("PodScheduled", "True"),
        ],
        "containerStatuses": [
            {
                "name": "main",
                "state": {"waiting": {"reason": "ContainerCreating"}},
                "lastState": {},
                "ready": False,
                "restartCount": 0,
                "image": "busybox",
                "imageID": "",
                "started": False,
            }
        ],
    }


def test_a_pod_that_runs() -> None:
    bench = Bench(pod())
    bench.run()

    assert bench.status() == {
        "phase": "Running",
        "observedGeneration": 1,
        "startTime": T0,
        "hostIP": "127.0.0.1",
        "hostIPs": [{"ip": "127.0.0.1"}],
        "podIP": "127.64.0.1",
        "podIPs": [{"ip": "127.64.0.1"}],
        "conditions": [
            condition("PodReadyToStartContainers", "True"),
            condition("Initialized", "True"),
            condition("Ready", "True"),
            condition("ContainersReady", "True"),
            condition("PodScheduled", "True"),
        ],
        "containerStatuses": [
            {
                "name": "main",
                "state": {"running": {"startedAt": T0}},
                "lastState": {},
                "ready": True,
                "restartCount": 0,
                "image": "busybox",
                "imageID": "",
                "started": True,
                "containerID": "process://main-0",
            }
        ],
    }


def test_a_pod_that_succeeded() -> None:
    bench = Bench(pod(restartPolicy="Never"))
    bench.run()
    bench.report()
    bench.at(9)
    bench.ended(0)

    shown = bench.status()
    assert shown["phase"] == "Succeeded"
    assert shown["conditions"] == [
        condition("PodReadyToStartContainers", "False", at=T9),
        condition("Initialized", "True", "PodCompleted"),
        condition("Ready", "False", "PodCompleted", at=T9),
        condition("ContainersReady", "False", "PodCompleted", at=T9),
        condition("PodScheduled", "True"),
    ]
    assert shown["containerStatuses"][0]["state"] == {
        "terminated": {
            "exitCode": 0,
            "reason": "Completed",
            "startedAt": T0,
            "finishedAt": T9,
            "containerID": "process://main-0",
        }
    }
    assert shown["containerStatuses"][0]["ready"] is False


def test_a_pod_that_failed() -> None:
    bench = Bench(pod(restartPolicy="Never"))
    bench.run()
    bench.ended(3)

    assert bench.phase == "Failed"
    assert bench.condition("Initialized") == ("True", "", "")
    assert bench.condition("Ready") == ("False", "PodFailed", "")
    assert bench.condition("ContainersReady") == ("False", "PodFailed", "")


def test_one_failure_among_many_successes_fails_the_pod() -> None:
    bench = Bench(pod([container("a"), container("b")], restartPolicy="Never"))
    bench.feed(news.Prepared())
    bench.started("a")
    bench.started("b")
    bench.ended(0, "a")

    assert bench.phase == "Running"
    bench.ended(1, "b")
    assert bench.phase == "Failed"


def test_init_containers_that_are_not_through_are_named() -> None:
    bench = Bench(pod(init=[container("i1"), container("i2")]))
    bench.feed(news.Prepared())
    bench.started("i1")
    bench.ended(0, "i1")

    assert bench.phase == "Pending"
    assert bench.condition("Initialized") == (
        "False",
        "ContainersNotInitialized",
        "containers with incomplete status: [i2]",
    )
    assert [status["name"] for status in bench.status()["initContainerStatuses"]] == ["i1", "i2"]
    assert bench.state("i1")["ready"] is True
    assert bench.state()["state"] == {"waiting": {"reason": "PodInitializing"}}


def test_main_containers_are_listed_by_name() -> None:
    bench = Bench(pod([container("z"), container("a")]))

    assert [status["name"] for status in bench.status()["containerStatuses"]] == ["a", "z"]


def test_a_restarted_container_shows_its_last_end() -> None:
    bench = Bench(pod())
    bench.run()
    bench.at(9)
    bench.ended(2)
    bench.started(attempt=1)

    shown = bench.state()
    assert (shown["restartCount"], shown["state"]) == (1, {"running": {"startedAt": T9}})
    assert shown["lastState"]["terminated"]["exitCode"] == 2
    assert shown["lastState"]["terminated"]["containerID"] == "process://main-0"


def test_a_container_in_back_off_says_how_long_it_waits() -> None:
    bench = Bench(pod())
    bench.run()
    bench.ended(2)
    bench.started(attempt=1)
    bench.ended(2, attempt=1)

    shown = bench.state()
    assert shown["state"] == {
        "waiting": {
            "reason": "CrashLoopBackOff",
            "message": "back-off 10s restarting failed container=main pod=web_team(u-1)",
        }
    }
    assert (shown["restartCount"], shown["lastState"]["terminated"]["exitCode"]) == (1, 2)
    assert bench.phase == "Running"


def test_a_deleted_pod_in_back_off_shows_how_its_container_ended() -> None:
    bench = Bench(pod())
    bench.run()
    bench.ended(2)
    bench.started(attempt=1)
    bench.ended(2, attempt=1)
    bench.delete()

    assert "terminated" in bench.state()["state"]
    assert bench.phase == "Failed"


def test_a_container_with_a_readiness_probe_is_ready_when_it_passed() -> None:
    bench = Bench(pod([container(readinessProbe=PROBE)]))
    bench.run()

    assert (bench.state()["started"], bench.state()["ready"]) == (True, False)
    bench.feed(news.Probed("main", 0, "readiness", True))
    assert bench.condition("Ready")[0] == "True"


def test_a_container_is_not_called_running_before_its_post_start_hook_passed() -> None:
    bench = Bench(pod([container(lifecycle={"postStart": PROBE})]))
    bench.run()

    assert bench.phase == "Pending"
    bench.feed(news.HookDone("main", 0, "postStart"))
    assert bench.phase == "Running"


def test_readiness_gates_are_heeded() -> None:
    gates = [{"conditionType": "a/b"}, {"conditionType": "c/d"}]
    others = [{"type": "a/b", "status": "False"}]
    bench = Bench(pod(readinessGates=gates, status={"conditions": others}))
    bench.run()

    assert bench.condition("ContainersReady")[0] == "True"
    assert bench.condition("Ready") == (
        "False",
        "ReadinessGatesNotReady",
        'the status of pod readiness gate "a/b" is not "True", but False, '
        'corresponding condition of pod readiness gate "c/d" does not exist.',
    )


def test_a_pod_deleted_while_it_was_pending_ends_failed_and_its_containers_unlocated() -> None:
    bench = Bench(pod(metadata={"deletionTimestamp": moment(0), "deletionGracePeriodSeconds": 0}))

    assert bench.phase == "Failed"
    assert bench.state()["state"]["terminated"]["reason"] == "ContainerStatusUnknown"


def test_a_deleted_pod_whose_containers_end_well_succeeded() -> None:
    bench = Bench(pod())
    bench.run()
    bench.delete()
    bench.ended(0)

    assert bench.phase == "Succeeded"


def test_a_final_phase_never_changes() -> None:
    ended = {"name": "main", "state": {"terminated": {"exitCode": 1}}}
    bench = Bench(pod(status={"phase": "Succeeded", "containerStatuses": [ended]}))

    assert bench.phase == "Succeeded"


def server(bench: Bench) -> Pod:
    """The pod as the server has it after the report."""
    bench.report()
    return bench.machine.pod


def test_nothing_is_sent_when_nothing_changed() -> None:
    bench = Bench(pod())
    bench.run()

    assert patches.needed(server(bench), bench.status()) is None


def test_only_what_changed_is_sent_with_the_uid_and_the_order_of_conditions() -> None:
    bench = Bench(pod(restartPolicy="Never"))
    bench.run()
    before = server(bench)
    bench.at(9)
    bench.ended(0)

    patch = patches.needed(before, bench.status())
    assert patch is not None
    assert patch["metadata"] == {"uid": "u-1"}
    assert set(patch["status"]) == {"phase", "conditions", "$setElementOrder/conditions", "containerStatuses"}
    assert [c["type"] for c in patch["status"]["conditions"]] == [
        "PodReadyToStartContainers",
        "Initialized",
        "Ready",
        "ContainersReady",
    ]


def test_words_that_no_longer_hold_are_taken_away() -> None:
    bench = Bench(pod())
    before = server(bench)
    bench.run()

    patch = patches.needed(before, bench.status())
    assert patch is not None
    ready = next(c for c in patch["status"]["conditions"] if c["type"] == "Ready")
    assert (ready["status"], ready["reason"], ready["message"]) == ("True", None, None)


def test_conditions_of_others_are_kept_and_never_sent() -> None:
    others = [{"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}]
    seen = pod(status={"conditions": others})
    bench = Bench(seen)

    assert bench.status()["conditions"][0] == others[0]
    patch = patches.needed(seen, bench.status())
    assert patch is not None
    assert "DisruptionTarget" not in [c["type"] for c in patch["status"]["conditions"]]
    assert patch["status"]["$setElementOrder/conditions"][0] == {"type": "DisruptionTarget"}


def test_the_status_can_be_read_again() -> None:
    bench = Bench(pod(init=[container("i")]))

    assert codec.from_json({"status": bench.status()}, Pod).status.phase == "Pending"
