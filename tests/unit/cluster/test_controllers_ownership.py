"""Who is deleted when owners go, and who must not be."""

from __future__ import annotations

import hypothesis.strategies as st
from hypothesis import given, settings

from octarbiter.api.meta import OwnerReference
from octarbiter.cluster.controllers import ownership
from octarbiter.cluster.controllers.ownership import Delete, Graph, LookAt, Owner, RemoveFinalizer, SetOwners, Vertex


def reference(uid: str, block: bool = False) -> OwnerReference:
    return OwnerReference(api_version="v1", kind="Thing", name=f"n-{uid}", uid=uid, block_owner_deletion=block)


def vertex(
    uid: str,
    *owners: OwnerReference,
    finalizers: tuple[str, ...] = (),
    deleting: bool = False,
    namespace: str = "ns",
) -> Vertex:
    return Vertex(uid, "", "things", "Thing", namespace, f"n-{uid}", "1", owners, finalizers, deleting)


def test_whose_owners_are_all_gone_is_deleted() -> None:
    it = vertex("x", reference("a"), reference("b"))

    assert ownership.decide(it, [Owner.ABSENT, Owner.ABSENT], []) == [Delete(it, "Background")]


def test_one_owner_that_lives_protects_and_the_absent_ones_are_struck_off() -> None:
    it = vertex("x", reference("a"), reference("b"))

    assert ownership.decide(it, [Owner.ABSENT, Owner.LIVES], []) == [SetOwners(it, (reference("b"),))]
    assert ownership.decide(it, [Owner.LIVES, Owner.LIVES], []) == []


def test_an_owner_nobody_can_say_anything_about_protects() -> None:
    assert ownership.decide(vertex("x", reference("a"), reference("b")), [Owner.ABSENT, Owner.UNKNOWN], []) == []


def test_a_finalizer_that_was_there_before_says_how_it_is_deleted() -> None:
    for finalizer, policy in ((ownership.ORPHAN, "Orphan"), (ownership.FOREGROUND, "Foreground")):
        it = vertex("x", reference("a"), finalizers=(finalizer,))
        assert ownership.decide(it, [Owner.ABSENT], []) == [Delete(it, policy)]


def test_an_owner_in_the_foreground_waits_for_those_who_block_it() -> None:
    owner = vertex("a", finalizers=(ownership.FOREGROUND,), deleting=True)
    blocking, other = vertex("x", reference("a", block=True)), vertex("y", reference("a"))

    assert ownership.decide(owner, [], [blocking, other]) == [LookAt("x")]
    assert ownership.decide(blocking, [Owner.WAITS], []) == [Delete(blocking, "Background")]
    assert ownership.decide(owner, [], [other]) == [RemoveFinalizer(owner, ownership.FOREGROUND)]


def test_whole_trees_go_in_the_foreground() -> None:
    middle = vertex("m", reference("a", block=True))

    assert ownership.decide(middle, [Owner.WAITS], [vertex("x", reference("m"))]) == [Delete(middle, "Foreground")]


def test_those_who_own_each_other_do_not_wait_for_each_other() -> None:
    it = vertex("x", reference("a", block=True))
    other = vertex("a", reference("x", block=True), finalizers=(ownership.FOREGROUND,), deleting=True)

    assert ownership.decide(it, [Owner.WAITS], [other]) == [SetOwners(it, (reference("a"),))]


def test_an_orphaning_owner_goes_when_all_it_owned_are_free() -> None:
    owner = vertex("a", finalizers=(ownership.ORPHAN,), deleting=True)
    child = vertex("x", reference("a"), reference("b"))

    assert ownership.decide(owner, [], [child]) == [SetOwners(child, (reference("b"),))]
    assert ownership.decide(owner, [], []) == [RemoveFinalizer(owner, ownership.ORPHAN)]


def test_what_is_on_its_way_out_is_left_alone() -> None:
    assert ownership.decide(vertex("x", reference("a"), deleting=True), [], []) == []


def test_an_owner_counts_only_as_it_is_named_and_in_reach() -> None:
    graph = Graph()
    graph.put(vertex("a", namespace="ns"))
    graph.put(vertex("c", namespace=""))
    near, far = vertex("x", reference("a")), vertex("y", reference("a"), namespace="elsewhere")
    misnamed = OwnerReference(api_version="v1", kind="Thing", name="other", uid="a")
    other_group = OwnerReference(api_version="example.com/v1", kind="Thing", name="n-a", uid="a")

    assert graph.state(reference("a"), near) is Owner.LIVES
    assert graph.state(reference("a"), far) is None
    assert graph.state(reference("c"), far) is Owner.LIVES
    assert graph.state(misnamed, near) is None
    assert graph.state(other_group, near) is None


def test_the_end_of_an_owner_has_all_it_owned_looked_at() -> None:
    graph = Graph()
    graph.put(vertex("a"))
    graph.put(vertex("x", reference("a")))

    assert graph.drop("a") == {"x"}


def test_owners_that_wait_are_looked_at_when_one_they_own_goes() -> None:
    graph = Graph()
    graph.put(vertex("a", finalizers=(ownership.FOREGROUND,), deleting=True))
    graph.put(vertex("x", reference("a", block=True)))

    assert graph.drop("x") == {"a"}


def test_news_that_change_nothing_about_ownership_have_nobody_looked_at() -> None:
    graph = Graph()
    graph.put(vertex("x", reference("a")))
    newer = Vertex("x", "", "things", "Thing", "ns", "n-x", "2", (reference("a"),))

    assert graph.put(newer) == set()


UIDS = "abcdef"
steps = st.lists(
    st.tuples(
        st.sampled_from(["create", "background", "foreground", "orphan", "look"]),
        st.sampled_from(UIDS),
        st.lists(st.sampled_from(UIDS), max_size=2, unique=True),
    ),
    max_size=30,
)


class World:
    """A server that obeys, and a collector that sees everything at once."""

    def __init__(self) -> None:
        self.graph = Graph()
        self.queue: set[str] = set()
        self.collected: list[tuple[Vertex, list[Vertex]]] = []

    def put(self, it: Vertex) -> None:
        if it.deleting and not it.finalizers:
            self.queue |= self.graph.drop(it.uid)
        else:
            self.queue |= self.graph.put(it)

    def delete(self, it: Vertex, policy: str) -> None:
        extra = {"Foreground": (ownership.FOREGROUND,), "Orphan": (ownership.ORPHAN,)}.get(policy, ())
        kept = tuple(f for f in it.finalizers if f not in (ownership.FOREGROUND, ownership.ORPHAN))
        self.put(Vertex(it.uid, "", "things", "Thing", "ns", it.name, "1", it.owners, kept + extra, deleting=True))

    def settle(self) -> None:
        for _ in range(500):
            if not self.queue:
                return
            uid = min(self.queue)
            self.queue.discard(uid)
            it = self.graph.get(uid)
            if it is None:
                continue
            states = [self.graph.state(o, it) or Owner.ABSENT for o in it.owners] if not it.deleting else []
            for action in ownership.decide(it, states, self.graph.dependents(uid)):
                match action:
                    case Delete(target, policy):
                        living = [o for o in (self.graph.get(r.uid) for r in target.owners) if o is not None]
                        self.collected.append((target, living))
                        self.delete(target, policy)
                    case SetOwners(target, owners):
                        changed = Vertex(
                            target.uid, "", "things", "Thing", "ns", target.name, "1", owners,
                            target.finalizers, target.deleting,
                        )  # fmt: skip
                        self.put(changed)
                        self.queue.add(uid)
                    case RemoveFinalizer(target, finalizer):
                        left = tuple(f for f in target.finalizers if f != finalizer)
                        self.put(
                            Vertex(target.uid, "", "things", "Thing", "ns", target.name, "1", target.owners, left, True)
                        )
                    case LookAt(other):
                        self.queue.add(other)
        raise AssertionError("the collector never comes to rest")


@settings(max_examples=300, deadline=None)
@given(steps)
def test_nothing_is_deleted_while_an_owner_lives_and_nothing_is_left_that_nobody_owns(
    what: list[tuple[str, str, list[str]]],
) -> None:
    world = World()
    for verb, uid, owners in what:
        known = world.graph.get(uid)
        if verb == "create" and known is None:
            # Owners must exist: a reference is made to what is there.
            present = [reference(o, block=True) for o in owners if o != uid and world.graph.get(o) is not None]
            world.put(vertex(uid, *present))
        elif verb in ("background", "foreground", "orphan") and known is not None and not known.deleting:
            world.delete(known, verb.capitalize())
        world.settle()

    for target, living in world.collected:
        assert all(owner.is_in_foreground for owner in living), target
    for uid in UIDS:
        left = world.graph.get(uid)
        if left is not None and left.owners:
            assert any(world.graph.get(owner.uid) is not None for owner in left.owners), left
        assert left is None or not left.deleting
