"""What is a document after a strategic merge patch?

Objects merge field by field and null removes, as in a merge patch. Lists are replaced unless their type says `merge`:
then scalars are joined, and objects are matched by their merge key. A patch may say more with directives:

    $patch: replace|delete        take this object as it is; empty it; in a list: replace the list, drop one element
    $deleteFromPrimitiveList/x    scalars to take out of the list x
    $setElementOrder/x            the order of the list x
    $retainKeys                   the only fields that may stay

The type of a document is that of a built-in kind: for others kube-apiserver refuses such patches (415).
"""

from __future__ import annotations

from typing import Any

from octarbiter.api.meta import Json
from octarbiter.cluster.apiserver.patching import element_order, errors, merge_patch, values
from octarbiter.cluster.apiserver.types import Shape, Type

PATCH = "$patch"
_DELETE_FROM = "$deleteFromPrimitiveList"
_SET_ORDER = "$setElementOrder"
_RETAIN_KEYS = "$retainKeys"


def apply(doc: Json, patch: Any, type: Type) -> Json:
    if not isinstance(patch, dict):
        kind = merge_patch.json_kind(patch)
        raise errors.bad_request(f"json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}")
    # Merging eats up both; these are our own.
    return _merge_maps(values.copied(doc), values.copied(patch), type)


def _merge_maps(original: Json, patch: Json, type: Type) -> Json:
    if PATCH in patch:
        return _directed(patch)
    _retain_keys(original, patch)
    _merge_ordered_lists(original, patch, type)
    for key, value in patch.items():
        name, deleting = key, False
        if key.startswith(_DELETE_FROM):
            name, deleting = _named_list(key, _DELETE_FROM, "invalid patch format of primitive list"), True
        if value is None:
            original.pop(name, None)
        elif name in original and isinstance(original[name], dict) and isinstance(value, dict):
            child = _type_below(type, name)
            replaces = "replace" in child.patch_strategies
            original[name] = value if replaces else _merge_maps(original[name], value, child)
        elif name in original and isinstance(original[name], list) and isinstance(value, list):
            original[name] = _merge_lists(original[name], value, _list_below(type, name), deleting)
        elif not deleting:
            _set(original, name, value)
    return original


def _directed(patch: Json) -> Json:
    directive = patch[PATCH]
    if directive == "replace":
        return {key: value for key, value in patch.items() if key != PATCH}
    if directive == "delete":
        return {}
    raise _unknown_directive(directive, patch)


def _unknown_directive(directive: Any, patch: Json) -> errors.BadPatch:
    told = directive if isinstance(directive, str) else f"%!s({values.go_type(directive)}={values.go_text(directive)})"
    return errors.internal(f"unknown patch type: {told} in map: {values.go_text(patch)}")


def _set(original: Json, name: str, value: Any) -> None:
    """Something new: without nulls and directives."""
    if _is_directive(value):
        original.pop(name, None)
    else:
        original[name] = _plain(value)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items() if item is not None and not _is_directive(item)}
    if isinstance(value, list):
        return [_plain(item) for item in value if not _is_directive(item)]
    return value


def _is_directive(value: Any) -> bool:
    return isinstance(value, dict) and value.get(PATCH) is not None


def _retain_keys(original: Json, patch: Json) -> None:
    if _RETAIN_KEYS not in patch:
        return
    retained = patch.pop(_RETAIN_KEYS)
    if not isinstance(retained, list):
        raise errors.bad_request("invalid patch format of retainKeys")
    names = {name for name in retained if isinstance(name, str)}
    for key, value in patch.items():
        if value is not None and key not in names and not key.startswith((_DELETE_FROM, _SET_ORDER)):
            raise errors.bad_request("invalid patch format of retainKeys")
    for key in original.keys() - names:
        del original[key]


def _merge_ordered_lists(original: Json, patch: Json, type: Type) -> None:
    """Lists whose order the patch sets; what is done here is taken out of the patch."""
    for key in [key for key in patch if key.startswith(_SET_ORDER)]:
        order = patch.pop(key)
        if not isinstance(order, list):
            raise element_order.wrong_type([], order)
        name = _named_list(key, _SET_ORDER, "invalid patch format of setElementOrder list")
        for holder in (original, patch):
            if not isinstance(holder.get(name, []), list):
                raise element_order.wrong_type([], holder[name])
        child = _list_below(type, name)
        ours: list[Any] = original.get(name, [])
        theirs: list[Any] = patch.get(name, [])
        before = list(ours)
        element_order.check(theirs, order, child.merge_key)
        if name in original and name in patch:
            merged = _merge_lists(ours, theirs, child, deleting=False)
        elif name in original:
            merged = ours
        elif name in patch:
            merged = _plain(theirs)
        else:
            continue
        if not before and not theirs:
            raise errors.internal("no elements in any of the given slices")
        element_order.hold_maps(before, theirs)
        original[name] = element_order.arranged(merged, order, before, child.merge_key)
        patch.pop(name, None)


def _named_list(key: str, prefix: str, problem: str) -> str:
    directive, slash, name = key.partition("/")
    if directive != prefix or not slash:
        raise errors.bad_request(problem)
    return name


def _merge_lists(original: list[Any], patch: list[Any], type: Type, deleting: bool) -> list[Any]:
    if not deleting and "merge" not in type.patch_strategies:
        return patch
    if not original and not patch:
        return original
    if element_order.hold_maps(original, patch):
        if not type.merge_key:
            kind = "struct" if type.element is not None and type.element.shape is Shape.OBJECT else "map"
            raise errors.internal(f"cannot merge lists without merge key for {kind}")
        return _merge_lists_of_maps(original, patch, type)
    if deleting:
        doomed = {element_order.identity(item, "") for item in patch}
        return [item for item in original if element_order.identity(item, "") not in doomed]
    merged = {element_order.identity(item, ""): item for item in [*original, *patch]}
    return element_order.arranged(list(merged.values()), patch, original, "")


def _merge_lists_of_maps(original: list[Any], patch: list[Any], type: Type) -> list[Any]:
    key = type.merge_key
    plain = [item for item in patch if PATCH not in item]
    doomed: set[element_order.Identity] = set()
    replacing = False
    for item in patch:
        if PATCH not in item:
            continue
        match item[PATCH]:
            case "delete":
                element_order.check_key(item, key)
                doomed.add(element_order.identity(item, key))
            case "replace":
                replacing = True
            case "merge":
                raise errors.internal("merging lists cannot yet be specified in the patch")
            case unknown:
                raise _unknown_directive(unknown, item)
    if replacing:
        return element_order.arranged(plain, [], plain, key)
    merged = [item for item in original if element_order.identity(item, key) not in doomed]
    server_order = list(merged)
    places: dict[element_order.Identity, int] = {}
    for index, item in enumerate(merged):
        places.setdefault(element_order.identity(item, key), index)
    for item in plain:
        element_order.check_key(item, key)
        index = places.setdefault(element_order.identity(item, key), len(merged))
        if index == len(merged):
            merged.append(item)
        else:
            # A copy: merging eats up the patch, of which the order is still needed.
            merged[index] = _merge_maps(merged[index], dict(item), type.element or type)
    return element_order.arranged(merged, plain, server_order, key)


def _type_below(type: Type, name: str) -> Type:
    if type.shape is Shape.MAP:
        raise errors.internal("merging an object in json but data type is not struct, instead is: map")
    found = type.properties.get(name)
    if found is None:
        struct = type.name.rpartition(".")[2]
        raise errors.internal(f'unable to find api field in struct {struct} for the json field "{name}"')
    return found


def _list_below(type: Type, name: str) -> Type:
    found = _type_below(type, name)
    if found.shape is not Shape.LIST:
        raise errors.internal("expected slice or array type, but got: struct")
    return found
