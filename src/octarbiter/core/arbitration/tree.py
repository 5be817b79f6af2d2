"""Which queues take part, what is below what, and to which queue does a namespace or a job belong?

A queue with a problem takes no part, and says why; so does what is below it. Everything else goes on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

import msgspec

from octarbiter.api import selectors
from octarbiter.api.selectors import LabelSelector

Labels = Mapping[str, str]


class QueueFacts(msgspec.Struct, frozen=True, kw_only=True):
    key: str
    """`namespace/name`."""
    parent: str = ""
    """As it is written: `name` in the queue's own namespace, or `namespace/name`."""
    selector: LabelSelector | None = None
    created: datetime
    problem: str = ""
    """What is wrong with the queue itself, as its author sees it: a quantity that is none, a policy nobody knows."""

    @property
    def namespace(self) -> str:
        return self.key.partition("/")[0]

    @property
    def name(self) -> str:
        return self.key.partition("/")[2]


class Tree(msgspec.Struct, frozen=True):
    parents: Mapping[str, str]
    """Of every queue that takes part: the key of the queue above it, or nothing."""
    problems: Mapping[str, str]
    """Of every queue that does not: why."""
    namespaces: Mapping[str, str]
    """The leaf queue of each namespace that has one."""
    disputed: Mapping[str, str]
    """Namespaces that several queues cover: why none of them has it."""
    inner: frozenset[str]
    """Queues with others below them, also if those have problems."""
    known: Mapping[str, tuple[str, ...]]
    """By namespace: the keys of the queues that a job there may name; its own first."""
    covers: Mapping[str, tuple[str, ...]]
    """The other way round: the namespaces of each leaf queue, its own first."""

    def covered(self, key: str) -> tuple[str, ...]:
        return self.covers.get(key, ())


def grow(queues: Iterable[QueueFacts], namespaces: Mapping[str, Labels]) -> Tree:
    facts = {queue.key: queue for queue in queues}
    above = {key: _above(queue) for key, queue in facts.items()}
    inner = frozenset(parent for key, parent in above.items() if parent in facts and parent != key)
    problems = {key: queue.problem for key, queue in facts.items() if queue.problem}
    _second_leaves(facts, inner, problems)
    _broken_branches(above, problems)
    parents = {key: parent for key, parent in above.items() if key not in problems}
    own, disputed, known = _coverage(facts, {key for key in parents if key not in inner}, namespaces)
    return Tree(parents, problems, own, disputed, inner, known, _turned(own))


def queue_of(tree: Tree, namespace: str, name: str) -> tuple[str, str]:
    """The key of the queue that a job in this namespace belongs to, if it names it so; or the sentence why none.

    Looked up in the job's own namespace, then among the queues whose selector covers it. No name: its own queue.
    """
    if not name:
        if namespace in tree.disputed:
            return "", tree.disputed[namespace]
        found = tree.namespaces.get(namespace, "")
        return found, "" if found else f"no queue covers namespace {namespace}: name one in spec.queue, or create it"
    own = f"{namespace}/{name}"
    if own in tree.problems:
        return "", f"queue {own} takes no part: {tree.problems[own]}"
    if own in tree.inner:
        return "", f"queue {own} has queues below it: only queues without any have jobs"
    candidates = [key for key in tree.known.get(namespace, ()) if key.partition("/")[2] == name]
    if own in candidates:
        return own, ""
    if len(candidates) == 1:
        return candidates[0], ""
    if candidates:
        told = " and ".join(sorted(candidates))
        return "", f"{told} both cover namespace {namespace}: change the namespaceSelector of all but one"
    return "", f"queue {name} does not exist in namespace {namespace}, and none of that name covers it"


def _above(queue: QueueFacts) -> str:
    return queue.parent if not queue.parent or "/" in queue.parent else f"{queue.namespace}/{queue.parent}"


def _second_leaves(facts: Mapping[str, QueueFacts], inner: frozenset[str], problems: dict[str, str]) -> None:
    first: dict[str, QueueFacts] = {}
    for queue in sorted(facts.values(), key=lambda queue: (queue.created, queue.key)):
        if queue.key in inner or queue.key in problems:
            continue
        older = first.setdefault(queue.namespace, queue)
        if older is not queue:
            problems[queue.key] = (
                f"namespace {queue.namespace} has queue {older.name} already, which is older: "
                "delete one of them, or name one as the parent of the other"
            )


def _broken_branches(above: Mapping[str, str], problems: dict[str, str]) -> None:
    """Unknown parents, circles, and whatever is below a queue with a problem."""
    sound: set[str] = set()
    for key in above:
        way: list[str] = []
        at = key
        while at and at not in sound and at not in problems and at in above and at not in way:
            way.append(at)
            at = above[at]
        if not at or at in sound:
            sound.update(way)
        elif at in way:
            circle = [*way[way.index(at) :], at]
            for each in way[: way.index(at)]:
                problems[each] = f"its parent {above[each]} takes no part"
            for each in circle[:-1]:
                problems[each] = f"it is its own ancestor, {' -> '.join(circle)}: change spec.parent of one of them"
        else:
            for each in way:
                problems[each] = (
                    f"its parent {above[each]} does not exist: create it, or change spec.parent"
                    if above[each] not in above
                    else f"its parent {above[each]} takes no part: see there"
                )


def _coverage(
    facts: Mapping[str, QueueFacts], leaves: set[str], namespaces: Mapping[str, Labels]
) -> tuple[dict[str, str], dict[str, str], dict[str, tuple[str, ...]]]:
    own: dict[str, str] = {}
    disputed: dict[str, str] = {}
    known: dict[str, tuple[str, ...]] = {}
    selecting = sorted(key for key in leaves if facts[key].selector is not None)
    at_home = {facts[key].namespace: key for key in leaves}
    for namespace in {*namespaces, *at_home}:
        labels = namespaces.get(namespace, {})
        covering = tuple(key for key in selecting if _covers(facts[key], labels) and facts[key].namespace != namespace)
        home = at_home.get(namespace)
        known[namespace] = (home, *covering) if home else covering
        if home:
            own[namespace] = home
        elif len(covering) == 1:
            own[namespace] = covering[0]
        elif covering:
            disputed[namespace] = (
                f"queues {' and '.join(covering)} both cover namespace {namespace}: "
                "change the namespaceSelector of all but one"
            )
    return own, disputed, known


def _turned(own: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    covers: dict[str, list[str]] = {}
    # At home before elsewhere, then by name.
    for namespace, key in sorted(own.items(), key=lambda item: (item[0] != item[1].partition("/")[0], item[0])):
        covers.setdefault(key, []).append(namespace)
    return {key: tuple(names) for key, names in covers.items()}


def _covers(queue: QueueFacts, labels: Labels) -> bool:
    return queue.selector is not None and selectors.matches(queue.selector, labels)
