"""Is a namespace empty, and what does its status say about it? In the words of kube-controller-manager."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime

import msgspec
from msgspec import Struct

from octarbiter.api.meta import Condition

FINE = {
    "NamespaceDeletionDiscoveryFailure": ("ResourcesDiscovered", "All resources successfully discovered"),
    "NamespaceDeletionGroupVersionParsingFailure": (
        "ParsedGroupVersions",
        "All legacy kube types successfully parsed",
    ),
    "NamespaceDeletionContentFailure": (
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
    "NamespaceContentRemaining": ("ContentRemoved", "All content successfully removed"),
    "NamespaceFinalizersRemaining": ("ContentHasNoFinalizers", "All content-preserving finalizers finished"),
}
"""What the conditions say, with status False, when there is nothing to tell."""


class Left(Struct, frozen=True):
    """What is there of one resource, after everything was asked to go."""

    plural: str
    group: str
    count: int = 0
    finalizers: dict[str, int] = {}
    problem: str = ""
    """Why it could not be asked to go."""


def is_empty(left: Sequence[Left], stale_groups: Sequence[str]) -> bool:
    """Only if everybody was asked and said so."""
    return not stale_groups and not any(each.count or each.problem for each in left)


def conditions(
    before: Sequence[Condition], left: Sequence[Left], stale_groups: Sequence[str], now: datetime
) -> list[Condition]:
    """The complete list: conditions of others are kept."""
    wrong = _wrong(left, stale_groups)
    ours: dict[str, Condition] = {}
    for type_, fine in FINE.items():
        status = "True" if type_ in wrong else "False"
        reason, message = wrong.get(type_, fine)
        ours[type_] = Condition(type=type_, status=status, reason=reason, message=message, last_transition_time=now)
    known = {condition.type: condition for condition in before}
    for type_, new in ours.items():
        old = known.get(type_)
        if old is not None and old.status == new.status:
            new = msgspec.structs.replace(new, last_transition_time=old.last_transition_time)
        known[type_] = new
    return list(known.values())


def _wrong(left: Sequence[Left], stale_groups: Sequence[str]) -> dict[str, tuple[str, str]]:
    found: dict[str, tuple[str, str]] = {}
    if stale_groups:
        words = f"Discovery failed for some groups, {len(stale_groups)} failing: {', '.join(sorted(stale_groups))}"
        found["NamespaceDeletionDiscoveryFailure"] = ("DiscoveryFailed", words)
    if problems := sorted(each.problem for each in left if each.problem):
        words = f"Failed to delete all resource types, {len(problems)} remaining: {', '.join(problems)}"
        found["NamespaceDeletionContentFailure"] = ("ContentDeletionFailed", words)
    if remaining := sorted(f"{e.plural}.{e.group} has {e.count} resource instances" for e in left if e.count):
        words = f"Some resources are remaining: {', '.join(remaining)}"
        found["NamespaceContentRemaining"] = ("SomeResourcesRemain", words)
    finalizers: Counter[str] = Counter()
    for each in left:
        finalizers.update(each.finalizers)
    if finalizers:
        held = sorted(f"{name} in {count} resource instances" for name, count in finalizers.items())
        words = f"Some content in the namespace has finalizers remaining: {', '.join(held)}"
        found["NamespaceFinalizersRemaining"] = ("SomeFinalizersRemain", words)
    return found
