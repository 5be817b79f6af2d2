"""Values, types and sets of fields for the properties of patches."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from octarbiter.cluster.apiserver.patching import field_sets, shapes
from octarbiter.cluster.apiserver.types import ANYTHING, ListType, Shape, Type

STRING = Type(shape=Shape.STRING)
INTEGER = Type(shape=Shape.INTEGER)

PART = Type(
    shape=Shape.OBJECT,
    name="Part",
    properties={
        "name": STRING,
        "port": INTEGER,
        "protocol": Type(shape=Shape.STRING, default="TCP"),
        "words": Type(shape=Shape.LIST, element=STRING),
        "labels": Type(shape=Shape.MAP, element=STRING),
    },
)
SPEC = Type(
    shape=Shape.OBJECT,
    name="Spec",
    properties={
        "size": INTEGER,
        "labels": Type(shape=Shape.MAP, element=STRING),
        "tags": Type(shape=Shape.LIST, list_type=ListType.SET, element=STRING, patch_strategies=frozenset({"merge"})),
        "words": Type(shape=Shape.LIST, element=STRING),
        "parts": Type(
            shape=Shape.LIST,
            list_type=ListType.MAP,
            list_keys=("name", "protocol"),
            element=PART,
            merge_key="name",
            patch_strategies=frozenset({"merge"}),
        ),
        "frozen": Type(shape=Shape.MAP, element=STRING, atomic=True),
        "nested": Type(shape=Shape.MAP, element=Type(shape=Shape.MAP, element=STRING)),
        "blob": ANYTHING,
    },
)
KIND = shapes.whole_object(Type(shape=Shape.OBJECT, name="Kind", properties={"spec": SPEC}))

names = st.sampled_from(["a", "b", "c", "d"])
texts = st.sampled_from(["", "x", "y", "<&>"])
scalars = st.none() | st.booleans() | st.integers(-2, 2) | st.floats(allow_nan=False, allow_infinity=False) | texts
directives = st.sampled_from(
    [
        "$patch",
        "$retainKeys",
        "$setElementOrder/parts",
        "$setElementOrder/tags",
        "$setElementOrder",
        "$deleteFromPrimitiveList/tags",
        "$deleteFromPrimitiveList/x",
    ]
)
fields = st.sampled_from([*SPEC.properties, *PART.properties, "spec", "metadata", "managedFields"]) | names | directives
anything = st.recursive(
    scalars | st.sampled_from(["delete", "replace", "merge"]),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(fields, below, max_size=4),
    max_leaves=12,
)
objects = st.dictionaries(fields, anything, max_size=4)

parts = st.fixed_dictionaries(
    {"name": names},
    optional={
        "port": st.integers(0, 3),
        "protocol": st.sampled_from(["TCP", "UDP"]),
        "words": st.lists(texts, max_size=2),
        "labels": st.dictionaries(names, texts, max_size=2),
    },
)


def distinct_parts(*keys: str) -> st.SearchStrategy[list[Any]]:
    def identity(part: dict[str, Any]) -> tuple[Any, ...]:
        return tuple(part.get(key, "TCP" if key == "protocol" else None) for key in keys)

    return st.lists(parts, max_size=3, unique_by=identity)


def specs(*keys: str) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {},
        optional={
            "size": st.integers(0, 3),
            "labels": st.dictionaries(names, texts, max_size=3),
            "tags": st.lists(names, max_size=3, unique=True),
            "words": st.lists(texts, max_size=2),
            "parts": distinct_parts(*keys),
            "frozen": st.dictionaries(names, texts, max_size=2),
            "nested": st.dictionaries(names, st.dictionaries(names, texts, max_size=2), max_size=2),
            "blob": st.dictionaries(names, st.integers(0, 2) | st.dictionaries(names, texts, max_size=2), max_size=2),
        },
    )


def kinds(*keys: str) -> st.SearchStrategy[dict[str, Any]]:
    """Objects that fit KIND; parts differ in `keys`."""
    return st.fixed_dictionaries(
        {
            "apiVersion": st.just("v1"),
            "kind": st.just("Kind"),
            "metadata": st.fixed_dictionaries(
                {"name": st.just("probe")},
                optional={
                    "labels": st.dictionaries(names, texts, max_size=2),
                    "finalizers": st.lists(names, max_size=2, unique=True),
                },
            ),
        },
        optional={"spec": specs(*keys)},
    )


well_formed = kinds("name", "protocol")

elements = (
    st.builds(field_sets.field, names | texts)
    | st.builds(field_sets.scalar, scalars)
    | st.builds(field_sets.key, st.dictionaries(names, scalars, min_size=1, max_size=2))
    | st.integers(0, 3).map(lambda index: f"i:{index}")
)
paths = st.lists(elements, min_size=1, max_size=3).map(tuple)
sets_of_paths = st.sets(paths, max_size=6)
sets = sets_of_paths.map(field_sets.of_paths)
