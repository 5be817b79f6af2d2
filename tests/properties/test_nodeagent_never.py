"""What a pod's machine never does, whatever happens, and in whatever order.

A world without a clock of its own: containers run until a step ends them, answers come late or never before the agent
is replaced by a new one, which knows only what the runtime and the API server remember.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from octarbiter.api import codec
from octarbiter.cluster.nodeagent import news, orders, patches, status
from octarbiter.cluster.nodeagent.machine import Machine
from octarbiter.cluster.nodeagent.pods import Pod, PodStatus

START = datetime(2026, 1, 1, tzinfo=UTC)
TERMINAL = ("Succeeded", "Failed")
PROBE = {"exec": {"command": ["true"]}, "failureThreshold": 2, "periodSeconds": 3}


def container(name: str, draw: st.DrawFn, **fields: Any) -> dict[str, Any]:
    made: dict[str, Any] = {"name": name, "image": "none", "command": ["x"]} | fields
    if draw(st.booleans()):
        made["lifecycle"] = {"postStart": PROBE} if draw(st.booleans()) else {"preStop": PROBE}
    return made


@st.composite
def pods(draw: st.DrawFn) -> dict[str, Any]:
    inits = []
    for number in range(draw(st.integers(0, 2))):
        sidecar = {"restartPolicy": "Always"} if draw(st.booleans()) else {}
        inits.append(container(f"i{number}", draw, **sidecar))
    mains = []
    for number in range(draw(st.integers(1, 2))):
        kinds = draw(st.sets(st.sampled_from(["startupProbe", "livenessProbe", "readinessProbe"])))
        mains.append(container(f"m{number}", draw, **dict.fromkeys(kinds, PROBE)))
    spec = {
        "nodeName": "n1",
        "initContainers": inits,
        "containers": mains,
        "restartPolicy": draw(st.sampled_from(["Always", "OnFailure", "Never"])),
        "terminationGracePeriodSeconds": draw(st.sampled_from([0, 5, 30])),
    }
    if draw(st.booleans()):
        spec["activeDeadlineSeconds"] = draw(st.integers(1, 60))
    meta = {"name": "p", "namespace": "team", "uid": "u", "generation": 1}
    return {"metadata": meta, "spec": spec, "status": {"phase": "Pending"}}


class World:
    def __init__(self, pod: dict[str, Any]) -> None:
        self.now = START
        self.server: dict[str, Any] | None = pod
        self.pending: list[orders.Order] = []
        self.runs: dict[tuple[str, int], news.Run] = {}
        self.signalled: dict[tuple[str, int], datetime] = {}
        self.killed: set[tuple[str, int]] = set()
        self.confirmed = self.released = False
        self.reports = False
        self.wake_at: datetime | None = None
        self.spec = codec.from_json(pod, Pod).spec
        self.replace_agent()

    # What the agent would do.

    def replace_agent(self) -> None:
        """Starts that were under way either happened or never will."""
        self.pending = []
        if self.released:
            return
        pod = codec.from_json(self.server or self.last_pod, Pod)
        self.machine = Machine(pod, list(self.runs.values()), self.now)
        self.feed(news.PodSeen(pod) if self.server is not None else news.PodGone())

    def feed(self, event: news.Event) -> None:
        if self.released:
            return
        was_ending = self.machine.ending is not None
        for order in self.machine.feed(event, self.now):
            self.take(order, was_ending)

    def take(self, order: orders.Order, was_ending: bool) -> None:
        match order:
            case orders.StartContainer():
                assert not was_ending, "nothing starts in a pod that ends"
                self.check_start(order)
                self.pending.append(order)
            case orders.SendSignal():
                self.check_signal(order)
            case orders.WakeAt():
                self.wake_at = order.at
            case orders.Report():
                self.reports = True
            case orders.ConfirmDeletion():
                assert self.server is not None
                assert self.server["status"]["phase"] in TERMINAL, "the final status goes first"
                assert not self.running(), "nothing runs when the end is confirmed"
                self.confirmed = True
            case orders.Release():
                assert not self.running(), "nothing runs when the pod is released"
                self.released = True
            case orders.Prepare() | orders.RunHook() | orders.RunProbe():
                self.pending.append(order)
            case orders.Tell():
                pass

    def check_start(self, order: orders.StartContainer) -> None:
        name = order.container
        assert not any(run.container == name for run in self.running()), "nothing runs twice at once"
        starting = [o for o in self.pending if isinstance(o, orders.StartContainer) and o.container == name]
        assert not starting, "nothing is started twice at once"
        earlier = [attempt for other, attempt in self.runs if other == name]
        assert order.attempt == max(earlier, default=-1) + 1, "every run has a number of its own"
        is_main = any(name == main.name for main in self.spec.containers)
        if is_main:
            assert not earlier or self.spec.restart_policy != "Never", "what may run once runs once"
            for init in self.spec.init_containers:
                runs = [run for (other, _), run in self.runs.items() if other == init.name]
                if init.restart_policy == "Always":
                    assert runs, "sidecars go before"
                else:
                    assert any(run.outcome is not None and run.outcome.exit_code == 0 for run in runs), (
                        "and so do inits"
                    )

    def check_signal(self, order: orders.SendSignal) -> None:
        key = (order.container, order.attempt)
        assert self.runs[key].outcome is None, "signals go to what runs"
        if order.signal == "SIGKILL":
            assert self.now - self.signalled[key] >= timedelta(seconds=2), "everybody gets two seconds"
            self.killed.add(key)
        else:
            assert order.signal == "SIGTERM"
            self.signalled[key] = self.now

    def running(self) -> list[news.Run]:
        return [run for run in self.runs.values() if run.outcome is None]

    # What may happen.

    def answer(self, number: int, good: bool) -> None:
        if not self.pending:
            return
        order = self.pending.pop(number % len(self.pending))
        match order:
            case orders.Prepare():
                self.feed(news.Prepared() if good else news.PreparationFailed("no"))
            case orders.StartContainer() if good:
                run = news.Run(order.container, order.attempt, f"x://{order.container}/{order.attempt}", self.now)
                self.runs[order.container, order.attempt] = run
                self.feed(news.ContainerStarted(run.container, run.attempt, run.id, self.now))
            case orders.StartContainer():
                self.feed(news.ConfigurationFailed(order.container, order.attempt, "no"))
            case orders.RunHook():
                self.feed(news.HookDone(order.container, order.attempt, order.hook, "" if good else "no"))
            case orders.RunProbe():
                self.feed(news.Probed(order.container, order.attempt, order.probe, good, ""))

    def end(self, number: int, good: bool) -> None:
        running = self.running()
        if running:
            run = running[number % len(running)]
            outcome = news.Outcome(0 if good else 1, "Completed" if good else "Error", "", self.now)
            self.runs[run.container, run.attempt] = news.Run(
                run.container, run.attempt, run.id, run.started_at, outcome
            )
            self.feed(news.ContainerEnded(run.container, run.attempt, outcome))

    def report(self) -> None:
        if self.released or self.server is None:
            return
        self.reports = False
        pod, revision = codec.from_json(self.server, Pod), self.machine.revision
        told = status.of(self.machine, host_ip="10.0.0.1", pod_ip="127.64.0.1", now=self.now)
        before = self.server["status"]["phase"]
        assert before not in TERMINAL or told["phase"] == before, "a final phase is final"
        if told["phase"] in TERMINAL:
            assert not self.running(), "a final phase means that nothing runs"
        self.server = self.server | {"status": codec.to_json(codec.from_json(told, PodStatus))}
        after = codec.from_json(self.server, Pod)
        assert patches.needed(after, told) is None, "what was reported needs no report"
        assert pod.metadata.uid == after.metadata.uid
        self.feed(news.PodSeen(after))
        self.feed(news.Reported(revision))

    def wait(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)
        self.feed(news.TimeCame())

    def delete(self, grace_s: int) -> None:
        if self.server is not None:
            asked = {"deletionTimestamp": codec.to_json(self.now + timedelta(seconds=grace_s))}
            meta = self.server["metadata"] | asked | {"deletionGracePeriodSeconds": grace_s}
            self.server = self.server | {"metadata": meta}
            self.feed(news.PodSeen(codec.from_json(self.server, Pod)))

    def vanish(self) -> None:
        if self.server is not None:
            self.last_pod, self.server = self.server, None
            self.feed(news.PodGone())

    def settle(self) -> None:
        """From now on everything is answered, signals are obeyed, and time goes on."""
        for _ in range(200):
            if self.released or self.confirmed:
                return
            for _ in range(20):
                self.answer(0, True)
            for key in list(self.signalled):
                number = next((n for n, run in enumerate(self.running()) if (run.container, run.attempt) == key), None)
                if number is not None and (key in self.killed or key[1] % 2 == 0):  # the others wait for the kill
                    self.end(number, False)
            self.report()
            if self.wake_at is not None and self.wake_at > self.now:
                self.now = self.wake_at
            self.wait(0)


Step = tuple[str, int, bool]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            ["answer"] * 6 + ["end", "end", "report", "report", "wait", "wait", "wake", "delete", "replace"]
        ),
        st.integers(0, 40),
        st.sampled_from([True, True, True, False]),
    ),
    max_size=60,
)


def live(pod: dict[str, Any], steps: list[Step]) -> World:
    world = World(pod)
    for kind, number, good in steps:
        match kind:
            case "answer":
                world.answer(number, good)
            case "end":
                world.end(number, good)
            case "report":
                world.report()
            case "wait":
                world.wait(number)
            case "wake" if world.wake_at is not None:
                world.now = max(world.now, world.wake_at)
                world.wait(0)
            case "delete" if number < 8:
                world.delete(number)
            case "replace":
                world.replace_agent()
    return world


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(pod=pods(), steps=STEPS)
def test_a_deleted_pod_ends_and_is_confirmed_and_nothing_forbidden_happens_on_the_way(
    pod: dict[str, Any], steps: list[Step]
) -> None:
    world = live(pod, steps)
    world.delete(5)
    world.settle()

    assert world.confirmed


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(pod=pods(), steps=STEPS, replaced=st.booleans())
def test_a_pod_that_vanishes_is_stopped_and_released(pod: dict[str, Any], steps: list[Step], replaced: bool) -> None:
    world = live(pod, steps)
    world.vanish()
    if replaced:
        world.replace_agent()
    world.settle()

    assert world.released


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(pod=pods(), steps=STEPS)
def test_a_pod_whose_containers_all_end_well_succeeds_unless_it_restarts_for_ever(
    pod: dict[str, Any], steps: list[Step]
) -> None:
    pod["spec"] |= {"restartPolicy": "OnFailure"}
    pod["spec"].pop("activeDeadlineSeconds", None)
    world = live(pod, [step for step in steps if step[0] != "delete"])
    for _ in range(300):
        if world.server is not None and world.server["status"]["phase"] in TERMINAL:
            break
        world.answer(0, True)
        sidecars = {init.name for init in world.spec.init_containers if init.restart_policy == "Always"}
        for number, run in enumerate(world.running()):
            if run.container not in sidecars or (run.container, run.attempt) in world.signalled:
                world.end(number, True)
                break
        world.report()
        world.now += timedelta(seconds=400)
        world.wait(0)

    assert world.server is not None
    assert world.server["status"]["phase"] == "Succeeded"
