"""What does a pattern of a schema mean here?

The server reads RE2 (Go), we have Python's `re`. Most is the same; what is not is translated, and what Python
understands but RE2 refuses (looking around, back references) is refused, so that a definition that is accepted here is
accepted everywhere.
"""

from __future__ import annotations

import re
from functools import lru_cache

_POSIX = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "ascii": r"\x00-\x7F",
    "blank": r"\t ",
    "cntrl": r"\x00-\x1F\x7F",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": r"!-/:-@\[-`{-~",
    "space": r"\t\n\v\f\r ",
    "upper": "A-Z",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}
_LETTERS = {
    "L": "A-Za-z\u00aa-\u00d6\u00d8-\u00f6\u00f8-\u02ff\u0370-\u1fff\u2c00-\u2dff\u3005-\ud7ff",
    "Lu": "A-Z\u00c0-\u00d6\u00d8-\u00de",
    "Ll": "a-z\u00df-\u00f6\u00f8-\u00ff",
    "N": "0-9",
    "Nd": "0-9",
}
"""Unicode's classes, roughly: `re` does not know them."""
_LONGEST_REPEAT = 1000
"""RE2's own limit; a larger one would be a way to exhaust memory."""


_WORDS = {
    "missing )": "missing closing )",
    "unbalanced parenthesis": "unexpected )",
    "nothing to repeat": "missing argument to repetition operator",
    "multiple repeat": "invalid nested repetition operator",
    "bad character range": "invalid character class range",
}
"""From Python's words to the server's."""


class BadPattern(Exception):
    """It is not a regular expression; the message says why, as the server does."""


@lru_cache(maxsize=1024)
def compile(pattern: str) -> re.Pattern[str]:
    translated = _Translation(pattern).run()
    try:
        return re.compile(translated, re.ASCII)
    except (re.error, OverflowError, RecursionError) as problem:
        said = str(problem)
        why = next((words for start, words in _WORDS.items() if said.startswith(start)), said)
        raise BadPattern(f"error parsing regexp: {why}: `{pattern}`") from None


class _Translation:
    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0
        self._out: list[str] = []
        self._multiline = False

    def run(self) -> str:
        while self._at < len(self._pattern):
            self._step()
        return "".join(self._out)

    def _step(self) -> None:
        rest = self._pattern[self._at :]
        if rest[0] == "\\":
            self._escape(in_class=False)
        elif rest[0] == "[":
            self._character_class()
        elif rest.startswith("(?"):
            self._group()
        elif rest[0] == "$" and not self._multiline:
            # Python's $ would also match before a final newline.
            self._emit(r"\Z", 1)
        elif match := re.match(r"\{(\d+)(?:,(\d*))?\}", rest):
            if int(match[1]) > _LONGEST_REPEAT or int(match[2] or 0) > _LONGEST_REPEAT:
                raise self._bad(f"invalid repeat count: `{match[0]}`")
            self._emit(match[0], len(match[0]))
        elif (match := re.match(r"[*+?]\+|[*+?][*+]", rest)) is not None:
            raise self._bad(f"invalid nested repetition operator: `{match[0]}`")
        else:
            self._emit(rest[0], 1)

    def _group(self) -> None:
        rest = self._pattern[self._at :]
        if match := re.match(r"\(\?P?<([A-Za-z0-9_]+)>", rest):
            self._emit(f"(?P<{match[1]}>", len(match[0]))
        elif match := re.match(r"\(\?([imsU]*)(?:-([imsU]+))?([:)])", rest):
            self._flags(match)
        else:
            raise self._bad(f"invalid or unsupported Perl syntax: `{rest[:3]}`")

    def _flags(self, match: re.Match[str]) -> None:
        on, off, end = match[1], match[2] or "", match[3]
        if "U" in on:
            raise self._bad("invalid or unsupported Perl syntax: `(?U`")
        self._multiline = (self._multiline or "m" in on) and "m" not in off
        if end == ":":
            self._emit(f"(?{on}-{off}:" if off else f"(?{on}:" if on else "(?:", len(match[0]))
            return
        # Flags for the rest of a pattern stand at its very beginning in Python.
        if any(part for part in self._out):
            raise self._bad(f"flags inside the pattern are not supported: `{match[0]}`")
        self._emit(f"(?{on})" if on else "", len(match[0]))

    def _character_class(self) -> None:
        end = self._at + 1
        self._emit("[", 1)
        if self._pattern[end : end + 1] == "^":
            self._emit("^", 1)
        if self._pattern[self._at : self._at + 1] == "]":
            self._emit(r"\]", 1)
        while self._at < len(self._pattern) and self._pattern[self._at] != "]":
            rest = self._pattern[self._at :]
            if match := re.match(r"\[:(\w+):\]", rest):
                if match[1] not in _POSIX:
                    raise self._bad(f"invalid character class range: `{match[0]}`")
                self._emit(_POSIX[match[1]], len(match[0]))
            elif rest[0] == "\\":
                self._escape(in_class=True)
            else:
                # Python warns about these: they may become operators one day.
                self._emit("\\" + rest[0] if rest[0] in "[&|~" else rest[0], 1)
        if self._at >= len(self._pattern):
            raise self._bad(f"missing closing ]: `{self._pattern}`")
        self._emit("]", 1)

    def _escape(self, *, in_class: bool) -> None:
        rest = self._pattern[self._at :]
        if len(rest) < 2:
            raise self._bad("trailing backslash at end of expression")
        if match := re.match(r"\\p(?:\{(\w+)\}|(\w))", rest):
            name = match[1] or match[2]
            if name not in _LETTERS:
                raise self._bad(f"invalid character class range: `{match[0]}`")
            self._emit(_LETTERS[name] if in_class else f"[{_LETTERS[name]}]", len(match[0]))
        elif match := re.match(r"\\x\{([0-9A-Fa-f]+)\}", rest):
            self._emit(re.escape(chr(int(match[1], 16))), len(match[0]))
        elif rest[1] == "z" and not in_class:
            self._emit(r"\Z", 2)
        elif rest[1] == "Q" and not in_class:
            text, _, _ = rest[2:].partition(r"\E")
            self._emit(re.escape(text), min(len(rest), len(text) + 4))
        elif rest[1].isalnum() and rest[1] not in "AbBdDsSwWfntrvax0":
            raise self._bad(f"invalid escape sequence: `{rest[:2]}`")
        else:
            self._emit(rest[:2], 2)

    def _emit(self, text: str, consumed: int) -> None:
        self._out.append(text)
        self._at += consumed

    def _bad(self, why: str) -> BadPattern:
        return BadPattern(f"error parsing regexp: {why}")
