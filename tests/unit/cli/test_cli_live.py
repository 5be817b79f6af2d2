from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from octarbiter.api import taskset as api
from octarbiter.api.meta import ObjectMeta
from octarbiter.cli import drawing, live
from octarbiter.core.lifecycle.phases import ReplicaPhase

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def taskset(*replicas: api.ReplicaStatus, **status: Any) -> api.TaskSet:
    roles = [api.RoleStatus(name="worker", replica_status=list(replicas), active=len(replicas))]
    return api.TaskSet(
        metadata=ObjectMeta(name="job", namespace="team", creation_timestamp=NOW - timedelta(seconds=9)),
        spec=api.TaskSetSpec(roles=[api.Role(name="worker", replicas=max(1, len(replicas)), template={})]),
        status=api.TaskSetStatus(role_status=roles, **status),
    )


def replica(index: int = 0, **fields: Any) -> api.ReplicaStatus:
    return api.ReplicaStatus(index=index, name=f"worker-{index}", **fields)


def test_each_thing_that_happens_is_one_line() -> None:
    waiting = taskset(state="Waiting", state_message="0/1 nodes are available")
    running = taskset(replica(phase=ReplicaPhase.RUNNING), state="Running")
    ended = taskset(
        replica(outcome="Failed", terminated_info=api.TerminatedInfo(exit_code=3, exit_message="no disk")),
        state="Failed",
        state_message="1 of 1 failed",
    )

    assert live.said(None, waiting) == ["job: Waiting: 0/1 nodes are available"]
    assert live.said(waiting, running) == ["job: worker-0 Running", "job: Running"]
    assert live.said(running, running) == []
    assert live.said(running, ended) == ["job: worker-0 Failed (exit 3): no disk", "job: Failed: 1 of 1 failed"]


def test_a_new_pod_of_a_replica_is_told_with_its_number() -> None:
    first = taskset(replica(phase=ReplicaPhase.RUNNING), state="Running")
    again = taskset(replica(phase=ReplicaPhase.RUNNING, attempt=1, lost_count=1), state="Running")
    assert live.said(first, again) == ["job: worker-0 Running (attempt 1)"]


def test_the_picture_shows_roles_replicas_what_is_waited_for_and_the_last_log_lines() -> None:
    seen = taskset(
        replica(phase=ReplicaPhase.RUNNING, start_at=NOW - timedelta(seconds=5)),
        replica(1, phase=ReplicaPhase.PENDING),
        state="Running",
        state_message="worker-1: waits for a node",
        start_at=NOW - timedelta(seconds=5),
    )
    shown = drawing.plain(live.picture([seen], [f"line {number}" for number in range(20)], NOW))

    assert "Running for 5s" in shown
    assert "worker-1: waits for a node" in shown
    assert "[                    ]" in shown
    assert "line 19" in shown
    assert "line 2\n" not in shown


def test_a_picture_of_many_replicas_stays_small() -> None:
    many = taskset(*(replica(index, phase=ReplicaPhase.RUNNING) for index in range(500)), state="Running")
    shown = drawing.plain(live.picture([many], [], NOW))
    assert len(shown.splitlines()) < 40
    assert f"and {500 - live.REPLICAS} more" in shown


def test_scripts_get_name_and_whole_status() -> None:
    told = live.told(taskset(state="Running"))
    assert (told["namespace"], told["name"], told["status"]["state"]) == ("team", "job", "Running")
    assert msgspec.json.encode(told)
