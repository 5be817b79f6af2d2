"""Which objects are meant? Label selectors and field selectors: parsing, and matching.

Both are conjunctions. What cannot be parsed is refused in the words of the real server, because kubectl prints them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Final

import msgspec

from octarbiter.api.meta import Json
from octarbiter.cluster.apiserver import status
from octarbiter.cluster.apiserver.kinds import Resource
from octarbiter.cluster.apiserver.validation import names

LONGEST: Final = 64 * 1024
"""Characters of a selector; the URL it comes in is bounded, too."""


class Operator(StrEnum):
    IN = "in"
    NOT_IN = "notin"
    EXISTS = "exists"
    ABSENT = "!"
    GREATER = ">"
    LESS = "<"


_IN_OBJECTS: Final = {
    "In": Operator.IN,
    "NotIn": Operator.NOT_IN,
    "Exists": Operator.EXISTS,
    "DoesNotExist": Operator.ABSENT,
}


class Requirement(msgspec.Struct, frozen=True):
    key: str
    operator: Operator
    values: frozenset[str] = frozenset()

    def matches(self, labels: Mapping[str, str]) -> bool:
        value = labels.get(self.key)
        if self.operator is Operator.IN:
            return value is not None and value in self.values
        if self.operator is Operator.NOT_IN:
            return value is None or value not in self.values
        if self.operator is Operator.EXISTS:
            return value is not None
        if self.operator is Operator.ABSENT:
            return value is None
        (bound,) = self.values
        number = _integer(value)
        if number is None:
            return False
        return number > int(bound) if self.operator is Operator.GREATER else number < int(bound)


class Labels(msgspec.Struct, frozen=True):
    """A parsed label selector."""

    requirements: tuple[Requirement, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.requirements)

    def matches(self, labels: Mapping[str, str]) -> bool:
        return all(requirement.matches(labels) for requirement in self.requirements)


class Term(msgspec.Struct, frozen=True):
    field: str
    value: str
    equal: bool


class Fields(msgspec.Struct, frozen=True):
    """A parsed field selector."""

    terms: tuple[Term, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.terms)

    def exact(self, field: str) -> str | None:
        """The one value this field must have."""
        return next((term.value for term in self.terms if term.field == field and term.equal), None)

    def matches(self, value_of: Callable[[str], str]) -> bool:
        return all((value_of(term.field) == term.value) == term.equal for term in self.terms)


def parse_labels(text: str) -> Labels:
    """Raises a refusal (400)."""
    if len(text) > LONGEST:
        raise status.bad_request(f"the label selector is longer than {LONGEST} characters")
    return Labels(tuple(_Parser(_tokens(text)).requirements()))


def from_object(selector: Json) -> Labels:
    """Of a LabelSelector in an object; an empty one chooses everything. What makes no sense chooses nothing."""
    found = [
        Requirement(key, Operator.IN, frozenset({value})) for key, value in (selector.get("matchLabels") or {}).items()
    ]
    for each in selector.get("matchExpressions") or []:
        operator = _IN_OBJECTS.get(each.get("operator", ""))
        if operator is None:
            return Labels((Requirement("", Operator.EXISTS),))
        found.append(Requirement(each.get("key", ""), operator, frozenset(each.get("values") or ())))
    return Labels(tuple(found))


def parse_fields(text: str, resource: Resource) -> Fields:
    """Raises a refusal (400) for what cannot be read and for fields the resource cannot be selected by."""
    if len(text) > LONGEST:
        raise status.bad_request(f"the field selector is longer than {LONGEST} characters")
    terms: list[Term] = []
    for part in sorted(_field_parts(text)):
        if not part:
            continue
        found = re.search(r"!=|==|=", part)
        if found is None:
            raise status.bad_request(f"invalid selector: '{text}'; can't understand '{part}'")
        field, value = part[: found.start()], _unescaped(part[found.end() :])
        terms.append(Term(_selectable(field, resource), value, found.group() != "!="))
    return Fields(tuple(dict.fromkeys(terms)))


def _selectable(field: str, resource: Resource) -> str:
    if field == "metadata.name" or (field == "metadata.namespace" and resource.namespaced):
        return field
    if field in resource.selectable:
        return field
    if resource.kind == "Job" and resource.group == "batch":
        raise status.bad_request(f'field label "{field}" not supported for Job')
    if resource.selectable or resource.custom:
        raise status.bad_request(f"field label not supported: {field}")
    if field == "metadata.namespace":
        return field  # of a kind without namespaces it is always empty
    known = '"metadata.name", "metadata.namespace"'
    raise status.bad_request(f'"{field}" is not a known field selector: only {known}')


def _field_parts(text: str) -> list[str]:
    parts, start, escaped = [], 0, False
    for position, character in enumerate(text):
        if escaped:
            escaped = False
        elif character == "\\":
            escaped = True
        elif character == ",":
            parts.append(text[start:position])
            start = position + 1
    parts.append(text[start:])
    return parts


def _unescaped(value: str) -> str:
    out, escaped = [], False
    for character in value:
        if escaped:
            if character not in "\\,=":
                raise status.bad_request(f"invalid field selector: invalid escape sequence: \\{character}")
            out.append(character)
            escaped = False
        elif character == "\\":
            escaped = True
        elif character in ",=":
            raise status.bad_request(f"invalid field selector: unescaped character in value: {ord(character)}")
        else:
            out.append(character)
    if escaped:
        raise status.bad_request("invalid field selector: invalid escape sequence: \\")
    return "".join(out)


class _Kind(StrEnum):
    WORD = "word"
    SYMBOL = "symbol"
    END = "end"
    BAD = "bad"


class _Token(msgspec.Struct, frozen=True):
    kind: _Kind
    text: str

    def is_symbol(self, text: str) -> bool:
        return self.kind is _Kind.SYMBOL and self.text == text


_SYMBOLS: Final = frozenset({"=", "==", "!=", "!", "(", ")", ",", ">", "<"})
_SYMBOL_CHARACTERS: Final = frozenset("=!(),><")
_BLANK: Final = frozenset(" \t\r\n")
_END: Final = _Token(_Kind.END, "")


def _tokens(text: str) -> list[_Token]:
    tokens, position = [], 0
    while position < len(text):
        character = text[position]
        start = position
        if character in _BLANK:
            position += 1
            continue
        if character in _SYMBOL_CHARACTERS:
            # The longest symbol wins; a run that starts none of them is said as a whole.
            while position < len(text) and text[position] in _SYMBOL_CHARACTERS:
                if text[start:position] in _SYMBOLS and text[start : position + 1] not in _SYMBOLS:
                    break
                position += 1
            symbol = text[start:position]
            if symbol in _SYMBOLS:
                tokens.append(_Token(_Kind.SYMBOL, symbol))
            else:
                tokens.append(_Token(_Kind.BAD, f"error expected: keyword found '{symbol}'"))
            continue
        while position < len(text) and text[position] not in _SYMBOL_CHARACTERS and text[position] not in _BLANK:
            position += 1
        tokens.append(_Token(_Kind.WORD, text[start:position]))
    tokens.append(_END)
    return tokens


class _Unreadable(Exception):
    """Inside a requirement; the message follows `unable to parse requirement: `."""


class _Parser:
    def __init__(self, tokens: Sequence[_Token]) -> None:
        self._tokens = tokens
        self._position = 0

    def requirements(self) -> list[Requirement]:
        found: list[Requirement] = []
        while True:
            token = self._peek()
            if token.kind is _Kind.END:
                return found
            if token.kind is not _Kind.WORD and not token.is_symbol("!"):
                raise status.bad_request(f"found '{token.text}', expected: !, identifier, or 'end of string'")
            try:
                found.append(self._requirement())
            except _Unreadable as problem:
                raise status.bad_request(f"unable to parse requirement: {problem}") from None
            token = self._next()
            if token.kind is _Kind.END:
                return found
            if not token.is_symbol(","):
                raise status.bad_request(f"found '{token.text}', expected: ',' or 'end of string'")
            token = self._peek()
            if token.kind is not _Kind.WORD and not token.is_symbol("!"):
                raise status.bad_request(f"found '{token.text}', expected: identifier after ','")

    def _requirement(self) -> Requirement:
        token = self._next()
        absent = token.is_symbol("!")
        if absent:
            token = self._next()
        if token.kind is not _Kind.WORD:
            raise _Unreadable(f"found '{token.text}', expected: identifier")
        key = token.text
        if problems := names.qualified(key):
            raise _Unreadable(f'<nil>: Invalid value: "{key}": {"; ".join(problems)}')
        after = self._peek()
        if absent:
            return Requirement(key, Operator.ABSENT)
        if after.kind is _Kind.END or after.is_symbol(","):
            return Requirement(key, Operator.EXISTS)
        return self._comparison(key)

    def _comparison(self, key: str) -> Requirement:
        token = self._next()
        if token.kind is _Kind.WORD and token.text in ("in", "notin"):
            values = self._values()
            operator = Operator.IN if token.text == "in" else Operator.NOT_IN
        elif token.kind is _Kind.SYMBOL and token.text in ("=", "==", "!=", ">", "<"):
            values = {self._exact_value()}
            operator = {"!=": Operator.NOT_IN, ">": Operator.GREATER, "<": Operator.LESS}.get(token.text, Operator.IN)
        else:
            raise _Unreadable(f"found '{token.text}', expected: in, notin, =, ==, !=, gt, lt")
        for position, value in enumerate(sorted(values)):
            if operator in (Operator.GREATER, Operator.LESS) and _integer(value) is None:
                rule = "for 'Gt', 'Lt' operators, the value must be an integer"
                raise _Unreadable(f'values[{position}]: Invalid value: "{value}": {rule}')
            if problems := names.label_value(value):
                raise _Unreadable(f'values[{position}][{key}]: Invalid value: "{value}": {"; ".join(problems)}')
        return Requirement(key, operator, frozenset(values))

    def _values(self) -> set[str]:
        token = self._next()
        if not token.is_symbol("("):
            raise _Unreadable(f"found '{token.text}' expected: '('")
        first = self._peek()
        if first.is_symbol(")"):
            self._next()
            return {""}
        if first.kind is not _Kind.WORD and not first.is_symbol(","):
            raise _Unreadable(f"found '{first.text}', expected: ',', ')' or identifier")
        values: set[str] = set()
        while True:
            token = self._next()
            after = self._peek()
            if token.kind is _Kind.WORD:
                values.add(token.text)
                if after.is_symbol(")"):
                    self._next()
                    return values
                if not after.is_symbol(","):
                    raise _Unreadable(f"found '{after.text}', expected: ',' or ')'")
            elif token.is_symbol(","):
                if not values or after.is_symbol(",") or after.is_symbol(")"):
                    values.add("")
                if after.is_symbol(")"):
                    self._next()
                    return values
            else:
                raise _Unreadable(f"found '{token.text}', expected: ',', or identifier")

    def _exact_value(self) -> str:
        token = self._peek()
        if token.kind is _Kind.END or token.is_symbol(","):
            return ""
        token = self._next()
        if token.kind is not _Kind.WORD:
            raise _Unreadable(f"found '{token.text}', expected: identifier")
        return token.text

    def _peek(self) -> _Token:
        return self._tokens[self._position] if self._position < len(self._tokens) else _END

    def _next(self) -> _Token:
        token = self._peek()
        self._position += 1
        return token


def _integer(text: str | None) -> int | None:
    if text is None or not re.fullmatch(r"[+-]?[0-9]{1,19}", text):
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None
