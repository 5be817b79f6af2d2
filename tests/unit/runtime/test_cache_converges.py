"""Whatever the order in which news arrive, the cache ends up with what the server has, and nothing dead returns.

The server of this model has a few names and one counter of revisions. Its watch is followed as far as the test pleases;
answers to our own writes wait on the way for as long as it pleases; lists are taken, and arrive later.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, multiple, precondition, rule

from octarbiter.api.meta import Object, ObjectMeta
from octarbiter.runtime import cache

NAMES = st.sampled_from(["a", "b", "c"])
COLOURS = st.sampled_from(["red", "blue"])


@dataclass
class Server:
    revision: int = 0
    objects: dict[str, Object] = field(default_factory=dict)
    history: list[tuple[int, str, Object]] = field(default_factory=list)
    created: int = 0

    def write(self, name: str, colour: str) -> Object:
        """Creates it, or modifies it."""
        self.revision += 1
        before = self.objects.get(name)
        if before is None:
            self.created += 1
        uid = before.metadata.uid if before else f"uid-{self.created}"
        metadata = ObjectMeta(name=name, uid=uid, resource_version=str(self.revision), labels={"colour": colour})
        self.objects[name] = written = Object(metadata=metadata)
        self.history.append((self.revision, "MODIFIED" if before else "ADDED", written))
        return written

    def delete(self, name: str) -> Object:
        self.revision += 1
        last = self.objects.pop(name).metadata
        metadata = ObjectMeta(name=name, uid=last.uid, resource_version=str(self.revision), labels=last.labels)
        deleted = Object(metadata=metadata)
        self.history.append((self.revision, "DELETED", deleted))
        return deleted


@dataclass(frozen=True)
class Listing:
    objects: tuple[Object, ...]
    revision: int


class CacheModel(RuleBasedStateMachine):
    answers = Bundle("answers")
    not_found = Bundle("not_found")

    def __init__(self) -> None:
        super().__init__()
        self.server = Server()
        self.mirror: dict[str, Object] = {}
        self.dead: set[str] = set()
        self.newest: dict[str, int] = {}
        self.written: dict[str, ObjectMeta] = {}
        self.cache = cache.Cache[Object]({"colour": lambda found: [found.metadata.labels["colour"]]}, self.heard)
        self.followed = 0
        self.list_under_way: Listing | None = None

    def heard(self, key: str, old: Object | None, new: Object | None) -> None:
        assert self.mirror.pop(key, None) == old, "a handler was told a wrong past"
        if new is not None:
            self.mirror[key] = new

    @rule(target=answers, name=NAMES, colour=COLOURS)
    def we_write(self, name: str, colour: str) -> Object:
        return self.server.write(name, colour)

    @rule(name=NAMES, colour=COLOURS)
    def somebody_writes(self, name: str, colour: str) -> None:
        self.server.write(name, colour)

    @rule(target=answers, name=NAMES)
    def we_delete(self, name: str) -> object:
        """The server answers with the object as it was, at the revision of its deletion."""
        return self.server.delete(name) if name in self.server.objects else multiple()

    @rule(target=not_found, name=NAMES)
    def somebody_deletes_what_we_are_about_to_write(self, name: str) -> object:
        return self.server.delete(name) if name in self.server.objects else multiple()

    @rule(answer=consumes(answers))
    def an_answer_arrives(self, answer: Object) -> None:
        self.cache.put(answer)
        before = self.written.get(answer.metadata.key)
        if before is None or int(before.resource_version) < int(answer.metadata.resource_version):
            self.written[answer.metadata.key] = answer.metadata

    @rule(answer=consumes(not_found))
    def not_found_arrives(self, answer: Object) -> None:
        self.cache.remove(answer.metadata.key, answer.metadata.uid)
        self.dead.add(answer.metadata.uid)

    @precondition(lambda self: self.list_under_way is None and self.followed < self.server.revision)
    @rule()
    def the_watch_tells(self) -> None:
        """The next event, if any is left to tell."""
        revision, kind, object_ = next(event for event in self.server.history if event[0] > self.followed)
        if kind == "DELETED":
            self.cache.deleted(object_.metadata)
            self.dead.add(object_.metadata.uid)
        else:
            self.cache.changed(object_)
        self.followed = revision

    @precondition(lambda self: self.list_under_way is None)
    @rule()
    def a_list_is_taken(self) -> None:
        self.list_under_way = Listing(tuple(self.server.objects.values()), self.server.revision)

    @precondition(lambda self: self.list_under_way is not None)
    @rule()
    def the_list_arrives(self) -> None:
        assert self.list_under_way is not None
        listing, self.list_under_way = self.list_under_way, None
        self.cache.replace(listing.objects, listing.revision)
        self.followed = listing.revision
        self.dead |= {
            event[2].metadata.uid
            for event in self.server.history
            if event[1] == "DELETED" and event[0] <= listing.revision
        }

    @invariant()
    def nothing_dead_is_held(self) -> None:
        assert not self.dead & {held.metadata.uid for held in self.cache}

    @invariant()
    def we_read_what_we_wrote(self) -> None:
        """At least until the watch tells more."""
        for key, written in self.written.items():
            if self.followed < int(written.resource_version) and written.uid not in self.dead:
                held = self.cache.get(key)
                assert held is not None
                assert int(held.metadata.resource_version) >= int(written.resource_version)

    @invariant()
    def it_knows_how_far_it_was_told(self) -> None:
        assert self.cache.revision == self.followed

    @invariant()
    def no_object_goes_back(self) -> None:
        for held in self.cache:
            uid, revision = held.metadata.uid, int(held.metadata.resource_version)
            assert revision >= self.newest.get(uid, 0)
            self.newest[uid] = revision

    @invariant()
    def handlers_know_what_the_cache_holds(self) -> None:
        assert self.mirror == {held.metadata.key: held for held in self.cache}

    @invariant()
    def the_index_agrees(self) -> None:
        for colour in ("red", "blue"):
            indexed = {found.metadata.key for found in self.cache.by_index("colour", colour)}
            assert indexed == {held.metadata.key for held in self.cache if held.metadata.labels["colour"] == colour}

    def teardown(self) -> None:
        """Left in peace, with everything told that was still on its way, it is the server's state."""
        if self.list_under_way is not None:
            self.the_list_arrives()
        while self.followed < self.server.revision:
            self.the_watch_tells()
        for _, _, written in self.server.history:
            self.cache.put(written)
        assert {held.metadata.key: held for held in self.cache} == self.server.objects


TestCacheConverges = CacheModel.TestCase
TestCacheConverges.settings = settings(max_examples=200, stateful_step_count=40, deadline=None)
