"""Does everything come out right, however often and whenever the controller is killed?

Some dozens of TaskSets (`sweep_cases`) are under way at any time; as some finish, others are submitted. Meanwhile the
controller is killed again and again, a random moment after it began to act, and started again at once; now and then two
compete for the lease, and the leader is killed, or frozen and woken when the other leads. After the last kill one
controller is left in peace until all is finished. An observer (`sweep_observer`) follows the API server's own watch all
the time; `sweep_checks` judges each TaskSet; in the end nothing may be left over, and nothing may change any more, also
not when another controller looks at it.
"""

from __future__ import annotations

import collections
import random
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import sweep_cases
import sweep_checks
import yaml
from sweep_cases import Case, Meddling
from sweep_controllers import Controller
from sweep_deaths import START_TIMEOUT_S, Deaths
from sweep_meddling import Script, Somebody
from sweep_observer import TASKSETS, Observer, Seen

from octarbiter.api import crd, kinds
from octarbiter.testing.kubernetes import connection, controlplane

Json = dict[str, Any]

PATIENCE_S = 120.0
"""In peace something must get done in any such time."""
REST_S = 4.0
SOON = 3
"""After so many controllers have looked at it, a finished TaskSet has been cleared away."""


@dataclass(slots=True)
class Entry:
    case: Case
    seen: Seen
    script: Script
    then: Case | None
    """To be submitted when this one is gone."""
    finished_at_start: int = 0
    """How many controllers had been started when it was first found finished."""


@dataclass(slots=True)
class Outcome:
    seed: int
    kills: int = 0
    elections: int = 0
    freezes: int = 0
    starts: int = 0
    seconds: float = 0.0
    pods: int = 0
    under_way: list[int] = field(default_factory=list)
    """Unfinished TaskSets at each kill."""
    finished: collections.Counter[str] = field(default_factory=collections.Counter)
    unnoticed_losses: int = 0
    """Pods deleted so early that nobody had written down that they were there."""
    late_s: list[float] = field(default_factory=list)
    """Of pods that were on their way when their TaskSet was deleted (and were removed): how long after it they came."""
    problems: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        under_way = self.under_way or [0]
        rows = {
            "seed": self.seed,
            "kills": f"{self.kills}, of them {self.freezes} freezes; {self.elections} elections",
            "controllers started": self.starts,
            "seconds": round(self.seconds),
            "under way at a kill": f"{min(under_way)} at least, {statistics.median(under_way):.0f} in the middle",
            "pods": self.pods,
            "pods made too late": f"{len(self.late_s)}, by {max(self.late_s, default=0.0):.1f} s at most",
            "unnoticed losses": self.unnoticed_losses,
            "TaskSets finished": sum(self.finished.values()),
            **{f"  {kind}": count for kind, count in sorted(self.finished.items())},
            "problems": len(self.problems),
        }
        return "\n".join(f"{name:<24}{value}" for name, value in rows.items())


class CrashSweep:
    def __init__(
        self,
        control_plane: controlplane.ControlPlane,
        *,
        kills: int,
        seed: int,
        tasksets: int = 50,
        say: Callable[[str], None] = lambda line: None,
    ) -> None:
        """`tasksets`: how many are under way at any time."""
        _install_crd(control_plane)
        self._control_plane, self._kills, self._population, self._say = control_plane, kills, tasksets, say
        self._dice = random.Random(seed)
        self._cases = sweep_cases.endless(seed)
        self._namespace = control_plane.create_namespace("sweep-")
        self._observer = Observer(control_plane, self._namespace)
        self._somebody = Somebody(control_plane, self._namespace, self._observer, self._dice)
        self._deaths = Deaths(self._dice, self._controller, self._tick, self._killed)
        self._running: list[Entry] = []
        self._finished: list[Entry] = []
        self._leaving: list[Entry] = []
        self._said_at = self._began = time.monotonic()
        self.outcome = Outcome(seed)

    def run(self) -> Outcome:
        self._observer.start()
        try:
            while self._deaths.kills < self._kills:
                self._fill()
                self._deaths.round(self._kills - self._deaths.kills)
            self._drain()
            self._rest()
        finally:
            self._deaths.end_all()
            self._observer.stop()
        self.outcome.problems += self._observer.problems + self._deaths.problems
        deaths, now = self._deaths, self.outcome
        now.kills, now.elections, now.freezes, now.starts = (
            deaths.kills,
            deaths.elections,
            deaths.freezes,
            deaths.starts,
        )
        self.outcome.pods = self._observer.pods_made
        self.outcome.seconds = time.monotonic() - self._began
        return self.outcome

    # --- controllers

    def _controller(self, number: int, stands_by: bool) -> Controller:
        log = self._control_plane.directory / f"{self._namespace}-controller-{number}.log"
        command = ["controller", "--namespace", self._namespace]
        return Controller(self._control_plane.kubeconfig, command, self._namespace, log, stands_by)

    def _killed(self) -> None:
        self.outcome.under_way.append(len(self._running))
        self._fill()
        self._retire()

    # --- TaskSets

    def _fill(self) -> None:
        while len(self._running) < self._population:
            self._submit(next(self._cases))

    def _submit(self, case: Case) -> None:
        seen = self._observer.of(self._somebody.create(case))
        self._running.append(Entry(case, seen, self._somebody.script(case, seen), case.then))

    def _tick(self) -> None:
        for entry in list(self._running):
            done = next(entry.script, self) is self
            if entry.seen.is_gone and entry.then is not None:
                # At once: what is left of the first one is still there.
                self._submit(entry.then)
                entry.then = None
            if done and (entry.seen.is_cleared if entry.case.vanishes else entry.seen.is_completed):
                self._running.remove(entry)
                self._finished.append(entry)
                entry.finished_at_start = self._deaths.starts
        if time.monotonic() - self._said_at > 10:
            self._said_at = time.monotonic()
            self._say(self._progress())

    def _retire(self) -> None:
        """Judge and delete those that finished long ago, so that the cluster does not fill up."""
        if len(self._finished) > 4 * self._population:
            for entry in self._finished[: -2 * self._population]:
                if entry.finished_at_start + SOON <= self._deaths.starts:
                    self._judge(entry)
                    self._finished.remove(entry)
                    self._leaving.append(entry)
                    self._somebody.delete(entry.seen.name, entry.seen.uid)
        for entry in list(self._leaving):
            if entry.seen.is_cleared:
                self._leaving.remove(entry)
                self._observer.forget(entry.seen.uid)

    def _replica_lists(self, entry: Entry) -> list[Json]:
        """The ConfigMaps that hold every replica of a large TaskSet."""
        prefix = f"r-{entry.seen.name}-{entry.seen.status.get('attempt', 0)}-"
        found = self._control_plane.request("GET", f"/api/v1/namespaces/{self._namespace}/configmaps")["items"]
        return [item for item in found if item["metadata"]["name"].startswith(prefix)]

    def _judge(self, entry: Entry) -> None:
        case, seen = entry.case, entry.seen
        robberies = self._somebody.robberies.get(seen.uid, 0)
        wrong = list(sweep_checks.wrong_with(case, seen, robberies))
        if case.is_large:
            wrong += sweep_checks.wrong_with_list(case, self._replica_lists(entry))
        self.outcome.finished[case.kind] += 1
        if case.meddling is Meddling.SNATCH:
            names = [pod.name for pod in seen.pods.values()]
            self.outcome.unnoticed_losses += len(names) - len(set(names))
        if case.meddling is Meddling.DELETE:
            self.outcome.late_s += [
                pod.seen_s - seen.finished_s for pod in seen.pods.values() if pod.made_at > seen.finished_at
            ]
        if wrong:
            self._problem(f"{case.name}: " + "; ".join(wrong), seen)

    # --- the end

    def _drain(self) -> None:
        self._deaths.start()
        self._deaths.wait_until_one_acts()
        last, since = len(self._running), time.monotonic()
        while self._running:
            self._deaths.tick()
            if len(self._running) != last:
                last, since = len(self._running), time.monotonic()
            if time.monotonic() - since > PATIENCE_S:
                for entry in self._running:
                    message = entry.seen.status.get("stateMessage", "")
                    self._problem(
                        f"{entry.case.name} does not finish: {entry.seen.status.get('phase')} {message}", entry.seen
                    )
                break
            self._retire()

    def _rest(self) -> None:
        """All is over: nothing is left, and nothing changes, also not when a new controller looks at it all."""
        deadline = time.monotonic() + PATIENCE_S
        while self._leaving and time.monotonic() < deadline:
            self._deaths.tick()
            self._retire()
        self._deaths.pass_time(1.0)
        before = dict(self._stored())
        self._deaths.end_all()
        self._deaths.start()
        self._deaths.wait_until_one_acts()
        self._deaths.pass_time(REST_S)
        after = dict(self._stored())
        for key in sorted(before.keys() | after.keys()):
            if before.get(key) != after.get(key):
                self._problem(f"not at rest: {key} went from version {before.get(key)} to {after.get(key)}")
        for entry in self._finished:
            self._judge(entry)
        wanted = {f"tasksets/{entry.seen.name}" for entry in self._finished if not entry.seen.is_gone}
        for entry in (entry for entry in self._finished if entry.case.is_large):
            wanted |= {f"configmaps/{item['metadata']['name']}" for item in self._replica_lists(entry)}
        for entry in (entry for entry in self._finished if entry.case.retention != "None"):
            attempt = entry.seen.status.get("attempt", 0)
            wanted |= {f"configmaps/c-{entry.seen.name}-{attempt}", f"services/{entry.seen.name}"}
            wanted |= {f"pods/{pod.name}" for pod in entry.seen.pods.values() if not pod.is_gone}
        for key in sorted(wanted ^ after.keys()):
            self._problem(f"{'left over' if key in after else 'missing'}: {key}")

    def _stored(self) -> Iterator[tuple[str, str]]:
        """Everything in the namespace that could be of a TaskSet, with its version."""
        core = f"/api/v1/namespaces/{self._namespace}"
        for path in (f"{core}/pods", f"{core}/configmaps", f"{core}/services", TASKSETS.format(self._namespace)):
            for item in self._control_plane.request("GET", path)["items"]:
                if item["metadata"]["name"] != "kube-root-ca.crt":
                    kind = path.rpartition("/")[2]
                    yield f"{kind}/{item['metadata']['name']}", item["metadata"]["resourceVersion"]

    def _problem(self, what: str, seen: Seen | None = None) -> None:
        self._say(f"PROBLEM: {what}")
        story = "" if seen is None else "\n    " + "\n    ".join(seen.story)
        self.outcome.problems.append(what + story)

    def _progress(self) -> str:
        now = self.outcome
        seen = [problem for entry in (*self._running, *self._finished) for problem in entry.seen.problems]
        return (
            f"{time.monotonic() - self._began:6.0f} s  {self._deaths.kills} of {self._kills} kills, "
            f"{len(self._running)} TaskSets under way, {len(self._finished) + sum(now.finished.values())} finished, "
            f"{self._observer.pods_made} pods, {len(now.problems) + len(seen)} problems"
        )


def _install_crd(control_plane: controlplane.ControlPlane) -> None:
    manifest = yaml.safe_dump(crd.render(kinds.TASKSET))
    control_plane.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", input=manifest)
    deadline = time.monotonic() + START_TIMEOUT_S
    while True:
        try:
            control_plane.request("GET", TASKSETS.format("default"))
            return
        except connection.ApiError as refusal:
            if refusal.status not in (404, 429) or time.monotonic() > deadline:
                raise
            time.sleep(0.1)
