"""The controller that `decide` expects, in `lifecycle_world`: looks, records, acts, may die between any two writes.

It remembers between two looks what a controller may remember, and loses it when it dies. Its view of the world is one
watch per kind, each as late as it is told, but never without what it made itself.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import msgspec
from lifecycle_world import Refused, World

from octarbiter.api import taskset as api
from octarbiter.core.lifecycle import actions, names, observe, report, story
from octarbiter.core.lifecycle.decide import Decision, Record, decide

Check = Callable[[api.TaskSet, observe.Seen, Decision], None]
KINDS = ("pods", "units", "services")


class Killed(Exception):
    pass


class Shell:
    def __init__(self, world: World, check: Check) -> None:
        self.world, self.check = world, check
        self.wake_at: datetime | None = None
        self.start()

    def start(self) -> None:
        """A new process: a fresh list, and the recorded status."""
        self.forget()
        self.position = dict.fromkeys(KINDS, self.world.seq)
        self.made: dict[str, dict[str, tuple[int, Any]]] = {kind: {} for kind in KINDS}
        self.refusals: dict[tuple[str, int], observe.Refusal] = {}
        self.left: int | None = None

    def forget(self) -> None:
        """Somebody else wrote the status: what was decided and not recorded is gone."""
        self.status = report.expand(self.world.status)

    # --- the view

    def _view(self, kind: str, lag: int) -> dict[str, Any]:
        self.position[kind] = max(self.position[kind], self.world.seq - lag)
        view = self.world.as_of(kind, self.position[kind])
        for name, (seq, thing) in self.made[kind].items():
            if seq <= self.position[kind]:
                continue
            if thing is None:
                view.pop(name, None)
            else:
                view[name] = thing
        return view

    def _seen(self, lags: tuple[int, int]) -> observe.Seen:
        return observe.Seen(
            pods=tuple(self._view("pods", lags[0]).values()),
            control_units=tuple(self._view("units", lags[1]).values()),
            service=next(iter(self._view("services", lags[1]).values()), None),
            ready_nodes=dict(self.world.nodes),
            refusals=dict(self.refusals),
        )

    # --- a look

    def look(
        self,
        lags: tuple[int, int] = (0, 0),
        *,
        die_after: int | None = None,
        lose_answer: int | None = None,
        flush: bool = True,
        backwards: bool = False,
    ) -> None:
        """`die_after` so many writes; `lose_answer` of the so-manieth action (it was carried out all the same)."""
        self.left = die_after
        try:
            self._look(lags, lose_answer, flush, backwards)
        except Killed:
            self.start()

    def _look(self, lags: tuple[int, int], lose_answer: int | None, flush: bool, backwards: bool) -> None:
        if not self.world.exists:
            return
        now = self.world.now
        taskset = msgspec.structs.replace(self.world.taskset, status=self.status)
        seen = self._seen(lags)
        self.seen_pods = {pod.metadata.name: pod for pod in seen.pods}
        decision = decide(taskset, seen, now)
        self.check(taskset, seen, decision)
        story.between(self.status, decision.status)
        if decision.record is Record.NOW or (flush and decision.record is Record.SOON):
            self._write()
            self.world.record(decision.status)
        self.status, self.wake_at = decision.status, decision.look_again_at
        acting = msgspec.structs.replace(taskset, status=decision.status)
        # Pods are made and removed side by side, in no order; what removes many follows.
        single = [a for a in decision.actions if not isinstance(a, actions.DeletePods | actions.DeleteControlUnit)]
        many = [a for a in decision.actions if a not in single]
        for number, action in enumerate([*(reversed(single) if backwards else single), *many]):
            self._write()
            self._perform(acting, action, answered=number != lose_answer)
        if self.left == 0:
            raise Killed

    def _write(self) -> None:
        if self.left is not None:
            if self.left == 0:
                raise Killed
            self.left -= 1

    def _perform(self, taskset: api.TaskSet, action: actions.Action, *, answered: bool) -> None:
        world = self.world
        match action:
            case actions.CreateControlUnit(attempt):
                self._create("units", observe.CONTROL_UNIT, answered, lambda: world.create_unit(taskset, attempt))
            case actions.CreateService():
                self._create("services", observe.SERVICE, answered, lambda: world.create_service(taskset))
            case actions.CreatePod(role_name, index, attempt):
                role = next(role for role in taskset.spec.roles if role.name == role_name)
                what = (role_name, index)
                self._create("pods", what, answered, lambda: world.create_pod(taskset, role, index, attempt))
            case actions.DeletePod(name, uid, force):
                if not world.delete_pod(name, uid, "us", force=force, seen=self.seen_pods[name]):
                    self.made["pods"][name] = (world.seq + 1, None) if name not in world.pods else self._now(name)
            case actions.DeletePods(attempt):
                for pod in list(world.pods.values()):
                    if pod.metadata.labels[names.ATTEMPT_LABEL] == str(attempt):
                        known = self.seen_pods.get(pod.metadata.name)
                        world.delete_pod(pod.metadata.name, pod.metadata.uid, "us", seen=known)
            case actions.DeleteControlUnit(name, uid):
                world.delete_unit(name, uid, "Background")
            case actions.DeleteTaskSet():
                world.delete_taskset(foreground=False)

    def _now(self, name: str) -> tuple[int, Any]:
        return self.world.seq, self.world.pods[name]

    def _create(self, kind: str, what: tuple[str, int], answered: bool, create: Callable[[], Any]) -> None:
        later = self.world.now + timedelta(seconds=1)
        try:
            made = create()
        except Refused as refusal:
            reason = "quota" if "quota" in str(refusal) else "denied"
            self.refusals[what] = observe.Refusal(reason, str(refusal), later)
            return
        if answered:
            self.made[kind][made.metadata.name] = (self.world.seq, made)
            self.refusals.pop(what, None)
        else:
            self.refusals[what] = observe.Refusal("busy", "the server did not answer", later)
