"""What do our documents tell a reader to do, and what do they say will be seen?

Fenced blocks have a language. `sh` is done by the tests, block after block in one shell, as a reader would; every
command must succeed. A `text` block right after it is all that it prints. `yaml` and `python` show a whole file, whose
name is in their first line. A comment right before a block says what is special about it:

    <!-- test: leave out: REASON -->   not run
    <!-- test: needs PROGRAM -->       not run where there is no such program
    <!-- test: stays -->               in a terminal of its own, to the end of the document
    <!-- test: until shown -->         in a terminal of its own, until what is shown was seen

In a `text` block `...` stands for anything: alone, for any number of lines. Times, ages, addresses and names of fake
nodes may be others, and columns wider.
"""

import re
from dataclasses import dataclass, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
"""Of the checkout."""
RUN = (
    "README.md",
    "docs/tutorial.md",
    "docs/guides/operating.md",
    "docs/guides/embedded.md",
    "docs/guides/testing.md",
    "docs/guides/sharing.md",
    "docs/guides/drf.md",
    "docs/guides/arbitration.md",
)
LANGUAGES = ("sh", "text", "yaml", "python")
STAYS, UNTIL_SHOWN = "stays", "until shown"

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_MARKER = re.compile(r"<!-- test: (.+?) -->\n\Z")
_LEAVE_OUT = re.compile(r"leave out: (.+)")
_NEEDS = re.compile(r"needs (\w+)")


@dataclass(frozen=True)
class Block:
    document: str
    line: int
    language: str
    text: str
    reason: str = ""
    """Why it is left out, if it is."""
    needs: str = ""
    manner: str = ""
    """STAYS, UNTIL_SHOWN or nothing."""
    shown: str | None = None
    """What a `text` block says that it prints."""

    @property
    def where(self) -> str:
        return f"{self.document}:{self.line}"

    @property
    def file(self) -> str:
        """The name of the file that it shows."""
        return self.text.partition("\n")[0].removeprefix("# ")

    @property
    def only_looks(self) -> bool:
        looking = (
            "octo get",
            "octo describe",
            "octo queue list",
            "octo queue describe",
            "octo queuejob list",
            "octo why",
        )
        looking += ("kubectl get", "octo kubectl get", "curl ")
        return all(line.startswith(looking) for line in self.text.splitlines())


def blocks(document: str) -> list[Block]:
    """In their order; what is shown as text belongs to the commands before it."""
    text = (ROOT / document).read_text()
    found: list[Block] = []
    end_of_last = 0
    for fence in _FENCE.finditer(text):
        between, end_of_last = text[end_of_last : fence.start()], fence.end()
        line = text.count("\n", 0, fence.start()) + 1
        if fence[1] == "text" and not between.strip() and found and found[-1].language == "sh":
            found[-1] = replace(found[-1], shown=fence[2])
        else:
            found.append(Block(document, line, fence[1], fence[2], **_special(between, f"{document}:{line}")))
    return found


def _special(before: str, where: str) -> dict[str, str]:
    marker = _MARKER.search(before)
    if marker is None:
        return {}
    if marker[1] in (STAYS, UNTIL_SHOWN):
        return {"manner": marker[1]}
    if needs := _NEEDS.fullmatch(marker[1]):
        return {"needs": needs[1]}
    if left_out := _LEAVE_OUT.fullmatch(marker[1]):
        return {"reason": left_out[1]}
    raise ValueError(f"{where}: no such marker: {marker[1]}")


# What may differ from what the document shows, in the order in which it is looked for.
_PLACEHOLDERS = {
    "anything": (r"\.\.\.", ".*"),
    "moment": (r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:\.\d+)?Z?", None),
    "time": (r"\d\d:\d\d:\d\d", None),
    "address": (r"\d+\.\d+\.\d+\.\d+(?::\d+)?", None),
    "age": (r"\b\d+[dhms](?:\d+[hms])?\b", None),
    "node": (r"\bfake-\d+", None),
    "gap": (r" +", " +"),
}
_PLACEHOLDER = re.compile("|".join(f"(?P<{name}>{pattern})" for name, (pattern, _) in _PLACEHOLDERS.items()))


def is_shown(shown: str, printed: str) -> bool:
    """Did it print what the document shows?"""
    return re.fullmatch("".join(map(_line, shown.splitlines())), _with_ends(printed)) is not None


def has_begun_with(shown: str, printed: str) -> bool:
    """Did it print that, whatever may come after it?"""
    return is_shown(f"{shown}...\n", printed)


def _line(shown: str) -> str:
    if shown.strip() == "...":
        return r"(?:.*\n)*?"
    pattern, at = "", 0
    for place in _PLACEHOLDER.finditer(shown.rstrip()):
        looked_for, stands_for = _PLACEHOLDERS[place.lastgroup or ""]
        pattern += re.escape(shown[at : place.start()]) + (stands_for or looked_for)
        at = place.end()
    return pattern + re.escape(shown[at:].rstrip()) + "\n"


def _with_ends(printed: str) -> str:
    """Each line with an end and without spaces before it."""
    return "".join(f"{line.rstrip()}\n" for line in printed.splitlines())
