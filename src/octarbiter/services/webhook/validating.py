"""Is this object of ours as it should be? What the one validator says of it, for every kind."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from octarbiter.api import validation
from octarbiter.api.errors import FieldProblem
from octarbiter.api.meta import Json
from octarbiter.services.webhook import reviews

Further = Callable[[Json, Json], Iterable[FieldProblem]]
"""What else is wrong with the old (empty: none) and the new object?"""


def answer(request: reviews.Request, further: Further) -> reviews.Answer:
    """An update that leaves the spec alone is let through, whatever we know today: labels must stay changeable, and
    finalizers removable, also of objects that were valid once."""
    new: Json = request.new(dict)
    old: Json = request.old(dict) if request.operation == "UPDATE" else {}
    if old and old.get("spec") == new.get("spec"):
        return reviews.ALLOWED
    problems = validation.validate_update(old, new, old.get("status")) if old else validation.validate(new)
    try:
        problems += further(old, new)
    except reviews.Unreadable:
        if not problems:
            raise
    metadata = new.get("metadata") or {}
    name = str(metadata.get("name") or metadata.get("generateName") or "")
    return reviews.invalid(str(new.get("kind")), name, problems)
