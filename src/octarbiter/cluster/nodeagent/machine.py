"""What should happen to a pod on its node next?

One machine per pod. `feed` is the only door: it takes what happened and returns what to do, and decides from the whole
state, never from which event came. The life of a pod:

    prepare -> init containers one by one (sidecars stay) -> main containers in order -> ending -> over

A pod ends when it is deleted or gone, when its deadline passes, when an init container fails for good, or when all main
containers have ended and none is to be restarted. Then everything still running is stopped: preStop hook, stop signal,
kill at the end of the grace period; sidecars after the main containers, the last one first.

Nothing is ever started twice: a start counts as under way until its answer comes, and runs that the runtime remembers
are taken over. No deletion is confirmed before the API server has the final status.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

import msgspec

from octarbiter.cluster.nodeagent import news, orders, probing, restarts, stopping
from octarbiter.cluster.nodeagent.life import Kind, Life, Stage, Stop
from octarbiter.cluster.nodeagent.pods import Container, Pod

RETRY: Final = timedelta(seconds=10)
"""After what could not be prepared or configured."""
POST_START_S: Final = 300.0
TERMINAL: Final = ("Succeeded", "Failed")
DEADLINE = ("DeadlineExceeded", "Pod was active on the node longer than the specified deadline")


class Ending(msgspec.Struct):
    deadline: datetime
    reason: str = ""
    message: str = ""
    """Of the pod's status, where the end is a verdict of ours."""


class Machine:
    __slots__ = (
        "_out",
        "_preparing",
        "_probing",
        "_retry_at",
        "ending",
        "is_gone",
        "is_prepared",
        "lives",
        "pod",
        "revision",
        "started_at",
    )

    def __init__(self, pod: Pod, known: Sequence[news.Run], now: datetime, *, probing: bool = True) -> None:
        """`known`: what the runtime remembers of this pod. `probing`: False where nothing runs that could answer."""
        self.pod = pod
        self.started_at = pod.status.start_time or now
        self.lives = [_init(container) for container in pod.spec.init_containers]
        self.lives += [Life(container, Kind.MAIN) for container in pod.spec.containers]
        for life in self.lives:
            runs = sorted((run for run in known if run.container == life.name), key=lambda run: run.attempt)
            life.adopt(runs, pod.status.of_container(life.name), probing)
        self.ending: Ending | None = None
        self.is_gone = False
        self.is_prepared = bool(known)
        self.revision = 0
        """Grows with every change that people could see."""
        self._probing = probing
        self._preparing = False
        self._retry_at: datetime | None = None
        self._out = orders.Outbox()

    @property
    def mains(self) -> list[Life]:
        return [life for life in self.lives if life.kind is Kind.MAIN]

    @property
    def is_over(self) -> bool:
        """It ends, and nothing of it runs any more."""
        return self.ending is not None and not self._preparing and not any(life.is_active for life in self.lives)

    @property
    def is_deleted(self) -> bool:
        return self.pod.metadata.deletion_timestamp is not None

    def feed(self, event: news.Event, now: datetime) -> list[orders.Order]:
        self._out = orders.Outbox()
        before, was_over = self.revision, self.is_over
        self._take(event, now)
        self._decide(now)
        if self.is_over and not was_over:
            self.revision += 1
        if self.is_over and self.is_gone:
            self._out.add(orders.Release())
        elif self.revision > before or isinstance(event, news.PodSeen):
            self._out.add(orders.Report())
        elif isinstance(event, news.Reported) and event.revision == self.revision and self._may_confirm:
            self._out.add(orders.ConfirmDeletion())
        return self._out.sealed()

    @property
    def _may_confirm(self) -> bool:
        meta = self.pod.metadata
        # Grace 0 is our own confirmation: only finalizers hold the object then, and they are not our business.
        held = meta.deletion_grace_period_seconds == 0 and bool(meta.finalizers)
        return self.is_deleted and self.is_over and not held

    # What happened.

    def _take(self, event: news.Event, now: datetime) -> None:
        match event:
            case news.PodSeen():
                self.pod = event.pod
            case news.PodGone():
                self.is_gone = True
            case news.Prepared():
                self.is_prepared, self._preparing = True, False
                self.revision += 1
            case news.PreparationFailed():
                self._preparing, self._retry_at = False, now + RETRY
                self._out.tell("FailedMount", event.message, warning=True)
            case news.ContainerStarted() | news.ConfigurationFailed():
                self._take_start(event, now)
            case news.ContainerEnded():
                self._take_end(event)
            case news.HookDone():
                self._take_hook(event, now)
            case news.Probed():
                self._take_probe(event, now)
            case news.Reported() | news.TimeCame():
                pass

    def _take_start(self, event: news.ContainerStarted | news.ConfigurationFailed, now: datetime) -> None:
        life = self._life(event.container)
        if life is None or life.stage is not Stage.STARTING or event.attempt != life.attempt + 1:
            return
        self.revision += 1
        if isinstance(event, news.ConfigurationFailed):
            life.stage, life.retry_at = Stage.IDLE, now + RETRY
            life.waiting = ("CreateContainerConfigError", event.message)
            self._out.tell("Failed", f"Error: {event.message}", life.name, warning=True)
            return
        life.began(event.id, event.at, self._probing)
        self._out.tell("Started", f"Started container {life.name}", life.name)
        if life.spec.lifecycle.post_start is not None:
            life.post_start_runs = True
            self._out.add(orders.RunHook(life.name, life.attempt, "postStart", POST_START_S))

    def _take_end(self, event: news.ContainerEnded) -> None:
        life = self._life(event.container)
        if life is None:
            return
        running = life.stage is Stage.RUNNING and event.attempt == life.attempt
        starting = life.stage is Stage.STARTING and event.attempt == life.attempt + 1
        if not running and not starting:
            return
        self.revision += 1
        life.finished(event.outcome, event.id)
        if starting:
            self._out.tell("Failed", f"Error: {event.outcome.message}", life.name, warning=True)
        if life.fault and self._restarts(life):
            life.waiting = ("PostStartHookError", life.fault)

    def _take_hook(self, event: news.HookDone, now: datetime) -> None:
        life = self._life(event.container)
        if life is None or life.stage is not Stage.RUNNING or event.attempt != life.attempt:
            return
        if event.hook == "preStop":
            if life.stop is not None:
                life.stop.hook = "done"
            if event.problem:
                self._out.tell("FailedPreStopHook", "PreStopHook failed", life.name, warning=True)
        elif life.post_start_runs:
            life.post_start_runs = False
            self.revision += 1
            if event.problem:
                self._out.tell("FailedPostStartHook", "PostStartHook failed", life.name, warning=True)
                life.fault = event.problem
                self._stop_for(life, "FailedPostStartHook", self._grace, now)

    def _take_probe(self, event: news.Probed, now: datetime) -> None:
        life = self._life(event.container)
        if life is None or life.stage is not Stage.RUNNING or event.attempt != life.attempt:
            return
        watch = life.watches.get(event.probe)
        if watch is None:
            return
        if not event.passed:
            name = event.probe.capitalize()
            self._out.tell("Unhealthy", f"{name} probe failed: {event.output}", life.name, warning=True)
        if not watch.answer(event.passed, now):
            return
        self.revision += 1
        if event.probe != "readiness" and not event.passed and life.stop is None:
            grace_s = watch.spec.termination_grace_period_seconds
            grace = self._grace if grace_s is None else timedelta(seconds=grace_s)
            again = ", will be restarted" if restarts.is_wanted(life.spec, self.pod.spec, 137) else ""
            self._stop_for(life, f"Container {life.name} failed {event.probe} probe{again}", grace, now)

    def _stop_for(self, life: Life, why: str, grace: timedelta, now: datetime) -> None:
        """The pod goes on; what follows the container's end is its restart policy's business."""
        self._out.tell("Killing", why, life.name)
        life.stop = Stop(now + grace, life.spec.lifecycle.pre_stop is not None)

    # What follows.

    def _decide(self, now: datetime) -> None:
        self._judge(now)
        if self.ending is None:
            self._go_on(now)
            self._judge(now)
        for place, life in enumerate(self.lives):
            if self.ending is not None:
                stopping.begin(life, self.ending.deadline, now, self._out)
            later = self.lives[place + 1 :] if self.ending is not None else []
            stopping.press(life, later, now, self._out)
            probing.ask(life, self.ending is not None, now, self._out)

    def _judge(self, now: datetime) -> None:
        """Is it time to end, or to end sooner?"""
        if self.is_gone:
            self._end_by(now)
        if self.is_deleted:
            self._end_by(self._deletion_deadline(now))
        if self.ending is not None:
            return
        if self.pod.status.phase in TERMINAL:
            self._end_by(now + self._grace)
        elif self._deadline is not None and now >= self._deadline:
            self._end_by(now + self._grace, *DEADLINE)
            self._out.tell(*DEADLINE)
        elif self._has_finished:
            self._end_by(now + self._grace)
        elif self._deadline is not None:
            self._out.wake(self._deadline)

    def _end_by(self, deadline: datetime, reason: str = "", message: str = "") -> None:
        if self.ending is None:
            self.ending = Ending(deadline, reason, message)
            for life in self.lives:
                life.waiting = None  # it will not be tried again
        self.ending.deadline = min(self.ending.deadline, deadline)

    def _deletion_deadline(self, now: datetime) -> datetime:
        """What the server's clock says, but never more than the grace period from when we heard of it."""
        meta = self.pod.metadata
        asked = meta.deletion_timestamp or now
        if meta.deletion_grace_period_seconds is None:
            return asked
        return min(asked, now + timedelta(seconds=meta.deletion_grace_period_seconds))

    @property
    def _grace(self) -> timedelta:
        return timedelta(seconds=self.pod.spec.termination_grace_period_seconds)

    @property
    def _deadline(self) -> datetime | None:
        seconds = self.pod.spec.active_deadline_seconds
        return None if seconds is None else self.started_at + timedelta(seconds=seconds)

    @property
    def _has_finished(self) -> bool:
        """Of its own accord: an init container failed for good, or no main container will run again."""
        for life in self.lives:
            if life.kind is Kind.INIT and _failed(life) and not self._restarts(life) and not self._has_begun:
                return True
        return all(life.ended is not None and not life.is_active and not self._restarts(life) for life in self.mains)

    @property
    def _has_begun(self) -> bool:
        """A main container has run: init containers are history, also if nobody remembers them."""
        return any(life.attempt >= 0 for life in self.mains)

    def _restarts(self, life: Life) -> bool:
        """Whether what has ended is to run again."""
        if life.kind is Kind.SIDECAR:
            return True
        if life.ended is None or (life.kind is Kind.INIT and not _failed(life)):
            return False
        return restarts.is_wanted(life.spec, self.pod.spec, life.ended.outcome.exit_code)

    def _go_on(self, now: datetime) -> None:
        if not self.is_prepared:
            if self._retry_at is not None and now < self._retry_at:
                self._out.wake(self._retry_at)
            elif not self._preparing:
                self._preparing = True
                self._out.add(orders.Prepare())
            return
        begun = self._has_begun
        for life in self.lives:
            if life.kind is Kind.INIT and begun:
                continue
            if not life.is_active:
                self._start_if_due(life, now)
            # Each in turn: the next one waits for the start of this one, and for its postStart hook.
            if life.stage is Stage.STARTING or life.post_start_runs:
                return
            if life.kind is Kind.INIT and not life.is_ready:
                return
            if life.kind is Kind.SIDECAR and not life.is_started and not begun:
                return

    def _start_if_due(self, life: Life, now: datetime) -> None:
        if life.ended is not None and not self._restarts(life):
            return
        if life.retry_at is not None and now < life.retry_at:
            self._out.wake(life.retry_at)
            return
        if life.ended is not None:
            due = life.pauses.due(life.ended.outcome.finished_at or now)
            if now < due:
                self._out.wake(due)
                self._back_off(life)
                return
            life.pauses.restarted(now)
        life.stage, life.retry_at = Stage.STARTING, None
        self._out.tell("Created", f"Created container: {life.name}", life.name)
        self._out.add(orders.StartContainer(life.name, life.attempt + 1))

    def _back_off(self, life: Life) -> None:
        of = f"pod={self.pod.full_name}"
        words = ("CrashLoopBackOff", f"back-off {life.pauses.words} restarting failed container={life.name} {of}")
        if life.waiting != words:
            life.waiting = words
            self.revision += 1
            message = f"Back-off restarting failed container {life.name} in pod {self.pod.full_name}"
            self._out.tell("BackOff", message, life.name, warning=True)

    def _life(self, name: str) -> Life | None:
        return next((life for life in self.lives if life.name == name), None)


def _init(container: Container) -> Life:
    return Life(container, Kind.SIDECAR if container.restart_policy == "Always" else Kind.INIT)


def _failed(life: Life) -> bool:
    return life.ended is not None and life.ended.outcome.exit_code != 0
