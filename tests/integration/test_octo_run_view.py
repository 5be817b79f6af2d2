"""What a person sees of `octo run` at a terminal, and what is left when it is over."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from screen import Screen, Session

TURNS = {
    # One node with one device: the second worker waits for the first.
    "apiVersion": "octopus.openi.pcl.cn/v1alpha1",
    "kind": "TaskSet",
    "metadata": {"name": "turns"},
    "spec": {"roles": [{"name": "worker", "replicas": 2}]},
}
Start = Callable[..., Session]


def turns(tmp_path: Path, script: str) -> str:
    limits = {"limits": {"example.com/device": 1}}
    container = {
        "name": "main",
        "image": "any",
        "command": ["sh", "-c", f": {tmp_path}; {script}"],
        "resources": limits,
    }
    spec: dict[str, Any] = {"restartPolicy": "Never", "containers": [container]}
    body: dict[str, Any] = yaml.safe_load(yaml.safe_dump(TURNS))
    body["spec"]["roles"][0]["template"] = {"spec": spec}
    (tmp_path / "turns.yaml").write_text(yaml.safe_dump(body))
    return str(tmp_path / "turns.yaml")


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    sessions: list[Session] = []

    def begin(script: str, *, columns: int = 80, rows: int = 24, **variables: str) -> Session:
        # COLUMNS and LINES, which those who run tests like to set, would hide the terminal's own size.
        others = ("OCTO_", "KUBECONFIG", "COLUMNS", "LINES")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(others)}
        (tmp_path / "tmp").mkdir()
        places = {"OCTO_HOME": str(tmp_path / "home"), "TMPDIR": str(tmp_path / "tmp")}
        env = kept | places | {"TERM": "xterm"} | variables
        argv = [sys.executable, "-m", "octarbiter", "run", turns(tmp_path, script), "--resource=example.com/device=1"]
        sessions.append(Session(argv, env, columns=columns, rows=rows))
        return sessions[-1]

    yield begin
    for session in sessions:
        session.close()


def left_behind(tmp_path: Path) -> list[str]:
    """Files of the run, and processes that know its directory."""
    found = [str(path) for place in ("tmp", "home") for path in (tmp_path / place).glob("*")]
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if str(tmp_path).encode() in entry.read_bytes():
                found.append(entry.read_bytes().decode())
        except OSError:
            continue
    return found


def is_whole(screen: Screen) -> bool:
    """All is there that a person should see while one worker runs and the other waits."""
    lines = [line.split() for line in screen.text.splitlines()]
    log = screen.text.partition("LOG")[2]
    return (
        ["TaskSet", "turns"] in lines
        and any(line[:2] == ["State", "Running"] and "for" in line for line in lines)
        and any(line[:2] == ["Waits", "for"] for line in lines)
        and any(line[:2] == ["worker", "Running"] and "0/2" in line for line in lines)
        and any(line[:2] == ["worker-0", "Running"] for line in lines)
        and "worker-0: it begins" in log
    )


@pytest.mark.parametrize(("columns", "rows"), [(80, 24), (200, 50), (40, 24)])
def test_the_picture_moves_through_the_life_of_a_taskset(start: Start, tmp_path: Path, columns: int, rows: int) -> None:
    gate = tmp_path / "gate"
    session = start(f"echo it begins; until [ -e {gate} ]; do sleep 0.1; done", columns=columns, rows=rows)
    session.until(is_whole)

    assert len(session.screen.text.splitlines()) <= rows
    assert {"36", "33"} & session.screen.styles
    session.resize(100, 40)
    gate.touch()

    assert session.end() == 0
    assert "all roles succeeded" in session.screen.text
    assert session.screen.text.count("TaskSet  turns") == 1
    assert session.is_restored
    assert left_behind(tmp_path) == []


@pytest.mark.parametrize("how", ["Ctrl-C", "SIGTERM", "SIGHUP"])
def test_who_interrupts_it_leaves_nothing_behind(start: Start, tmp_path: Path, how: str) -> None:
    session = start("echo it begins; while true; do sleep 1; done")
    session.until(lambda seen: "worker-0: it begins" in seen.text)
    assert left_behind(tmp_path)
    if how == "Ctrl-C":
        session.type(b"\x03")
    else:
        session.process.send_signal(signal.Signals[how])

    assert session.end() == 130
    assert session.is_restored
    assert left_behind(tmp_path) == []


def test_who_interrupts_it_before_the_cluster_answers_leaves_nothing_behind(start: Start, tmp_path: Path) -> None:
    session = start("true")
    session.until(lambda seen: any((tmp_path / "tmp").glob("octo-run-*")))
    session.type(b"\x03")

    assert session.end() == 130
    assert left_behind(tmp_path) == []


def test_who_wants_no_colours_gets_none(start: Start) -> None:
    session = start("echo it begins", NO_COLOR="1")

    assert session.end() == 0
    assert "worker-1" in session.screen.text
    assert session.screen.styles <= {"0", "1", "2"}


def test_a_terminal_that_can_only_print_gets_lines(start: Start) -> None:
    session = start("true", TERM="dumb")

    assert session.end() == 0
    assert "\x1b" not in session.written
    assert session.screen.text.splitlines()[-1] == "turns: Succeeded: all roles succeeded"
