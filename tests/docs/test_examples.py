"""What the documents show as files is what the files hold, and what they show as commands is run."""

from pathlib import Path

import click.testing
import pytest

from documents import LANGUAGES, ROOT, RUN, Block, blocks, has_begun_with, is_shown
from octarbiter.cli import main

EXAMPLES = ROOT / "examples"
SHOWN = [block for document in RUN for block in blocks(document) if block.language in ("yaml", "python")]
OURS = ("tutorial", "operating", "embedded", "testing", "sharing", "arbitration")


@pytest.mark.parametrize("block", SHOWN, ids=lambda block: block.file)
def test_a_file_is_shown_as_it_is(block: Block) -> None:
    assert (ROOT / block.file).read_text() == block.text, f"{block.where} differs from {block.file}"


def test_every_file_of_the_guides_is_shown() -> None:
    files = [path for name in OURS for path in (EXAMPLES / name).rglob("*") if path.suffix in (".yaml", ".py")]

    assert {str(path.relative_to(ROOT)) for path in files} == {block.file for block in SHOWN}


@pytest.mark.parametrize("path", sorted(EXAMPLES.rglob("*.yaml")), ids=lambda path: str(path.relative_to(EXAMPLES)))
def test_every_example_is_valid(path: Path) -> None:
    result = click.testing.CliRunner().invoke(main.cli, ["validate", "-f", str(path)])

    assert result.exit_code == 0, result.output


@pytest.mark.parametrize("document", RUN)
def test_every_block_says_what_it_is(document: str) -> None:
    found = blocks(document)
    left_over = [block.where for block in found if block.language == "text"]

    assert found
    assert [block.where for block in found if block.language not in LANGUAGES] == []
    assert left_over == [], "text stands right after the commands that print it"


def test_every_guide_with_commands_is_run() -> None:
    documents = [str(path.relative_to(ROOT)) for path in sorted((ROOT / "docs").rglob("*.md"))]

    assert [name for name in documents if any(b.language == "sh" for b in blocks(name)) and name not in RUN] == []


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        ("a  b\n", "a      b   \n"),
        ("took 5s\n", "took 1m20s\n"),
        ("at 2026-11-16 00:20:12Z (5s ago)\n", "at 2027-01-01 11:22:33Z (2h ago)\n"),
        ("fake-1   10.144.0.2\n", "fake-3   10.144.0.17\n"),
        ("first\n...\nlast\n", "first\nlast\n"),
        ("first\n...\nlast\n", "first\nx\ny\nlast\n"),
        ("got ... of it\n", "got two of it\n"),
    ],
)
def test_what_differs_by_time_and_place_only_is_what_is_shown(shown: str, printed: str) -> None:
    assert is_shown(shown, printed)


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        ("worker-0 Failed\n", "worker-0 Succeeded\n"),
        ("one\n", "one\ntwo\n"),
        ("one\ntwo\n", "one\n"),
        ("retries 1\n", "retries 2\n"),
        ("a\n...\nc\n", "a\nb\n"),
        ("a b\n", "ab\n"),
        ("one\n", ""),
    ],
)
def test_what_differs_otherwise_is_not(shown: str, printed: str) -> None:
    assert not is_shown(shown, printed)


def test_a_beginning_may_be_followed_by_anything() -> None:
    assert has_begun_with("one\n", "one\ntwo\n")
    assert not has_begun_with("one\n", "two\none\n")
