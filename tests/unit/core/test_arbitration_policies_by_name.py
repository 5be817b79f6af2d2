"""Which policies there are, a user's own among them, and what they do through a tree of queues."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from importlib import metadata

import pytest
from msgspec.structs import replace

from octarbiter.api.errors import Refused
from octarbiter.core.arbitration import hdrf, leftovers, policies
from octarbiter.core.arbitration.claims import Block, Claim, Grant, Vector
from octarbiter.core.arbitration.deserved import deserve

Answer = Callable[[Vector, Sequence[Claim]], list[Grant]]


def claim(key: str, *rest: int, **others: object) -> Claim:
    return Claim(key=key, rest=rest, **{"floor": (0,) * len(rest), **others})  # type: ignore[arg-type]


def units(key: str, unit: Vector, count: int, **others: object) -> Claim:
    nothing = (0,) * len(unit)
    return Claim(
        key=key,
        path=(Block(unit, count),),
        **{"rest": nothing, "floor": nothing, **others},  # type: ignore[arg-type]
    )


def inner(key: str, *children: Claim, **others: object) -> Claim:
    nothing = (0,) * len(children[0].rest)
    return Claim(key=key, children=children, **{"rest": nothing, "floor": nothing, **others})  # type: ignore[arg-type]


class Own:
    answer: Answer

    def share(self, total: Vector, claims: Sequence[Claim]) -> list[Grant]:
        return Own.answer(total, claims)


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Answer], None]]:
    """A package with a policy of its own is installed."""
    entry = metadata.EntryPoint("own", f"{__name__}:Own", policies.GROUP)
    monkeypatch.setattr(metadata, "entry_points", lambda group: [entry] if group == policies.GROUP else [])
    monkeypatch.setattr(metadata.EntryPoint, "load", lambda self: Own)

    def forget() -> None:
        policies._foreign.cache_clear()
        policies._made.cache_clear()

    forget()
    yield lambda answer: setattr(Own, "answer", staticmethod(answer))
    monkeypatch.undo()
    forget()


# --- by name


def test_every_policy_of_the_contract_is_there() -> None:
    assert policies.names() == ("capacity", "drf", "fifo", "hdrf", "priority", "proportion")


def test_an_unknown_name_is_refused_with_those_there_are() -> None:
    with pytest.raises(Refused, match=r"no policy 'fair', only capacity, drf, fifo, hdrf, priority, proportion"):
        policies.by_name("fair")


def test_a_users_own_policy_is_found_and_followed(installed: Callable[[Answer], None]) -> None:
    installed(lambda total, claims: [Grant(total, ()), *(Grant((0,), ()) for _ in claims[1:])])

    assert "own" in policies.names()
    assert [Grant((8,), (2,)), Grant((0,), ())] == policies.share("own", (8,), [units("a", (4,), 3), claim("b", 5)])


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ([Grant((4,), ())], "answers with 1 grants for 2 claims"),
        ([Grant((9,), ()), Grant((5,), ())], "gives out 14 of resource 0, of which there is 10"),
        ([Grant((10,), ()), Grant((0,), ())], "gives more than it asks for, or than its cap, to a"),
        ([Grant((0,), ()), Grant((7,), ())], "gives more than it asks for, or than its cap, to b"),
        ([Grant((-1,), ()), Grant((0,), ())], "not 1 whole numbers, for a"),
        ([Grant((0.5,), ()), Grant((0,), ())], "not 1 whole numbers, for a"),  # type: ignore[arg-type]
        ([Grant((4, 4), ()), Grant((0,), ())], "not 1 whole numbers, for a"),
        ([Grant((9,), (4,)), Grant((0,), ())], "gives more units than are on the path of a"),
        ([Grant((9,), (1, 1)), Grant((0,), ())], "counts other units than are on the path of a"),
        ([Grant((5,), (2,)), Grant((0,), ())], "gives units that do not fit into what is held by a"),
    ],
)
def test_a_policy_that_breaks_its_promise_is_refused_with_a_sentence(
    installed: Callable[[Answer], None], answer: list[Grant], problem: str
) -> None:
    installed(lambda total, claims: answer)

    with pytest.raises(Refused) as refused:
        policies.share("own", (10,), [units("a", (3,), 3), claim("b", 9, cap=(6,))])
    assert problem in str(refused.value)


def test_something_without_share_is_no_policy(installed: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata.EntryPoint, "load", lambda self: object)

    with pytest.raises(Refused, match=r"has no method share"):
        policies.by_name("own")


def test_a_users_own_policy_shares_among_the_children_of_a_queue(installed: Callable[[Answer], None]) -> None:
    def youngest_takes_all(total: Vector, claims: Sequence[Claim]) -> list[Grant]:
        return [*(Grant((0,), ()) for _ in claims[1:]), Grant((min(total[0], claims[-1].rest[0]),), ())]

    installed(youngest_takes_all)
    grants = deserve((10,), [inner("a", claim("x", 9), claim("y", 9), policy="own"), claim("b", 9)], "drf")

    assert {key: grant.held for key, grant in grants.items()} == {"a": (5,), "x": (0,), "y": (5,), "b": (5,)}


# --- through a tree


def held(grants: dict[str, Grant]) -> dict[str, Vector]:
    return {key: grant.held for key, grant in grants.items()}


@pytest.mark.parametrize("policy", ["drf", "proportion", "capacity"])
def test_a_parents_part_is_shared_among_its_children(policy: str) -> None:
    family = inner("a", claim("x", 90, weight=3), claim("y", 90))

    assert held(deserve((80,), [family, claim("b", 90)], policy)) == {"a": (40,), "x": (30,), "y": (10,), "b": (40,)}


def test_hierarchical_fairness_divides_requests_to_within_a_piece() -> None:
    family = inner("a", claim("x", 90_000, weight=3), claim("y", 90_000))

    grants = held(deserve((80_000,), [family, claim("b", 90_000)], "hdrf"))

    piece = 90_000 // hdrf.PIECES + 1
    expected = {"a": 40_000, "x": 30_000, "y": 10_000, "b": 40_000}
    assert all(abs(grants[key][0] - amount) <= piece for key, amount in expected.items())
    assert grants["a"][0] + grants["b"][0] == 80_000


def test_a_queue_says_itself_how_its_part_is_shared() -> None:
    children = (claim("x", 90), claim("y", 30, priority=5))

    assert held(deserve((80,), [inner("a", *children, policy="priority"), claim("b", 90)], "drf")) == {
        "a": (40,),
        "x": (10,),
        "y": (30,),
        "b": (40,),
    }
    assert deserve((80,), [inner("a", *children), claim("b", 90)], "drf")["x"].held == (20,)


def test_children_share_as_the_queue_above_their_parent_says_if_that_says_nothing() -> None:
    nested = inner("a", inner("c", claim("x", 90), claim("y", 90, priority=5)), policy="priority")

    assert deserve((80,), [nested], "drf")["x"].held == (0,)


def test_a_policy_that_is_not_there_is_as_none_at_all() -> None:
    family = inner("a", claim("x", 90), claim("y", 90), policy="no-such")

    assert deserve((80,), [replace(family, policy="")], "drf") == deserve((80,), [family], "drf")


def test_an_inner_queue_gets_whole_units_for_its_children() -> None:
    """Half of the GPUs each would be of no use to anybody."""
    roots = [inner("a", units("x", (8,), 3)), inner("b", units("y", (8,), 3))]

    assert held(deserve((12,), roots, "drf")) == {"a": (8,), "x": (8,), "b": (0,), "y": (0,)}


def test_what_an_inner_queue_is_guaranteed_is_kept_for_its_children() -> None:
    family = inner("a", units("x", (1,), 9), units("y", (1,), 9), floor=(8,), weight=1)

    assert held(deserve((10,), [family, units("b", (1,), 90, weight=9)], "drf")) == {
        "a": (8,),
        "x": (4,),
        "y": (4,),
        "b": (2,),
    }


@pytest.mark.parametrize("policy", ["drf", "hdrf", "proportion", "priority", "fifo", "capacity"])
def test_children_together_never_have_more_than_the_cap_of_their_parent(policy: str) -> None:
    family = inner("a", units("x", (2,), 9), units("y", (2,), 9), cap=(6,))

    grants = deserve((100,), [family], policy)

    assert grants["a"].held == (6,)
    assert sum(grants[key].held[0] for key in "xy") <= 6


def test_units_under_a_parent_that_got_a_vector_are_fair_parts_of_that() -> None:
    """Of the 90 CPU and 180 GB that the parent deserves, whatever the cluster is."""
    family = inner("a", units("x", (1, 4), 1000), units("y", (3, 1), 1000), policy="drf", cap=(90, 180))
    grants = deserve((900, 180), [family], "proportion")

    assert [grants[key].units for key in "xy"] == [(30,), (20,)]


def test_a_unit_behind_one_that_others_leave_no_room_for_is_found_from_above() -> None:
    waiting = replace(units("x", (8,), 1), path=(Block((8,), 1), Block((5,), 1)))
    grants = deserve((10,), [inner("a", waiting, cap=(10,)), claim("b", 0, floor=(4,))], "drf")

    assert grants["x"] == Grant((5,), (0, 1))


def test_what_an_inner_queue_could_not_use_is_handed_out_in_whole_units() -> None:
    """From above, y's unit of 2 seems to come after x has all; b's second one does not fit then."""
    second = replace(units("y", (5,), 1), path=(Block((5,), 1), Block((2,), 1)))
    grants = deserve((6,), [inner("a", units("x", (1,), 3), second), units("b", (2,), 2)], "drf")

    assert held(grants) == {"a": (4,), "x": (2,), "y": (2,), "b": (2,)}


def test_what_is_handed_out_last_is_not_paid_for_twice() -> None:
    """x has 5 of the first resource as its floor and uses 2 of them."""
    family = inner("a", units("x", (1, 1), 9, floor=(5, 0)), policy="drf", floor=(5, 0))
    grants = {"a": Grant((5, 2), ()), "x": Grant((5, 2), (2,))}

    leftovers.hand_out((6, 3), [family], "drf", grants)

    assert grants == {"a": Grant((5, 3), ()), "x": Grant((5, 3), (3,))}
