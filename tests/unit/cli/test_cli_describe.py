"""`octo describe` from given objects: `describe/x.input.yaml` is shown as `describe/x.output.txt`."""

import io
import sys
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from octarbiter.api import codec
from octarbiter.api.core_kinds import Event
from octarbiter.api.pod import Pod
from octarbiter.api.queuejob import QueueJob
from octarbiter.api.taskset import ReplicaStatus, TaskSet
from octarbiter.cli import drawing, gathering, layout, page
from octarbiter.core.lifecycle import report

CASES = sorted(Path(__file__).parent.glob("describe/*.input.yaml"))


def subject(given: Mapping[str, Any]) -> page.Subject:
    taskset = codec.from_json(given["taskset"], TaskSet)
    pods = [codec.from_json(pod, Pod) for pod in given.get("pods", [])]
    known = {role.name: list(role.replica_status) for role in report.expand(taskset.status).role_status}
    events = [codec.from_json(event, Event) for event in given.get("events", [])]
    claim = codec.from_json(given["claim"], QueueJob) if "claim" in given else None
    return page.Subject(taskset, gathering.with_pods(known, pods), pods, events, claim)


def blocks(file: Path, **how: bool) -> list[layout.Block]:
    given = yaml.safe_load(file.read_text())
    return page.blocks(subject(given), datetime.fromisoformat(given["now"]), **how)


@pytest.mark.parametrize("file", CASES, ids=lambda file: file.name.partition(".")[0])
def test_the_page_is_as_it_was_agreed(file: Path) -> None:
    expected = file.with_name(file.name.replace(".input.yaml", ".output.txt")).read_text()

    assert drawing.plain(blocks(file)) + "\n" == expected


def test_all_replicas_are_listed_when_asked_for() -> None:
    (large,) = (file for file in CASES if file.name == "large.input.yaml")
    tables = {block.title: block for block in blocks(large, all_replicas=True) if isinstance(block, layout.Table)}

    assert len(tables["Replicas"].rows) == 600
    assert tables["Replicas"].note == ""


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("columns", [40, 80, 250])
@pytest.mark.parametrize("file", CASES, ids=lambda file: file.name.partition(".")[0])
def test_a_terminal_shows_the_same_words_however_narrow(
    file: Path, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = _Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("NO_COLOR", "1")
    drawing.show(blocks(file))
    drawn = "".join(terminal.getvalue().split())

    for block in blocks(file):
        cells = (
            [value for _, value in block.pairs] if isinstance(block, layout.Facts) else [row[0] for row in block.rows]
        )
        assert all("".join(cell.split())[:30] in drawn for cell in cells)


def test_a_message_that_never_ends_is_cut() -> None:
    replica = ReplicaStatus(index=0, name="worker-0", phase_message="x" * 5000)
    taskset = codec.from_json({"spec": {"roles": [{"name": "worker", "template": {}}]}}, TaskSet)
    shown = drawing.plain(page.blocks(page.Subject(taskset, {"worker": [replica]}), datetime.now().astimezone()))

    assert "x" * (layout.LONGEST_MESSAGE - 3) + "..." in shown
    assert "x" * layout.LONGEST_MESSAGE not in shown
