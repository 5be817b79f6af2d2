import io
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

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


def shown(tasksets: list[api.TaskSet], lines: list[str], columns: int = 80, rows: int = 24) -> str:
    """As it is drawn on a terminal of this size."""
    console = Console(width=columns, height=rows, file=io.StringIO(), highlight=False)
    console.print(drawing.drawn(live.picture(tasksets, lines, NOW, live.Space(columns, rows)), columns))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize(("columns", "rows"), [(80, 24), (200, 50)])
def test_the_picture_shows_roles_replicas_what_is_waited_for_and_the_last_log_lines(columns: int, rows: int) -> None:
    seen = taskset(
        replica(phase=ReplicaPhase.RUNNING, start_at=NOW - timedelta(seconds=5)),
        replica(1, phase=ReplicaPhase.PENDING),
        state="Running",
        state_message="worker-1: waits for a node",
        start_at=NOW - timedelta(seconds=5),
    )
    drawn = shown([seen], [f"line {number}" for number in range(20)], columns, rows)

    assert "Running for 5s" in drawn
    assert "worker-1: waits for a node" in drawn
    assert "[                    ]   0/2" in drawn
    assert "worker-0   Running   5s" in drawn
    assert "line 19" in drawn
    assert "line 2\n" not in drawn


FEW = taskset(replica(phase=ReplicaPhase.RUNNING, phase_message="because " * 40), state="Running")
MANY = taskset(
    *(replica(index, phase=ReplicaPhase.RUNNING, phase_message="so it is") for index in range(500)),
    state="Running",
    state_message="a node for worker-499, and it has been a long time " * 9,
)


@settings(deadline=None, max_examples=50)
@given(
    st.lists(st.sampled_from(["few", "many"]), min_size=1, max_size=40),
    st.lists(st.text(max_size=300), max_size=20),
    st.integers(40, 250),
    st.integers(20, 80),
)
def test_a_picture_is_never_larger_than_its_terminal(
    kinds: list[str], lines: list[str], columns: int, rows: int
) -> None:
    drawn = shown([FEW if kind == "few" else MANY for kind in kinds], lines, columns, rows).splitlines()

    assert len(drawn) < rows
    assert max(map(len, drawn)) <= columns
    assert all("ROLE" not in line or "STATE" in line for line in drawn)


def test_a_picture_of_many_replicas_says_how_many_are_left_out() -> None:
    assert "and 493 more" in shown([MANY], [])


def test_many_tasksets_have_a_line_each() -> None:
    drawn = shown([FEW, MANY] * 5, [])

    assert len([line for line in drawn.splitlines() if line.split()[:2] == ["job", "Running"]]) == 10


def test_scripts_get_name_and_whole_status() -> None:
    told = live.told(taskset(state="Running"))
    assert (told["namespace"], told["name"], told["status"]["state"]) == ("team", "job", "Running")
    assert msgspec.json.encode(told)
