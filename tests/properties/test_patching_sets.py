"""Sets of fields are sets, and their encoding loses nothing."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from patching_values import KIND, anything, paths, sets, sets_of_paths, well_formed

from octarbiter.cluster.apiserver.patching import field_sets, ownership
from octarbiter.cluster.apiserver.patching.field_sets import Fields, Path


def members(fields: Fields) -> set[Path]:
    return set(field_sets.paths(fields))


@given(sets_of_paths)
def test_a_set_holds_exactly_the_paths_it_was_made_of(wanted: set[Path]) -> None:
    assert members(field_sets.of_paths(wanted)) == wanted


@given(sets)
def test_what_is_encoded_and_decoded_is_the_same_set(fields: Fields) -> None:
    assert field_sets.decode(field_sets.encode(fields)) == fields


@given(sets, paths)
def test_a_set_has_its_members_and_nothing_else(fields: Fields, path: Path) -> None:
    assert field_sets.has(fields, path) == (path in members(fields))


@given(sets, sets)
def test_union_intersection_and_difference_are_those_of_sets(left: Fields, right: Fields) -> None:
    assert members(field_sets.union(left, right)) == members(left) | members(right)
    assert members(field_sets.intersection(left, right)) == members(left) & members(right)
    assert members(field_sets.difference(left, right)) == members(left) - members(right)


@given(sets, sets)
def test_without_leaves_nothing_below_what_is_taken_away(left: Fields, right: Fields) -> None:
    gone = members(right)
    expected = {path for path in members(left) if not any(path[:end] in gone for end in range(1, len(path) + 1))}

    assert members(field_sets.without(left, right)) == expected


@given(sets, sets)
def test_equal_sets_have_one_form(left: Fields, right: Fields) -> None:
    assert field_sets.union(left, right) == field_sets.union(right, left)
    assert field_sets.difference(left, left) == {}


spelled = st.builds(
    "{}{}".format, st.sampled_from(["f:", "k:", "v:", "i:", "x:", ""]), st.text(max_size=4) | anything.map(json.dumps)
)
raw_sets = st.recursive(
    st.just({}) | anything, lambda below: st.dictionaries(spelled | st.just("."), below, max_size=3), max_leaves=6
)


@given(raw_sets)
def test_whatever_is_decoded_is_a_set_or_refused(raw: Any) -> None:
    try:
        fields = field_sets.decode(raw)
    except field_sets.BadFields:
        return
    assert field_sets.decode(field_sets.encode(fields)) == fields
    assert all(map(field_sets.text, field_sets.paths(fields)))


@given(well_formed, well_formed)
def test_what_was_added_is_of_the_new_object_and_what_was_removed_of_the_old(before: Any, after: Any) -> None:
    change = ownership.compare(before, after, KIND)

    assert not members(change.added) & members(change.removed)
    assert members(change.modified).isdisjoint(members(change.added) | members(change.removed))
    assert ownership.compare(after, before, KIND) == ownership.Change(change.added, change.modified, change.removed)


@given(well_formed)
def test_an_object_does_not_differ_from_itself(obj: Any) -> None:
    assert ownership.compare(obj, obj, KIND).touches_nothing()
