"""Queues share a cluster by DRF, quotas follow, and who uses more than deserved gives back: as documented."""

from arbitration_stage import Stage

from octarbiter.testing.kubernetes import fakepods

CPU_AND_MEMORY = ("requests.cpu", "limits.cpu", "requests.memory", "limits.memory")


def quota(cpu: int) -> dict[str, str]:
    """For units of 1 CPU and 1Gi."""
    return dict(zip(CPU_AND_MEMORY, (str(cpu), str(cpu), f"{cpu}Gi", f"{cpu}Gi"), strict=True))


def test_three_queues_come_to_share_a_node_as_their_weights_say(stage: Stage) -> None:
    stage.outside("1", "0")  # leaves 8 CPU and 32Gi
    one, two, three = stage.namespace(), stage.namespace(), stage.namespace()
    for namespace, name, weight, units in ((one, "queue01", 3, 6), (two, "queue02", 1, 2)):
        stage.queue(namespace, name, weight)
        stage.job(namespace, "first", name, units)
        stage.job(namespace, "second", name, units)

    stage.until(lambda: stage.quotas(one), {"queue01": quota(6)}, "queue01's quota")
    stage.until(lambda: stage.quotas(two), {"queue02": quota(2)}, "queue02's quota")
    for namespace, count in ((one, 6), (two, 2)):
        for number in range(count):
            stage.pod(namespace, f"pod-{number}")

    stage.queue(three, "queue03", 4)
    stage.job(three, "first", "queue03", 3)
    stage.job(three, "second", "queue03", 3)

    stage.until(lambda: stage.quotas(three), {"queue03": quota(4)}, "queue03's quota")
    assert stage.quotas(one) == {"queue01": quota(3)}
    assert stage.quotas(two) == {"queue02": quota(1)}
    assert (len(stage.pods(one)), len(stage.pods(two))) == (3, 1)
    for number in range(4):
        stage.pod(three, f"pod-{number}")
    stage.until(lambda: stage.amounts(three, "queue03", "used"), {"cpu": "4", "memory": "4Gi"}, "queue03's use")
    for namespace, name in ((one, "queue01"), (two, "queue02"), (three, "queue03")):
        status = stage.queue_status(namespace, name)
        assert status["deserved"] == status["allocated"] == status["used"]
        assert status["preempting"] == {}


def test_what_is_taken_back_reaches_the_claimant_step_by_step(stage: Stage) -> None:
    stage.outside("0", "5Gi")  # leaves 9 CPU and 27Gi
    everything = {"resources": {"cpu": "9", "memory": "27Gi"}}
    top, first, second, third = (stage.namespace() for _ in range(4))
    stage.queue(top, "all", policy="proportion")
    stage.queue(first, "q1", 2, parent=f"{top}/all", request=everything)
    stage.queue(second, "q2", 4, parent=f"{top}/all", request=everything)
    stage.until(lambda: stage.amounts(first, "q1", "allocated"), {"cpu": "3", "memory": "9Gi"}, "q1's part")
    stage.until(lambda: stage.quotas(second).get("q2", {}).get("requests.cpu"), "6", "q2's quota")
    stage.pod(first, "large", "2", "6Gi")
    stage.pod(second, "large-1", "2", "6Gi")
    stage.pod(second, "large-2", "2", "6Gi")
    for namespace in (first, second):
        stage.pod(namespace, "a-small", "1", "3Gi", annotations={fakepods.STUCK: "true"})
    stage.until(lambda: stage.amounts(second, "q2", "used"), {"cpu": "5", "memory": "15Gi"}, "q2's use")

    stage.queue(third, "q3", 3, parent=f"{top}/all", request=everything)

    stage.until(lambda: stage.amounts(third, "q3", "preempting"), {"cpu": "2", "memory": "6Gi"}, "what q3 waits for")
    assert stage.amounts(third, "q3", "deserved") == {"cpu": "3", "memory": "9Gi"}
    assert stage.amounts(third, "q3", "allocated") == {"cpu": "1", "memory": "3Gi"}
    stage.until(lambda: (stage.pods(first), stage.pods(second)), (["large"], ["large-1", "large-2"]), "who stays")
    assert stage.amounts(first, "q1", "deserved") == {"cpu": "2", "memory": "6Gi"}
    assert stage.amounts(second, "q2", "deserved") == {"cpu": "4", "memory": "12Gi"}
    waits = stage.condition(stage.queue_status(third, "q3"), "Reclaiming")
    assert waits["status"] == "True"
    assert "it deserves 3 CPU and 9Gi memory, has 1 CPU and 3Gi memory" in waits["message"]

    for namespace in (first, second):
        stage.let_go(namespace, "a-small")

    stage.until(lambda: stage.amounts(third, "q3", "allocated"), {"cpu": "3", "memory": "9Gi"}, "q3's part")
    assert stage.amounts(third, "q3", "preempting") == {}
    for namespace, name in ((first, "q1"), (second, "q2")):
        status = stage.queue_status(namespace, name)
        assert status["deserved"] == status["allocated"] == status["used"]
