"""Which words does the text of an expression have?"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from octarbiter.cluster.apiserver.structural.cel.syntax import Mistake
from octarbiter.cluster.apiserver.structural.cel.values import Uint


class Token(NamedTuple):
    kind: str
    """`name`, `literal`, `end`, or the operator itself."""
    value: Any
    at: int


_TOKEN = re.compile(
    r"""
    (?P<blank>(?:\s|//[^\n]*)+)
  | (?P<string>(?:[rR][bB]?|[bB][rR]?)?(?:'''(?:[^\\]|\\.)*?'''|\"\"\"(?:[^\\]|\\.)*?\"\"\"
        |'(?:[^'\\\n\r]|\\.)*'|"(?:[^"\\\n\r]|\\.)*"))
  | (?P<raw>[rR](?:'[^'\n\r]*'|"[^"\n\r]*"))
  | (?P<float>[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|\.[0-9]+(?:[eE][+-]?[0-9]+)?)
  | (?P<int>0x[0-9a-fA-F]+[uU]?|[0-9]+[uU]?)
  | (?P<name>[_a-zA-Z][_a-zA-Z0-9]*)
  | (?P<operator>&&|\|\||==|!=|<=|>=|[-+*/%!<>?:.,()\[\]{}])
    """,
    re.VERBOSE | re.ASCII | re.DOTALL,
)
_WORDS: dict[str, tuple[Any, str]] = {"true": (True, "bool"), "false": (False, "bool"), "null": (None, "null")}
_RESERVED = frozenset(
    [
        "as",
        "break",
        "const",
        "continue",
        "else",
        "for",
        "function",
        "if",
        "import",
        "let",
        "loop",
        "package",
        "namespace",
        "return",
        "var",
        "void",
        "while",
    ]
)
_ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2})|(.))", re.DOTALL)


def tokens(text: str) -> list[Token]:
    found: list[Token] = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise Mistake(f"Syntax error: token recognition error at: '{text[at]}'", at)
        if match.lastgroup != "blank":
            found.append(_token(match, at, after_dot=bool(found) and found[-1].kind in (".", ".?")))
            # `a.?b`: the two are one operator.
            if found[-1].kind == "?" and len(found) > 1 and found[-2] == Token(".", ".", at - 1):
                found[-2:] = [Token(".?", ".?", at - 1)]
        at = match.end()
    return [*found, Token("end", "<EOF>", len(text))]


def _token(match: re.Match[str], at: int, *, after_dot: bool) -> Token:
    text = match[0]
    if match.lastgroup == "name":
        if text == "in":
            return Token("in", text, at)
        if text in _WORDS and not after_dot:
            return Token("literal", _WORDS[text], at)
        if text in _RESERVED and not after_dot:
            raise Mistake(f"reserved identifier: {text}", at)
        return Token("name", text, at)
    if match.lastgroup in ("string", "raw"):
        return Token("literal", _string(text, at), at)
    if match.lastgroup == "float":
        return Token("literal", (float(text), "double"), at)
    if match.lastgroup == "int":
        return Token("literal", _integer(text, at), at)
    return Token(text, text, at)


def _integer(text: str, at: int) -> tuple[Any, str]:
    unsigned = text[-1] in "uU"
    number = int(text.rstrip("uU"), 0 if text.startswith("0x") else 10)
    # One more than the largest: it may follow a minus sign.
    if number > (2**64 - 1 if unsigned else 2**63):
        raise Mistake("invalid uint literal" if unsigned else "invalid int literal", at)
    return (Uint(number), "uint") if unsigned else (number, "int")


def _string(text: str, at: int) -> tuple[Any, str]:
    prefix = re.match(r"[rRbB]*", text)
    letters = prefix[0].lower() if prefix else ""
    body = text[len(letters) :]
    quotes = 3 if body[:3] in ("'''", '"""') and len(body) >= 6 else 1
    inner = body[quotes:-quotes]
    if "r" not in letters:
        inner = _ESCAPE.sub(lambda match: _unescaped(match, at), inner)
    if "b" in letters:
        # Escapes in bytes are bytes, everything else is UTF-8.
        return inner.encode("latin-1" if inner.isascii() or "\\x" in body else "utf-8", "replace"), "bytes"
    return inner, "string"


def _unescaped(match: re.Match[str], at: int) -> str:
    if match[1] or match[2] or match[3]:
        code = int(match[1] or match[2] or match[3], 16)
    elif match[4]:
        code = int(match[4], 8)
    elif match[5] in _ESCAPES:
        return _ESCAPES[match[5]]
    elif match[5] in "\\?\"'`":
        return match[5]
    else:
        raise Mistake(f"Syntax error: unable to unescape string '{match[0]}'", at)
    if code > 0x10FFFF or 0xD800 <= code < 0xE000:
        raise Mistake("Syntax error: invalid unicode code point", at)
    return chr(code)
