"""What does a path name?

`/api/v1/...` is the core group, `/apis/GROUP/VERSION/...` are the others. A namespace is both an object and the place
of others, so `/namespaces/NAME/status` is a part of the namespace and `/namespaces/NAME/pods` is not.
"""

from __future__ import annotations

from typing import Final

import msgspec

from octarbiter.cluster.apiserver import options

_OF_NAMESPACES: Final = frozenset({"status", "finalize"})
_LASTING: Final = frozenset({"log", "exec", "attach"})


class Target(msgspec.Struct, frozen=True):
    group: str
    version: str
    plural: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    rest: tuple[str, ...] = ()
    """What follows a subresource."""
    watch: bool = False
    """Asked for by the path, as very old clients do."""


def parts_of(path: str) -> tuple[str, ...] | None:
    """None for a path with an empty part: it might name something else than its author thought."""
    parts = tuple(path.removeprefix("/").removesuffix("/").split("/"))
    return None if "" in parts and parts != ("",) else parts


def target(parts: tuple[str, ...]) -> Target | None:
    """None if the parts name no resource."""
    if parts[:1] == ("api",) and len(parts) >= 3:
        return _resource("", parts[1], parts[2:])
    if parts[:1] == ("apis",) and len(parts) >= 4:
        return _resource(parts[1], parts[2], parts[3:])
    return None


def lasts(target: Target, query: options.Query) -> bool:
    """May the answer go on for ever?"""
    return target.watch or target.subresource in _LASTING or options.is_true(query.get("watch"))


def _resource(group: str, version: str, rest: tuple[str, ...]) -> Target | None:
    watch = rest[0] == "watch" and len(rest) > 1
    if watch:
        rest = rest[1:]
    namespace = ""
    if rest[0] == "namespaces" and len(rest) >= 3 and not (rest[2] in _OF_NAMESPACES and not group):
        namespace, rest = rest[1], rest[2:]
    plural, name, subresource = (*rest[:3], "", "")[:3]
    return Target(group, version, plural, namespace, name, subresource, rest[3:], watch)
