"""In which order are the elements of a list that a strategic merge patch has merged?

What the patch names comes in the order of the patch; what only the server has keeps its order among itself, each put
before the first element of the patch that followed it on the server.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from octarbiter.cluster.apiserver.patching import errors, values

Identity = tuple[type, Any]


def arranged(merged: list[Any], patch_order: list[Any], server_order: list[Any], key: str) -> list[Any]:
    """`key` is empty for scalars."""
    if key:
        for item in [*merged, *patch_order, *server_order]:
            check_key(item, key)
    in_patch, on_server = _places(patch_order, key), _places(server_order, key)
    named = [item for item in merged if identity(item, key) in in_patch]
    others = [item for item in merged if identity(item, key) not in in_patch]
    named.sort(key=lambda item: in_patch[identity(item, key)])
    others.sort(key=lambda item: on_server.get(identity(item, key), -1))
    waiting = deque(others)
    result: list[Any] = []
    for item in named:
        place = on_server.get(identity(item, key), -1)
        while waiting and 0 <= on_server.get(identity(waiting[0], key), -1) < place:
            result.append(waiting.popleft())
        result.append(item)
    return [*result, *waiting]


def _places(order: list[Any], key: str) -> dict[Identity, int]:
    places: dict[Identity, int] = {}
    for index, item in enumerate(order):
        places.setdefault(identity(item, key), index)
    return places


def identity(item: Any, key: str) -> Identity:
    """What makes an element the same as another."""
    value = item.get(key) if key else item
    return (type(value), values.go_json(value)) if isinstance(value, (dict, list)) else (type(value), value)


def check_key(item: Any, key: str) -> None:
    if not isinstance(item, dict):
        raise wrong_type({}, item)
    if key not in item:
        raise errors.internal(f"map: {values.go_text(item)} does not contain declared merge key: {key}")


def hold_maps(*lists: list[Any]) -> bool:
    """Whether these are lists of objects; all elements must be of one type, and not lists."""
    items = [item for listed in lists for item in listed]
    kinds = {values.go_type(item) for item in items}
    if kinds and values.go_type(items[0]) == values.go_type([]):
        raise errors.unprocessable("lists of lists are not supported")
    if len(kinds) > 1 or None in items:
        raise errors.internal(f"list element types are not identical: {values.go_text(list(lists))}")
    return kinds == {values.go_type({})}


def check(patch: list[Any], order: list[Any], key: str) -> None:
    """The order a patch sets must name what the patch holds, in the order in which it holds it."""
    if not patch or not order:
        return
    wanted = [item for item in patch if not (isinstance(item, dict) and "$patch" in item)]
    at = 0
    for item in order:
        if at == len(wanted):
            return
        if key:
            check_key(wanted[at], key)
            check_key(item, key)
        at += identity(item, key) == identity(wanted[at], key)
    if at < len(wanted):
        raise errors.internal(
            f"The order in patch list:\n{values.go_text(patch)}\n doesn't match $setElementOrder list:\n"
            f"{values.go_text(order)}\n"
        )


def wrong_type(expected: Any, actual: Any) -> errors.BadPatch:
    return errors.internal(f"expected a {values.go_type(expected)}, but received a {values.go_type(actual)}")
