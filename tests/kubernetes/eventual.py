"""How do tests wait? For what they wait for, and never for a time."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def eventually(probe: Callable[[], T], what: str | Callable[[], str], timeout_s: float = 60.0) -> T:
    """The first answer of `probe` that is true; `what` says what was waited for in vain."""
    deadline = time.monotonic() + timeout_s
    while not (found := probe()):
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {timeout_s:.0f} s in vain for {what if isinstance(what, str) else what()}")
        time.sleep(0.1)
    return found
