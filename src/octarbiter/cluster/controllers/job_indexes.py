"""Which indexes of an Indexed Job are completed? Sets of numbers, written as `1,3-5,7`."""

from __future__ import annotations

from collections.abc import Iterable


def parse(text: str, completions: int) -> set[int]:
    """Only those that the Job has: an elastic Job may have shrunk. What cannot be read was not written by us."""
    found: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        if not first.isdecimal() or not (last or first).isdecimal():
            continue
        found.update(range(int(first), min(int(last or first), completions - 1) + 1))
    return found


def write(indexes: Iterable[int]) -> str:
    """Two in a row stay two numbers, three or more become a range; as kube-controller-manager writes it."""
    runs: list[list[int]] = []
    for index in sorted(set(indexes)):
        if runs and runs[-1][-1] == index - 1:
            runs[-1].append(index)
        else:
            runs.append([index])
    return ",".join(f"{run[0]}-{run[-1]}" if len(run) > 2 else ",".join(map(str, run)) for run in runs)
