"""What must be refused, and by whom for what?

One form of table for everybody who checks our kinds (the validator, the API server with our CRDs, whoever comes next),
so that they are held to the same answer.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from octarbiter.api.meta import Json


class Bad(msgspec.Struct, frozen=True):
    sentence: str
    obj: Json
    fields: tuple[str, ...]
    """The paths the validator names."""
    server_fields: tuple[str, ...]
    """Those of the API server, where it names others."""
    is_strict: bool = False
    """The server notices only when asked to be strict about unknown fields, as kubectl does, and then only that."""


class Change(msgspec.Struct, frozen=True):
    sentence: str
    before: Json
    after: Json
    fields: tuple[str, ...] = ()
    """Empty: the change is allowed."""
    server_fields: tuple[str, ...] = ()
    status: Json | None = None


def bad(sentence: str, obj: Json, *fields: str, server: Iterable[str] | None = None, is_strict: bool = False) -> Bad:
    """`server`: the fields that the API server names; none at all: it lets it through."""
    return Bad(sentence, obj, fields, fields if server is None else tuple(server), is_strict)
