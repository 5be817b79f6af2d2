"""What is an expression made of?

Macros (`has`, `all`, `map`, ...) are nodes of their own: they decide for themselves what is evaluated, and how often.
`at` is where a node stands in the text, for messages.
"""

from __future__ import annotations

from typing import Any

import msgspec


class Mistake(Exception):
    """The text is not an expression; `at` is where it stops to be one."""

    def __init__(self, message: str, at: int) -> None:
        super().__init__(message)
        self.message = message
        self.at = at


class Node(msgspec.Struct, frozen=True, kw_only=True):
    at: int


class Literal(Node, frozen=True):
    value: Any
    kind: str


class Name(Node, frozen=True):
    name: str


class Select(Node, frozen=True):
    target: Node
    field: str
    optional: bool = False
    """`a.?b`"""


class Index(Node, frozen=True):
    target: Node
    key: Node
    optional: bool = False


class Call(Node, frozen=True):
    function: str
    """Operators have the names that messages use: `_+_`, `!_`."""
    arguments: tuple[Node, ...]
    """The target of a method comes first."""
    is_method: bool = False


class And(Node, frozen=True):
    terms: tuple[Node, ...]


class Or(Node, frozen=True):
    terms: tuple[Node, ...]


class Choice(Node, frozen=True):
    condition: Node
    then: Node
    otherwise: Node


class ListOf(Node, frozen=True):
    items: tuple[Node, ...]
    optional: frozenset[int] = frozenset()
    """Which items are optional values: `[?x]`."""


class MapOf(Node, frozen=True):
    entries: tuple[tuple[Node, Node], ...]
    optional: frozenset[int] = frozenset()


class Has(Node, frozen=True):
    select: Select


class Comprehension(Node, frozen=True):
    macro: str
    """all, exists, exists_one, map, filter, transformList, transformMap, transformMapEntry, sortBy"""
    over: Node
    variables: tuple[str, ...]
    """One: the item or key. Two: index or key, and value."""
    body: Node
    condition: Node | None = None
    """Of `map` with three arguments and its kin: which items count at all."""


class OptionalMap(Node, frozen=True):
    """`x.optMap(v, body)`; flat: the body gives an optional itself."""

    target: Node
    variable: str
    body: Node
    flat: bool = False


def located(text: str, mistake: Mistake) -> str:
    """As the server shows it: line, column, and an arrow below the place."""
    before = text[: mistake.at]
    line, column = before.count("\n"), len(before) - (before.rfind("\n") + 1)
    shown = text.split("\n")[line] if text else ""
    return f"ERROR: <input>:{line + 1}:{column + 1}: {mistake.message}\n | {shown}\n | {'.' * column}^"
