"""Write what is made from the code: the CRD, what to install, the reference pages, and tables of the operating guide.

`python -m tools.generate` writes them; with `--check` it writes nothing and fails if one is out of date.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import yaml

from octarbiter.api import crd, fields, rules, schema, taskset
from octarbiter.api.schema import Node
from octarbiter.cli import install, installation
from octarbiter.cli import text as texts

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # called as `python tools/generate.py`, it would not find its neighbours

from tools import cli_reference, guide_tables  # noqa: E402

_GUIDE = ROOT / "docs" / "guides" / "operating.md"
_NOTE = "Made by `python -m tools.generate` from src/octarbiter/api; edit there."


def files() -> dict[Path, str]:
    return {
        ROOT / "deploy" / "crds" / f"{crd.NAME}.yaml": crd_file(),
        ROOT / "docs" / "reference" / "taskset.md": reference_page(),
        ROOT / "docs" / "reference" / "cli.md": cli_reference.page(),
        _GUIDE: guide_tables.filled(_GUIDE.read_text()),
        ROOT / "deploy" / "octarbiter.yaml": installation_file(),
    }


def crd_file() -> str:
    return f"# {_NOTE}\n" + yaml.dump(crd.render(), Dumper=_Plain, sort_keys=False, width=118, allow_unicode=True)


def installation_file() -> str:
    note = "What `octo install` prints; made by `python -m tools.generate`."
    return f"# {note}\n" + texts.objects(installation.objects(install.IMAGE), "yaml")


class _Plain(yaml.SafeDumper):
    """Without anchors, which the shared parts of the schema would else get."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def reference_page() -> str:
    columns = ", ".join(
        column["name"] + (" (with `-o wide`)" if column.get("priority") else "") for column in crd.COLUMNS
    )
    mutable = [f"`{path}`" for path, node in _walk(schema.SPEC, "spec") if _may_change(path, node)]
    lines = [
        f"<!-- {_NOTE} -->",
        "# TaskSet",
        "",
        fields.TASKSET,
        "",
        f"`{taskset.API_VERSION}`, kind `{taskset.KIND}`, plural `tasksets`, short name `ts`, namespaced.",
        f"`kubectl get ts` shows {columns}; `kubectl explain ts.spec` prints this page piece by piece.",
        "",
        "## spec",
        "",
        f"`metadata.name` is a DNS label (no dots) of at most {taskset.MAX_NAME} characters.",
        f"After creation only {', '.join(mutable[:-1])} and {mutable[-1]} may change.",
        "",
        *_table(schema.SPEC, "spec"),
        "",
        "### Refused, too",
        "",
        *(f"- {line}" for line in _rules()),
        "",
        "## status",
        "",
        "Zero, false and empty values may be left out.",
        "",
        *_table(schema.STATUS, "status"),
    ]
    return "\n".join(lines) + "\n"


def _table(node: Node, path: str) -> list[str]:
    rows = [
        f"| `{where}` | {_form(child)} | {_default(child)} | {_text(child.meaning)} |"
        for where, child in _walk(node, path)
    ]
    return ["| Field | Form | Default | Meaning |", "|---|---|---|---|", *rows]


def _text(words: str) -> str:
    """Markdown would take <name> for a tag."""
    return words.replace("<", "&lt;")


def _walk(node: Node, path: str) -> Iterator[tuple[str, Node]]:
    for name, child in node.fields.items():
        where = f"{path}.{name}"
        yield where, child
        yield from _walk(child, where)
        if child.items:
            yield from _walk(child.items, f"{where}[]")


def _may_change(path: str, node: Node) -> bool:
    """Leaves that neither are immutable nor lie in something that is, nor name a role."""
    held = [where for where, other in _walk(schema.SPEC, "spec") if other.facts.immutable]
    is_held = any(path == where or path.startswith((f"{where}.", f"{where}[")) for where in held)
    return not node.fields and not node.items and not is_held and node.key != "Role.name"


def _form(node: Node) -> str:
    facts = node.facts
    form = {"array": "list", "integer": "number"}.get(node.type, node.type)
    if node.values:
        form = f"map of {node.values.type}s"
    if facts.minimum is not None:
        form += f", {facts.minimum} to {facts.maximum}" if facts.maximum != schema.INT32_MAX else f" >= {facts.minimum}"
    if facts.words:
        form = " or ".join(f"`{word}`" for word in facts.words)
    if node.items:
        form = f"list: {_form(node.items)}"
    return f"{form}, required" if node.required else form


def _default(node: Node) -> str:
    default = node.facts.default
    if default is msgspec.UNSET or default == {}:
        return ""
    if isinstance(default, list):
        return ", ".join(f"{item['event']}: {item['action']}" for item in default)
    return f"`{msgspec.json.encode(default).decode()}`"


def _rules() -> Iterator[str]:
    places = {"TaskSet": "", "TaskSetSpec": "spec"}
    for where, node in _walk(schema.SPEC, "spec"):
        places[node.key] = where
        for inner, path in ((node, where), (node.items, f"{where}[]")):
            if inner and inner.struct:
                places[inner.struct] = path
    for key, found in rules.RULES.items():
        for rule in found:
            path = f"{places[key]}{rule.field}".removeprefix(".")
            yield f"`{path}`: {_text(rule.message)}."


def main(arguments: list[str]) -> int:
    stale = {path: text for path, text in files().items() if not path.exists() or path.read_text() != text}
    for path, text in stale.items():
        if "--check" in arguments:
            print(f"{path.relative_to(ROOT)} is out of date: run `python -m tools.generate`", file=sys.stderr)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            print(f"wrote {path.relative_to(ROOT)}")
    return 1 if stale and "--check" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
