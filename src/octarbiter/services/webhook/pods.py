"""Pods of managed namespaces: refused, gated or let through.

The mode of the namespace is not read from our caches but from the path that the API server calls: its selectors have
just looked at the label, so a namespace that was labelled a moment ago is managed already.
"""

from __future__ import annotations

import asyncio
from typing import Final

import msgspec

from octarbiter.api import arbitrator
from octarbiter.api.arbitrator import Mode
from octarbiter.api.meta import Json
from octarbiter.api.workpod import WorkPod
from octarbiter.core.quota import admission
from octarbiter.services.webhook import reviews
from octarbiter.services.webhook.view import View

MIRROR: Final = "kubernetes.io/config.mirror"
SECOND_LOOK_S: Final = 0.25
"""A Queue that was created just before its first pod may be on its way to our caches: before we refuse, it gets so
long. Whoever is let through never waits."""


async def deny(request: reviews.Request, view: View) -> reviews.Answer:
    return await _created(request, view, Mode.DENY)


async def gate(request: reviews.Request, view: View) -> reviews.Answer:
    return await _created(request, view, Mode.GATE)


async def ungate(request: reviews.Request, view: View) -> reviews.Answer:
    """An update. Only what takes our gate away is our affair, and only while there is a queue to open it."""
    old, new = request.old(WorkPod), request.new(WorkPod)
    if not _has_gate(old) or _has_gate(new):
        return reviews.ALLOWED
    place = _place(view, request.namespace, Mode.GATE)
    verdict = admission.of_gate_removal(place, request.user_info.asker, view.us)
    return reviews.Answer(refusal=verdict.refusal)


async def _created(request: reviews.Request, view: View, mode: Mode) -> reviews.Answer:
    pod: WorkPod = request.new(WorkPod)
    new = admission.NewPod(
        node=pod.spec.node_name, is_mirror=MIRROR in pod.metadata.annotations, has_gate=_has_gate(pod)
    )
    verdict = admission.of_pod(new, _place(view, request.namespace, mode))
    if verdict.refusal:
        await asyncio.sleep(SECOND_LOOK_S)
        verdict = admission.of_pod(new, _place(view, request.namespace, mode))
    return reviews.Answer(refusal=verdict.refusal, patch=_gated(pod) if verdict.gate else ())


def _place(view: View, namespace: str, mode: Mode) -> admission.Place:
    return msgspec.structs.replace(view.place(namespace), name=namespace, mode=mode)


def _has_gate(pod: WorkPod) -> bool:
    return any(gate.name == arbitrator.QUEUE for gate in pod.spec.scheduling_gates)


def _gated(pod: WorkPod) -> tuple[Json, ...]:
    ours = {"name": arbitrator.QUEUE}
    if pod.spec.scheduling_gates:
        return ({"op": "add", "path": "/spec/schedulingGates/-", "value": ours},)
    return ({"op": "add", "path": "/spec/schedulingGates", "value": [ours]},)
