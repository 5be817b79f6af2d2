"""Who has a say before something is written? The embedded API server, over HTTPS, with real servers as webhooks."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from apiserver_fixture import DEFAULT, Answer, Api, config_map, pod, running

from octarbiter.testing.kubernetes import certificates

Json = dict[str, Any]
PODS = f"{DEFAULT}/pods"
MOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[Api]:
    async with running(tmp_path) as api:
        yield api


def told(answer: Answer) -> tuple[int, str]:
    return answer.code, str(answer.body.get("message", ""))


# Accounts.


async def test_a_pod_that_names_no_account_has_the_usual_one(api: Api) -> None:
    spec = (await api.create(PODS, pod("p")))["spec"]

    assert (spec["serviceAccountName"], spec["serviceAccount"]) == ("default", "default")


async def test_a_pod_finds_the_token_of_the_account_it_names(api: Api) -> None:
    await api.create(f"{DEFAULT}/serviceaccounts", {"metadata": {"name": "robot"}})
    spec = (await api.create(PODS, pod("p", serviceAccountName="robot")))["spec"]

    volume = spec["volumes"][0]
    assert volume["name"].startswith("kube-api-access-")
    assert [next(iter(source)) for source in volume["projected"]["sources"]] == [
        "serviceAccountToken",
        "configMap",
        "downwardAPI",
    ]
    assert spec["containers"][0]["volumeMounts"] == [{"name": volume["name"], "readOnly": True, "mountPath": MOUNT}]
    unmounted = await api.create(PODS, pod("q", serviceAccountName="robot", automountServiceAccountToken=False))
    assert "volumes" not in unmounted["spec"]


async def test_a_pod_cannot_have_an_account_that_is_not_there(api: Api) -> None:
    answer = await api.ask("POST", PODS, pod("p", serviceAccountName="nobody"))

    why = 'error looking up service account default/nobody: serviceaccount "nobody" not found'
    assert told(answer) == (403, f'pods "p" is forbidden: {why}')


async def test_a_new_node_takes_no_pods_yet(api: Api) -> None:
    node = await api.create("/api/v1/nodes", {"metadata": {"name": "n"}})

    assert node["spec"]["taints"] == [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]


# Limit ranges.


def sized(name: str, *resources: Json) -> Json:
    containers = [{"name": f"c{n}", "image": "x", "resources": each} for n, each in enumerate(resources)]
    return {"metadata": {"name": name}, "spec": {"containers": containers}}


@pytest.fixture
async def limited(api: Api) -> Api:
    limits = [
        {
            "type": "Container",
            "default": {"cpu": "500m"},
            "defaultRequest": {"memory": "64Mi"},
            "min": {"cpu": "100m"},
            "max": {"cpu": "1", "memory": "1Gi"},
            "maxLimitRequestRatio": {"cpu": "2"},
        },
        {"type": "Pod", "max": {"cpu": "1500m"}, "min": {"memory": "10Mi"}},
        {"type": "PersistentVolumeClaim", "min": {"storage": "1Gi"}, "max": {"storage": "2Gi"}},
    ]
    await api.create(f"{DEFAULT}/limitranges", {"metadata": {"name": "lr"}, "spec": {"limits": limits}})
    return api


async def test_a_limit_range_fills_in_what_containers_do_not_say(limited: Api) -> None:
    made = await limited.create(PODS, pod("p"))

    assert made["spec"]["containers"][0]["resources"] == {
        "limits": {"cpu": "500m", "memory": "1Gi"},
        "requests": {"cpu": "500m", "memory": "64Mi"},
    }
    assert made["metadata"]["annotations"]["kubernetes.io/limit-ranger"] == (
        "LimitRanger plugin set: cpu, memory request for container c; cpu, memory limit for container c"
    )


@pytest.mark.parametrize(
    ("resources", "why"),
    [
        (
            [{"limits": {"cpu": "2", "memory": "2Gi"}}],
            "[maximum cpu usage per Container is 1, but limit is 2, maximum memory usage per Container is 1Gi, but "
            "limit is 2Gi, maximum cpu usage per Pod is 1500m, but limit is 2]",
        ),
        (
            [{"limits": {"cpu": "50m"}, "requests": {"cpu": "10m"}}],
            "[minimum cpu usage per Container is 100m, but request is 10m, cpu max limit to request ratio per "
            "Container is 2, but provided ratio is 5.000000]",
        ),
        (
            [{"limits": {"cpu": "900m"}, "requests": {"cpu": "100m"}}],
            "cpu max limit to request ratio per Container is 2, but provided ratio is 9.000000",
        ),
        (
            [{"limits": {"cpu": "900m"}}, {"limits": {"cpu": "900m"}}],
            "maximum cpu usage per Pod is 1500m, but limit is 1800m",
        ),
    ],
)
async def test_a_limit_range_refuses_in_the_words_of_kubernetes(limited: Api, resources: list[Json], why: str) -> None:
    answer = await limited.ask("POST", PODS, sized("p", *resources))

    assert told(answer) == (403, f'pods "p" is forbidden: {why}')


@pytest.mark.parametrize(
    ("size", "why"),
    [
        ("5Gi", "maximum storage usage per PersistentVolumeClaim is 2Gi, but request is 5Gi"),
        ("1Mi", "minimum storage usage per PersistentVolumeClaim is 1Gi, but request is 1Mi"),
    ],
)
async def test_claims_are_limited_too(limited: Api, size: str, why: str) -> None:
    answer = await limited.ask("POST", f"{DEFAULT}/persistentvolumeclaims", claim(size))

    assert told(answer) == (403, f'persistentvolumeclaims "p" is forbidden: {why}')


def claim(size: str) -> Json:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}
    return {"metadata": {"name": "p"}, "spec": spec}


# Quotas.


async def quota(api: Api, name: str, hard: dict[str, str], **spec: Any) -> None:
    made = await api.create(f"{DEFAULT}/resourcequotas", {"metadata": {"name": name}, "spec": {"hard": hard, **spec}})
    made["status"] = {"hard": hard, "used": dict.fromkeys(hard, "0")}
    assert (await api.ask("PUT", f"{DEFAULT}/resourcequotas/{name}/status", made)).code == 200


async def used(api: Api, name: str) -> Json:
    found: Json = (await api.ask("GET", f"{DEFAULT}/resourcequotas/{name}")).body["status"]["used"]
    return found


SMALL = {"requests": {"cpu": "300m"}, "limits": {"memory": "100Mi"}}


async def test_a_quota_is_charged_with_what_is_created(api: Api) -> None:
    hard = {"pods": "2", "requests.cpu": "1", "limits.memory": "1Gi", "requests.nvidia.com/gpu": "1", "count/pods": "9"}
    await quota(api, "q", hard)
    await api.create(PODS, sized("a", SMALL))

    assert await used(api, "q") == {
        "pods": "1",
        "count/pods": "1",
        "requests.cpu": "300m",
        "limits.memory": "100Mi",
        "requests.nvidia.com/gpu": "0",
    }
    large = {"requests": {"cpu": "800m"}, "limits": {"memory": "2Gi"}}
    assert told(await api.ask("POST", PODS, sized("b", large))) == (
        403,
        'pods "b" is forbidden: exceeded quota: q, requested: limits.memory=2Gi,requests.cpu=800m, '
        "used: limits.memory=100Mi,requests.cpu=300m, limited: limits.memory=1Gi,requests.cpu=1",
    )
    gpus = {"requests": {"cpu": "1m", "nvidia.com/gpu": "2"}, "limits": {"memory": "1Mi", "nvidia.com/gpu": "2"}}
    assert told(await api.ask("POST", PODS, sized("b", gpus))) == (
        403,
        'pods "b" is forbidden: exceeded quota: q, requested: requests.nvidia.com/gpu=2, '
        "used: requests.nvidia.com/gpu=0, limited: requests.nvidia.com/gpu=1",
    )


async def test_where_compute_is_limited_every_container_says_what_it_takes(api: Api) -> None:
    await quota(api, "q", {"requests.cpu": "1", "limits.memory": "1Gi"})

    assert told(await api.ask("POST", PODS, pod("a"))) == (
        403,
        'pods "a" is forbidden: failed quota: q: must specify limits.memory for: c; requests.cpu for: c',
    )


async def test_many_at_once_never_get_more_than_there_is(api: Api) -> None:
    await quota(api, "q", {"pods": "5"})
    await quota(api, "r", {"count/pods": "50"})

    answers = await asyncio.gather(*(api.ask("POST", PODS, pod(f"p{number}")) for number in range(30)))

    assert sorted(answer.code for answer in answers) == [201] * 5 + [403] * 25
    assert (await used(api, "q"), await used(api, "r")) == ({"pods": "5"}, {"count/pods": "5"})


async def test_objects_of_any_kind_are_counted_by_their_name(api: Api) -> None:
    await quota(api, "q", {"configmaps": "1", "count/jobs.batch": "0", "requests.storage": "1Gi"})
    await api.create(f"{DEFAULT}/configmaps", config_map("a"))

    assert (
        "requested: configmaps=1, used: configmaps=1, limited: configmaps=1"
        in told(await api.ask("POST", f"{DEFAULT}/configmaps", config_map("b")))[1]
    )
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "x"}]}}
    job = {"metadata": {"name": "j"}, "spec": {"template": template}}
    answer = await api.ask("POST", "/apis/batch/v1/namespaces/default/jobs", job)
    assert "exceeded quota: q, requested: count/jobs.batch=1" in told(answer)[1]
    answer = await api.ask("POST", f"{DEFAULT}/persistentvolumeclaims", claim("5Gi"))
    assert "requested: requests.storage=5Gi, used: requests.storage=0, limited: requests.storage=1Gi" in told(answer)[1]


async def test_a_trial_run_is_checked_and_not_charged(api: Api) -> None:
    await quota(api, "q", {"pods": "1"})

    assert (await api.ask("POST", f"{PODS}?dryRun=All", pod("p"))).code == 201
    assert await used(api, "q") == {"pods": "0"}
    await api.create(PODS, pod("p"))
    assert (await api.ask("POST", f"{PODS}?dryRun=All", pod("q"))).code == 403


async def test_a_quota_with_scopes_counts_only_what_is_within_them(api: Api) -> None:
    await quota(api, "idle", {"pods": "0"}, scopes=["BestEffort"])
    await quota(api, "short", {"pods": "0"}, scopes=["Terminating"])
    within = {"scopeName": "PriorityClass", "operator": "In", "values": ["system-node-critical"]}
    await quota(api, "high", {"pods": "0"}, scopeSelector={"matchExpressions": [within]})

    assert (await api.ask("POST", PODS, sized("fits", SMALL))).code == 201
    assert "quota: idle" in told(await api.ask("POST", PODS, pod("p")))[1]
    timed = sized("p", SMALL)
    timed["spec"]["activeDeadlineSeconds"] = 5
    assert "quota: short" in told(await api.ask("POST", PODS, timed))[1]
    urgent = sized("p", SMALL)
    urgent["spec"]["priorityClassName"] = "system-node-critical"
    assert "quota: high" in told(await api.ask("POST", PODS, urgent))[1]


# Webhooks.

Respond = Callable[[Json], Awaitable[Json]]
"""From the request of a review to its response, without the uid."""


class Hook:
    def __init__(self, url: str, port: int, bundle: str) -> None:
        self.url, self.port, self.bundle = url, port, bundle
        self.heard: list[Json] = []

    def config(self, name: str = "hook.example.com", **more: Any) -> Json:
        rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
        webhook = {
            "name": name,
            "clientConfig": {"url": self.url, "caBundle": self.bundle},
            "rules": [rule],
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            **more,
        }
        return {"metadata": {"name": name}, "webhooks": [webhook]}


@asynccontextmanager
async def hook(respond: Respond) -> AsyncIterator[Hook]:
    made: Hook

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        review = json.loads(await request.read())
        made.heard.append(review["request"])
        response = {"uid": review["request"]["uid"], **await respond(review["request"])}
        return web.json_response({**review, "request": None, "response": response})

    with tempfile.TemporaryDirectory() as directory:
        authority = certificates.Authority(Path(directory))
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(*authority.issue_server("hook", ["127.0.0.1", "checks.default.svc"]))
    runner = web.ServerRunner(web.Server(answer, handler_cancellation=True), shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    port = runner.addresses[0][1]
    made = Hook(f"https://127.0.0.1:{port}/check", port, base64.b64encode(authority.pem).decode())
    try:
        yield made
    finally:
        await runner.cleanup()


async def allow(request: Json) -> Json:
    return {"allowed": True}


async def deny(request: Json) -> Json:
    return {"allowed": False, "status": {"message": "not today"}}


def patching(*operations: Json) -> Respond:
    async def respond(request: Json) -> Json:
        patch = base64.b64encode(json.dumps(operations).encode()).decode()
        return {"allowed": True, "patchType": "JSONPatch", "patch": patch}

    return respond


HOOKS = "/apis/admissionregistration.k8s.io/v1"
MAPS = f"{DEFAULT}/configmaps"


async def install(api: Api, kind: str, config: Json) -> None:
    await api.create(f"{HOOKS}/{kind}webhookconfigurations", config)


async def test_a_webhook_refuses_in_its_own_words(api: Api) -> None:
    async with hook(deny) as made:
        await install(api, "validating", made.config())
        answer = await api.ask("POST", MAPS, config_map("a"))

    assert told(answer) == (403, 'admission webhook "hook.example.com" denied the request: not today')
    heard = made.heard[0]
    assert (heard["operation"], heard["name"], heard["namespace"]) == ("CREATE", "a", "default")
    assert heard["resource"] == {"group": "", "version": "v1", "resource": "configmaps"}
    assert heard["object"]["metadata"]["name"] == "a"
    assert (heard["oldObject"], heard["dryRun"]) == (None, False)
    assert heard["userInfo"]["username"] == "kubernetes-admin"
    assert (await api.ask("GET", f"{MAPS}/a")).code == 404


async def test_a_webhook_changes_the_object_and_the_next_sees_it(api: Api) -> None:
    first = patching({"op": "add", "path": "/data", "value": {"by": "first"}})
    second = patching({"op": "add", "path": "/data/also", "value": "second"})
    async with hook(first) as one, hook(second) as two, hook(allow) as last:
        await install(api, "mutating", two.config("b.example.com"))
        await install(api, "mutating", one.config("a.example.com"))
        await install(api, "validating", last.config("c.example.com"))
        made = await api.create(MAPS, config_map("a"))

    assert made["data"] == {"by": "first", "also": "second"}
    assert two.heard[0]["object"]["data"] == {"by": "first"}
    assert last.heard[0]["object"]["data"] == made["data"]


async def test_a_webhook_hears_only_of_what_it_asked_for(api: Api) -> None:
    async with hook(deny) as made:
        config = made.config(
            objectSelector={"matchLabels": {"checked": "yes"}},
            namespaceSelector={"matchLabels": {"kubernetes.io/metadata.name": "default"}},
        )
        await install(api, "validating", config)
        assert (await api.ask("POST", MAPS, config_map("plain"))).code == 201
        assert (await api.ask("POST", PODS, pod("p"))).code == 201
        elsewhere = "/api/v1/namespaces/kube-public/configmaps"
        assert (await api.ask("POST", elsewhere, config_map("a", {"checked": "yes"}))).code == 201
        assert (await api.ask("POST", MAPS, config_map("a", {"checked": "yes"}))).code == 403


@pytest.mark.parametrize(("policy", "code"), [("Fail", 500), ("Ignore", 201)])
async def test_a_webhook_that_cannot_be_reached_fails_or_is_ignored(api: Api, policy: str, code: int) -> None:
    async with hook(allow) as made:
        config = made.config(failurePolicy=policy, timeoutSeconds=2)
    await install(api, "validating", config)
    answer = await api.ask("POST", MAPS, config_map("a"))

    assert answer.code == code
    if code == 500:
        assert 'failed calling webhook "hook.example.com": failed to call webhook: Post "https://' in told(answer)[1]


async def test_a_webhook_that_takes_too_long_has_failed(api: Api) -> None:
    async def never(request: Json) -> Json:
        await asyncio.Event().wait()
        return {}

    async with hook(never) as made:
        await install(api, "validating", made.config(timeoutSeconds=1))
        answer = await api.ask("POST", MAPS, config_map("a"))

    assert answer.code == 500
    assert "context deadline exceeded" in told(answer)[1]


async def test_a_webhook_whose_certificate_is_not_trusted_is_not_asked(api: Api) -> None:
    async with hook(allow) as made, hook(allow) as other:
        made.bundle = other.bundle
        await install(api, "validating", made.config())
        answer = await api.ask("POST", MAPS, config_map("a"))

    assert (answer.code, made.heard) == (500, [])


async def test_a_service_without_endpoints_is_a_program_on_this_machine(api: Api) -> None:
    async with hook(deny) as made:
        spec = {"ports": [{"port": 443, "targetPort": made.port}]}
        await api.create(f"{DEFAULT}/services", {"metadata": {"name": "checks"}, "spec": spec})
        service = {"name": "checks", "namespace": "default", "path": "/check"}
        config = made.config(clientConfig={"service": service, "caBundle": made.bundle})
        await install(api, "validating", config)
        answer = await api.ask("POST", MAPS, config_map("a"))

    assert told(answer)[1].endswith("denied the request: not today")


async def test_warnings_of_a_webhook_reach_the_client(api: Api) -> None:
    async def warn(request: Json) -> Json:
        return {"allowed": True, "warnings": ["old ways"]}

    async with hook(warn) as made:
        await install(api, "validating", made.config())
        answer = await api.ask("POST", MAPS, config_map("a"))

    assert "old ways" in answer.headers["Warning"]


async def test_a_broken_webhook_can_always_be_removed(api: Api) -> None:
    async with hook(deny) as made:
        rule = {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*/*"]}
        await install(api, "validating", made.config(rules=[rule]))
    assert (await api.ask("POST", MAPS, config_map("a"))).code == 500
    assert (await api.ask("DELETE", f"{HOOKS}/validatingwebhookconfigurations/hook.example.com")).code == 200
    assert (await api.ask("POST", MAPS, config_map("a"))).code == 201


async def test_a_webhook_hears_only_what_its_conditions_let_through(api: Api) -> None:
    def when(expression: str) -> list[Json]:
        return [{"name": "c", "expression": expression}]

    async with hook(deny) as made:
        await install(api, "validating", made.config(matchConditions=when("object.metadata.name.startsWith('bad')")))
        assert (await api.ask("POST", MAPS, config_map("good"))).code == 201
        assert (await api.ask("POST", MAPS, config_map("bad"))).code == 403
        other = made.config("other.example.com", matchConditions=when("object.nothing == 1"))
        await install(api, "validating", other)
        answer = await api.ask("POST", MAPS, config_map("fine"))

    assert answer.code == 403
    assert "resulted in error: no such key: nothing" in told(answer)[1]


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "replace", "path": "/metadata/name", "value": "other"},
        {"op": "remove", "path": "/metadata"},
        {"op": "replace", "path": "/kind", "value": "Secret"},
        {"op": "replace", "path": "", "value": []},
        {"op": "add", "path": "/data", "value": 5},
        {"op": "replace", "path": "/nothing/here", "value": 5},
    ],
)
async def test_a_webhook_cannot_make_another_object_of_it(api: Api, operation: Json) -> None:
    async with hook(patching(operation)) as made:
        await install(api, "mutating", made.config())
        answer = await api.ask("POST", MAPS, config_map("a"))

    assert (answer.code, answer.reason) == (500, "InternalError")
    assert (await api.ask("GET", f"{MAPS}/a")).code == 404


async def test_a_pod_without_a_spec_is_refused_and_breaks_nothing(limited: Api) -> None:
    await quota(limited, "q", {"pods": "1"})

    for body in ({"metadata": {"name": "p"}}, {"metadata": {"name": "p"}, "spec": {}}):
        assert (await limited.ask("POST", PODS, body)).code == 422
