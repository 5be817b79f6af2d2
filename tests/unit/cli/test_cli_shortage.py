from octarbiter.api.workpod import Container, Resources
from octarbiter.cli import shortage
from octarbiter.cluster.controllers.kinds import Node, NodeStatus, Pod, PodSpec

GPU = "nvidia.com/gpu"


def pod(amounts: dict[str, str | int | float], node: str = "") -> Pod:
    container = Container(name="main", resources=Resources(requests=amounts))
    return Pod(spec=PodSpec(node_name=node, containers=[container]))


def node(**amounts: str) -> Node:
    return Node(
        status=NodeStatus(allocatable={GPU if name == "gpu" else name: count for name, count in amounts.items()})
    )


def test_what_no_node_has_is_named_with_the_flag_that_would_pretend_it() -> None:
    (found,) = shortage.find([pod({GPU: "1"}) for _ in range(3)], [node(cpu="4")])
    assert found.sentence == (
        f"3 pods ask for 1 {GPU} each, but no node has any: --resource {GPU}=3 lets the cluster pretend to have it"
    )


def test_a_node_that_is_too_small_is_compared_with_what_is_asked() -> None:
    (found,) = shortage.find([pod({"cpu": "8"})], [node(cpu="2"), node(cpu="4")])
    assert (found.asked, found.most) == ("8", "4")
    assert "a pod asks for 8 cpu, but the largest node has 4" in found.sentence


def test_who_only_waits_for_others_to_end_is_not_short_of_anything() -> None:
    assert shortage.find([pod({GPU: "1"}), pod({GPU: "1"}), pod({GPU: "1"}, node="n")], [node(gpu="1")]) == []


def test_pods_that_have_a_node_do_not_count() -> None:
    assert shortage.find([pod({GPU: "9"}, node="n")], [node(gpu="1")]) == []
