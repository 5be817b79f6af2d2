"""The four rules of quotas, and what happens to pods: on pods that the cluster's own scheduler places."""

from arbitration_stage import GROUP, Stage
from eventual import eventually

MODE = "arbitrator.incubator.k8s.io/mode"
ORIGINAL = "arbitrator.incubator.k8s.io/original-hard"
CLAIM = {"cpu": "2", "memory": "2Gi"}


def test_a_users_quota_keeps_its_other_keys_and_gets_its_values_back(stage: Stage) -> None:
    namespace = stage.namespace()
    stage.user_quota(namespace, "mine", {"requests.cpu": "5", "pods": "10"})
    stage.queue(namespace, "team", request={"resources": CLAIM})

    expected = {"requests.cpu": "2", "limits.cpu": "2", "requests.memory": "2Gi", "limits.memory": "2Gi", "pods": "10"}
    stage.until(lambda: stage.quotas(namespace), {"mine": expected}, "the user's quota")
    stage.plane.request("DELETE", f"{GROUP}/namespaces/{namespace}/queues/team")

    stage.until(lambda: stage.quotas(namespace), {"mine": {"requests.cpu": "5", "pods": "10"}}, "the values of before")
    left = stage.plane.request("GET", f"/api/v1/namespaces/{namespace}/resourcequotas/mine")["metadata"]
    assert ORIGINAL not in left.get("annotations", {})
    assert left.get("labels", {}) == {}


def test_nobody_can_change_or_delete_a_quota_that_was_made_and_it_goes_with_its_queue(stage: Stage) -> None:
    namespace = stage.namespace()
    stage.queue(namespace, "team", request={"resources": CLAIM})
    stage.until(lambda: list(stage.quotas(namespace)), ["team"], "the quota")
    path = f"/api/v1/namespaces/{namespace}/resourcequotas/team"
    more = {"spec": {"hard": {"requests.cpu": "100"}}}

    stage.refused(
        lambda: stage.plane.request("PATCH", path, more, "application/merge-patch+json"), "change the Queue instead"
    )
    stage.refused(lambda: stage.plane.request("DELETE", path), "goes with it")
    stage.plane.request("DELETE", f"{GROUP}/namespaces/{namespace}/queues/team")

    stage.until(lambda: stage.quotas(namespace), {}, "no quota")


def test_a_quota_that_was_changed_behind_the_webhook_is_repaired(stage: Stage) -> None:
    namespace = stage.namespace()
    stage.queue(namespace, "team", request={"resources": CLAIM})
    stage.until(lambda: bool(stage.quotas(namespace).get("team")), True, "the quota")
    before = stage.quotas(namespace)
    path = f"/api/v1/namespaces/{namespace}/resourcequotas/team"

    with stage.without_webhook():
        changed = stage.plane.request(
            "PATCH", path, {"spec": {"hard": {"requests.cpu": "100"}}}, "application/merge-patch+json"
        )
        assert changed["spec"]["hard"]["requests.cpu"] == "100"
        stage.until(lambda: stage.quotas(namespace), before, "the quota as it was")


def test_a_queue_is_made_from_a_quota_in_a_managed_namespace(stage: Stage) -> None:
    namespace = stage.namespace(**{MODE: "deny"})
    stage.user_quota(namespace, "mine", {"requests.cpu": "2", "requests.memory": "2Gi", "pods": "10"})

    def request() -> object:
        found = stage.plane.request("GET", f"{GROUP}/namespaces/{namespace}/queues")["items"]
        return [each["spec"]["request"]["resources"] for each in found]

    stage.until(request, [CLAIM], "the Queue")
    stage.until(lambda: stage.quotas(namespace)["mine"].get("limits.cpu"), "2", "the quota")
    stage.pod(namespace, "pod", "2", "2Gi")


def test_pods_without_a_queue_are_turned_away_and_told_what_to_do(stage: Stage) -> None:
    namespace = stage.namespace(**{MODE: "deny"})

    stage.refused(lambda: stage.pod(namespace, "pod"), f"octo queue create NAME -n {namespace}")
    stage.queue(namespace, "team", request={"resources": CLAIM})

    stage.until(lambda: stage.quotas(namespace).get("team", {}).get("requests.cpu"), "2", "the quota")
    stage.pod(namespace, "pod")


def test_pods_wait_at_the_gate_until_their_queue_has_room(stage: Stage) -> None:
    namespace = stage.namespace(**{MODE: "gate"})
    stage.queue(namespace, "team", request={"resources": CLAIM}, capability={"resources": CLAIM})
    for number in range(3):
        stage.pod(namespace, f"pod-{number}")

    def running() -> list[str]:
        found = stage.plane.request("GET", f"/api/v1/namespaces/{namespace}/pods")["items"]
        return sorted(each["metadata"]["name"] for each in found if not each["spec"].get("schedulingGates"))

    stage.until(running, ["pod-0", "pod-1"], "two of three")
    stage.let_go(namespace, "pod-0")
    stage.until(running, ["pod-1", "pod-2"], "the third in the place of the first")


def test_a_queue_is_made_where_the_mode_says_so(stage: Stage) -> None:
    namespace = stage.namespace(**{MODE: "default-queue"})

    eventually(lambda: stage.plane.request("GET", f"{GROUP}/namespaces/{namespace}/queues")["items"], "the Queue")
    stage.pod(namespace, "pod")

    stage.until(lambda: stage.amounts(namespace, "default", "used"), {"cpu": "1", "memory": "1Gi"}, "what it uses")


def test_kube_system_is_never_locked_out(stage: Stage) -> None:
    """Neither by a label, nor by a webhook that does not answer."""
    managed = stage.namespace(**{MODE: "deny"})
    label = {"metadata": {"labels": {MODE: "deny"}}}
    stage.plane.request("PATCH", "/api/v1/namespaces/kube-system", label, "application/merge-patch+json")
    stage.arbitrator.stop()
    try:
        stage.refused(lambda: stage.pod(managed, "pod"), "failed calling webhook")
        stage.pod("kube-system", "helper", "0", "0")
        stage.let_go("kube-system", "helper")
    finally:
        label = {"metadata": {"labels": {MODE: None}}}
        stage.plane.request("PATCH", "/api/v1/namespaces/kube-system", label, "application/merge-patch+json")
        stage.arbitrator.start()
