"""Of what kind is the value of an expression, before anything is evaluated?

Forms come from schemas (`form_of`) and from the signatures of functions (`read`). `dyn` is known only when it runs.
"""

from __future__ import annotations

import re

import msgspec

from octarbiter.api.meta import Json
from octarbiter.cluster.apiserver.types import ListType, Shape, Type

_RESERVED = frozenset(
    [
        "true",
        "false",
        "null",
        "in",
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
_FORMATS = {"byte": "bytes", "duration": "duration", "date": "timestamp", "date-time": "timestamp"}
_SCALARS = {Shape.STRING: "string", Shape.INTEGER: "int", Shape.NUMBER: "double", Shape.BOOLEAN: "bool"}


class Form(msgspec.Struct, kw_only=True):
    kind: str
    """dyn, null, bool, int, uint, double, string, bytes, list, map, object, duration, timestamp, type, optional,
    quantity, url, ip, cidr, semver, named_format, or a capital letter: any form, the same at each place."""
    of: tuple[Form, ...] = ()
    """Of a list or an optional: one. Of a map: key and value."""
    fields: dict[str, Form] = {}
    """By the names that expressions use."""
    names: dict[str, str] = {}
    """From those to the names in JSON."""
    nullable: bool = False
    list_type: ListType = ListType.ATOMIC
    list_keys: tuple[str, ...] = ()

    def below(self, json_name: str) -> Form | None:
        if self.kind == "map":
            return self.of[1]
        return self.fields.get(escaped(json_name) or "")


DYN = Form(kind="dyn")
BOOL = Form(kind="bool")
INT = Form(kind="int")
STRING = Form(kind="string")
_META = Form(kind="object", fields={"name": STRING, "generateName": STRING}, names={})


def form_of(type: Type) -> Form | None:
    """None: expressions cannot speak of it."""
    if type.shape is Shape.INT_OR_STRING:
        return Form(kind="dyn", nullable=type.nullable)
    if type.shape is Shape.LIST:
        element = form_of(type.element) if type.element is not None else None
        if element is None:
            return None
        keys = tuple(escaped(name) or name for name in type.list_keys)
        return Form(kind="list", of=(element,), nullable=type.nullable, list_type=type.list_type, list_keys=keys)
    if type.shape is Shape.MAP:
        element = form_of(type.element) if type.element is not None else None
        return None if element is None else Form(kind="map", of=(STRING, element), nullable=type.nullable)
    if type.shape is Shape.OBJECT:
        return _object(type)
    if type.shape in _SCALARS:
        kind = _FORMATS.get(str(type.schema.get("format")), "string") if type.shape is Shape.STRING else ""
        return Form(kind=kind or _SCALARS[type.shape], nullable=type.nullable)
    return None


def _object(type: Type) -> Form:
    fields: dict[str, Form] = {}
    names: dict[str, str] = {}
    for name, below in type.properties.items():
        form, known = form_of(below), escaped(name)
        if form is not None and known is not None:
            fields[known] = form
            names[known] = name
    if type.embedded:
        fields |= {"apiVersion": STRING, "kind": STRING}
        declared = _strings(type.properties.get("metadata"))
        if not {"name", "generateName"} <= declared:
            fields["metadata"] = _META
    return Form(kind="object", fields=fields, names=names, nullable=type.nullable)


def _strings(type: Type | None) -> set[str]:
    return set() if type is None else {name for name, below in type.properties.items() if below.shape is Shape.STRING}


def escaped(name: str) -> str | None:
    """The name an expression uses for a field; None if it cannot name it."""
    if name in _RESERVED:
        return f"__{name}__"
    if not name or name[0].isdigit() or not re.fullmatch(r"[-./_a-zA-Z0-9]+", name, re.ASCII):
        return None
    words = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
    return re.sub(r"__|[-./]", lambda match: words[match[0]], name)


def read(text: str) -> Form:
    """`list<A>`, `map<string,dyn>`."""
    name, _, rest = text.strip().partition("<")
    inner = rest.removesuffix(">")
    parts = []
    depth = start = 0
    for index, character in enumerate(inner + ","):
        depth += (character == "<") - (character == ">")
        if character == "," and depth == 0 and inner:
            parts.append(read(inner[start:index]))
            start = index + 1
    defaults = {"list": (DYN,), "map": (DYN, DYN), "optional": (DYN,)}
    return Form(kind=name, of=tuple(parts) or defaults.get(name, ()))


def accepts(wanted: Form, given: Form, bound: dict[str, Form]) -> bool:
    """Whether a value of the form `given` may stand where `wanted` is expected; letters are bound on the way."""
    if wanted.kind.isupper():
        if wanted.kind not in bound or bound[wanted.kind].kind == "dyn":
            bound[wanted.kind] = given
            return True
        return fits(bound[wanted.kind], given)
    if "dyn" in (wanted.kind, given.kind):
        return True
    if wanted.kind == "map" and given.kind == "object":
        return False
    if wanted.kind != given.kind:
        return False
    return all(accepts(inner, own, bound) for inner, own in zip(wanted.of, given.of, strict=False))


def fits(left: Form, right: Form) -> bool:
    """Whether two values can be compared, or stand in one list."""
    if "dyn" in (left.kind, right.kind):
        return True
    if "null" in (left.kind, right.kind):
        other = right if left.kind == "null" else left
        return other.kind in ("null", "object", "duration", "timestamp", "optional")
    return left.kind == right.kind and all(fits(a, b) for a, b in zip(left.of, right.of, strict=False))


def filled(form: Form, bound: dict[str, Form]) -> Form:
    """With what the letters stand for."""
    if form.kind.isupper():
        return bound.get(form.kind, DYN)
    return Form(kind=form.kind, of=tuple(filled(inner, bound) for inner in form.of)) if form.of else form


_SHOWN = {
    "duration": "google.protobuf.Duration",
    "timestamp": "google.protobuf.Timestamp",
    "quantity": "kubernetes.Quantity",
    "url": "kubernetes.URL",
    "ip": "net.IP",
    "cidr": "net.CIDR",
    "semver": "kubernetes.Semver",
    "named_format": "kubernetes.NamedFormat",
    "optional": "optional_type",
}


def shown(form: Form) -> str:
    """As messages name it."""
    name = _SHOWN.get(form.kind, form.kind)
    return f"{name}({', '.join(shown(inner) for inner in form.of)})" if form.of else name


def schema_type(type: Type) -> str:
    schema: Json = type.schema
    return str(schema.get("type") or "")
