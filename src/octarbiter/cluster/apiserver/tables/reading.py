"""How is a field read whose parents may all be missing?

Objects come from the store and were valid when they were written, perhaps by rules that are older than ours: a table
shows what it can and never fails.
"""

from __future__ import annotations

from typing import Any

from octarbiter.api import errors, quantity
from octarbiter.api.meta import Json

NONE = "<none>"
UNSET = "<unset>"


def dig(value: Any, *names: str) -> Any | None:
    for name in names:
        if not isinstance(value, dict):
            return None
        value = value.get(name)
    return value


def text(value: Any, *names: str) -> str:
    found = dig(value, *names)
    return found if isinstance(found, str) else ""


def count(value: Any, *names: str) -> int:
    found = dig(value, *names)
    return found if isinstance(found, int) and not isinstance(found, bool) else 0


def flag(value: Any, *names: str) -> bool:
    return dig(value, *names) is True


def many(value: Any, *names: str) -> list[Json]:
    """The objects of a list."""
    found = dig(value, *names)
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def words(value: Any, *names: str) -> list[str]:
    found = dig(value, *names)
    return [str(each) for each in found] if isinstance(found, list) else []


def mapping(value: Any, *names: str) -> Json:
    found = dig(value, *names)
    return found if isinstance(found, dict) else {}


def amount(value: Any) -> str:
    """A quantity in its canonical form."""
    if value is None:
        return "0"
    try:
        return str(quantity.parse(value))
    except errors.Refused:
        return str(value)


def condition(obj: Json, type: str) -> Json | None:
    return next((each for each in many(obj, "status", "conditions") if each.get("type") == type), None)


def is_true(obj: Json, type: str) -> bool:
    found = condition(obj, type)
    return found is not None and found.get("status") == "True"


def labels(found: Json) -> str:
    return ",".join(f"{name}={value}" for name, value in sorted(found.items())) or NONE


def selector(found: Any) -> str:
    """A label selector as `kubectl get -l` takes it."""
    terms = [(name, f"{name}={value}") for name, value in mapping(found, "matchLabels").items()]
    for term in many(found, "matchExpressions"):
        name, values = text(term, "key"), ",".join(sorted(words(term, "values")))
        written = {
            "In": f"{name} in ({values})",
            "NotIn": f"{name} notin ({values})",
            "Exists": name,
            "DoesNotExist": f"!{name}",
        }
        terms.append((name, written.get(text(term, "operator"), name)))
    return ",".join(written for _, written in sorted(terms))


def containers(pod_spec: Any) -> tuple[str, str]:
    """Names and images."""
    found = many(pod_spec, "containers")
    return ",".join(text(each, "name") for each in found), ",".join(text(each, "image") for each in found)


def shortened(found: list[str], total: int, most: int = 3) -> str:
    """The first few, and how many more there are."""
    if total > most:
        return f"{','.join(found[:most])} + {total - most} more..."
    return ",".join(found)
