"""What may stand on the command line: names of objects, files, durations, amounts, output formats."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


class Called(NamedTuple):
    """What people call a kind."""

    kind: str
    words: tuple[str, ...]
    group: str

    def prefixed(self, word: str) -> str | None:
        """The name in `taskset/x`, `ts/x`, `tasksets.octopus.openi.pcl.cn/x`; None: another kind, or none."""
        prefix, slash, name = word.partition("/")
        return name if slash and prefix.removesuffix(f".{self.group}") in self.words else None


TASKSET = Called("TaskSet", ("taskset", "tasksets", "ts"), "octopus.openi.pcl.cn")
QUEUE = Called("Queue", ("queue", "queues", "q"), "arbitrator.incubator.k8s.io")
QUEUEJOB = Called("QueueJob", ("queuejob", "queuejobs", "qj"), "arbitrator.incubator.k8s.io")
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
_DURATION = re.compile(r"(?:(?P<d>\d+)d)?(?:(?P<h>\d+)h)?(?:(?P<m>\d+)m)?(?:(?P<s>\d+)s?)?")
_SECONDS = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
_DIGITS = 12
LONGEST_S = 10 * 365 * 86_400


def names(words: Sequence[str], kind_alone: bool = False) -> list[str]:
    """Names in the order given, each once: `x`, `taskset x`, `ts x y`, `taskset/x`.

    `kind_alone`: a lone `ts` is the kind and not a name.
    """
    if words and words[0] in TASKSET.words and (kind_alone or len(words) > 1):
        words = words[1:]
    return names_of(TASKSET, words)


def names_of(called: Called, words: Sequence[str]) -> list[str]:
    """The same where the command says the kind: `x`, `queue/x`. A queue may be called `q`."""
    found = [name if (name := called.prefixed(word)) is not None else word for word in words]
    for name in found:
        if not _NAME.fullmatch(name):
            raise click.UsageError(f"{name!r} cannot be the name of a {called.kind}")
    return list(dict.fromkeys(found))


def pairs(written: str) -> dict[str, str]:
    """`cpu=4,memory=8Gi`. Whether these are quantities of resources, the validator says."""
    found: dict[str, str] = {}
    for part in filter(None, (part.strip() for part in written.split(","))):
        name, equals, value = part.partition("=")
        if not (name and equals and value):
            raise click.BadParameter(f"{part!r} is not NAME=VALUE; several are separated by commas: cpu=4,memory=8Gi")
        if name in found:
            raise click.BadParameter(f"{name} is given twice")
        found[name] = value
    return found


def duration(written: str) -> float:
    """Seconds, from `90`, `90s`, `10m`, `1h30m`."""
    match = _DURATION.fullmatch(written)
    if match is None or not any(match.groups()):
        raise click.BadParameter(f"{written!r} is no duration: write 90s, 10m or 1h30m")
    seconds = sum(int(count[:_DIGITS]) * _SECONDS[unit] for unit, count in match.groupdict().items() if count)
    if seconds > LONGEST_S:
        raise click.BadParameter(f"{written!r} is longer than ten years")
    return float(seconds)


def files(required: bool) -> Callable[[F], F]:
    return click.option(
        "-f",
        "--filename",
        "sources",
        metavar="FILE",
        multiple=True,
        required=required,
        type=click.Path(allow_dash=True),
        help="File, directory (its *.yaml, *.yml and *.json) or - for standard input; may be repeated.",
    )


def output(*formats: str, meaning: str) -> Callable[[F], F]:
    return click.option("-o", "--output", "form", type=click.Choice(formats), default=None, help=meaning)


def listed(command: F) -> F:
    """Of every command that lists."""
    for option in (
        output(
            "wide",
            "name",
            "json",
            "yaml",
            meaning="wide: more columns, also what each of them waits for. name, json, yaml: for programs.",
        ),
        click.option("--no-headers", "bare", is_flag=True, help="Without the line of column names."),
        click.option("-w", "--watch", is_flag=True, help="Stay, and print each change, until interrupted."),
        click.option(
            "-l", "--selector", default="", metavar="LABELS", help="Only those with these labels, e.g. team=vision."
        ),
        click.option("-A", "--all-namespaces", "everywhere", is_flag=True, help="Of all namespaces."),
    ):
        command = option(command)
    return command


def sent(command: F) -> F:
    """Of every command that creates."""
    dry_run = click.option(
        "--dry-run",
        type=click.Choice(["none", "client", "server"]),
        default="none",
        show_default=True,
        help="client: check and print, send nothing. server: let the API server check, too, and keep nothing.",
    )
    return dry_run(output("name", "json", "yaml", meaning="Print the objects so, instead of one line each.")(command))


timeout = click.option(
    "--timeout",
    "timeout_s",
    type=duration,
    default=None,
    metavar="DURATION",
    help="Give up after so long, e.g. 90s, 10m, 1h30m; absent: never; 0: look once.",
)


def waiting_for_the_end(command: F) -> F:
    """Of every command that deletes."""
    for option in (
        click.option("--ignore-not-found", is_flag=True, help="What does not exist is no error."),
        timeout,
        click.option("--wait/--no-wait", "wait", default=True, show_default=True, help="Stay until it is gone."),
    ):
        command = option(command)
    return command
