"""What does a pod look like in one line?

The status cell is the most read word of Kubernetes. It starts as the phase and is replaced by whatever tells more: a
reason, gates that hold the pod back, the init container that runs or failed, what a container waits for or died of, and
at last that the pod is going away.
"""

from __future__ import annotations

from datetime import datetime

from octarbiter.api.meta import Json
from octarbiter.cluster.apiserver.tables import ages
from octarbiter.cluster.apiserver.tables.layout import Cells, Layout, columns
from octarbiter.cluster.apiserver.tables.reading import (
    NONE,
    condition,
    containers,
    count,
    dig,
    flag,
    is_true,
    labels,
    many,
    mapping,
    text,
)

_UNREACHABLE = "NodeLost"


class _Tally:
    """What is counted while going through the containers."""

    def __init__(self, phase: str) -> None:
        self.status = phase
        self.ready = 0
        self.restarts = 0
        self.last_restart = ""

    def add_restarts(self, container: Json) -> None:
        self.restarts += count(container, "restartCount")
        self.last_restart = max(self.last_restart, text(container, "lastState", "terminated", "finishedAt"))


def _cells(pod: Json, now: datetime) -> Cells:
    tally, total = _tallied(pod)
    restarts = str(tally.restarts)
    if tally.restarts and tally.last_restart:
        restarts = f"{tally.restarts} ({ages.since(tally.last_restart, now)} ago)"
    return [
        text(pod, "metadata", "name"),
        f"{tally.ready}/{total}",
        _with_deletion(pod, tally.status),
        restarts,
        ages.since(dig(pod, "metadata", "creationTimestamp"), now),
        next((text(each, "ip") for each in many(pod, "status", "podIPs")), "") or NONE,
        text(pod, "spec", "nodeName") or NONE,
        text(pod, "status", "nominatedNodeName") or NONE,
        _readiness_gates(pod),
    ]


def _tallied(pod: Json) -> tuple[_Tally, int]:
    sidecars = {text(each, "name") for each in many(pod, "spec", "initContainers") if _is_sidecar(each)}
    total = len(many(pod, "spec", "containers")) + len(sidecars)
    phase = text(pod, "status", "reason") or text(pod, "status", "phase")
    scheduled = condition(pod, "PodScheduled")
    if scheduled is not None and scheduled.get("reason") == "SchedulingGated":
        phase = "SchedulingGated"
    tally = _Tally(phase)
    of_sidecars = _Tally(phase)
    initializing = _initialize(pod, tally, of_sidecars, sidecars)
    if not initializing or is_true(pod, "Initialized"):
        # Restarts of init containers that are through are history; those of sidecars still count.
        tally.restarts, tally.last_restart = of_sidecars.restarts, of_sidecars.last_restart
        _run(pod, tally)
    return tally, total


def _is_sidecar(init_container: Json) -> bool:
    return init_container.get("restartPolicy") == "Always"


def _initialize(pod: Json, tally: _Tally, of_sidecars: _Tally, sidecars: set[str]) -> bool:
    """Whether an init container still holds the pod up."""
    for index, container in enumerate(many(pod, "status", "initContainerStatuses")):
        tally.add_restarts(container)
        is_sidecar = text(container, "name") in sidecars
        if is_sidecar:
            of_sidecars.add_restarts(container)
        terminated = dig(container, "state", "terminated")
        waiting_for = text(container, "state", "waiting", "reason")
        if terminated is not None and count(terminated, "exitCode") == 0:
            continue
        if is_sidecar and flag(container, "started"):
            tally.ready += flag(container, "ready")
            continue
        if terminated is not None:
            tally.status = f"Init:{_end(terminated)}"
        elif waiting_for and waiting_for != "PodInitializing":
            tally.status = f"Init:{waiting_for}"
        else:
            tally.status = f"Init:{index}/{len(many(pod, 'spec', 'initContainers'))}"
        return True
    return False


def _run(pod: Json, tally: _Tally) -> None:
    running = False
    failure = ""
    # From the last to the first, so the first container has the last word.
    for container in reversed(many(pod, "status", "containerStatuses")):
        tally.add_restarts(container)
        terminated = dig(container, "state", "terminated")
        if waiting_for := text(container, "state", "waiting", "reason"):
            tally.status = waiting_for
        elif terminated is not None:
            tally.status = _end(terminated)
            if count(terminated, "exitCode") != 0:
                failure = tally.status
        elif flag(container, "ready") and dig(container, "state", "running") is not None:
            running = True
            tally.ready += 1
    if tally.status == "Completed":
        if running and is_true(pod, "Ready"):
            tally.status = "Running"
        elif failure:
            tally.status = failure
        elif running:
            tally.status = "NotReady"


def _end(terminated: Json) -> str:
    if reason := text(terminated, "reason"):
        return reason
    if signal := count(terminated, "signal"):
        return f"Signal:{signal}"
    return f"ExitCode:{count(terminated, 'exitCode')}"


def _with_deletion(pod: Json, status: str) -> str:
    if dig(pod, "metadata", "deletionTimestamp") is None:
        return status
    if text(pod, "status", "reason") == _UNREACHABLE:
        return "Unknown"
    return status if text(pod, "status", "phase") in ("Succeeded", "Failed") else "Terminating"


def _readiness_gates(pod: Json) -> str:
    gates = many(pod, "spec", "readinessGates")
    if not gates:
        return NONE
    return f"{sum(is_true(pod, text(gate, 'conditionType')) for gate in gates)}/{len(gates)}"


def _conditions(pod: Json) -> list[Json]:
    phase = text(pod, "status", "phase")
    messages = {"Succeeded": "The pod has completed successfully.", "Failed": "The pod failed."}
    if phase not in messages:
        return []
    return [{"type": "Completed", "status": "True", "reason": phase, "message": messages[phase]}]


def _template_cells(template: Json, now: datetime) -> Cells:
    names, images = containers(dig(template, "template", "spec"))
    return [
        text(template, "metadata", "name"),
        names,
        images,
        labels(mapping(template, "template", "metadata", "labels")),
    ]


LAYOUTS: dict[tuple[str, str], Layout] = {
    ("", "Pod"): Layout(
        columns("Name", "Ready", "Status", "Restarts", "Age", "IP*", "Node*", "Nominated Node*", "Readiness Gates*"),
        _cells,
        _conditions,
    ),
    ("", "PodTemplate"): Layout(columns("Name", "Containers", "Images", "Pod Labels"), _template_cells),
}
