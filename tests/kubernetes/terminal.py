"""Does, in a shell, what a document says, and compares what it prints with what the document shows."""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO

from eventual import eventually

from documents import STAYS, UNTIL_SHOWN, Block, has_begun_with, is_shown

PATIENCE_S = 60.0


class Terminal:
    """One bash from the first block to the last, so that what a block exports is there for the next one."""

    def __init__(self, directory: Path, env: Mapping[str, str], spelled: Mapping[str, str] | None = None) -> None:
        """`spelled`: what stands in the document -> what is written in its place."""
        self._directory = directory
        self._spelled = dict(spelled or {})
        self._notes = Path(tempfile.mkdtemp(dir=directory.parent))
        self._others: list[_Other] = []
        self._bash = subprocess.Popen(
            ["bash", "--noprofile", "--norc"], stdin=subprocess.PIPE, cwd=directory, env=dict(env), text=True
        )

    def __enter__(self) -> "Terminal":
        return self

    def __exit__(self, *_: object) -> None:
        for other in self._others:
            other.end()
        self._bash.kill()
        self._bash.wait()

    def do(self, block: Block) -> None:
        if block.reason or (block.needs and shutil.which(block.needs) is None):
            return
        commands = block.text
        for written, spelled in self._spelled.items():
            commands = commands.replace(written, spelled)
        if block.manner in (STAYS, UNTIL_SHOWN):
            self._do_beside(block, commands)
            return
        printed = self._run(block, commands)
        if block.shown is None:
            return
        deadline = time.monotonic() + PATIENCE_S
        # What a reader looks at may be a moment later than what a reader did; a second look does no harm.
        while block.only_looks and not is_shown(block.shown, printed) and time.monotonic() < deadline:
            printed = self._run(block, commands)
        assert is_shown(block.shown, printed), _difference(block, printed)

    def _do_beside(self, block: Block, commands: str) -> None:
        other = _Other(self._bash_env(block), self._directory, commands, self._notes / f"beside-{block.line}")
        self._others.append(other)
        shown = block.shown
        if shown is not None:
            eventually(
                lambda: has_begun_with(shown, other.printed) or other.has_ended,
                lambda: _difference(block, other.printed),
                PATIENCE_S,
            )
            assert has_begun_with(shown, other.printed), _difference(block, other.printed)
        if block.manner == UNTIL_SHOWN:
            self._others.remove(other)
            other.end()

    def _bash_env(self, block: Block) -> dict[str, str]:
        pairs = self._run(block, "env -0").split("\0")
        return dict(pair.split("=", 1) for pair in pairs if "=" in pair)

    def _run(self, block: Block, commands: str) -> str:
        script, printed, done = (self._notes / name for name in ("script", "printed", "done"))
        script.write_text(commands)
        done.unlink(missing_ok=True)
        # From a file, because a command that reads its input would else read the next commands.
        steps = (
            "failed=; trap 'failed=\"$BASH_COMMAND\"' ERR",
            f"source '{script}' >'{printed}' 2>&1 </dev/null",
            "trap - ERR",
            f"echo \"$failed\" >'{done}.new' && mv '{done}.new' '{done}'",
        )
        assert self._bash.stdin is not None
        self._bash.stdin.write("\n".join(steps) + "\n")
        self._bash.stdin.flush()
        eventually(
            lambda: done.exists() or self._bash.poll() is not None,
            lambda: f"{block.where} to come to its end:\n{commands}\n{_read(printed)}",
            2 * PATIENCE_S,
        )
        failed = done.read_text().strip() if done.exists() else "bash itself"
        assert not failed, f"{block.where}: `{failed}` failed:\n{_read(printed)}"
        return _read(printed)


class _Other:
    """Another terminal, with one command in it."""

    def __init__(self, env: Mapping[str, str], directory: Path, commands: str, printed: Path) -> None:
        self._printed = printed
        self._output: IO[bytes] = printed.open("wb")
        self._process = subprocess.Popen(
            ["bash", "-c", commands],
            stdin=subprocess.DEVNULL,
            stdout=self._output,
            stderr=subprocess.STDOUT,
            cwd=directory,
            env=dict(env),
            start_new_session=True,
        )

    @property
    def printed(self) -> str:
        return _read(self._printed)

    @property
    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def end(self) -> None:
        """With Ctrl-C, as the document says."""
        if not self.has_ended:
            os.killpg(self._process.pid, signal.SIGINT)
        try:
            self._process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            raise
        finally:
            self._output.close()


def _read(file: Path) -> str:
    return file.read_text(errors="replace") if file.exists() else ""


def _difference(block: Block, printed: str) -> str:
    return f"{block.where} does not print what is shown. It prints:\n{printed}\nShown is:\n{block.shown}"
