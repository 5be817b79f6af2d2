"""Reading what supervisors wrote."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nodeagent_builders import container, pod

from octarbiter.cluster.nodeagent import logs
from octarbiter.cluster.nodeagent.places import Places


def entry(second: int, text: str, tag: str = "F", stream: str = "stdout") -> str:
    return f"2026-01-01T00:00:{second:02}.000000000Z {stream} {tag} {text}\n"


def write(path: Path, *entries: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(entries))
    return path


async def read(path: Path, **query: Any) -> str:
    return b"".join([piece async for piece in logs.read(path, logs.Query(**query), lambda: True)]).decode()


async def test_lines_come_as_they_were_written(tmp_path: Path) -> None:
    path = write(tmp_path / "0.log", entry(1, "one"), entry(2, "tw", "P"), entry(2, "o two"), entry(3, "end", "P"))

    assert await read(path) == "one\ntwo two\nend"


async def test_older_files_come_first(tmp_path: Path) -> None:
    write(tmp_path / "0.log.2", entry(1, "a"))
    write(tmp_path / "0.log.1", entry(2, "b"))
    path = write(tmp_path / "0.log", entry(3, "c"))

    assert await read(path) == "a\nb\nc\n"
    assert await read(path, tail_lines=2) == "b\nc\n"
    assert await read(path, tail_lines=1) == "c\n"


async def test_only_what_came_since(tmp_path: Path) -> None:
    path = write(tmp_path / "0.log", entry(1, "a"), entry(2, "b"))

    assert await read(path, since=datetime(2026, 1, 1, 0, 0, 2, tzinfo=UTC)) == "b\n"


async def test_no_more_bytes_than_asked_for(tmp_path: Path) -> None:
    path = write(tmp_path / "0.log", entry(1, "abc"), entry(2, "def"))

    assert await read(path, limit_bytes=6) == "abc\nde"


async def test_with_times(tmp_path: Path) -> None:
    path = write(tmp_path / "0.log", entry(1, "abc"))

    assert await read(path, timestamps=True) == "2026-01-01T00:00:01.000000000Z abc\n"


async def test_the_last_lines_of_nothing_are_nothing(tmp_path: Path) -> None:
    path = write(tmp_path / "0.log")

    assert await read(path, tail_lines=5) == ""
    assert await read(write(path, entry(1, "a")), tail_lines=0) == ""


async def test_following_goes_on_in_the_new_file_when_the_old_one_is_rotated(tmp_path: Path) -> None:
    path, said = write(tmp_path / "0.log", entry(1, "a")), list[bytes]()
    async for piece in logs.read(path, logs.Query(follow=True), lambda: b"c\n" in said):
        said.append(piece)
        if piece == b"a\n":
            with path.open("a") as file:
                file.write(entry(2, "b"))
            path.rename(tmp_path / "0.log.1")
            write(path, entry(3, "c"))

    assert said == [b"a\n", b"b\n", b"c\n"]


@settings(max_examples=60, deadline=None)
@given(
    files=st.lists(st.lists(st.tuples(st.text("ab", max_size=3), st.booleans()), max_size=6), min_size=1, max_size=4),
    wanted=st.integers(0, 12),
    block=st.sampled_from([1, 7, 64, 100_000]),
)
async def test_the_tail_is_always_the_end_of_the_whole(
    tmp_path_factory: pytest.TempPathFactory, files: list[list[tuple[str, bool]]], wanted: int, block: int
) -> None:
    directory = tmp_path_factory.mktemp("logs")
    path = directory / "0.log"
    for number, content in enumerate(reversed(files)):  # the first is the oldest
        name = path if number == 0 else path.with_name(f"0.log.{number}")
        write(name, *(entry(1, text, "F" if whole else "P") for text, whole in content))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(logs, "BLOCK", block)
        everything, tail = await read(path), await read(path, tail_lines=wanted)

    lines = everything.splitlines(keepends=True)
    complete = [line for line in lines if line.endswith("\n")]
    rest = lines[-1] if lines and not lines[-1].endswith("\n") else ""
    assert tail == ("".join(complete[len(complete) - min(wanted, len(complete)) :]) + rest if wanted else "")


def test_the_latest_run_of_the_latest_pod_is_found(tmp_path: Path) -> None:
    places = Places(tmp_path)
    for uid in ("u-1", "u-2"):
        for attempt in (0, 9, 10):
            one = pod(metadata={"uid": uid})
            write(places.log(one, "main", attempt), entry(1, uid))

    assert logs.find(places, "team", "web", "main", uid="u-1").name == "10.log"
    assert logs.find(places, "team", "web", "main", uid="u-1", previous=True).name == "9.log"
    with pytest.raises(LookupError, match='no logs of container "other"'):
        logs.find(places, "team", "web", "other")


def test_a_first_run_has_none_before_it(tmp_path: Path) -> None:
    places = Places(tmp_path)
    write(places.log(pod(), "main", 0))

    with pytest.raises(LookupError, match="previous terminated container"):
        logs.find(places, "team", "web", "main", previous=True)


@pytest.mark.parametrize(
    ("policy", "code", "words", "message"),
    [
        ("File", 1, "last words", "last words"),
        ("File", 1, "", ""),
        ("FallbackToLogsOnError", 1, "", "b\nc\n"),
        ("FallbackToLogsOnError", 0, "", ""),
        ("FallbackToLogsOnError", 1, "last words", "last words"),
    ],
)
def test_last_words(tmp_path: Path, policy: str, code: int, words: str, message: str) -> None:
    spec = pod([container(terminationMessagePolicy=policy)]).spec.containers[0]
    log = write(tmp_path / "0.log", entry(1, "b"), entry(2, "c"))

    assert logs.termination_message(spec, write(tmp_path / "words", words), log, code) == message


def test_last_words_are_short(tmp_path: Path) -> None:
    spec = pod().spec.containers[0]

    assert len(logs.termination_message(spec, write(tmp_path / "words", "x" * 9999), tmp_path / "none", 1)) == 4096


def test_logs_of_pods_long_gone_are_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "KEPT_PODS", 2)
    places = Places(tmp_path)
    for uid in ("u-1", "u-2", "u-3", "u-4"):
        write(places.log(pod(metadata={"uid": uid}), "main", 0))
    places.pod("u-1").mkdir()
    logs.prune(places)

    assert len(list(places.logs.iterdir())) == 3
    assert places.pod_logs(pod()).exists()
