"""How is what `octo run` sees shown: as a picture that moves, as lines, as JSON, or not at all beside the logs?"""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Protocol

import click

from octarbiter.api import codec
from octarbiter.api import taskset as api
from octarbiter.cli import drawing, live
from octarbiter.runtime import clock

if TYPE_CHECKING:
    from rich.console import Group
    from rich.live import Live

FRAMES_PER_S = 4


class Manner(Protocol):
    wants_logs: bool
    """Log lines are of use to it."""

    def __enter__(self) -> object: ...
    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None: ...
    def saw(self, taskset: api.TaskSet, waits_for: str = "") -> None:
        """`waits_for`: what its status does not know, because its queue holds it back."""
        ...

    def printed(self, line: bytes) -> None: ...
    def hint(self, sentence: str) -> None:
        """Something a person should know and can change."""


def manner(*, logs: bool, as_json: bool) -> Manner:
    if as_json:
        return _Json()
    if logs:
        return _Lines(wants_logs=True)
    # A terminal that cannot move its cursor is as good as a file.
    is_drawn = sys.stdout.isatty() and os.environ.get("TERM", "") not in ("", "dumb", "unknown")
    return _Picture() if is_drawn else _Lines(wants_logs=False)


class _Plain:
    wants_logs = False

    def __enter__(self) -> _Plain:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def printed(self, line: bytes) -> None:
        sys.stdout.buffer.write(line + b"\n")
        sys.stdout.buffer.flush()

    def hint(self, sentence: str) -> None:
        click.echo(sentence, err=True)


class _Lines(_Plain):
    def __init__(self, *, wants_logs: bool) -> None:
        self.wants_logs = wants_logs
        self._seen: dict[str, api.TaskSet] = {}

    def saw(self, taskset: api.TaskSet, waits_for: str = "") -> None:
        taskset = live.held_back(taskset, waits_for)
        lines = live.said(self._seen.get(taskset.metadata.key), taskset)
        self._seen[taskset.metadata.key] = taskset
        for line in lines:
            # Beside logs, which are what was asked for.
            click.echo(line, err=self.wants_logs)


class _Json(_Plain):
    def saw(self, taskset: api.TaskSet, waits_for: str = "") -> None:
        click.echo(codec.encode(live.told(taskset, waits_for)))

    def hint(self, sentence: str) -> None:
        click.echo(codec.encode({"hint": sentence}))


class _Picture:
    wants_logs = True

    def __init__(self) -> None:
        self._seen: dict[str, api.TaskSet] = {}
        self._lines: deque[str] = deque(maxlen=live.LINES)
        self._hints: list[str] = []
        self._live: Live | None = None

    def __enter__(self) -> _Picture:
        from rich.live import Live

        # Redrawn by a clock: times go on also when nothing happens.
        self._live = Live(get_renderable=self._drawn, refresh_per_second=FRAMES_PER_S, transient=False)
        self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.__exit__(kind, problem, trace)

    def saw(self, taskset: api.TaskSet, waits_for: str = "") -> None:
        self._seen[taskset.metadata.key] = live.held_back(taskset, waits_for)

    def printed(self, line: bytes) -> None:
        self._lines.append(line.decode(errors="replace"))

    def hint(self, sentence: str) -> None:
        self._hints.append(sentence)

    def _drawn(self) -> Group:
        from rich.console import Group
        from rich.text import Text

        tasksets: Sequence[api.TaskSet] = list(self._seen.values())
        width, height = self._live.console.size if self._live is not None else (80, 24)
        hints = [Text(sentence, style="yellow") for sentence in self._hints]
        room = live.Space(width, height - sum(-(-len(sentence) // width) for sentence in self._hints))
        blocks = live.picture(tasksets, list(self._lines), clock.SYSTEM.now(), room)
        return Group(*drawing.drawn(blocks, width).renderables, *hints)
