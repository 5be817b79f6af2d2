"""How much of what a client should know fits into the head of an answer?

As the real server has it: all in full where that is little, else the beginning of each until it is enough. And never so
many that a client gives up on the answer: some read no more than a hundred headers.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

_MOST_CHARACTERS: Final = 4096
_OF_EACH: Final = 256
"""Where they are too much together."""
_MOST: Final = 64


def shown(warnings: Iterable[str]) -> list[str]:
    """Each once."""
    different = list(dict.fromkeys(warnings))
    if sum(map(len, different)) > _MOST_CHARACTERS:
        different = [warning[:_OF_EACH] for warning in different]
    chosen: list[str] = []
    left = _MOST_CHARACTERS
    for warning in different[:_MOST]:
        if left <= 0:
            break
        chosen.append(warning)
        left -= len(warning)
    return chosen
