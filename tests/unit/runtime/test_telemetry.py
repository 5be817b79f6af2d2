from __future__ import annotations

import io
import json
import logging
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from octarbiter.runtime import telemetry


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _root_logger_as_it_was() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


def logged(**extra: Any) -> dict[str, Any]:
    stream = io.StringIO()
    telemetry.set_up_logs("json", "info", stream)
    logging.getLogger("octarbiter.test").info("created pods", extra=extra)
    (line,) = stream.getvalue().splitlines()
    decoded: dict[str, Any] = json.loads(line)
    return decoded


def test_a_log_line_is_one_json_object_with_its_extra_keys() -> None:
    line = logged(key="team/job", count=3, pods=["a", "b"], took_s=0.5)
    assert line.pop("time").endswith("Z")
    assert line == {
        "level": "info",
        "logger": "octarbiter.test",
        "message": "created pods",
        "key": "team/job",
        "count": 3,
        "pods": ["a", "b"],
        "took_s": 0.5,
    }


def test_foreign_text_cannot_forge_a_line_or_a_field() -> None:
    line = logged(error='x"}\n{"level":"error"', level="error", logger="other")
    assert line["error"] == 'x"}\n{"level":"error"'
    assert (line["level"], line["logger"]) == ("info", "octarbiter.test")
    assert (line["level_"], line["logger_"]) == ("error", "other")


def test_what_json_does_not_know_is_written_as_text() -> None:
    line = logged(odd=object, when={(1, 2): Exception("boom")})
    assert line["odd"] == "<class 'object'>"
    assert line["when"] == {"(1, 2)": "boom"}


def test_an_exception_keeps_its_text_in_the_same_line() -> None:
    stream = io.StringIO()
    telemetry.set_up_logs("json", "info", stream)
    try:
        raise ValueError("broken")
    except ValueError:
        logging.getLogger("x").exception("failed")
    (line,) = stream.getvalue().splitlines()
    assert "ValueError: broken" in json.loads(line)["exception"]


PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIEhunter2\n-----END RSA PRIVATE KEY-----"


@pytest.mark.parametrize(
    "text",
    [
        "Authorization: Bearer hunter2hunter2",
        "authorization: basic hunter2hunter2==",
        "got eyJhbGciOiJSUzI1.eyJzdWIiOiJodW50.hunter2hunter2 back",
        "https://admin:hunter2@example.org/api",
        "token=hunter2",
        'id-token: "hunter2"',
        '{"access_token": "hunter2"}',
        "password: hunter2",
        "client-key-data: hunter2",
        f"key {PEM} end",
        PEM[:60],
    ],
)
def test_secrets_are_written_nowhere(text: str) -> None:
    for line in (logged(error=text), logged(nested={"deep": [text]})):
        assert "hunter2" not in json.dumps(line)
    stream = io.StringIO()
    telemetry.set_up_logs("json", "info", stream)
    try:
        raise ValueError(text)
    except ValueError:
        logging.getLogger("x").exception("failed: %s", text)
    assert "hunter2" not in stream.getvalue()


@pytest.mark.parametrize("key", ["token", "authorization", "clientSecret", "db_password", "private_key"])
def test_values_under_telling_names_are_not_written(key: str) -> None:
    assert logged(**{key: "hunter2"})[key] == "[redacted]"


@pytest.mark.parametrize(
    "text",
    [
        'secrets "db" not found',
        "exceeded quota: compute, requested: pods=1, used: pods=4, limited: pods=4",
        "team/job-worker-0-0-0: 0/5 nodes: insufficient nvidia.com/gpu",
        "basic check passed",
    ],
)
def test_ordinary_sentences_are_left_as_they_are(text: str) -> None:
    assert telemetry.without_secrets(text) == text


def test_long_text_is_cut() -> None:
    line = logged(error="x" * 1_000_000)
    assert len(line["error"]) < 17_000
    assert line["error"].endswith("(1000000 characters)")


def test_people_at_a_terminal_get_a_readable_line_that_cannot_steer_the_terminal() -> None:
    terminal = Terminal()
    telemetry.set_up_logs("auto", "info", terminal)
    logging.getLogger("octarbiter.x").warning("pod failed", extra={"message_of_pod": "\x1b[2Jgone"})
    text = terminal.getvalue()
    assert "WARNING octarbiter.x: pod failed message_of_pod=\\x1b[2Jgone" in text
    assert "\x1b" not in text


def test_auto_means_json_where_nobody_looks() -> None:
    stream = io.StringIO()
    telemetry.set_up_logs("auto", "info", stream)
    logging.getLogger("x").info("hello")
    assert json.loads(stream.getvalue())["message"] == "hello"


def test_the_level_decides_what_is_written() -> None:
    stream = io.StringIO()
    telemetry.set_up_logs("json", "warning", stream)
    logging.getLogger("x").info("quiet")
    logging.getLogger("x").warning("loud")
    assert [json.loads(line)["message"] for line in stream.getvalue().splitlines()] == ["loud"]


def test_a_queue_has_figures_of_its_own() -> None:
    metrics = telemetry.Metrics()
    observer = metrics.queue("tasksets")
    observer.added()
    observer.depth(7)
    observer.handed_out(0.5)
    for name in ("queue_adds_total", "queue_depth", "queue_latency_seconds_sum"):
        assert metrics.registry.get_sample_value(f"octarbiter_{name}", {"queue": "tasksets"}) is not None
    assert metrics.registry.get_sample_value("octarbiter_queue_depth", {"queue": "tasksets"}) == 7


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="process figures come from /proc")
def test_the_process_tells_its_memory() -> None:
    resident = telemetry.Metrics().registry.get_sample_value("process_resident_memory_bytes")
    assert resident is not None
    assert resident > 1e6
