"""ServiceAccounts prove who they are, and may do what roles say: the embedded API server, over HTTPS."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from apiserver_fixture import DEFAULT, Api, pod, running

from octarbiter.cluster.apiserver.tokens import Tokens
from octarbiter.cluster.store.store import Store
from octarbiter.testing.kubernetes import build

Json = dict[str, Any]
ACCOUNTS = f"{DEFAULT}/serviceaccounts"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
WHO = "system:serviceaccount:default:robot"
REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"


@pytest.fixture
async def api(tmp_path: Path) -> AsyncIterator[Api]:
    async with running(tmp_path) as api:
        await api.create(ACCOUNTS, {"metadata": {"name": "robot"}})
        yield api


async def token(api: Api, **spec: Any) -> str:
    made = await api.create(f"{ACCOUNTS}/robot/token", {"spec": spec})
    return str(made["status"]["token"])


async def allow(api: Api, *rules: Json, kind: str = "Role") -> None:
    place = f"{RBAC}/namespaces/default" if kind == "Role" else RBAC
    await api.create(f"{place}/{kind.lower()}s", {"metadata": {"name": "r"}, "rules": list(rules)})
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": "r"}
    subject = {"kind": "ServiceAccount", "name": "robot", "namespace": "default"}
    bound = {"metadata": {"name": "r"}, "roleRef": reference, "subjects": [subject]}
    await api.create(f"{place}/{kind.lower()}bindings", bound)


async def test_a_token_says_who_its_bearer_is(api: Api) -> None:
    answer = await api.ask("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", {}, token=await token(api))
    user = answer.body["status"]["userInfo"]

    assert user["username"] == WHO
    assert user["groups"] == ["system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"]
    assert user["uid"] == (await api.ask("GET", f"{ACCOUNTS}/robot")).body["metadata"]["uid"]


async def test_a_token_is_worth_nothing_when_its_account_is_gone_or_another(api: Api) -> None:
    held = await token(api)
    await api.ask("DELETE", f"{ACCOUNTS}/robot")
    assert (await api.ask("GET", "/api", token=held)).code == 401

    await api.create(ACCOUNTS, {"metadata": {"name": "robot"}})
    assert (await api.ask("GET", "/api", token=held)).code == 401
    assert (await api.ask("GET", "/api", token=await token(api))).code == 200


async def test_a_token_of_a_pod_ends_with_the_pod(api: Api) -> None:
    made = await api.create(f"{DEFAULT}/pods", pod("p", serviceAccountName="robot"))
    bound = {"kind": "Pod", "apiVersion": "v1", "name": "p", "uid": made["metadata"]["uid"]}
    held = await token(api, boundObjectRef=bound)
    assert (await api.ask("GET", "/api", token=held)).code == 200

    await api.ask("DELETE", f"{DEFAULT}/pods/p?gracePeriodSeconds=0")
    assert (await api.ask("GET", "/api", token=held)).code == 401


async def test_a_token_for_others_opens_nothing_here(api: Api) -> None:
    held = await token(api, audiences=["vault"])

    assert (await api.ask("GET", "/api", token=held)).code == 401
    for audiences, expected in ((["vault"], True), (["other"], None), ([], None)):
        review = await api.ask("POST", REVIEWS, {"spec": {"token": held, "audiences": audiences}})
        assert review.body["status"].get("authenticated") == expected


async def test_a_changed_token_opens_nothing(api: Api) -> None:
    header, claims, signature = (await token(api)).split(".")
    told = json.loads(base64.urlsafe_b64decode(claims + "=="))
    told["sub"] = "system:serviceaccount:kube-system:admin"
    forged = base64.urlsafe_b64encode(json.dumps(told).encode()).rstrip(b"=").decode()
    nothing = base64.urlsafe_b64encode(b'{"alg":"none"}').rstrip(b"=").decode()

    for other in (
        f"{header}.{forged}.{signature}",
        f"{nothing}.{claims}.",
        f"{header}.{claims}.",
        f"{header}.{claims}.{'A' * len(signature)}",
        f"{header}.{claims}.%%%",
        f"{header}.{claims}",
        "..",
    ):
        assert (await api.ask("GET", "/api", token=other)).code == 401, other


async def test_a_token_ends_at_its_time_and_outlives_a_restart(tmp_path: Path) -> None:
    store = await Store.open(None)
    async with running(tmp_path, store) as api:
        await api.create(ACCOUNTS, {"metadata": {"name": "robot"}})
        held = await token(api, expirationSeconds=600)

    later = datetime.now(UTC)
    again = Tokens(tmp_path, store, lambda: later)
    assert again.user(held) is not None
    later += timedelta(seconds=601)
    assert again.user(held) is None
    await store.close()


@pytest.mark.parametrize(
    ("name", "spec", "code", "message"),
    [
        ("robot", {"expirationSeconds": 5}, 422, "may not specify a duration less than 10 minutes"),
        ("robot", {"expirationSeconds": 1 << 40}, 422, "may not specify a duration larger than 2^32 seconds"),
        ("robot", {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "x"}}, 404, 'pods "x" not found'),
        (
            "robot",
            {"boundObjectRef": {"kind": "ConfigMap", "apiVersion": "v1", "name": "x"}},
            400,
            "cannot bind token to object of type /v1, Kind=ConfigMap",
        ),
        ("robot", {"expirationSeconds": "soon"}, 400, ""),
        ("nobody", {}, 404, 'serviceaccounts "nobody" not found'),
    ],
)
async def test_a_token_that_cannot_be_is_refused(api: Api, name: str, spec: Json, code: int, message: str) -> None:
    answer = await api.ask("POST", f"{ACCOUNTS}/{name}/token", {"spec": spec})

    assert answer.code == code
    assert message in answer.body["message"]


IN_DEFAULT = 'in the namespace "default"'
EVERYWHERE = "at the cluster scope"


@pytest.mark.parametrize(
    ("method", "path", "message"),
    [
        ("GET", "/api/v1/pods", f'pods is USER list resource "pods" in API group "" {EVERYWHERE}'),
        ("GET", f"{DEFAULT}/pods?watch=1", f'pods is USER watch resource "pods" in API group "" {IN_DEFAULT}'),
        ("GET", f"{DEFAULT}/pods/p/log", f'pods "p" is USER get resource "pods/log" in API group "" {IN_DEFAULT}'),
        ("DELETE", f"{DEFAULT}/pods", f'pods is USER deletecollection resource "pods" in API group "" {IN_DEFAULT}'),
        ("GET", "/apis/batch/v1/jobs", f'jobs.batch is USER list resource "jobs" in API group "batch" {EVERYWHERE}'),
        ("GET", DEFAULT, f'namespaces "default" is USER get resource "namespaces" in API group "" {IN_DEFAULT}'),
        ("GET", "/apis/foo.io/v1/bars", f'bars.foo.io is USER list resource "bars" in API group "foo.io" {EVERYWHERE}'),
        ("GET", "/metrics", 'USER get path "/metrics"'),
        ("GET", "/nothing", 'USER get path "/nothing"'),
    ],
)
async def test_what_no_role_allows_is_forbidden_in_the_words_of_kubernetes(
    api: Api, method: str, path: str, message: str
) -> None:
    answer = await api.ask(method, path, token=await token(api))
    message = message.replace("USER", f'forbidden: User "{WHO}" cannot')

    assert (answer.code, answer.reason, answer.body["message"]) == (403, "Forbidden", message)


@pytest.mark.parametrize("path", ["/api", "/apis", "/api/v1", "/apis/batch/v1", "/version"])
async def test_everybody_who_is_known_sees_what_there_is(api: Api, path: str) -> None:
    assert (await api.ask("GET", path, token=await token(api))).code == 200


async def test_a_role_opens_what_it_names_at_once_and_closes_with_its_binding(api: Api) -> None:
    held = await token(api)
    await allow(api, {"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "create"]})

    assert (await api.ask("GET", f"{DEFAULT}/pods", token=held)).code == 200
    assert (await api.ask("POST", f"{DEFAULT}/pods", pod("p"), token=held)).code == 201
    assert (await api.ask("GET", f"{DEFAULT}/pods/p", token=held)).code == 403
    assert (await api.ask("GET", "/api/v1/namespaces/other/pods", token=held)).code == 403

    await api.ask("DELETE", f"{RBAC}/namespaces/default/rolebindings/r")
    assert (await api.ask("GET", f"{DEFAULT}/pods", token=held)).code == 403


async def test_rights_on_one_name_are_enough_to_list_that_name(api: Api) -> None:
    held = await token(api)
    await allow(api, {"apiGroups": [""], "resources": ["pods"], "resourceNames": ["mine"], "verbs": ["list"]})

    assert (await api.ask("GET", f"{DEFAULT}/pods?fieldSelector=metadata.name%3Dmine", token=held)).code == 200
    assert (await api.ask("GET", f"{DEFAULT}/pods", token=held)).code == 403


async def test_reviews_say_what_requests_would_meet(api: Api) -> None:
    held = await token(api)
    await allow(api, {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]})
    path = "/apis/authorization.k8s.io/v1"
    asked = {"resourceAttributes": {"verb": "list", "resource": "pods", "namespace": "default"}}
    reason = 'RBAC: allowed by RoleBinding "r/default" of Role "r" to ServiceAccount "default/robot"'

    own = await api.ask("POST", f"{path}/selfsubjectaccessreviews", {"spec": asked}, token=held)
    assert own.body["status"] == {"allowed": True, "reason": reason}
    other = await api.ask("POST", f"{path}/subjectaccessreviews", {"spec": {**asked, "user": WHO}})
    assert other.body["status"] == {"allowed": True, "reason": reason}
    asked["resourceAttributes"]["verb"] = "delete"
    own = await api.ask("POST", f"{path}/selfsubjectaccessreviews", {"spec": asked}, token=held)
    assert own.body["status"] == {"allowed": False}
    rules = await api.ask("POST", f"{path}/selfsubjectrulesreviews", {"spec": {"namespace": "default"}}, token=held)
    assert {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]} in rules.body["status"]["resourceRules"]


async def test_nobody_gives_away_rights_he_does_not_have(api: Api) -> None:
    held = await token(api)
    granting = {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles", "rolebindings"]}
    await allow(
        api,
        {**granting, "verbs": ["create", "update", "get"]},
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]},
    )
    path = f"{RBAC}/namespaces/default"

    def wanted(verbs: list[str]) -> Json:
        return {"metadata": {"name": "new"}, "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": verbs}]}

    refused = await api.ask("POST", f"{path}/roles", wanted(["get", "delete"]), token=held)
    assert refused.code == 403
    assert 'not currently held:\n{APIGroups:[""], Resources:["pods"], Verbs:["delete"]}' in refused.body["message"]
    assert (await api.ask("POST", f"{path}/roles", wanted(["get"]), token=held)).code == 201
    everything = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
    body = {"metadata": {"name": "all"}, "roleRef": everything, "subjects": []}
    assert (await api.ask("POST", f"{path}/rolebindings", body, token=held)).code == 403


async def test_the_administrator_can_see_through_the_eyes_of_others(api: Api) -> None:
    eyes = {"Impersonate-User": WHO}

    assert (await api.ask("GET", f"{DEFAULT}/pods", headers=eyes)).code == 403
    mine = await api.ask("GET", f"{DEFAULT}/pods", headers={"Impersonate-User": "admin"}, token=await token(api))
    assert 'cannot impersonate resource "users"' in mine.body["message"]


async def test_the_key_that_signs_is_nobody_elses_to_read(api: Api, tmp_path: Path) -> None:
    assert (tmp_path / "accounts.key").stat().st_mode & 0o777 == 0o600


async def test_kubectl_makes_tokens_and_says_whose_they_are(api: Api) -> None:
    program = build.find("kubectl")
    if program is None:
        pytest.skip("this machine has no kubectl")

    async def kubectl(*words: str) -> str:
        argv = [str(program), f"--kubeconfig={api.server.kubeconfig}", *words]
        process = await asyncio.create_subprocess_exec(
            *argv, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT, env={"HOME": "/nonexistent"}
        )
        async with asyncio.timeout(60):
            out, _ = await process.communicate()
        return out.decode()

    held = (await kubectl("create", "token", "robot", "--duration=20m")).strip()
    assert WHO in await kubectl("auth", "whoami", f"--token={held}")
    assert (await kubectl("auth", "can-i", "list", "pods", f"--as={WHO}")).startswith("no")
    await kubectl("create", "rolebinding", "view", "--clusterrole=view", "--serviceaccount=default:robot")
    assert (await kubectl("auth", "can-i", "list", "pods", f"--as={WHO}")).startswith("yes")


async def test_whoever_may_only_read_runs_no_commands(api: Api) -> None:
    held = await token(api)
    await allow(api, {"apiGroups": [""], "resources": ["pods/exec"], "verbs": ["get"]})
    answer = await api.ask("GET", f"{DEFAULT}/pods/p/exec?command=ls&stdout=1", token=held)

    assert answer.code == 403
    assert 'cannot create resource "pods/exec"' in answer.body["message"]
