"""`octo why`: the sentence of the conditions, and what would help those who wait."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from octarbiter.api import codec
from octarbiter.api import taskset as tasksets
from octarbiter.api.queue import Queue
from octarbiter.api.queuejob import QueueJob
from octarbiter.cli import claiming, live, queuejob_page, reasons
from octarbiter.cli.queuejob_page import Subject

CLAIMANT = yaml.safe_load((Path(__file__).parent / "queue" / "claimant.input.yaml").read_text())


def queue(**status: Any) -> Queue:
    given = CLAIMANT["queue"]
    return codec.from_json({**given, "status": {**given["status"], **status}}, Queue)


def job(message: str = "it waits, number 1 in q02", reason: str = "Waits", **more: Any) -> QueueJob:
    conditions = [{"type": "Allocated", "status": "False", "reason": reason, "message": message}]
    body = {
        "metadata": {"name": "train", "namespace": "team-b"},
        "spec": {
            "queue": "q02",
            "resourceunit": {"cpu": 1},
            "resourceno": 3,
            "workloadRef": {"apiVersion": tasksets.API_VERSION, "kind": "TaskSet", "name": "train"},
        },
        "status": {"conditions": conditions, **more},
    }
    return codec.from_json(body, QueueJob)


def taskset(suspend: bool = True, **status: Any) -> tasksets.TaskSet:
    body = {
        "metadata": {"name": "train", "namespace": "team-b"},
        "spec": {"suspend": suspend, "queue": "q02", "roles": []},
        "status": {"state": "Waiting", "stateMessage": "suspended", **status},
    }
    return codec.from_json(body, tasksets.TaskSet)


def satisfied(status: str, reason: str = "Waits") -> list[dict[str, str]]:
    return [{"type": "Satisfied", "status": status, "reason": reason, "message": "q02 has all it deserves"}]


def test_a_queue_that_is_owed_something_need_only_wait() -> None:
    found = reasons.of_queue(queue())

    assert found.sentence == (
        "q02 waits: it deserves 4 CPU, has 1; 3 CPU come back when 2 pods of q01 end (asked 12 s ago)"
    )
    assert found.waits
    assert [help_.partition(":")[0] for help_ in found.helps] == ["nothing need be done"]


def test_a_queue_that_has_all_it_deserves_is_told_how_to_deserve_more() -> None:
    found = reasons.of_queue(queue(preempting={}, conditions=satisfied("False")))

    assert any("octo queue set q02 -n team-b --weight 5" in help_ for help_ in found.helps)


def test_who_has_all_needs_no_help() -> None:
    found = reasons.of_queue(queue(preempting={}, conditions=satisfied("True", "HasAll")))

    assert (found.waits, found.helps) == (False, [])


def test_a_mistake_in_a_queue_is_explained_by_its_own_sentence() -> None:
    found = reasons.of_queue(queue(preempting={}, conditions=satisfied("False", "Invalid")))

    assert found.helps == []


def test_a_queue_whose_last_change_nobody_has_seen_says_that_and_nothing_old() -> None:
    found = reasons.of_queue(queue(observedGeneration=1))

    assert found.sentence == "q02: the arbitrator has not seen the last change of the spec yet"
    assert found.helps == []


def test_a_job_names_those_ahead_of_it() -> None:
    ahead = [job() for _ in range(5)]
    found = reasons.of_job(Subject(job=job(), queue=queue(preempting={}), ahead=ahead))

    assert found.sentence == "train: it waits, number 1 in q02"
    assert found.helps[0] == "ahead of it: train, train, train and 2 more; a higher priority would overtake"
    assert any("--weight" in help_ for help_ in found.helps)


def test_those_that_have_started_cannot_be_overtaken() -> None:
    runs = job(conditions=[{"type": "Started", "status": "True"}])
    found = reasons.of_job(Subject(job=job(), queue=queue(), ahead=[runs]))

    assert found.helps[0] == "ahead of it, and started: train; it is their turn until they end"
    assert not any("overtake" in help_ for help_ in found.helps)


def test_a_job_that_never_fits_is_told_to_be_smaller() -> None:
    found = reasons.of_job(
        Subject(job=job("it waits: 9 CPU (one unit) never fits: there is only 8 CPU"), queue=queue())
    )

    assert found.helps == ["smaller units, or fewer at once (spec.minResourceno); or more room for the queue"]


def test_a_job_without_a_queue_is_explained_by_its_own_sentence() -> None:
    found = reasons.of_job(Subject(job=job("queue q02 does not exist", "NoQueue")))

    assert (found.sentence, found.helps) == ("train: queue q02 does not exist", [])


def test_a_taskset_that_its_queue_holds_back_tells_what_its_claim_tells() -> None:
    found = reasons.of_taskset(taskset(), Subject(job=job(), queue=queue()))

    assert found.kind == "TaskSet"
    assert found.sentence == "train: it waits, number 1 in q02"
    assert found.helps


@pytest.mark.parametrize(
    ("seen", "sentence"),
    [
        (taskset(state=""), "train: nobody has looked at it yet"),
        (taskset(), "train: is suspended"),
        (taskset(suspend=False, stateMessage="quota: 2 refused"), "train: waits: quota: 2 refused"),
        (taskset(suspend=False, state="Running", stateMessage=""), "train: runs"),
        (taskset(suspend=False, state="Failed", stateMessage="1 failed"), "train: has failed: 1 failed"),
    ],
)
def test_a_taskset_without_a_claim_speaks_for_itself(seen: tasksets.TaskSet, sentence: str) -> None:
    assert reasons.of_taskset(seen, None).sentence.startswith(sentence)


def test_a_started_claim_holds_nobody_back() -> None:
    allocated = [{"type": "Allocated", "status": "True"}]

    assert claiming.waits_for(taskset(), job(conditions=allocated)) == ""
    assert claiming.waits_for(taskset(suspend=False), job()) == ""
    assert claiming.waits_for(taskset(), None) == ""


def test_a_claim_of_somebody_else_is_not_its_own() -> None:
    other = codec.to_json(job())
    other["spec"]["workloadRef"]["name"] = "other"

    assert claiming.waits_for(taskset(), codec.from_json(other, QueueJob)) == ""


def test_who_watches_a_run_sees_what_its_queue_says() -> None:
    waits = claiming.waits_for(taskset(), job())

    assert live.said(None, live.held_back(taskset(), waits)) == [
        "train: Waiting: its share of queue q02: it waits, number 1 in q02"
    ]
    assert live.held_back(taskset(), "") == taskset()
    assert live.told(taskset(), waits)["waitsFor"] == waits
    assert live.told(taskset(), waits)["status"]["stateMessage"] == "suspended"
    assert "waitsFor" not in live.told(taskset())


def test_the_end_of_a_job_is_what_counts_of_it() -> None:
    over = {"type": "Finished", "status": "True", "message": "its Job train has ended"}

    assert (
        queuejob_page.explanation(job(conditions=[{"type": "Allocated", "status": "False"}, over])) == over["message"]
    )
    assert not reasons.of_job(Subject(job=job(conditions=[over]))).waits
