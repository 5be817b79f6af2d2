"""`octo queue describe` and `octo queuejob describe` from given objects: `x.input.yaml` is shown as `x.output.txt`."""

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from octarbiter.api import codec
from octarbiter.api.core_kinds import Event, ResourceQuota
from octarbiter.api.queue import Queue
from octarbiter.api.queuejob import QueueJob
from octarbiter.cli import drawing, queue_gathering, queue_page, queuejob_page

CASES = sorted(Path(__file__).parent.glob("queue/*.input.yaml"))
NOW = datetime.fromisoformat("2026-01-01T10:00:00Z")


def subject(given: Mapping[str, Any]) -> queue_page.Subject:
    def read(name: str, type_: type[Any]) -> list[Any]:
        return [codec.from_json(each, type_) for each in given.get(name, [])]

    return queue_page.Subject(
        queue=codec.from_json(given["queue"], Queue),
        children=read("children", Queue),
        jobs=queue_gathering.in_order(read("jobs", QueueJob)),
        quotas=read("quotas", ResourceQuota),
        events=read("events", Event),
        hidden=given.get("hidden", ""),
    )


def given(name: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((Path(__file__).parent / "queue" / f"{name}.input.yaml").read_text())
    return found


@pytest.mark.parametrize("file", CASES, ids=lambda file: file.name.partition(".")[0])
def test_the_page_is_as_it_was_agreed(file: Path) -> None:
    expected = file.with_name(file.name.replace(".input.yaml", ".output.txt")).read_text()

    assert drawing.plain(queue_page.blocks(subject(yaml.safe_load(file.read_text())), NOW)) + "\n" == expected


def test_jobs_are_told_in_the_order_in_which_they_are_served() -> None:
    assert [job.metadata.name for job in subject(given("claimant")).jobs] == ["urgent", "train", "other"]


def test_a_job_that_has_finished_is_in_nobodys_way() -> None:
    over = codec.from_json(given("claimant")["jobs"][1], QueueJob)
    over.status.conditions.append(over.status.conditions[0].__class__(type="Finished", status="True"))

    assert queue_gathering.in_order([over]) == []


def test_more_jobs_than_a_page_holds_are_counted() -> None:
    job = codec.from_json(given("claimant")["jobs"][1], QueueJob)
    table = queue_page.line("Jobs", [job] * (queue_page.JOBS + 7), "team-b", NOW)

    assert len(table.rows) == queue_page.JOBS
    assert table.note.startswith("and 7 more")


def test_a_job_is_told_with_who_is_ahead_of_it() -> None:
    seen = subject(given("claimant"))
    train = seen.jobs[1]
    shown = drawing.plain(
        queuejob_page.blocks(queuejob_page.Subject(job=train, queue=seen.queue, ahead=seen.jobs[:1]), NOW)
    )

    assert "Ahead of it:" in shown
    assert "urgent" in shown
    assert "Job train (batch/v1)" in shown
    assert "Units:       0 of 3" in shown


def test_a_queue_that_nobody_has_looked_at_says_so() -> None:
    fresh = codec.from_json({"metadata": {"name": "q", "generation": 1}, "spec": {}}, Queue)

    assert "is an arbitrator running?" in queue_page.explanation(fresh)
