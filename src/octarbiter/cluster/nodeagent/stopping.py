"""How is a running container brought down? preStop hook, signal when it is its turn, kill when time is up."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from octarbiter.cluster.nodeagent import orders
from octarbiter.cluster.nodeagent.life import Kind, Life, Stage, Stop

LEAST_GRACE: Final = timedelta(seconds=2)
"""Between the signal and the kill, however late it is."""
KILL_AGAIN: Final = timedelta(seconds=5)


def begin(life: Life, deadline: datetime, now: datetime, out: orders.Outbox) -> None:
    """The pod ends. One that is just starting is stopped when it has started."""
    if life.stage is not Stage.RUNNING:
        return
    if life.stop is None:
        out.tell("Killing", f"Stopping container {life.name}", life.name)
        life.stop = Stop(deadline, life.spec.lifecycle.pre_stop is not None and now < deadline)
    life.stop.deadline = min(life.stop.deadline, deadline)


def press(life: Life, later: Sequence[Life], now: datetime, out: orders.Outbox) -> None:
    """`later`: the containers that a sidecar outlives; they go first."""
    stop = life.stop
    if stop is None or life.stage is not Stage.RUNNING:
        return
    if stop.hook == "due":
        stop.hook = "running"
        left_s = max(0.0, (stop.deadline - now).total_seconds())
        out.add(orders.RunHook(life.name, life.attempt, "preStop", left_s))
    if stop.signalled_at is None:
        if now < stop.deadline and (stop.hook == "running" or _must_wait(life, later)):
            out.wake(stop.deadline)
            return
        stop.signalled_at = now
        out.add(orders.SendSignal(life.name, life.attempt, life.spec.lifecycle.stop_signal or "SIGTERM"))
    kill_at = max(stop.deadline, stop.signalled_at + LEAST_GRACE)
    if stop.killed_at is not None:
        kill_at = stop.killed_at + KILL_AGAIN
    if now >= kill_at:
        stop.killed_at = now
        out.add(orders.SendSignal(life.name, life.attempt, "SIGKILL"))
        kill_at = now + KILL_AGAIN
    out.wake(kill_at)


def _must_wait(life: Life, later: Sequence[Life]) -> bool:
    return life.kind is Kind.SIDECAR and any(other.is_active for other in later if other.kind is not Kind.INIT)
