"""What can go wrong with the store. Classes differ by what the catcher should do.

StoreError
├── Conflict     the key is not as expected: read again, decide again (carries `current`)
├── Compacted    that past is gone: list again
├── Future       that revision does not exist yet: list again
├── TooSlow      this watch was not read for too long and was cut off: list again
├── WriteFailed  the disk refused: nothing of the write remains, try again when the disk works
├── Closed       the store was closed
└── Unusable     the file: show the sentence to a person
    └── InUse        another process serves it
"""

from __future__ import annotations

from pathlib import Path

from octarbiter.api import errors
from octarbiter.cluster.store.entries import Entry


class StoreError(errors.OctarbiterError):
    pass


class Conflict(StoreError):
    def __init__(self, key: str, expected: int | None, current: Entry | None) -> None:
        self.current = current
        found = f"is at revision {current.revision}" if current else "does not exist"
        wanted = "anything" if expected is None else f"revision {expected}" if expected else "nothing"
        super().__init__(f"{key} {found}, expected was {wanted}")


class Compacted(StoreError):
    def __init__(self, asked: int, horizon: int) -> None:
        self.asked, self.horizon = asked, horizon
        super().__init__(f"revision {asked} is too old: history begins at revision {horizon}")


class Future(StoreError):
    def __init__(self, asked: int, present: int) -> None:
        self.asked, self.present = asked, present
        super().__init__(f"revision {asked} is in the future: the present revision is {present}")


class TooSlow(StoreError):
    def __init__(self, prefix: str) -> None:
        super().__init__(f"the watch of {prefix} was not read for too long and was cut off")


class WriteFailed(StoreError):
    def __init__(self, where: str, why: BaseException) -> None:
        super().__init__(
            f"cannot write to {where}: {why}; the write was undone: make room or repair the disk, try again"
        )


class Closed(StoreError):
    def __init__(self) -> None:
        super().__init__("the store is closed")


class Unusable(StoreError):
    def __init__(self, path: Path, what: str, do: str) -> None:
        self.path = path
        super().__init__(f"{path} {what}; {do}")


class InUse(Unusable):
    pass
