from __future__ import annotations

import json
from typing import Any

import pytest

from octarbiter.api import errors
from octarbiter.api.meta import Object
from octarbiter.api.scheme import PODS
from octarbiter.runtime import answers, requests

READ = requests.get(PODS, "lab", "p")
WRITES = [
    requests.create(PODS, "lab", {}),
    requests.merge_patch(PODS, "lab", "p", {}),
    requests.delete(PODS, "lab", "p"),
    requests.replace(PODS, "lab", "p", {}),
]


def refusal(code: int, reason: str = "", retry_after: str = "", **details: Any) -> errors.ApiError:
    body = {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "reason": reason,
        "code": code,
        "details": details,
    }
    return answers.error(READ, code, retry_after, json.dumps(body).encode())


def retry(code: int, reason: str = "", retry_after: str = "", **details: Any) -> errors.Retry:
    problem = refusal(code, reason, retry_after, **details)
    assert isinstance(problem, errors.Retry)
    return problem


@pytest.mark.parametrize("body", [b"404 page not found", b"<html>", b"", b"[1]", b'{"kind": "Pod"}', b"\xff\xfe"])
def test_a_refusal_in_any_form_becomes_an_error_of_the_tree(body: bytes) -> None:
    problem = answers.error(READ, 404, "", body)

    assert isinstance(problem, errors.NotFound)
    assert "HTTP 404" in str(problem)


def test_the_status_code_of_http_counts_and_not_the_one_in_the_body() -> None:
    body = json.dumps({"kind": "Status", "code": 200, "message": "m"}).encode()

    assert isinstance(answers.error(READ, 410, "", body), errors.Gone)


def test_the_longer_of_both_waiting_times_is_kept() -> None:
    assert retry(429, retry_after="3", retryAfterSeconds=1).after == 3.0
    assert retry(429, retryAfterSeconds=10).after == 10.0
    assert retry(503, retry_after="Fri, 31 Dec 1999 23:59:59 GMT").after == 0.0


@pytest.mark.parametrize("request_", WRITES, ids=lambda r: r.method)
def test_a_write_is_repeated_only_if_it_was_certainly_not_carried_out(request_: requests.Request) -> None:
    not_done = [
        answers.unreachable("https://x", OSError("refused")),
        retry(429),
        retry(503, retry_after="1"),
    ]
    unknown = [
        answers.lost(request_, OSError("reset")),
        retry(500),
        retry(503),
        retry(504, "Timeout", "1"),
        retry(500, "ServerTimeout", "2"),
    ]

    assert [answers.may_repeat(request_, problem) for problem in not_done] == [True, True, True]
    assert [answers.may_repeat(request_, problem) for problem in unknown] == [False] * 5


def test_a_read_is_repeated_whenever_the_server_is_busy_or_away() -> None:
    problems = [answers.lost(READ, OSError()), retry(500), retry(504, "Timeout"), retry(429)]

    assert all(answers.may_repeat(READ, problem) for problem in problems)


def test_an_eviction_held_up_by_a_budget_is_left_to_the_caller() -> None:
    problem = retry(429, "TooManyRequests", causes=[{"reason": "DisruptionBudget"}], retryAfterSeconds=10)

    assert not answers.may_repeat(requests.evict("lab", "p"), problem)
    assert problem.after == 10.0


def test_an_answer_that_cannot_be_read_says_which() -> None:
    with pytest.raises(errors.ApiError, match="/pods/p: the server's answer cannot be understood"):
        answers.decoded(b'{"metadata": 5}', Object, READ.path)


def test_what_is_wrong_with_the_network_is_told_in_its_own_words() -> None:
    refused = ConnectionRefusedError(111, "Connect call failed ('127.0.0.1', 1)")

    assert (
        str(answers.unreachable("https://k8s", refused))
        == "cannot reach the API server https://k8s: Connection refused"
    )
    assert str(answers.lost(READ, TimeoutError())).endswith("its answer did not arrive: no answer in time")
