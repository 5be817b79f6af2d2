"""Which container of a pod is meant, and whose run has the logs?"""

from __future__ import annotations

from typing import Any

import pytest

from octarbiter.cluster.apiserver import status
from octarbiter.cluster.apiserver.pods import containers

Json = dict[str, Any]
ENDED = {"terminated": {"containerID": "process://1", "exitCode": 1}}


def pod(state: Json | None = None, last: Json | None = None, names: tuple[str, ...] = ("c",)) -> Json:
    statuses = [] if state is None else [{"name": "c", "state": state, "lastState": last or {}}]
    return {
        "metadata": {"name": "p"},
        "spec": {"containers": [{"name": name} for name in names]},
        "status": {"containerStatuses": statuses},
    }


@pytest.mark.parametrize(
    ("state", "last", "previous", "expected"),
    [
        ({"running": {}}, None, False, 0),
        ({"running": {}}, ENDED, False, 0),
        ({"running": {}}, ENDED, True, 1),
        (ENDED, None, False, 0),
        (ENDED, ENDED, True, 1),
        ({"waiting": {"reason": "CrashLoopBackOff"}}, ENDED, False, 0),
        ({"waiting": {"reason": "CrashLoopBackOff"}}, ENDED, True, 0),
    ],
)
def test_between_two_runs_the_last_one_is_also_the_one_before(
    state: Json, last: Json | None, previous: bool, expected: int
) -> None:
    assert containers.run_with_logs(pod(state, last), "c", previous=previous) == expected


@pytest.mark.parametrize(
    ("state", "previous", "message"),
    [
        (None, False, 'container "c" in pod "p" is not available'),
        ({"waiting": {"reason": "ContainerCreating"}}, False, "is waiting to start: ContainerCreating"),
        ({"waiting": {"reason": "ErrImagePull"}}, False, "is waiting to start: image can't be pulled"),
        ({}, False, "is waiting to start - no logs yet"),
        ({"terminated": {"exitCode": 128}}, False, 'container "c" in pod "p" is terminated'),
        ({"running": {}}, True, 'previous terminated container "c" in pod "p" not found'),
    ],
)
def test_a_container_without_logs_says_why(state: Json | None, previous: bool, message: str) -> None:
    with pytest.raises(status.Failure, match="container") as caught:
        containers.run_with_logs(pod(state), "c", previous=previous)

    assert caught.value.code == 400
    assert message in str(caught.value)
