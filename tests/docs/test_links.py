"""A link between our documents leads somewhere."""

import re
from pathlib import Path

import pytest

from documents import ROOT

DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")])

_CODE = re.compile(r"^```.*?^```$|`[^`\n]*`", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ +(.+)$", re.MULTILINE)


def links(text: str) -> list[str]:
    return [target for target in _LINK.findall(_CODE.sub("", text)) if "://" not in target]


def anchors(path: Path) -> set[str]:
    headings = _HEADING.findall(re.sub(r"^```.*?^```$", "", path.read_text(), flags=re.DOTALL | re.MULTILINE))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken(document: Path) -> list[str]:
    found = []
    for target in links(document.read_text()):
        file, _, anchor = target.partition("#")
        path = (document.parent / file).resolve() if file else document
        if not path.exists() or (anchor and anchor not in anchors(path)):
            found.append(target)
    return found


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_leads_somewhere(document: Path) -> None:
    assert broken(document) == []


def test_a_broken_link_is_seen(tmp_path: Path) -> None:
    document = tmp_path / "a.md"
    document.write_text("# A title: it\n[x](b.md) [y](#a-title-it) [z](#other) [w](a.md#a-title-it) `[v](c.md)`\n")

    assert broken(document) == ["b.md", "#other"]
