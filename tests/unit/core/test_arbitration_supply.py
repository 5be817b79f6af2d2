"""How much is there to share?"""

from __future__ import annotations

from arbitration_builders import amounts

from octarbiter.core.arbitration.supply import Node, supply


def test_nodes_that_take_pods_offer_what_they_have() -> None:
    nodes = [
        Node(name="a", allocatable=amounts("6/15Gi"), takes_pods=True),
        Node(name="b", allocatable=amounts("3/12Gi"), takes_pods=True),
    ]

    assert supply(nodes).total == amounts("9/27Gi")


def test_what_pods_outside_every_queue_use_is_not_there() -> None:
    nodes = [
        Node(name="a", allocatable=amounts(6), takes_pods=True, used_by_others=amounts(2), used_by_queues=amounts(3))
    ]

    assert supply(nodes).total == amounts(4)


def test_a_cordon_takes_away_only_what_nobody_uses_there() -> None:
    before = Node(name="a", allocatable=amounts(6), takes_pods=True, used_by_queues=amounts(4))
    other = Node(name="b", allocatable=amounts(6), takes_pods=True, used_by_queues=amounts(6))
    after = Node(name="a", allocatable=amounts(6), takes_pods=False, used_by_queues=amounts(4))

    assert supply([before, other]).total == amounts(12)
    assert supply([after, other]).total == amounts(10)


def test_others_on_a_cordoned_node_take_nothing_from_the_queues() -> None:
    nodes = [
        Node(name="a", allocatable=amounts(6), takes_pods=False, used_by_queues=amounts(1), used_by_others=amounts(5))
    ]

    assert supply(nodes).total == amounts(1)


def test_less_than_nothing_is_nothing_and_is_told() -> None:
    nodes = [Node(name="a", allocatable=amounts("4/1Ti"), takes_pods=True, used_by_others=amounts("2/2Ti"))]

    found = supply(nodes)

    assert found.total == amounts("2/0")
    assert found.missing == {"memory": 1 << 40}
    assert found.sentence == (
        "pods outside every queue use 1Ti memory more than the nodes that take pods have: the queues share none of it"
    )
    assert not supply([]).sentence
