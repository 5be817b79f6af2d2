"""Does the arbitrator keep its promises, however often and whenever it is killed?

Users fill their queues (`arbitration_tenants`) while weights, requests, queues and claims change. Meanwhile the
arbitrator is killed again and again, a random moment after it began to act, and started again; now and then two compete
for the lease, and the leader is killed or frozen (`sweep_deaths`). An observer follows the API server's own watches
(`arbitration_observer`); from time to time the world pauses, one arbitrator is left in peace, and when nothing changes
any more all that happened is judged (`arbitration_checks`), and what is there. In the end nothing may change, either,
when another arbitrator looks at it.
"""

from __future__ import annotations

import collections
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import arbitration_checks
import arbitration_stage
from arbitration_checks import Judge
from arbitration_observer import CLAIMS, QUEUES, Change, Claim, Job, Observer, Pod, Queue, Quota
from arbitration_tenants import World
from eventual import eventually
from sweep_controllers import Controller
from sweep_deaths import Deaths

from octarbiter.api import resources
from octarbiter.testing.kubernetes import connection
from octarbiter.testing.kubernetes.bed import Testbed

COMMAND = ("arbitrator", f"--status-interval-s={arbitration_stage.ROUND_S}", "--hold-s=1")
KILLS_TO_REST = 10
QUIET_S = 2.5
"""Longer than anything waits that is due without an event: holds, rounds, and what is told at leisure."""
PATIENCE_S = 120.0
LOOKS = 3


@dataclass(slots=True)
class Outcome:
    seed: int
    kills: int = 0
    elections: int = 0
    freezes: int = 0
    starts: int = 0
    seconds: float = 0.0
    changes: int = 0
    evictions: int = 0
    excused: int = 0
    raises: int = 0
    rests: int = 0
    problems: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        rows = {
            "seed": self.seed,
            "kills": f"{self.kills}, of them {self.freezes} freezes; {self.elections} elections",
            "arbitrators started": self.starts,
            "seconds": round(self.seconds),
            "changes of the world": self.changes,
            "pods evicted": f"{self.evictions}, {self.excused} of them for somebody who gave up",
            "quotas raised": self.raises,
            "times at rest": self.rests,
            "problems": len(self.problems),
        }
        return "\n".join(f"{name:<24}{value}" for name, value in rows.items())


class ArbitrationSweep:
    def __init__(self, bed: Testbed, *, kills: int, seed: int, say: Callable[[str], None] = lambda line: None) -> None:
        """`bed`: with nodes of `arbitration_tenants.SIZE` in all, and nothing on them."""
        arbitration_stage.install(bed)
        self._bed, self._plane, self._kills, self._say = bed, bed.control_plane, kills, say
        for path in (QUEUES, CLAIMS):
            eventually(lambda path=path: _is_served(bed, path), f"{path} to be served")  # type: ignore[misc]
        dice = random.Random(seed)
        self._observer = Observer(self._plane)
        self._world = World(self._plane, self._observer, dice)
        self._deaths = Deaths(dice, self._arbitrator, self._tick)
        nodes = self._plane.request("GET", "/api/v1/nodes")["items"]
        self._judge = Judge(resources.plus(*(resources.offered(node["status"]["allocatable"]) for node in nodes)))
        self._began = self._said_at = time.monotonic()
        self._read: set[Path] = set()
        self.outcome = Outcome(seed)

    def run(self) -> Outcome:
        now, deaths = self.outcome, self._deaths
        self._observer.start()
        try:
            self._world.open()
            while deaths.kills < self._kills and not now.problems:
                due = min(self._kills, deaths.kills + KILLS_TO_REST)
                while deaths.kills < due:
                    deaths.round(due - deaths.kills)
                self._world.rests = True
                if deaths.kills < self._kills:
                    self._settle()
                    deaths.end_all()
                    self._world.rests = False  # without an arbitrator, at first
            for _ in range(LOOKS):
                if now.problems or self._is_still_at_rest():
                    break
        finally:
            deaths.end_all()
            self._observer.stop()
        now.problems += self._observer.problems + deaths.problems
        now.kills, now.elections = deaths.kills, deaths.elections
        now.freezes, now.starts = deaths.freezes, deaths.starts
        now.changes, now.seconds = self._world.changes, time.monotonic() - self._began
        now.evictions, now.excused, now.raises = self._judge.evictions, self._judge.excused, self._judge.raises
        return now

    def _arbitrator(self, number: int, stands_by: bool) -> Controller:
        log = self._plane.directory / f"arbitrator-{number}.log"
        kubeconfig = arbitration_stage.kubeconfig_file(self._bed)
        return Controller(kubeconfig, COMMAND, arbitration_stage.ACCOUNT, log, stands_by)

    def _tick(self) -> None:
        self._world.tick()
        if time.monotonic() - self._said_at > 10:
            self._said_at = time.monotonic()
            self._say(
                f"{self._said_at - self._began:6.0f} s  {self._deaths.kills} of {self._kills} kills, "
                f"{self._world.changes} changes, {self._judge.evictions} evictions, "
                f"{len(self.outcome.problems)} problems"
            )

    # --- at rest

    def _settle(self) -> None:
        """Until nothing changes any more and all is as it should be, or for too long."""
        self._deaths.start()
        self._deaths.wait_until_one_acts()
        deadline = time.monotonic() + PATIENCE_S
        while True:
            self._deaths.pass_time(QUIET_S / 5)
            is_late = time.monotonic() > deadline
            if self._observer.quiet_s < QUIET_S and not is_late:
                continue
            wrong = self._wrong_now()
            if is_late or not wrong:
                break
        if is_late and not wrong:
            wrong = ["something goes on changing"]
        self._judge.take(self._observer.taken(), self._world.deleted)
        self._judge.at_rest()
        self.outcome.problems += [*wrong, *self._judge.problems, *self._evicted_twice(), *self._exceptions()]
        self._judge.problems.clear()
        self.outcome.rests += 1

    def _is_still_at_rest(self) -> bool:
        """Another arbitrator finds nothing to do. False: others did something, so it cannot be told."""
        self._settle()
        self._deaths.end_all()
        self._deaths.start()
        self._deaths.wait_until_one_acts()
        self._deaths.pass_time(QUIET_S)
        self._deaths.end_all()
        changes = self._observer.taken()
        if any(isinstance(change.now, Pod | Job) and not _is_eviction(change) for change in changes):
            self._judge.take(changes, self._world.deleted)
            return False
        told = map(arbitration_checks.told, changes)
        self.outcome.problems += [f"another arbitrator finds something to do: {change}" for change in told]
        return True

    def _exceptions(self) -> list[str]:
        """What arbitrators did not expect. That a frozen one has lost its lease is no such thing."""
        logs = set(self._plane.directory.glob("arbitrator-*.log")) - self._read
        logs -= {controller.log for controller in self._deaths.alive}
        self._read |= logs
        lines = [line for log in sorted(logs) for line in log.read_text().splitlines()]
        return [line for line in lines if "Traceback" in line and "NotLeading" not in line]

    def _wrong_now(self) -> list[str]:
        there = self._observer.there
        return list(arbitration_checks.wrong_at_rest(there(Queue), there(Quota), there(Claim), there(Job), there(Pod)))

    def _evicted_twice(self) -> list[str]:
        found = self._plane.request("GET", "/api/v1/events?fieldSelector=reason%3DPreempted")["items"]
        times = collections.Counter[str]()
        for event in found:
            of = event["involvedObject"]
            times[f"{of['namespace']}/{of['name']} {of['uid']}"] += event.get("count") or 1
        return [f"{pod} was evicted {count} times" for pod, count in times.items() if count > 1]


def _is_eviction(change: Change[Any]) -> bool:
    return isinstance(change.now, Pod) and change.now.is_marked


def _is_served(bed: Testbed, path: str) -> bool:
    try:
        bed.control_plane.request("GET", path)
    except connection.ApiError as refusal:
        if refusal.status not in (404, 429):
            raise
        return False
    return True
