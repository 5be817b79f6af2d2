"""Is an object within an object a whole one?"""

from __future__ import annotations

import re
from typing import Any

from octarbiter.cluster.apiserver.structural import wording
from octarbiter.cluster.apiserver.types import Shape, Type
from octarbiter.cluster.apiserver.validation.problems import Problem

DNS_LABEL_1035 = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
DNS_LABEL_1035_WORDS = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
    "'[a-z]([-a-z0-9]*[a-z0-9])?')"
)


def check(value: Any, type: Type, path: str = "") -> list[Problem]:
    """Of the objects below the root; the root itself is checked as every object is."""
    problems: list[Problem] = []
    if isinstance(value, dict):
        for name, item in value.items():
            below = type.field(name)
            if below is None:
                continue
            here = wording.key(path, name) if type.shape is Shape.MAP else wording.child(path, name)
            if below.embedded and isinstance(item, dict):
                problems += _whole(item, here)
            problems += check(item, below, here)
    elif isinstance(value, list) and type.element is not None:
        for index, item in enumerate(value):
            if type.element.embedded and isinstance(item, dict):
                problems += _whole(item, f"{path}[{index}]")
            problems += check(item, type.element, f"{path}[{index}]")
    return problems


def _whole(obj: dict[str, Any], path: str) -> list[Problem]:
    problems = [wording.required(f"{path}.{name}") for name in ("apiVersion", "kind") if name not in obj]
    for name in ("apiVersion", "kind"):
        if name in obj:
            problems += _type_meta(name, obj[name], f"{path}.{name}")
    if "metadata" in obj and not isinstance(obj["metadata"], dict):
        problems.append(wording.invalid(f"{path}.metadata", obj["metadata"], "must be an object"))
    return problems


def _type_meta(name: str, value: Any, path: str) -> list[Problem]:
    if not isinstance(value, str):
        return [wording.invalid(path, value, "must be a string")]
    if not value:
        return [wording.invalid(path, value, "must not be empty")]
    if name == "apiVersion" and value.count("/") > 1:
        return [wording.invalid(path, value, f"unexpected GroupVersion string: {value}")]
    if name == "kind" and (words := dns_label_problems(value.lower())):
        return [wording.invalid(path, value, f"may have mixed case, but should otherwise match: {','.join(words)}")]
    return []


def dns_label_problems(text: str) -> list[str]:
    problems = [] if len(text) <= 63 else ["must be no more than 63 characters"]
    return problems if DNS_LABEL_1035.fullmatch(text) else [*problems, DNS_LABEL_1035_WORDS]
