"""Which fields of a Queue can be given as options, and what spec do they make?

`octo queue create` and `octo queue set` have the same ones. An empty value takes a field away.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

from octarbiter.cli import arguments

F = TypeVar("F", bound=Callable[..., Any])

_AMOUNTS = {
    "request": "What it asks for while it has no QueueJobs.",
    "guarantee": "What it is given first, and what is never taken back.",
    "capability": "What it never gets more of.",
    "deserved": "What the policy capacity promises it.",
}


def options(command: F) -> F:
    amounts = [
        click.option(f"--{name}", metavar="NAME=AMOUNT,...", default=None, help=f"{meaning} E.g. cpu=4,memory=8Gi.")
        for name, meaning in _AMOUNTS.items()
    ]
    for option in reversed(
        [
            click.option("--weight", type=int, default=None, help="How much it counts beside the others; else 1."),
            *amounts,
            click.option("--parent", default=None, metavar="[NAMESPACE/]NAME", help="Whose share it has a part of."),
            click.option("--policy", default=None, help="How its children share: drf, hdrf, proportion, capacity, ..."),
            click.option("--priority", type=int, default=None, help="For the policy priority: higher is served first."),
            click.option(
                "--reclaimable/--no-reclaimable", default=None, help="May what it uses beyond its share be taken back?"
            ),
            click.option(
                "--namespaces", metavar="LABEL=VALUE,...", default=None, help="Also of namespaces with these labels."
            ),
            click.option(
                "--oversubscription",
                metavar="NAME=FACTOR,...",
                default=None,
                help="Write its quota larger by this factor, e.g. cpu=1.5.",
            ),
        ]
    ):
        command = option(command)
    return command


def changed(spec: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """The spec with what the options say; those that were not given are None."""
    made = dict(spec)
    for name, value in given.items():
        if value is None:
            continue
        field, content = _field(name, value)
        if content in ("", {}):
            made.pop(field, None)
        else:
            made[field] = content
    return made


def patch(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """A merge patch from one to the other."""
    found: dict[str, Any] = {name: None for name in before if name not in after}
    for name, value in after.items():
        old = before.get(name)
        if isinstance(value, dict) and isinstance(old, dict):
            if inner := patch(old, value):
                found[name] = inner
        elif value != old:
            found[name] = value
    return found


def _field(name: str, value: Any) -> tuple[str, Any]:
    if name in _AMOUNTS:
        amounts = _pairs(name, value)
        return name, {"resources": amounts} if amounts else {}
    if name == "namespaces":
        labels = _pairs(name, value)
        return "namespaceSelector", {"matchLabels": labels} if labels else {}
    return name, _pairs(name, value) if name == "oversubscription" else value


def _pairs(name: str, value: str) -> dict[str, str]:
    try:
        return arguments.pairs(value)
    except click.BadParameter as problem:
        problem.param_hint = f"--{name}"
        raise
