"""The webhook before a real API server, and before the embedded one: the same promises."""

from __future__ import annotations

import base64
import socket
import ssl
import threading
import time
from typing import Any
from urllib.parse import urlsplit

from eventual import eventually
from webhook_fixture import Bench, Json, pod, queue, quota
from webhook_fixture import bench as bench
from webhook_fixture import installed as installed
from webhook_fixture import plane as plane

from octarbiter.api import arbitrator, codec, scheme, taskset
from octarbiter.api.arbitrator import Mode
from octarbiter.api.queue import Queue
from octarbiter.core.quota import admission, names
from octarbiter.services.webhook import configuration
from octarbiter.services.webhook.certificates import SECRET, SECRETS
from octarbiter.testing.kubernetes import connection

GATE = {"name": arbitrator.QUEUE}
ROTATIONS = 3


def pods(namespace: str, name: str = "") -> str:
    return scheme.PODS.path(namespace, name)


def quotas(namespace: str, name: str = "") -> str:
    return scheme.RESOURCEQUOTAS.path(namespace, name)


# Pods.


def test_pods_are_refused_where_there_is_no_queue_and_told_what_to_do(bench: Bench) -> None:
    for mode in ("deny", "gate", "dny"):
        namespace = bench.namespace(mode)
        code, message = bench.refused("POST", pods(namespace), pod())

        assert code == 403
        assert f"octo queue create NAME -n {namespace}" in message


def test_pods_pass_unchanged_where_nothing_is_managed_or_a_queue_holds_the_namespace(bench: Bench) -> None:
    held = bench.namespace("deny", queue="q")
    for namespace in (held, bench.namespace(), bench.namespace(""), bench.namespace("default-queue"), "kube-system"):
        assert "schedulingGates" not in bench.pod(namespace)["spec"]


def test_a_queue_that_comes_a_moment_later_is_soon_enough(bench: Bench) -> None:
    namespace = bench.namespace("deny")
    late = threading.Timer(0.05, lambda: bench.view.places.update({namespace: admission.Place(name="", queue="q")}))
    late.start()
    try:
        bench.pod(namespace)
    finally:
        late.join()


def test_pods_wait_at_the_gate_which_only_we_open(bench: Bench) -> None:
    namespace = bench.namespace("gate", queue="q")
    other = {"name": "example.com/other"}
    first, second = bench.pod(namespace), bench.pod(namespace, schedulingGates=[other])
    assert first["spec"]["schedulingGates"] == [GATE]
    assert second["spec"]["schedulingGates"] == [other, GATE]

    path = pods(namespace, second["metadata"]["name"])
    bench.patch(path, {"spec": {"schedulingGates": [GATE]}})
    code, message = bench.refused("PATCH", path, {"spec": {"schedulingGates": []}})
    assert code == 403
    assert "when it has room" in message
    assert not bench.patch(path, {"spec": {"schedulingGates": []}}, by=bench.us)["spec"].get("schedulingGates")


def test_a_pod_that_names_its_node_does_not_go_round_the_gate(bench: Bench) -> None:
    code, message = bench.refused("POST", pods(bench.namespace("gate", queue="q")), pod(nodeName="n"))

    assert code == 403
    assert "spec.nodeName" in message


# Quotas.


def test_a_quota_of_ours_cannot_be_touched_administrators_included(bench: Bench) -> None:
    namespace = bench.namespace(queue="q")
    bench.create(quotas(namespace), quota("q", "q", is_made=True))
    path = quotas(namespace, "q")

    for change in (
        {"spec": {"hard": {"requests.cpu": "400"}}},
        {"spec": {"hard": {"pods": None}}},
        {"metadata": {"labels": {arbitrator.QUEUE: None}}},
        {"metadata": {"labels": {"mine": "too"}}},
    ):
        code, message = bench.refused("PATCH", path, change)
        assert code == 403
        assert "change the Queue instead" in message
    code, message = bench.refused("DELETE", path)
    assert code == 403
    assert "goes with it" in message

    assert (
        bench.patch(path, {"spec": {"hard": {"requests.cpu": "5"}}}, by=bench.us)["spec"]["hard"]["requests.cpu"] == "5"
    )
    bench.us.request("DELETE", path)


def test_in_a_users_quota_only_our_keys_are_ours(bench: Bench) -> None:
    namespace = bench.namespace(queue="q")
    bench.create(quotas(namespace), quota("theirs", "q", is_made=False))
    path = quotas(namespace, "theirs")

    code, message = bench.refused("PATCH", path, {"spec": {"hard": {"requests.cpu": "9"}}})
    assert code == 403
    assert "spec.hard[requests.cpu]" in message
    bench.patch(path, {"spec": {"hard": {"pods": "7"}}, "metadata": {"labels": {"mine": "too"}}})
    bench.plane.request("DELETE", path)


def test_a_quota_whose_queue_is_gone_is_nobodys_secret(bench: Bench) -> None:
    namespace = bench.namespace()
    bench.create(quotas(namespace), quota("q", "q", is_made=True))

    bench.plane.request("DELETE", quotas(namespace, "q"))


# Our own kinds.


def queues(namespace: str, name: str = "") -> str:
    return scheme.QUEUES.path(namespace, name)


def known(bench: Bench, made: Json) -> None:
    bench.view.known_queues[f"{made['metadata']['namespace']}/{made['metadata']['name']}"] = codec.from_json(
        made, Queue
    )


def test_a_queue_is_told_all_its_problems_at_once(bench: Bench) -> None:
    namespace = bench.namespace()
    known(bench, bench.create(queues(namespace), queue("first")))

    wrong = queue("second", policy="drff", request={"resources": {"no good name": "1"}})
    code, message = bench.refused("POST", queues(namespace), wrong)
    assert code == 422
    assert "Queue second is invalid" in message
    assert "no good name" in message
    assert 'no policy is called "drff"; did you mean drf?' in message
    assert f"a namespace has one queue without children, and {namespace} has {namespace}/first" in message


def test_a_queue_cannot_be_its_own_ancestor(bench: Bench) -> None:
    namespace = bench.namespace()
    known(bench, bench.create(queues(namespace), queue("top")))
    known(bench, bench.create(queues(namespace), queue("mid", parent="top")))
    known(bench, bench.create(queues(namespace), queue("low", parent=f"{namespace}/mid")))

    code, message = bench.refused("PATCH", queues(namespace, "top"), {"spec": {"parent": "low"}})
    assert code == 422
    chain = " -> ".join(f"{namespace}/{name}" for name in ("top", "low", "mid", "top"))
    assert chain in message


def test_a_parent_and_its_only_child_may_share_a_namespace(bench: Bench) -> None:
    namespace = bench.namespace()
    known(bench, bench.create(queues(namespace), queue("top")))
    known(bench, bench.create(queues(namespace), queue("low", parent="top")))

    code, message = bench.refused("PATCH", queues(namespace, "low"), {"spec": {"parent": ""}})
    assert code == 422
    assert f"{namespace} has {namespace}/top" in message


def test_what_leaves_the_spec_alone_is_never_refused(bench: Bench) -> None:
    namespace = bench.namespace()
    for name in ("a", "b"):  # two at once, because the webhook has not heard of the first
        made = bench.create(queues(namespace), queue(name))
        if name == "b":
            known(bench, made)
    known(bench, bench.plane.request("GET", queues(namespace, "a")))

    bench.patch(queues(namespace, "b"), {"metadata": {"labels": {"a": "b"}}})


def test_a_queuejob_is_valid_also_before_its_queue(bench: Bench) -> None:
    namespace = bench.namespace()
    job = {"queue": "nowhere", "resourceunit": {"resources": {"cpu": "1"}}, "resourceno": 2}
    body = {"apiVersion": arbitrator.API_VERSION, "kind": "QueueJob", "metadata": {"name": "j"}, "spec": job}
    path = scheme.QUEUEJOBS.path(namespace)
    bench.create(path, body)

    wrong = {**body, "metadata": {"name": "k"}, "spec": {**job, "resourceunit": {"resources": {"?": "1", "!": "2"}}}}
    code, message = bench.refused("POST", path, wrong)
    assert code == 422
    assert "?" in message
    assert "!" in message


def role(**fields: Any) -> Json:
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "1"}}}
    return {"name": "w", "template": {"spec": {"containers": [container]}}, **fields}


def job(name: str, **spec: Any) -> Json:
    return {
        "apiVersion": taskset.API_VERSION,
        "kind": taskset.KIND,
        "metadata": {"name": name},
        "spec": {"roles": [role()], **spec},
    }


def test_a_taskset_of_a_queue_begins_suspended_unless_somebody_claims_for_it(bench: Bench) -> None:
    namespace = bench.namespace()
    path = scheme.TASKSETS.path(namespace)
    bench.view.claims.add((namespace, taskset.API_VERSION, taskset.KIND, "claimed"))

    assert bench.create(path, job("free"))["spec"].get("suspend") in (None, False)
    assert bench.create(path, job("queued", queue="q"))["spec"]["suspend"] is True
    assert bench.create(path, job("claimed", queue="q"))["spec"].get("suspend") in (None, False)
    started = bench.patch(scheme.TASKSETS.path(namespace, "queued"), {"spec": {"suspend": False}})
    assert started["spec"]["suspend"] is False


# What if the webhook is away, or changes?


def configured(bench: Bench, resource: scheme.Resource[Any]) -> Json:
    found: Json = bench.plane.request("GET", resource.path(name=configuration.NAME))
    return found


def test_without_the_webhook_nobody_is_locked_out_but_deny_means_deny(installed: Bench, bench: Bench) -> None:
    denying, gating, free = bench.namespace("deny", queue="q"), bench.namespace("gate", queue="q"), bench.namespace()
    bench.create(quotas(free), quota("q", "q", is_made=True))
    bench.webhook.stop()
    try:
        for namespace in ("kube-system", names.OWN_NAMESPACE, free):
            bench.pod(namespace)
        bench.create(queues(free), queue("a"))
        bench.create(scheme.TASKSETS.path(free), job("queued", queue="q"))
        bench.patch(quotas(free, "q"), {"spec": {"hard": {"pods": "3"}}})
        for namespace in (denying, gating):
            code, message = bench.refused("POST", pods(namespace), pod())
            assert code == 500
            assert "failed calling webhook" in message
    finally:
        bench.webhook.start()
        bench.until_asked()


def test_the_mode_of_the_installation_holds_where_no_label_says_otherwise(bench: Bench) -> None:
    bench.webhook.stop()
    free, opted_out = bench.namespace(), bench.namespace("")
    bench.webhook.start(mode=Mode.GATE)
    try:
        bench.view.places[free] = admission.Place(name=free, queue="q")
        eventually(lambda: bench.pod(free, dry=True)["spec"].get("schedulingGates"), "the gate of the installation")
        for namespace in (opted_out, "kube-system"):
            assert "schedulingGates" not in bench.pod(namespace)["spec"]
    finally:
        bench.webhook.stop()
        bench.pod(free)  # Ignore: who did not ask for it is not stopped by our absence
        bench.webhook.start()
        bench.until_asked()


SETTLE_S = 2.0


def test_certificates_change_under_a_stream_of_requests_and_none_is_refused(bench: Bench) -> None:
    namespace = bench.namespace("deny", queue="q")
    bench.webhook.stop()
    bench.plane.request("DELETE", SECRETS.path(names.OWN_NAMESPACE, SECRET))
    bench.webhook.start(rotation_s=1.0, settle_s=SETTLE_S)
    bench.until_asked()
    over = threading.Event()
    refusals: list[str] = []
    answered: list[int] = []

    def ask() -> None:
        own = connection.Connection(bench.plane.url, bench.plane.authority.pem, bench.plane.admin_token)
        while not over.is_set():
            try:
                own.request("POST", f"{pods(namespace)}?dryRun=All", pod())
                answered.append(1)
            except connection.ApiError as problem:
                refusals.append(str(problem))

    def connect() -> None:
        """The API server keeps its connections; one that hears of everything late, and connects anew each time, is
        harder to please."""
        while not over.is_set():
            client = configured(bench, configuration.VALIDATING)["webhooks"][0]["clientConfig"]
            trusting = ssl.create_default_context(cadata=base64.b64decode(client["caBundle"]).decode())
            url, until = urlsplit(client["url"]), time.monotonic() + SETTLE_S / 2
            while not over.is_set() and time.monotonic() < until:
                try:
                    with socket.create_connection((url.hostname, url.port)) as raw:
                        trusting.wrap_socket(raw, server_hostname=url.hostname).close()
                except ssl.SSLError as problem:
                    refusals.append(str(problem))
                over.wait(0.05)

    working = [threading.Thread(target=each) for each in (ask, ask, connect)]
    for each in working:
        each.start()
    shown: set[str] = set()

    def rotated() -> bool:
        shown.add(bench.secret()["tls.crt"])
        return len(shown) > ROTATIONS

    try:
        eventually(rotated, "the certificate to change", timeout_s=120)
    finally:
        over.set()
        for each in working:
            each.join()
        bench.webhook.stop()
        bench.webhook.start()
        bench.until_asked()
    assert refusals == []
    assert len(answered) > 20


def test_configurations_that_somebody_deleted_come_back(bench: Bench) -> None:
    bench.plane.request("DELETE", configuration.VALIDATING.path(name=configuration.NAME))
    bench.webhook.stop()
    bench.webhook.start()

    bench.until_asked()
    assert len(configured(bench, configuration.MUTATING)["webhooks"]) == 2
