"""What would the program in a pod do, if it ran? Told by annotations, or else read from its command.

The annotations, and what they mean, are those of the fake nodes in `octarbiter.testing.kubernetes.fakepods`:

- `fake.octarbiter/duration`: how long the containers run, such as `500ms`, `90s`, `1m30s`, or `forever`. Without it the
  sum of every `sleep N` in command and arguments of the first container; nothing, if there is an `exit` and no sleep;
  for ever, if there is neither.
- `fake.octarbiter/exit-code`: what they exit with. Without it the last `exit N` in the same place, else 0.
- `fake.octarbiter/message`: their termination message.
- `fake.octarbiter/lingers`: how long they run on after SIGTERM; without it, they obey at once.
- `fake.octarbiter/stuck: "true"`: once the pod is deleted, no more is heard of it.
- `fake.octarbiter/silent: "true"`: nothing is heard of the pod any more, as if its node were lost.

`$(NAME)` and `${NAME}` stand for literal environment variables of the first container. The annotations may be lists,
for pods called `...-TASKSET ATTEMPT-REPLICA ATTEMPT-INDEX`: `1,1,0` by the replica's attempt, `1/0` by its index, `1;0`
by the TaskSet's attempt; the last entry holds for all that follow.
"""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Final

import msgspec

from octarbiter.cluster.nodeagent.pods import Pod

PREFIX: Final = "fake.octarbiter/"
_UNITS: Final = {"ms": 0.001, "s": 1.0, "": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_AMOUNT = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(ms|s|m|h|d)")
_SLEEP = re.compile(r"\bsleep\s+(\d+(?:\.\d*)?|\.\d+)([smhd]?)")
_ENDS = re.compile(r"\b(?:sleep\s+[0-9.]|exit\b)")
_EXIT = re.compile(r"\bexit\s+([0-9]+)")
_NUMBERS = re.compile(r"-([0-9]+)-([0-9]+)-([0-9]+)$")
_LONGEST: Final = timedelta(days=3650)


class Script(msgspec.Struct, frozen=True, gc=False):
    duration: timedelta | None
    """None: it never ends by itself."""
    exit_code: int
    message: str
    lingers: timedelta


def of(pod: Pod) -> Script:
    return Script(
        duration=_duration(pod),
        exit_code=_exit_code(pod),
        message=pod.metadata.annotations.get(f"{PREFIX}message", ""),
        lingers=_sum(_AMOUNT, _annotation(pod, "lingers") or "") or timedelta(),
    )


def is_silent(pod: Pod) -> bool:
    notes = pod.metadata.annotations
    goes = pod.metadata.deletion_timestamp is not None
    return notes.get(f"{PREFIX}silent") == "true" or (goes and notes.get(f"{PREFIX}stuck") == "true")


def _duration(pod: Pod) -> timedelta | None:
    told = _annotation(pod, "duration")
    if told is not None:
        return _sum(_AMOUNT, told)
    command = _command(pod)
    return (_sum(_SLEEP, command) or timedelta()) if _ENDS.search(command) else None


def _exit_code(pod: Pod) -> int:
    told = _annotation(pod, "exit-code")
    if told is not None and told.strip().isdecimal():
        return min(255, int(told))
    codes = _EXIT.findall(_command(pod))
    return min(255, int(codes[-1])) if codes else 0


def _sum(pattern: re.Pattern[str], text: str) -> timedelta | None:
    found = pattern.findall(text)
    if not found:
        return None
    return timedelta(seconds=min(_LONGEST.total_seconds(), sum(float(number) * _UNITS[unit] for number, unit in found)))


def _annotation(pod: Pod, name: str) -> str | None:
    told = pod.metadata.annotations.get(PREFIX + name)
    if told is None:
        return None
    match = _NUMBERS.search(pod.metadata.name)
    taskset, replica, index = (int(number) for number in match.groups()) if match else (0, 0, 0)
    text = _expanded(pod, told)
    for separator, place in ((";", taskset), ("/", index), (",", replica)):
        choices = text.split(separator)
        text = choices[min(place, len(choices) - 1)]
    return text


def _command(pod: Pod) -> str:
    first = pod.spec.containers[0]
    return _expanded(pod, " ".join((*first.command, *first.args)))


def _expanded(pod: Pod, text: str) -> str:
    for variable in reversed(pod.spec.containers[0].env):
        if variable.value:
            text = text.replace(f"$({variable.name})", variable.value).replace(f"${{{variable.name}}}", variable.value)
    return text
