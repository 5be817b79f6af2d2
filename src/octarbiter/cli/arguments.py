"""What may stand on the command line: names of TaskSets, files, durations, output formats."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

KINDS = ("taskset", "tasksets", "ts")
_PREFIX = re.compile(r"(?:tasksets?(?:\.octopus\.openi\.pcl\.cn)?|ts)/")
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
_DURATION = re.compile(r"(?:(?P<d>\d+)d)?(?:(?P<h>\d+)h)?(?:(?P<m>\d+)m)?(?:(?P<s>\d+)s?)?")
_SECONDS = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
_DIGITS = 12
LONGEST_S = 10 * 365 * 86_400


def names(words: Sequence[str], kind_alone: bool = False) -> list[str]:
    """Names in the order given, each once: `x`, `taskset x`, `ts x y`, `taskset/x`.

    `kind_alone`: a lone `ts` is the kind and not a name.
    """
    if words and words[0] in KINDS and (kind_alone or len(words) > 1):
        words = words[1:]
    found = [_PREFIX.sub("", word, count=1) for word in words]
    for name in found:
        if not _NAME.fullmatch(name):
            raise click.UsageError(f"{name!r} cannot be the name of a TaskSet")
    return list(dict.fromkeys(found))


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


timeout = click.option(
    "--timeout",
    "timeout_s",
    type=duration,
    default=None,
    metavar="DURATION",
    help="Give up after so long, e.g. 90s, 10m, 1h30m; absent: never; 0: look once.",
)
