from __future__ import annotations

import pytest

from octarbiter.api.meta import Object, ObjectMeta
from octarbiter.runtime import cache

Told = list[tuple[str, str | None, str | None]]


def thing(revision: int, name: str = "a", uid: str = "u1", **labels: str) -> Object:
    metadata = ObjectMeta(namespace="lab", name=name, uid=uid, resource_version=str(revision), labels=labels)
    return Object(metadata=metadata)


def made(told: Told | None = None) -> cache.Cache[Object]:
    def revision(object_: Object | None) -> str | None:
        return object_ and object_.metadata.resource_version

    def tell(key: str, old: Object | None, new: Object | None) -> None:
        if told is not None:
            told.append((key, revision(old), revision(new)))

    return cache.Cache({"team": lambda found: found.metadata.labels.values()}, tell)


def test_our_own_write_is_seen_before_the_watch_tells_of_it_and_told_once() -> None:
    told: Told = []
    held = made(told)

    held.put(thing(5))
    held.changed(thing(5))

    assert held.get("lab/a") == thing(5)
    assert told == [("lab/a", None, "5")]


def test_an_older_watch_event_does_not_overwrite_our_own_write() -> None:
    held = made()
    held.put(thing(7))

    held.changed(thing(6))

    assert held.get("lab/a") == thing(7)


def test_revisions_are_compared_as_numbers() -> None:
    held = made()
    held.changed(thing(9))

    held.changed(thing(10))

    assert held.get("lab/a") == thing(10)


def test_a_late_answer_does_not_bring_back_what_was_deleted() -> None:
    held = made()
    held.changed(thing(5))
    held.deleted(thing(8).metadata)

    held.put(thing(7))

    assert len(held) == 0


def test_a_late_answer_does_not_bring_back_what_a_list_no_longer_holds() -> None:
    held = made()
    held.replace([], 20)

    held.put(thing(15))

    assert len(held) == 0


def test_the_deletion_of_a_predecessor_does_not_touch_the_successor() -> None:
    held = made()
    held.changed(thing(5, uid="u1"))
    held.put(thing(9, uid="u2"))

    held.deleted(thing(8, uid="u1").metadata)

    assert held.get("lab/a") == thing(9, uid="u2")


def test_creation_under_an_old_name_is_told_as_an_end_and_a_beginning() -> None:
    told: Told = []
    held = made(told)
    held.changed(thing(5, uid="u1"))

    held.replace([thing(9, uid="u2")], 10)

    assert told == [("lab/a", None, "5"), ("lab/a", "5", None), ("lab/a", None, "9")]


def test_what_the_server_said_is_gone_stays_gone_whatever_the_watch_still_has_to_tell() -> None:
    held = made()
    held.put(thing(5))

    held.remove("lab/a", "u1")
    held.changed(thing(5))
    held.put(thing(6))
    held.replace([thing(6)], 6)

    assert len(held) == 0
    held.deleted(thing(7).metadata)
    held.changed(thing(8, uid="u2"))
    assert held.get("lab/a") == thing(8, uid="u2")


def test_removing_the_predecessor_leaves_the_successor() -> None:
    held = made()
    held.changed(thing(8, uid="u2"))

    held.remove("lab/a", "u1")

    assert held.get("lab/a") is not None


def test_a_list_that_still_holds_what_is_gone_does_not_keep_its_predecessor() -> None:
    held = made()
    held.changed(thing(1, uid="u1"))
    held.remove("lab/a", "u2")

    held.replace([thing(3, uid="u2")], 3)

    assert len(held) == 0


def test_an_old_list_does_not_bring_back_what_had_a_successor() -> None:
    held = made()
    held.changed(thing(1, uid="u1"))
    held.put(thing(3, uid="u2"))
    held.remove("lab/a", "u2")

    held.replace([thing(1, uid="u1")], 1)

    assert len(held) == 0


def test_only_differences_of_a_list_are_told() -> None:
    told: Told = []
    held = made(told)
    held.replace([thing(1, "same"), thing(2, "changed"), thing(3, "gone")], 3)
    told.clear()

    held.replace([thing(1, "same"), thing(5, "changed"), thing(6, "new")], 9)

    assert told == [("lab/changed", "2", "5"), ("lab/new", None, "6"), ("lab/gone", "3", None)]


def test_a_list_does_not_remove_what_was_written_after_it() -> None:
    held = made()
    held.put(thing(12))

    held.replace([], 10)

    assert held.get("lab/a") == thing(12)


def test_an_item_of_a_list_that_cannot_be_read_is_not_taken_for_absent() -> None:
    held = made()
    held.changed(thing(5))

    held.replace([], 10, also_present={"lab/a"})

    assert held.get("lab/a") == thing(5)


def test_a_server_that_went_back_to_a_backup_is_believed() -> None:
    held = made()
    held.replace([thing(100, "kept", uid="u1"), thing(101, "lost", uid="u2")], 200)

    held.remove("lab/kept", "u1")

    held.replace([thing(50, "kept", uid="u1")], 60)
    held.changed(thing(61, "kept", uid="u1"))

    assert list(held) == [thing(61, "kept", uid="u1")]
    assert held.revision == 61


def test_an_index_follows_its_objects() -> None:
    held = made()

    held.changed(thing(1, "a", uid="1", team="red"))
    held.changed(thing(2, "b", uid="2", team="red", other="blue"))
    assert [found.metadata.name for found in held.by_index("team", "red")] == ["a", "b"]

    held.changed(thing(3, "b", uid="2", team="blue"))
    held.deleted(thing(4, "a", uid="1").metadata)
    assert held.by_index("team", "red") == []
    assert [found.metadata.name for found in held.by_index("team", "blue")] == ["b"]


def test_a_handler_that_fails_does_not_harm_the_cache(caplog: pytest.LogCaptureFixture) -> None:
    def fail(key: str, old: Object | None, new: Object | None) -> None:
        raise RuntimeError("broken handler")

    held = cache.Cache[Object](on_change=fail)
    held.changed(thing(5))

    assert held.get("lab/a") == thing(5)
    assert "broken handler" in caplog.text


def test_what_is_remembered_of_the_gone_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "LONGEST_MEMORY", 3)
    held = made()

    for number in range(10):
        held.remove("lab/a", f"u{number}")
    held.changed(thing(1, uid="u6"))
    assert held.get("lab/a") is not None
    held.changed(thing(2, name="b", uid="u7"))
    assert held.get("lab/b") is None
