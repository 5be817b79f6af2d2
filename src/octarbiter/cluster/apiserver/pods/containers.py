"""Which container of a pod is meant, and is there anything to be had from it?"""

from __future__ import annotations

from typing import Final

from octarbiter.api.meta import Json
from octarbiter.cluster.apiserver import status

_GROUPS: Final = ("initContainers", "containers", "ephemeralContainers")
_STATUSES: Final = ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")
_WHY_WAITING: Final = {
    "ErrImagePull": "image can't be pulled",
    "ImagePullBackOff": "trying and failing to pull image",
}


def chosen(pod: Json, named: str) -> str:
    """The container's name. Raises a refusal (400) where it is unknown, or none is named and there are several."""
    spec, pod_name = pod["spec"], pod["metadata"]["name"]
    names = [each["name"] for group in _GROUPS for each in spec.get(group) or []]
    if named:
        if named not in names:
            raise status.bad_request(f"container {named} is not valid for pod {pod_name}")
        return named
    mains = spec.get("containers") or []
    if len(mains) == 1:
        only: str = mains[0]["name"]
        return only
    shown = " ".join(names)
    raise status.bad_request(f"a container name must be specified for pod {pod_name}, choose one of: [{shown}]")


def state_of(pod: Json, container: str) -> Json | None:
    """Its status; None before anybody has reported one."""
    reported = pod.get("status") or {}
    everybody = (each for group in _STATUSES for each in reported.get(group) or [])
    return next((each for each in everybody if each.get("name") == container), None)


def is_running(pod: Json, container: str) -> bool:
    return ((state_of(pod, container) or {}).get("state") or {}).get("running") is not None


def run_with_logs(pod: Json, container: str, *, previous: bool) -> int:
    """Whose logs are meant: 0 is the container's last run, 1 the one before. Raises a refusal (400) if it has none."""
    found, which = state_of(pod, container), f'container "{container}" in pod "{pod["metadata"]["name"]}"'
    if found is None:
        raise status.bad_request(f"{which} is not available")
    state, last = found.get("state") or {}, (found.get("lastState") or {}).get("terminated")
    is_running, ended = state.get("running") is not None, state.get("terminated")
    if previous:
        if not (last or {}).get("containerID"):
            raise status.bad_request(f"previous terminated {which} not found")
        # Between two runs, the one before is the last that was.
        return 1 if is_running or ended is not None else 0
    if is_running or any(each and each.get("containerID") for each in (ended, last)):
        return 0
    if ended is not None or last is not None:
        raise status.bad_request(f"{which} is terminated")
    waiting = state.get("waiting")
    if waiting is None:
        raise status.bad_request(f"{which} is waiting to start - no logs yet")
    reason = waiting.get("reason", "")
    raise status.bad_request(f"{which} is waiting to start: {_WHY_WAITING.get(reason, reason)}")
