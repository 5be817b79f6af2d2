"""What does the text of an expression say?"""

from __future__ import annotations

from functools import lru_cache

from octarbiter.cluster.apiserver.structural.cel import syntax
from octarbiter.cluster.apiserver.structural.cel.lexing import Token, tokens
from octarbiter.cluster.apiserver.structural.cel.syntax import Mistake, Node

LONGEST = 100_000
"""Characters."""
DEEPEST = 60
"""Brackets within brackets; bounds the stack."""
LONGEST_CHAIN = 250
"""`a.b.c...`, `a + b + ...`: each link deepens the tree by one."""

_BINARY = {
    "==": (3, "_==_"),
    "!=": (3, "_!=_"),
    "<": (3, "_<_"),
    "<=": (3, "_<=_"),
    ">": (3, "_>_"),
    ">=": (3, "_>=_"),
    "in": (3, "@in"),
    "+": (4, "_+_"),
    "-": (4, "_-_"),
    "*": (5, "_*_"),
    "/": (5, "_/_"),
    "%": (5, "_%_"),
}
_ONE_VARIABLE = {"all": 2, "exists": 2, "exists_one": 2, "existsOne": 2, "filter": 2, "sortBy": 2}
_TWO_VARIABLES = {"all", "exists", "exists_one", "existsOne"}
_TRANSFORMS = {"transformList", "transformMap", "transformMapEntry"}


@lru_cache(maxsize=4096)
def parse(text: str) -> Node:
    if len(text) > LONGEST:
        raise Mistake(f"expression code point size exceeds limit: size: {len(text)}, limit {LONGEST}", 0)
    return _Parser(tokens(text)).whole()


_EXPECTING = (
    "expecting {'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, "
    "IDENTIFIER}"
)
"""What an expression can begin with."""


class _Parser:
    def __init__(self, found: list[Token]) -> None:
        self._tokens = found
        self._next = 0
        self._depth = 0

    def whole(self) -> Node:
        node = self._expression()
        self._expect("end")
        return node

    def _peek(self) -> Token:
        return self._tokens[self._next]

    def _take(self) -> Token:
        token = self._tokens[self._next]
        self._next += 1
        return token

    def _accept(self, kind: str) -> Token | None:
        return self._take() if self._peek().kind == kind else None

    def _expect(self, kind: str) -> Token:
        token = self._accept(kind)
        if token is None:
            raise self._unexpected(
                f"expecting '{kind}'" if kind not in ("end", "name") else f"expecting {kind.upper()}"
            )
        return token

    def _unexpected(self, hint: str) -> Mistake:
        token = self._peek()
        shown = token.value[0] if token.kind == "literal" else token.value
        return Mistake(f"Syntax error: mismatched input '{shown}' {hint}", token.at)

    def _expression(self) -> Node:
        self._depth += 1
        if self._depth > DEEPEST:
            raise Mistake(f"expression recursion limit exceeded: {DEEPEST}", self._peek().at)
        condition = self._logical("||")
        if question := self._accept("?"):
            then = self._logical("||")
            self._expect(":")
            condition = syntax.Choice(at=question.at, condition=condition, then=then, otherwise=self._expression())
        self._depth -= 1
        return condition

    def _logical(self, operator: str) -> Node:
        first = self._peek().at
        terms = [self._logical("&&") if operator == "||" else self._binary(3)]
        while token := self._accept(operator):
            first = token.at
            terms.append(self._logical("&&") if operator == "||" else self._binary(3))
        if len(terms) == 1:
            return terms[0]
        return syntax.Or(at=first, terms=tuple(terms)) if operator == "||" else syntax.And(at=first, terms=tuple(terms))

    def _binary(self, least: int) -> Node:
        left = self._unary()
        links = 0
        while (found := _BINARY.get(self._peek().kind)) and found[0] >= least:
            links += 1
            self._bound(links)
            token = self._take()
            right = self._binary(found[0] + 1)
            left = syntax.Call(at=token.at, function=found[1], arguments=(left, right))
        return left

    def _bound(self, links: int) -> None:
        if links > LONGEST_CHAIN:
            raise Mistake(f"expression recursion limit exceeded: {LONGEST_CHAIN}", self._peek().at)

    def _unary(self) -> Node:
        marks = []
        while self._peek().kind in ("!", "-"):
            marks.append(self._take())
            self._bound(len(marks))
        operand = self._literal_minus(marks) or self._member()
        for mark in reversed(marks):
            name = "!_" if mark.kind == "!" else "-_"
            operand = syntax.Call(at=mark.at, function=name, arguments=(operand,))
        return operand

    def _literal_minus(self, marks: list[Token]) -> Node | None:
        """`-1` is one number: the smallest one has no positive counterpart."""
        token = self._peek()
        if not marks or marks[-1].kind != "-" or token.kind != "literal" or token.value[1] not in ("int", "double"):
            return None
        if self._tokens[self._next + 1].kind in (".", ".?", "["):
            return None
        self._take()
        mark = marks.pop()
        return syntax.Literal(at=mark.at, value=-token.value[0], kind=token.value[1])

    def _member(self) -> Node:
        node = self._primary()
        links = 0
        while self._peek().kind in (".", ".?", "["):
            links += 1
            self._bound(links)
            token = self._take()
            if token.kind == "[":
                optional = self._accept("?") is not None
                key = self._expression()
                self._expect("]")
                node = syntax.Index(at=token.at, target=node, key=key, optional=optional)
                continue
            name = self._expect("name").value
            if token.kind == "." and (bracket := self._accept("(")):
                node = self._method(node, name, self._arguments(")"), bracket.at)
            else:
                node = syntax.Select(at=token.at, target=node, field=name, optional=token.kind == ".?")
        return node

    def _primary(self) -> Node:
        token = self._take()
        if token.kind == "literal":
            value, kind = token.value
            if kind == "int" and value == 2**63:
                raise Mistake("invalid int literal", token.at)
            return syntax.Literal(at=token.at, value=value, kind=kind)
        if token.kind == "(":
            node = self._expression()
            self._expect(")")
            return node
        if token.kind == "[":
            return self._list(token)
        if token.kind == "{":
            return self._map(token)
        if token.kind == ".":
            token = self._expect("name")
        if token.kind == "name":
            if bracket := self._accept("("):
                return self._call(token, self._arguments(")"), bracket.at)
            return syntax.Name(at=token.at, name=token.value)
        self._next -= 1
        raise self._unexpected(_EXPECTING)

    def _arguments(self, end: str) -> list[Node]:
        found: list[Node] = []
        while not self._accept(end):
            if found:
                self._expect(",")
                if self._accept(end):
                    break
            found.append(self._expression())
        return found

    def _list(self, token: Token) -> Node:
        items: list[Node] = []
        optional = set()
        while not self._accept("]"):
            if items:
                self._expect(",")
                if self._accept("]"):
                    break
            if self._accept("?"):
                optional.add(len(items))
            items.append(self._expression())
        return syntax.ListOf(at=token.at, items=tuple(items), optional=frozenset(optional))

    def _map(self, token: Token) -> Node:
        entries: list[tuple[Node, Node]] = []
        optional = set()
        while not self._accept("}"):
            if entries:
                self._expect(",")
                if self._accept("}"):
                    break
            if self._accept("?"):
                optional.add(len(entries))
            key = self._expression()
            self._expect(":")
            entries.append((key, self._expression()))
        return syntax.MapOf(at=token.at, entries=tuple(entries), optional=frozenset(optional))

    def _call(self, name: Token, arguments: list[Node], at: int) -> Node:
        if name.value == "has":
            if len(arguments) != 1 or not isinstance(arguments[0], syntax.Select):
                raise Mistake("invalid argument to has() macro", arguments[0].at if arguments else at)
            return syntax.Has(at=at, select=arguments[0])
        return syntax.Call(at=at, function=name.value, arguments=tuple(arguments))

    def _method(self, target: Node, name: str, arguments: list[Node], at: int) -> Node:
        given = len(arguments)
        if name in _ONE_VARIABLE and given == 2:
            return self._comprehension(name, target, arguments[:1], arguments[1], None, at)
        if name in _TWO_VARIABLES and given == 3:
            return self._comprehension(name, target, arguments[:2], arguments[2], None, at)
        if name == "map" and given in (2, 3):
            return self._comprehension(name, target, arguments[:1], arguments[-1], _middle(arguments, 3, 1), at)
        if name in _TRANSFORMS and given in (3, 4):
            return self._comprehension(name, target, arguments[:2], arguments[-1], _middle(arguments, 4, 2), at)
        if name in ("optMap", "optFlatMap") and given == 2:
            variable = _variable(arguments[0])
            return syntax.OptionalMap(
                at=at, target=target, variable=variable, body=arguments[1], flat=name == "optFlatMap"
            )
        return syntax.Call(at=at, function=name, arguments=(target, *arguments), is_method=True)

    def _comprehension(
        self, macro: str, over: Node, variables: list[Node], body: Node, condition: Node | None, at: int
    ) -> Node:
        return syntax.Comprehension(
            at=at,
            macro="exists_one" if macro == "existsOne" else macro,
            over=over,
            variables=tuple(_variable(each) for each in variables),
            body=body,
            condition=condition,
        )


def _middle(arguments: list[Node], full: int, index: int) -> Node | None:
    return arguments[index] if len(arguments) == full else None


def _variable(node: Node) -> str:
    if not isinstance(node, syntax.Name):
        raise Mistake("argument must be a simple name", node.at)
    return node.name
