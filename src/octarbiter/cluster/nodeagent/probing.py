"""Which probes of a container are due? Startup first; the others when it has passed; one at a time of each."""

from __future__ import annotations

from datetime import datetime

from octarbiter.cluster.nodeagent import orders
from octarbiter.cluster.nodeagent.life import Life, Watch
from octarbiter.cluster.nodeagent.news import ProbeKind


def ask(life: Life, pod_ends: bool, now: datetime, out: orders.Outbox) -> None:
    if not life.is_up:
        return
    goes = pod_ends or life.stop is not None
    for kind, watch in life.watches.items():
        if watch.asked or not _is_of_interest(kind, watch, life, goes):
            continue
        if now >= watch.next_at:
            watch.asked = True
            out.add(orders.RunProbe(life.name, life.attempt, kind))
        else:
            out.wake(watch.next_at)


def _is_of_interest(kind: ProbeKind, watch: Watch, life: Life, goes: bool) -> bool:
    """Of a container on its way down only readiness is: whoever sends it requests wants to know."""
    if kind == "startup":
        return watch.verdict is None and not goes
    return life.is_started and (kind == "readiness" or not goes)
