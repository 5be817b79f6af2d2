"""What a pod's machine orders, and when."""

from __future__ import annotations

from datetime import timedelta

import pytest
from nodeagent_builders import Bench, container, moment, pod

from octarbiter.cluster.nodeagent import news, orders

START = orders.StartContainer("main", 0)
PROBE = {"exec": {"command": ["true"]}, "periodSeconds": 5, "failureThreshold": 2}


def signals(made: list[orders.Order]) -> list[tuple[str, str]]:
    return [(order.container, order.signal) for order in made if isinstance(order, orders.SendSignal)]


def starts(made: list[orders.Order]) -> list[tuple[str, int]]:
    return [(order.container, order.attempt) for order in made if isinstance(order, orders.StartContainer)]


def test_nothing_starts_before_the_pod_is_prepared() -> None:
    bench = Bench(pod())

    assert bench.last == [orders.Prepare(), orders.Report()]
    assert starts(bench.feed(news.Prepared())) == [("main", 0)]


def test_what_cannot_be_prepared_is_tried_again_later() -> None:
    bench = Bench(pod())
    bench.feed(news.PreparationFailed("no such ConfigMap"))

    assert bench.wake_at == moment(10)
    assert bench.at(9) == []
    assert bench.at(10) == [orders.Prepare()]


def test_main_containers_start_in_order_and_each_waits_for_the_hook_of_the_one_before() -> None:
    hook = {"postStart": {"exec": {"command": ["true"]}}}
    bench = Bench(pod([container("a", lifecycle=hook), container("b")]))

    assert starts(bench.feed(news.Prepared())) == [("a", 0)]
    assert starts(bench.started("a")) == []
    assert starts(bench.feed(news.HookDone("a", 0, "postStart"))) == [("b", 0)]


def test_a_start_under_way_is_not_ordered_again() -> None:
    bench = Bench(pod())
    bench.feed(news.Prepared())

    for event in (news.TimeCame(), news.PodSeen(bench.machine.pod), news.Prepared()):
        assert starts(bench.feed(event)) == []


def test_init_containers_run_one_by_one_before_the_main_ones() -> None:
    bench = Bench(pod(init=[container("i1"), container("i2")]))

    assert starts(bench.feed(news.Prepared())) == [("i1", 0)]
    assert starts(bench.started("i1")) == []
    assert starts(bench.ended(0, "i1")) == [("i2", 0)]
    bench.started("i2")
    assert starts(bench.ended(0, "i2")) == [("main", 0)]


def test_an_init_container_that_fails_for_good_fails_the_pod() -> None:
    bench = Bench(pod(init=[container("i1")], restartPolicy="Never"))
    bench.feed(news.Prepared())
    bench.started("i1")

    assert starts(bench.ended(3, "i1")) == []
    assert bench.machine.is_over
    assert bench.phase == "Failed"


def test_a_sidecar_stays_up_and_the_next_container_waits_until_it_has_started() -> None:
    sidecar = container("proxy", restartPolicy="Always", startupProbe=PROBE)
    bench = Bench(pod(init=[sidecar]))
    bench.feed(news.Prepared())

    assert starts(bench.started("proxy")) == []
    assert starts(bench.feed(news.Probed("proxy", 0, "startup", True))) == [("main", 0)]


def test_sidecars_are_stopped_when_the_main_containers_have_ended_and_do_not_count() -> None:
    sidecars = [container(name, restartPolicy="Always") for name in ("s1", "s2")]
    bench = Bench(pod(init=sidecars, restartPolicy="Never"))
    bench.feed(news.Prepared())
    for name in ("s1", "s2", "main"):
        bench.started(name)

    assert signals(bench.ended(0)) == [("s2", "SIGTERM")]
    assert bench.phase == "Running"
    assert signals(bench.ended(143, "s2")) == [("s1", "SIGTERM")]
    bench.ended(143, "s1")
    assert bench.phase == "Succeeded"


def test_a_sidecar_waits_for_the_main_container_also_when_the_pod_is_deleted() -> None:
    bench = Bench(pod(init=[container("s1", restartPolicy="Always")]))
    bench.feed(news.Prepared())
    bench.started("s1")
    bench.started()

    assert signals(bench.delete()) == [("main", "SIGTERM")]
    assert signals(bench.ended(143)) == [("s1", "SIGTERM")]


def test_a_sidecar_that_ends_is_started_again_although_the_pod_never_restarts() -> None:
    bench = Bench(pod(init=[container("s1", restartPolicy="Always")], restartPolicy="Never"))
    bench.feed(news.Prepared())
    bench.started("s1")
    bench.started()

    assert starts(bench.ended(0, "s1")) == [("s1", 1)]


@pytest.mark.parametrize(
    ("policy", "code", "again"),
    [("Always", 0, True), ("Always", 1, True), ("OnFailure", 0, False), ("OnFailure", 1, True), ("Never", 1, False)],
)
def test_the_restart_policy_says_whether_a_container_runs_again(policy: str, code: int, again: bool) -> None:
    bench = Bench(pod(restartPolicy=policy))
    bench.run()

    assert starts(bench.ended(code)) == ([("main", 1)] if again else [])


@pytest.mark.parametrize(("code", "again"), [(42, True), (1, False)])
def test_a_rule_of_the_container_goes_before_its_policy(code: int, again: bool) -> None:
    rule = {"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}}
    bench = Bench(pod([container(restartPolicy="Never", restartPolicyRules=[rule])]))
    bench.run()

    assert bool(starts(bench.ended(code))) == again


def test_pauses_between_restarts_double_from_the_second_on_and_are_counted_from_the_end() -> None:
    bench = Bench(pod())
    bench.run()
    due, waited = 0.0, []
    for attempt in range(8):
        bench.ended(1, attempt=attempt)
        if attempt:
            assert bench.wake_at is not None
            waited.append((bench.wake_at - moment(due)).total_seconds())
            due += waited[-1]
            assert starts(bench.at(due)) == [("main", attempt + 1)]
        bench.started(attempt=attempt + 1)

    assert waited == [10, 20, 40, 80, 160, 300, 300]


def test_ten_minutes_of_running_are_forgiven_a_crash() -> None:
    bench = Bench(pod())
    bench.run()
    bench.ended(1)
    bench.started(attempt=1)
    bench.at(601)

    assert starts(bench.ended(1, attempt=1)) == [("main", 2)]


def test_a_missing_configmap_is_asked_for_again_and_counts_as_no_run() -> None:
    bench = Bench(pod())
    bench.feed(news.Prepared())
    bench.feed(news.ConfigurationFailed("main", 0, 'configmap "c" not found'))

    assert bench.state()["state"] == {
        "waiting": {"reason": "CreateContainerConfigError", "message": 'configmap "c" not found'}
    }
    assert bench.phase == "Pending"
    assert starts(bench.at(10)) == [("main", 0)]


def test_a_deleted_pod_gets_the_signal_then_the_kill_then_its_confirmation() -> None:
    bench = Bench(pod())
    bench.run()

    assert signals(bench.delete(30)) == [("main", "SIGTERM")]
    assert bench.wake_at == moment(30)
    assert signals(bench.at(29)) == []
    assert signals(bench.at(30)) == [("main", "SIGKILL")]
    assert bench.ended(137) == [orders.Report()]
    assert bench.report() == [orders.ConfirmDeletion()]


def test_a_kill_that_had_no_effect_is_repeated() -> None:
    bench = Bench(pod())
    bench.run()
    bench.delete(30)
    bench.at(30)

    assert signals(bench.at(34)) == []
    assert signals(bench.at(35)) == [("main", "SIGKILL")]


def test_two_seconds_are_always_granted() -> None:
    bench = Bench(pod())
    bench.run()

    assert signals(bench.delete(0)) == [("main", "SIGTERM")]
    assert bench.wake_at == moment(2)


def test_a_shorter_grace_period_is_heeded() -> None:
    bench = Bench(pod())
    bench.run()
    bench.delete(300)
    bench.at(10)
    bench.delete(5)

    assert bench.wake_at == moment(15)


def test_a_longer_grace_period_is_not() -> None:
    bench = Bench(pod())
    bench.run()
    bench.delete(5)
    bench.delete(300)

    assert bench.wake_at == moment(5)


def test_the_stop_signal_may_be_chosen() -> None:
    bench = Bench(pod([container(lifecycle={"stopSignal": "SIGUSR1"})]))
    bench.run()

    assert signals(bench.delete()) == [("main", "SIGUSR1")]


def test_the_signal_waits_for_the_pre_stop_hook_but_not_beyond_the_grace_period() -> None:
    hooked = pod([container(lifecycle={"preStop": {"exec": {"command": ["true"]}}})])
    patient, impatient = Bench(hooked), Bench(hooked)
    for bench in (patient, impatient):
        bench.run()
        assert bench.delete(30) == [orders.RunHook("main", 0, "preStop", 30.0), orders.Report()]

    assert signals(patient.feed(news.HookDone("main", 0, "preStop"))) == [("main", "SIGTERM")]
    assert signals(impatient.at(30)) == [("main", "SIGTERM")]
    assert impatient.wake_at == moment(32)


def test_the_end_of_a_pod_is_not_confirmed_before_its_final_status_is_recorded() -> None:
    bench = Bench(pod())
    bench.run()
    bench.delete()
    old = bench.machine.revision
    bench.ended(143)

    assert bench.feed(news.Reported(old)) == []
    assert bench.report() == [orders.ConfirmDeletion()]


def test_a_confirmed_pod_that_a_finalizer_holds_is_left_alone() -> None:
    meta = {"deletionTimestamp": moment(0), "deletionGracePeriodSeconds": 0, "finalizers": ["a/b"]}
    bench = Bench(pod(metadata=meta, status={"phase": "Failed"}))

    assert bench.report() == []


def test_a_pod_that_is_deleted_before_it_started_never_starts() -> None:
    bench = Bench(pod(metadata={"deletionTimestamp": moment(0), "deletionGracePeriodSeconds": 0}))

    assert bench.last == [orders.Report()]
    assert bench.phase == "Failed"
    assert bench.report() == [orders.ConfirmDeletion()]


def test_a_container_that_is_starting_while_the_pod_is_deleted_is_stopped_once_it_runs() -> None:
    bench = Bench(pod())
    bench.feed(news.Prepared())

    assert signals(bench.delete()) == []
    assert not bench.machine.is_over
    assert signals(bench.started()) == [("main", "SIGTERM")]


def test_a_pod_that_vanished_is_stopped_and_released_without_a_word_to_the_server() -> None:
    bench = Bench(pod())
    bench.run()

    assert signals(bench.feed(news.PodGone())) == [("main", "SIGTERM")]
    assert bench.ended(143) == [orders.Release()]


def test_the_active_deadline_fails_the_pod_when_everything_has_stopped() -> None:
    bench = Bench(pod(activeDeadlineSeconds=60, terminationGracePeriodSeconds=5))
    bench.run()

    assert bench.wake_at == moment(60)
    assert signals(bench.at(60)) == [("main", "SIGTERM")]
    assert bench.phase == "Running"
    bench.ended(0)
    assert (bench.phase, bench.status()["reason"]) == ("Failed", "DeadlineExceeded")


def test_liveness_and_readiness_wait_for_startup() -> None:
    bench = Bench(pod([container(startupProbe=PROBE, livenessProbe=PROBE, readinessProbe=PROBE)]))
    bench.feed(news.Prepared())

    assert bench.started() == [orders.RunProbe("main", 0, "startup"), orders.Report()]
    assert bench.feed(news.Probed("main", 0, "startup", True)) == [
        orders.RunProbe("main", 0, "readiness"),
        orders.RunProbe("main", 0, "liveness"),
        orders.Report(),
    ]


def test_a_container_is_stopped_when_liveness_failed_often_enough_and_runs_again() -> None:
    bench = Bench(pod([container(livenessProbe=PROBE | {"terminationGracePeriodSeconds": 3})]))
    bench.run()

    assert bench.feed(news.Probed("main", 0, "liveness", False, "no")) == []
    assert bench.at(5) == [orders.RunProbe("main", 0, "liveness")]
    assert signals(bench.feed(news.Probed("main", 0, "liveness", False, "no"))) == [("main", "SIGTERM")]
    assert signals(bench.at(8)) == [("main", "SIGKILL")]
    assert starts(bench.ended(137)) == [("main", 1)]


def test_an_answer_about_an_earlier_run_is_ignored() -> None:
    bench = Bench(pod([container(livenessProbe=PROBE | {"failureThreshold": 1})]))
    bench.run()
    bench.ended(1)
    bench.started(attempt=1)

    assert signals(bench.feed(news.Probed("main", 0, "liveness", False))) == []
    assert starts(bench.ended(0, attempt=0)) == []


def test_readiness_is_asked_until_the_end_and_liveness_is_not() -> None:
    bench = Bench(pod([container(livenessProbe=PROBE, readinessProbe=PROBE)]))
    bench.run()
    bench.feed(news.Probed("main", 0, "readiness", True))
    bench.feed(news.Probed("main", 0, "liveness", True))
    bench.delete()

    assert bench.at(5) == [orders.RunProbe("main", 0, "readiness")]


def test_a_failed_post_start_hook_stops_the_container() -> None:
    bench = Bench(pod([container(lifecycle={"postStart": {"exec": {"command": ["false"]}}})]))
    bench.run()

    assert signals(bench.feed(news.HookDone("main", 0, "postStart", "exit code 1"))) == [("main", "SIGTERM")]


def test_a_remembered_run_is_taken_over_and_not_started_again() -> None:
    run = news.Run("main", 2, "process://x", moment(-60))
    bench = Bench(pod(), [run])

    assert starts(bench.last) == []
    assert bench.state()["restartCount"] == 2
    assert bench.phase == "Running"
    assert starts(bench.ended(1, attempt=2)) == [("main", 3)]


def test_a_remembered_end_counts_as_if_it_had_been_seen() -> None:
    run = news.Run("main", 0, "process://x", moment(-60), news.Outcome(7, "Error", "", moment(-5)))
    bench = Bench(pod(restartPolicy="Never"), [run])

    assert starts(bench.last) == []
    assert bench.phase == "Failed"


def test_a_container_that_was_running_and_of_which_nothing_is_known_is_not_run_twice() -> None:
    running = {"name": "main", "containerID": "process://x", "state": {"running": {"startedAt": moment(-60)}}}
    bench = Bench(pod(status={"phase": "Running", "containerStatuses": [running]}, restartPolicy="Never"))

    assert starts(bench.last) == []
    assert bench.state()["state"]["terminated"]["reason"] == "ContainerStatusUnknown"
    assert bench.phase == "Failed"


def test_what_runs_although_the_pod_is_over_is_stopped() -> None:
    bench = Bench(pod(status={"phase": "Failed"}), [news.Run("main", 0, "process://x", moment(-60))])

    assert signals(bench.last) == [("main", "SIGTERM")]


def test_a_ready_container_stays_ready_when_the_agent_restarts() -> None:
    ready = {"name": "main", "containerID": "process://x", "ready": True, "started": True}
    bench = Bench(
        pod([container(readinessProbe=PROBE)], status={"containerStatuses": [ready]}),
        [news.Run("main", 0, "process://x", moment(-60))],
    )

    assert bench.state()["ready"] is True


def test_the_deadline_counts_from_the_first_start_also_after_a_restart_of_the_agent() -> None:
    bench = Bench(pod(status={"startTime": moment(-50)}, activeDeadlineSeconds=60))

    assert bench.wake_at == moment(10)
    assert bench.machine.started_at == moment(0) - timedelta(seconds=50)


def test_a_pod_that_is_deleted_while_it_is_prepared_is_over_when_the_answer_came() -> None:
    bench = Bench(pod())
    bench.delete()

    assert not bench.machine.is_over
    assert bench.feed(news.Prepared()) == [orders.Report()]
    assert bench.report() == [orders.ConfirmDeletion()]


def test_a_report_from_before_the_deletion_confirms_nothing() -> None:
    bench = Bench(pod())
    bench.feed(news.PreparationFailed("no"))
    old = bench.machine.revision
    bench.delete()

    assert bench.machine.is_over
    assert bench.feed(news.Reported(old)) == []


def test_all_main_containers_get_the_signal_at_once() -> None:
    bench = Bench(pod([container("a"), container("b")]))
    bench.feed(news.Prepared())
    bench.started("a")
    bench.started("b")

    assert signals(bench.delete()) == [("a", "SIGTERM"), ("b", "SIGTERM")]


def test_the_answer_to_another_start_is_ignored() -> None:
    bench = Bench(pod())
    bench.feed(news.Prepared())

    assert bench.started(attempt=5) == []
    assert bench.phase == "Pending"


def test_a_clock_of_the_server_that_is_ahead_grants_no_more_than_the_grace_period() -> None:
    bench = Bench(pod())
    bench.run()
    ahead = {"deletionTimestamp": moment(900), "deletionGracePeriodSeconds": 5}
    bench.see(pod(metadata=ahead))

    assert bench.wake_at == moment(5)


def test_the_end_before_the_remembered_run_is_taken_from_what_was_reported() -> None:
    before = {"terminated": {"exitCode": 4, "reason": "Error", "containerID": "process://w"}}
    reported = {"name": "main", "containerID": "process://x", "restartCount": 1, "lastState": before}
    bench = Bench(pod(status={"containerStatuses": [reported]}), [news.Run("main", 1, "process://x", moment(-60))])

    assert bench.state()["lastState"]["terminated"]["exitCode"] == 4
