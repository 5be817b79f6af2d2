"""What is wrong with a field, as the server words it."""

from __future__ import annotations

import msgspec


class Problem(msgspec.Struct, frozen=True):
    reason: str
    """One of the server's cause reasons: FieldValueRequired, FieldValueInvalid, ..."""
    field: str
    message: str
