"""The examples of the papers, with real claims and real pods, the shares read back from the API."""

from arbitration_stage import Stage


def test_the_example_of_the_drf_paper(stage: Stage) -> None:
    stage.outside("0", "14Gi")  # leaves 9 CPU and 18Gi
    a, b = stage.namespace(), stage.namespace()
    stage.queue(a, "a")
    stage.queue(b, "b")
    stage.job(a, "tasks", "a", 10, {"cpu": "1", "memory": "4Gi"})
    stage.job(b, "tasks", "b", 10, {"cpu": "3", "memory": "1Gi"})

    stage.until(lambda: (stage.units(a, "tasks"), stage.units(b, "tasks")), (3, 2), "the units of a and b")
    stage.until(lambda: stage.quotas(a).get("a", {}).get("requests.cpu"), "3", "a's quota")
    stage.until(lambda: stage.quotas(b).get("b", {}).get("requests.cpu"), "6", "b's quota")
    stage.until(lambda: stage.queue_status(a, "a")["share"], "66.7% memory", "a's share")
    stage.until(lambda: stage.queue_status(b, "b")["share"], "66.7% cpu", "b's share")
    for number in range(3):
        stage.pod(a, f"task-{number}", "1", "4Gi")
    for number in range(2):
        stage.pod(b, f"task-{number}", "3", "1Gi")
    for namespace, name in ((a, "a"), (b, "b")):
        stage.until(
            lambda n=namespace, q=name: stage.amounts(n, q, "used"), stage.amounts(namespace, name, "deserved"), name
        )
    stage.refused(lambda: stage.pod(a, "one-more", "1", "4Gi"), "exceeded quota: a")


def test_the_example_of_the_hdrf_paper(stage: Stage) -> None:
    """With 8 of each resource in the place of 10: nobody starves, and each has half of what it can use."""
    stage.outside("1", "24Gi")  # leaves 8 CPU and 8Gi
    top, sci, eng, dev, prod = (stage.namespace() for _ in range(5))
    stage.queue(top, "root", policy="hdrf")
    stage.queue(sci, "sci", 50, parent=f"{top}/root")
    stage.queue(eng, "eng", 50, parent=f"{top}/root")
    stage.queue(dev, "dev", 50, parent=f"{eng}/eng")
    stage.queue(prod, "prod", 50, parent=f"{eng}/eng")
    stage.job(sci, "tasks", "sci", 20, {"cpu": "1", "memory": "1Gi"})
    stage.job(dev, "tasks", "dev", 20, {"cpu": "1"})
    stage.job(prod, "tasks", "prod", 20, {"memory": "1Gi"})

    stage.until(lambda: [stage.units(each, "tasks") for each in (sci, dev, prod)], [4, 4, 4], "the units of all")
    stage.until(lambda: stage.amounts(eng, "eng", "allocated"), {"cpu": "4", "memory": "4Gi"}, "what eng has")
    assert stage.quotas(eng) == {}, "an inner queue has no quota"
