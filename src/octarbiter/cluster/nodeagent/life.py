"""Where is one container in its life, and what do its probes say? State only: `machine` decides."""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

import msgspec

from octarbiter.cluster.nodeagent.news import Outcome, ProbeKind, Run
from octarbiter.cluster.nodeagent.pods import Container, ContainerStatus, Probe, Terminated
from octarbiter.cluster.nodeagent.restarts import Pauses

LOST: Final = Outcome(137, "ContainerStatusUnknown", "The container could not be located when the pod was terminated")


class Kind(StrEnum):
    INIT = "init"
    SIDECAR = "sidecar"
    """An init container that stays: restartPolicy Always."""
    MAIN = "main"


class Stage(StrEnum):
    IDLE = "idle"
    """Never ran, or ended."""
    STARTING = "starting"
    RUNNING = "running"


class Ended(msgspec.Struct, frozen=True, gc=False):
    """A run that is over."""

    id: str
    started_at: datetime | None
    outcome: Outcome


class Watch:
    """One probe of a running container: when it is due, and what the last answers add up to."""

    __slots__ = ("_same", "asked", "last", "next_at", "spec", "verdict")

    def __init__(self, spec: Probe, next_at: datetime, verdict: bool | None) -> None:
        self.spec = spec
        self.next_at = next_at
        self.verdict = verdict
        self.asked = False
        self.last: bool | None = None
        self._same = 0

    def answer(self, passed: bool, now: datetime) -> bool:
        """Whether the verdict changed: a single answer does not, where a threshold says so."""
        self.asked = False
        self.next_at = now + timedelta(seconds=max(1, self.spec.period_seconds))
        self._same = self._same + 1 if passed == self.last else 1
        self.last = passed
        threshold = self.spec.success_threshold if passed else self.spec.failure_threshold
        if self._same < threshold or self.verdict == passed:
            return False
        self.verdict = passed
        return True


class Stop:
    """On its way down: the preStop hook, the signal, and the kill when time is up."""

    __slots__ = ("deadline", "hook", "killed_at", "signalled_at")

    def __init__(self, deadline: datetime, hook: bool) -> None:
        self.deadline = deadline
        self.hook = "due" if hook else "done"
        self.signalled_at: datetime | None = None
        self.killed_at: datetime | None = None


class Life:
    __slots__ = (
        "attempt",
        "ended",
        "fault",
        "id",
        "kind",
        "pauses",
        "post_start_runs",
        "previous",
        "retry_at",
        "spec",
        "stage",
        "started_at",
        "stop",
        "waiting",
        "watches",
    )

    def __init__(self, spec: Container, kind: Kind) -> None:
        self.spec = spec
        self.kind = kind
        self.stage = Stage.IDLE
        self.attempt = -1
        """Of the current or last run; the next one has one more."""
        self.id = ""
        self.started_at: datetime | None = None
        self.ended: Ended | None = None
        self.previous: Ended | None = None
        self.waiting: tuple[str, str] | None = None
        """Reason and message, where people should know more than that it has not started or has ended."""
        self.retry_at: datetime | None = None
        self.fault = ""
        """Why we stop it ourselves although the pod goes on."""
        self.pauses = Pauses()
        self.post_start_runs = False
        self.watches: dict[ProbeKind, Watch] = {}
        self.stop: Stop | None = None

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def is_active(self) -> bool:
        return self.stage is not Stage.IDLE

    @property
    def is_up(self) -> bool:
        """Running, and its postStart hook has passed: before that the kubelet does not call it running either."""
        return self.stage is Stage.RUNNING and not self.post_start_runs

    @property
    def is_started(self) -> bool:
        return self.is_up and self._verdict("startup")

    @property
    def is_ready(self) -> bool:
        if self.kind is Kind.INIT:
            return self.ended is not None and self.ended.outcome.exit_code == 0
        return self.is_started and self._verdict("readiness")

    def _verdict(self, probe: ProbeKind) -> bool:
        watch = self.watches.get(probe)
        return watch is None or watch.verdict is True

    def began(self, id_: str, at: datetime, probing: bool) -> None:
        self._shift()
        self.stage = Stage.RUNNING
        self.id, self.started_at = id_, at
        self.waiting = self.retry_at = self.stop = None
        self.fault = ""
        self.watches = self._new_watches(at) if probing else {}

    def finished(self, outcome: Outcome, id_: str = "") -> None:
        if self.stage is Stage.STARTING:
            self._shift()
            self.id, self.started_at = id_, outcome.finished_at
        self.ended = Ended(self.id, self.started_at, outcome)
        self.stage = Stage.IDLE
        self.stop, self.watches, self.post_start_runs = None, {}, False
        self.waiting = None

    def _shift(self) -> None:
        self.attempt += 1
        self.previous, self.ended = self.ended or self.previous, None

    def _new_watches(self, at: datetime) -> dict[ProbeKind, Watch]:
        found: dict[ProbeKind, Watch] = {}
        if self.kind is Kind.INIT:
            return found  # the API allows them none
        probes: tuple[tuple[ProbeKind, Probe | None], ...] = (
            ("startup", self.spec.startup_probe),
            ("readiness", self.spec.readiness_probe),
            ("liveness", self.spec.liveness_probe),
        )
        for kind, probe in probes:
            if probe is not None:
                verdict = True if kind == "liveness" else None
                found[kind] = Watch(probe, at + timedelta(seconds=probe.initial_delay_seconds), verdict)
        return found

    def adopt(self, runs: list[Run], reported: ContainerStatus | None, probing: bool) -> None:
        """What is known from before the agent started: by the runtime, or else by what was last reported."""
        if runs:
            last = runs[-1]
            self.attempt, self.id, self.started_at = last.attempt, last.id, last.started_at
            if reported is not None:
                self.previous = _ended(reported.last_state.terminated)
            if len(runs) > 1 and (before := runs[-2].outcome) is not None:
                self.previous = Ended(runs[-2].id, runs[-2].started_at, before)
            if last.outcome is not None:
                self.ended = Ended(last.id, last.started_at, last.outcome)
                return
            self.stage = Stage.RUNNING
            if probing and last.started_at is not None:
                self.watches = self._new_watches(last.started_at)
            # A restart of the agent is no reason to call a container unready that was ready.
            if reported is not None and reported.container_id == last.id:
                self._believe(reported)
        elif reported is not None:
            self._adopt_reported(reported)

    def _believe(self, reported: ContainerStatus) -> None:
        for kind, verdict in (("startup", reported.started), ("readiness", reported.ready)):
            if verdict and kind in self.watches:
                self.watches[kind].verdict = True

    def _adopt_reported(self, reported: ContainerStatus) -> None:
        state = reported.state
        ended, before = _ended(state.terminated), _ended(reported.last_state.terminated)
        if state.running is not None:
            # It ran, and nobody knows of it any more. To call it new would run it twice.
            ended = Ended(reported.container_id, state.running.started_at, LOST)
        if ended is None:
            ended, before = before, None
        if ended is not None:
            self.attempt, self.id, self.started_at = reported.restart_count, ended.id, ended.started_at
            self.ended, self.previous = ended, before


def _ended(state: Terminated | None) -> Ended | None:
    if state is None:
        return None
    outcome = Outcome(state.exit_code, state.reason, state.message, state.finished_at)
    return Ended(state.container_id, state.started_at, outcome)
