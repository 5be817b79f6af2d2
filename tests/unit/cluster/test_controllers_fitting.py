"""Which pods fit where, in whose words, and in which order."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from octarbiter.api import codec
from octarbiter.cluster.controllers import fitting
from octarbiter.cluster.controllers.kinds import Node, Pod
from octarbiter.cluster.controllers.waiting_line import Line

Json = dict[str, Any]


def pod(requests: Json | None = None, **spec: Any) -> Pod:
    container = {"name": "main", "resources": {"requests": requests or {}}}
    return codec.from_json({"metadata": {"uid": "u"}, "spec": {"containers": [container], **spec}}, Pod)


def node(name: str = "one", taints: list[Json] | None = None, labels: Json | None = None, **allocatable: str) -> Node:
    given = {"cpu": "4", "memory": "8Gi", "pods": "10", **{key.replace("_", "/"): v for key, v in allocatable.items()}}
    body = {
        "metadata": {"name": name, "labels": labels or {}},
        "spec": {"taints": taints or []},
        "status": {"allocatable": given},
    }
    return codec.from_json(body, Node)


def rooms(*nodes: Node) -> fitting.Rooms:
    made = fitting.Rooms()
    for each in nodes:
        made.set_node(each)
    return made


def refusal(wanting: Pod, *nodes: Node) -> str:
    answer = rooms(*nodes).best_for(fitting.wish_of(wanting))
    return answer.message if isinstance(answer, fitting.Refusal) else ""


def test_every_reason_is_told_with_the_number_of_nodes_that_have_it() -> None:
    tainted = {"key": "dedicated", "value": "gpu", "effect": "NoSchedule"}
    nodes = [node("a"), node("b", [tainted]), node("c", [tainted], nvidia_gpu="8")]

    assert refusal(pod({"nvidia/gpu": "1"}), *nodes) == (
        "0/3 nodes are available: 1 Insufficient nvidia/gpu, 2 node(s) had untolerated taint {dedicated: gpu}."
    )


def test_all_resources_that_lack_are_told() -> None:
    assert refusal(pod({"cpu": "5", "memory": "9Gi"}), node(pods="0")) == (
        "0/1 nodes are available: 1 Insufficient cpu, 1 Insufficient memory, 1 Too many pods."
    )


def test_without_nodes_there_is_one_thing_to_say() -> None:
    assert refusal(pod()) == "no nodes available to schedule pods"


@pytest.mark.parametrize(
    ("spec", "fits"),
    [
        ({"nodeSelector": {"disk": "ssd"}}, True),
        ({"nodeSelector": {"disk": "hdd"}}, False),
        ({"tolerations": []}, True),
    ],
)
def test_a_node_selector_chooses_by_labels(spec: Json, fits: bool) -> None:
    assert (refusal(pod(**spec), node(labels={"disk": "ssd"})) == "") == fits


@pytest.mark.parametrize(
    ("term", "fits"),
    [
        ({"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd", "hdd"]}]}, True),
        ({"matchExpressions": [{"key": "disk", "operator": "NotIn", "values": ["ssd"]}]}, False),
        ({"matchExpressions": [{"key": "other", "operator": "NotIn", "values": ["ssd"]}]}, True),
        ({"matchExpressions": [{"key": "disk", "operator": "Exists"}]}, True),
        ({"matchExpressions": [{"key": "disk", "operator": "DoesNotExist"}]}, False),
        ({"matchExpressions": [{"key": "cores", "operator": "Gt", "values": ["31"]}]}, True),
        ({"matchExpressions": [{"key": "cores", "operator": "Gt", "values": ["32"]}]}, False),
        ({"matchExpressions": [{"key": "cores", "operator": "Lt", "values": ["33"]}]}, True),
        ({"matchExpressions": [{"key": "disk", "operator": "Lt", "values": ["33"]}]}, False),
        ({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["one"]}]}, True),
        ({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["two"]}]}, False),
        ({}, False),
    ],
)
def test_required_node_affinity_is_required(term: Json, fits: bool) -> None:
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}
    labelled = node(labels={"disk": "ssd", "cores": "32"})

    assert (refusal(pod(affinity=affinity), labelled) == "") == fits


@pytest.mark.parametrize(
    ("toleration", "fits"),
    [
        ({"key": "k", "operator": "Equal", "value": "v", "effect": "NoSchedule"}, True),
        ({"key": "k", "value": "v"}, True),
        ({"key": "k", "operator": "Equal", "value": "w"}, False),
        ({"key": "k", "operator": "Exists"}, True),
        ({"operator": "Exists"}, True),
        ({"key": "other", "operator": "Exists"}, False),
        ({"key": "k", "operator": "Exists", "effect": "NoExecute"}, False),
    ],
)
def test_a_taint_keeps_away_whoever_does_not_tolerate_it(toleration: Json, fits: bool) -> None:
    tainted = node(taints=[{"key": "k", "value": "v", "effect": "NoSchedule"}])

    assert (refusal(pod(tolerations=[toleration]), tainted) == "") == fits


def test_a_taint_that_only_asks_keeps_nobody_away() -> None:
    assert refusal(pod(), node(taints=[{"key": "k", "effect": "PreferNoSchedule"}])) == ""


def test_a_cordoned_node_takes_only_those_who_tolerate_it() -> None:
    cordoned = codec.from_json({**codec.to_json(node()), "spec": {"unschedulable": True}}, Node)
    toleration = {"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}

    assert refusal(pod(), cordoned) == "0/1 nodes are available: 1 node(s) were unschedulable."
    assert refusal(pod(tolerations=[toleration]), cordoned) == ""


@pytest.mark.parametrize(
    ("first", "second", "fits"),
    [
        ({"hostPort": 80}, {"hostPort": 80}, False),
        ({"hostPort": 80}, {"hostPort": 81}, True),
        ({"hostPort": 80}, {"hostPort": 80, "protocol": "UDP"}, True),
        ({"hostPort": 80, "hostIP": "10.0.0.1"}, {"hostPort": 80, "hostIP": "10.0.0.2"}, True),
        ({"hostPort": 80, "hostIP": "10.0.0.1"}, {"hostPort": 80, "hostIP": "0.0.0.0"}, False),
    ],
)
def test_a_port_of_a_node_is_given_once(first: Json, second: Json, fits: bool) -> None:
    def listening(port: Json) -> fitting.Wish:
        return fitting.wish_of(pod(containers=[{"name": "main", "ports": [port]}]))

    one = rooms(node())
    one.claim("first", "one", listening(first))

    assert (one.best_for(listening(second)) == "one") == fits
    one.release("first")
    assert one.best_for(listening(second)) == "one"


def test_the_emptiest_node_is_the_best() -> None:
    two = rooms(node("a"), node("b"))
    two.claim("x", "a", fitting.wish_of(pod({"cpu": "1"})))

    assert two.best_for(fitting.wish_of(pod({"cpu": "1"}))) == "b"


def test_pods_on_a_node_that_is_not_known_yet_count_when_it_is() -> None:
    one = fitting.Rooms()
    one.claim("early", "one", fitting.wish_of(pod({"cpu": "3"})))
    one.set_node(node())

    assert isinstance(one.best_for(fitting.wish_of(pod({"cpu": "2"}))), fitting.Refusal)
    one.drop_node("one")
    one.release("early")
    assert one.room("one") is None


amounts = st.fixed_dictionaries({}, optional={"cpu": st.sampled_from(["100m", "1", "2500m"]), "x": st.just("1")})


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["add", "drop", "move"]), st.integers(0, 5), amounts), max_size=40))
def test_no_node_is_ever_promised_more_than_it_has(steps: list[tuple[str, int, Json]]) -> None:
    nodes = [node("a", pods="3"), node("b", x="2")]
    all_rooms = rooms(*nodes)
    held: dict[str, tuple[str, fitting.Wish]] = {}
    for what, number, asked in steps:
        uid = str(number)
        if what == "drop":
            all_rooms.release(uid)
            held.pop(uid, None)
            continue
        if what == "add" and uid in held:
            continue
        if what == "move":
            all_rooms.release(uid)
            held.pop(uid, None)
        wish = fitting.wish_of(pod(asked))
        chosen = all_rooms.best_for(wish)
        if isinstance(chosen, str):
            all_rooms.claim(uid, chosen, wish)
            held[uid] = (chosen, wish)

    for each in nodes:
        name = each.metadata.name
        room = all_rooms.room(name)
        assert room is not None
        sums: dict[str, int] = {}
        for where, wish in held.values():
            if where == name:
                for resource, count in wish.amounts.items():
                    sums[resource] = sums.get(resource, 0) + count
        assert {key: count for key, count in room.used.items() if count} == sums
        assert all(count <= room.allocatable.get(key, 0) for key, count in sums.items())


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["claim", "release", "node", "drop", "ask"]),
            st.sampled_from(["a", "b", "c"]),
            st.sampled_from(["500m", "1", "3"]),
        ),
        max_size=40,
    )
)
def test_what_is_remembered_of_nodes_never_changes_the_answer(steps: list[tuple[str, str, str]]) -> None:
    remembering = rooms(node("a"), node("b"))
    nodes = {"a": node("a"), "b": node("b")}
    claims: dict[str, tuple[str, fitting.Wish]] = {}
    for what, name, cpu in steps:
        wanted = fitting.wish_of(pod({"cpu": cpu}))
        match what:
            case "claim":
                remembering.claim(f"{name}{cpu}", name, wanted)
                claims[f"{name}{cpu}"] = (name, wanted)
            case "release":
                remembering.release(f"{name}{cpu}")
                claims.pop(f"{name}{cpu}", None)
            case "node":
                nodes[name] = node(name, cpu=cpu)
                remembering.set_node(nodes[name])
            case "drop":
                nodes.pop(name, None)
                remembering.drop_node(name)
            case _:
                fresh = rooms(*nodes.values())
                for uid, (where, wish) in claims.items():
                    fresh.claim(uid, where, wish)
                assert remembering.best_for(wanted) == fresh.best_for(wanted)


# --- whose turn it is


def wish(cpu: str) -> fitting.Wish:
    return fitting.wish_of(pod({"cpu": cpu}))


def order(line: Line) -> list[str]:
    found = []
    while (head := line.next()) is not None:
        found.append(head[0])
        line.remove(head[0])
    return found


def test_priority_comes_before_arrival() -> None:
    line = Line()
    for key, priority in (("first", 0), ("second", 0), ("urgent", 10), ("lazy", -1)):
        line.add(key, wish(f"{len(key)}"), priority)

    assert order(line) == ["urgent", "first", "second", "lazy"]


def test_who_is_refused_stands_aside_with_all_who_wish_the_same() -> None:
    line = Line()
    for key, cpu in (("a", "9"), ("b", "9"), ("c", "1")):
        line.add(key, wish(cpu), 0)

    assert line.block(wish("9"), "too much") == ["a", "b"]
    assert line.refusal("a") == "too much"
    line.add("late", wish("9"), 100)
    assert line.refusal("late") == "too much"
    assert sorted(line.block(wish("9"), "too much")) == ["a", "b", "late"]
    assert line.next() == ("c", wish("1"))
    line.unblock()
    assert order(line) == ["late", "a", "b", "c"]


def test_nobody_is_told_the_same_twice() -> None:
    line = Line()
    line.add("a", wish("9"), 0)

    assert line.block(wish("9"), "too much") == ["a"]
    line.unblock()
    assert line.block(wish("9"), "too much") == []
    line.unblock()
    assert line.block(wish("9"), "far too much") == ["a"]
    line.add("b", wish("9"), 0)
    assert line.block(wish("9"), "far too much") == ["a", "b"]


def test_who_changes_priority_keeps_the_place_among_equals() -> None:
    line = Line()
    for key in ("a", "b", "c"):
        line.add(key, wish("1"), 0)
    line.add("a", wish("2"), 5)
    line.add("a", wish("2"), 0)

    assert order(line) == ["a", "b", "c"]


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from("abcdefgh"), st.sampled_from(["add", "remove", "block", "unblock"]), st.integers(0, 2)
        ),
        max_size=60,
    )
)
def test_nobody_in_line_is_forgotten(steps: list[tuple[str, str, int]]) -> None:
    line = Line()
    inside: set[str] = set()
    for key, what, number in steps:
        match what:
            case "add":
                line.add(key, wish(str(number)), number)
                inside.add(key)
            case "remove":
                line.remove(key)
                inside.discard(key)
            case "block":
                line.block(wish(str(number)), "no")
            case _:
                line.unblock()
    line.unblock()

    assert len(line) == len(inside)
    in_order = order(line)
    assert set(in_order) == inside
    priorities = {key: number for key, what, number in steps if what == "add"}
    assert [priorities[key] for key in in_order] == sorted((priorities[key] for key in inside), reverse=True)
