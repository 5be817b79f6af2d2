"""Write what is made from the code: the CRDs, what to install, the reference pages, and tables of the guides.

`python -m tools.generate` writes them; with `--check` it writes nothing and fails if one is out of date.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import yaml

from octarbiter.api import crd, facts, kinds, rules
from octarbiter.api.kinds import Kind
from octarbiter.api.schema import Node
from octarbiter.cli import install, installation
from octarbiter.cli import text as texts

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # called as `python tools/generate.py`, it would not find its neighbours

from tools import cli_reference, guide_tables  # noqa: E402

_GUIDES = [ROOT / "docs" / "guides" / f"{name}.md" for name in ("operating", "arbitration")]
_NOTE = "Made by `python -m tools.generate` from src/octarbiter/api; edit there."


def files() -> dict[Path, str]:
    return {
        **{ROOT / "deploy" / "crds" / f"{kind.definition}.yaml": crd_file(kind) for kind in kinds.ALL},
        **{ROOT / "docs" / "reference" / f"{kind.kind.lower()}.md": reference_page(kind) for kind in kinds.INSTALLED},
        ROOT / "docs" / "reference" / "cli.md": cli_reference.page(),
        **{guide: guide_tables.filled(guide.read_text()) for guide in _GUIDES},
        ROOT / "deploy" / "octarbiter.yaml": installation_file(),
    }


def crd_file(kind: Kind) -> str:
    return f"# {_NOTE}\n" + yaml.dump(crd.render(kind), Dumper=_Plain, sort_keys=False, width=118, allow_unicode=True)


def installation_file() -> str:
    note = "What `octo install` prints; made by `python -m tools.generate`."
    return f"# {note}\n" + texts.objects(installation.objects(installation.Wishes(image=install.IMAGE)), "yaml")


class _Plain(yaml.SafeDumper):
    """Without anchors, which the shared parts of the schema would else get."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def reference_page(kind: Kind) -> str:
    columns = ", ".join(
        column["name"] + (" (with `-o wide`)" if column.get("priority") else "") for column in kind.columns
    )
    (short,) = kind.short_names
    lines = [
        f"<!-- {_NOTE} -->",
        f"# {kind.kind}",
        "",
        kind.meaning,
        "",
        f"`{kind.api_version}`, kind `{kind.kind}`, plural `{kind.resource.plural}`, short name `{short}`, namespaced.",
        *_other_names(kind),
        f"`kubectl get {short}` shows {columns}; `kubectl explain {short}.spec` prints this page piece by piece.",
        "",
        "## spec",
        "",
        *_name(kind),
        *_changeable(kind),
        "",
        *_table(kind.spec, "spec"),
        "",
        "### Refused, too",
        "",
        *(f"- {line}" for line in _rules(kind)),
        "",
        "## status",
        "",
        "Zero, false and empty values may be left out.",
        "",
        *_table(kind.status, "status"),
    ]
    return "\n".join(lines) + "\n"


def _other_names(kind: Kind) -> list[str]:
    others = [other for other in kinds.ALL if other.struct == kind.struct and other is not kind]
    return [f"Its older name, kind `{other.kind}` of the same group, means the same." for other in others]


def _name(kind: Kind) -> list[str]:
    if not kind.name_because:
        return []
    form = "a DNS label (no dots)" if kind.no_dots_because else "a DNS name"
    return [f"`metadata.name` is {form} of at most {kind.max_name} characters."]


def _changeable(kind: Kind) -> list[str]:
    """What may change, or what may not if that is less."""
    held = [f"`{path}`" for path, node in _walk(kind.spec, "spec") if node.facts.immutable]
    if not held:
        return ["Everything may change after creation."]
    mutable = [f"`{path}`" for path, node in _walk(kind.spec, "spec") if _may_change(kind, path, node)]
    if len(held) < len(mutable):
        return [f"After creation {' and '.join(held)} cannot change."]
    return [f"After creation only {', '.join(mutable[:-1])} and {mutable[-1]} may change."]


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


def _may_change(kind: Kind, path: str, node: Node) -> bool:
    """Leaves that neither are immutable nor lie in something that is, nor name a role."""
    held = [where for where, other in _walk(kind.spec, "spec") if other.facts.immutable]
    is_held = any(path == where or path.startswith((f"{where}.", f"{where}[")) for where in held)
    return not node.fields and not node.items and not is_held and node.key != "Role.name"


def _form(node: Node) -> str:
    known = node.facts
    form = {"array": "list", "integer": "number", "int-or-string": "number or string"}.get(node.type, node.type)
    if known.is_quantity:
        form = "quantity"
    elif known.minimum == -facts.INT32_MAX:
        form += ", also negative"
    elif known.minimum is not None:
        form += f", {known.minimum} to {known.maximum}" if known.maximum != facts.INT32_MAX else f" >= {known.minimum}"
    if node.values:
        form = f"map: {_form(node.values)}"
    if known.words:
        form = " or ".join(f"`{word}`" for word in known.words)
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


def _rules(kind: Kind) -> Iterator[str]:
    places = {kind.struct: "", kind.spec.struct: "spec"}
    for where, node in _walk(kind.spec, "spec"):
        places[node.key] = where
        for inner, path in ((node, where), (node.items, f"{where}[]")):
            if inner and inner.struct:
                places[inner.struct] = path
        if node.facts.form and node.type == "string":
            yield f"`{where}`: must be {_text(node.facts.form.words)}."
    for key, found in rules.RULES.items():
        for rule in found if key in places else ():
            path = f"{places[key]}{rule.field}".removeprefix(".")
            yield f"`{path}`: {_text(rule.message)}."
    yield from (_text(sentence) for sentence in _BEYOND_RULES.get(kind.struct, ()))


_BEYOND_RULES = {
    "Queue": (
        "`spec.guarantee` above `spec.deserved` or `spec.capability`, and `spec.deserved` above `spec.capability`, "
        "for a resource that both name.",
        "Names of resources that are none, such as `cpu!`.",
    ),
    "QueueJob": ("`spec.resourceunit`: must ask for something.",),
}
"""What the API server alone does not see; the webhook, the command line and the arbitrator do."""


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
