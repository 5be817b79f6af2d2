"""Others have a say: AdmissionReviews (v1) are sent to the webhooks that want to hear of a request.

Mutating ones one after the other, by the names of their configurations, each seeing what the ones before it made of the
object; validating ones all at once, on the final object. Whoever does not answer in time, or answers nonsense, has
refused, unless its `failurePolicy` is Ignore.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import ssl
import uuid
from collections.abc import Mapping
from typing import Any, Final

import aiohttp
import msgspec

from octarbiter.api.meta import Json
from octarbiter.cluster.apiserver import kinds, objects, status
from octarbiter.cluster.apiserver.admission import Attempt, addresses, conditions, rules
from octarbiter.cluster.apiserver.patching import errors, json_patch
from octarbiter.cluster.store.store import Store

_USUAL_TIMEOUT_S: Final = 10
_LARGEST_ANSWER: Final = 3 * 1024 * 1024
_MUTATING: Final = next(row for row in kinds.BUILT_IN if row.plural == "mutatingwebhookconfigurations")
_VALIDATING: Final = next(row for row in kinds.BUILT_IN if row.plural == "validatingwebhookconfigurations")
_REVIEWS: Final = frozenset({"authorization.k8s.io", "authentication.k8s.io"})


class Failed(Exception):
    """A webhook could not be asked; the message is for people."""


class Webhooks:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._session: aiohttp.ClientSession | None = None
        self._tls: dict[str, ssl.SSLContext] = {}

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    async def admit(self, attempt: Attempt) -> None:
        asked = self._concerned(_MUTATING, attempt)
        again: list[Json] = []
        changed_by = ""
        for webhook in asked:
            before = objects.copied(attempt.obj)
            await self._mutate(webhook, attempt)
            if attempt.obj != before:
                changed_by = webhook["name"]
            if webhook.get("reinvocationPolicy") == "IfNeeded":
                again.append(webhook)
        for webhook in again:
            # What came after it may have undone what it wants; once more, and not for ever.
            if changed_by and webhook["name"] != changed_by:
                await self._mutate(webhook, attempt)

    async def validate(self, attempt: Attempt) -> None:
        asked = self._concerned(_VALIDATING, attempt)
        answers = await asyncio.gather(*(self._ask(each, attempt) for each in asked), return_exceptions=True)
        for answer in answers:
            if isinstance(answer, BaseException):
                raise answer

    async def _mutate(self, webhook: Json, attempt: Attempt) -> None:
        answer = await self._ask(webhook, attempt)
        patch = answer.get("patch")
        if not patch or attempt.obj is None:
            return
        try:
            if answer.get("patchType") != "JSONPatch":
                raise Failed("webhook returned response.patch but not response.patchType")
            operations = msgspec.json.decode(base64.b64decode(patch, validate=True))
            changed = json_patch.apply(attempt.obj, operations)
        except (Failed, binascii.Error, msgspec.MsgspecError, errors.BadPatch, TypeError) as problem:
            raise status.internal(f'failed calling webhook "{webhook["name"]}": {problem}') from None
        if not isinstance(changed, dict) or _identity(changed) != _identity(attempt.obj):
            why = "it may change neither the name nor the namespace nor the uid of an object"
            raise status.internal(f'failed calling webhook "{webhook["name"]}": {why}')
        attempt.obj.clear()
        attempt.obj.update(changed)
        reading = attempt.served.model.read(attempt.obj, ())
        if reading.problem is not None:
            raise status.internal(f'admission webhook "{webhook["name"]}" made it unreadable: {reading.problem}')
        attempt.served.model.default(attempt.obj)

    async def _ask(self, webhook: Json, attempt: Attempt) -> Json:
        """The response; nothing, if it is not concerned, or failed and that is to be ignored. Raises a refusal."""
        name, request = webhook["name"], _request(attempt)
        try:
            if not conditions.hold(webhook, request):
                return {}
        except conditions.Undecided as problem:
            if webhook.get("failurePolicy") == "Ignore":
                return {}
            raise status.forbidden(attempt.served.resource, attempt.name, str(problem)) from None
        if attempt.dry_run and webhook.get("sideEffects") not in ("None", "NoneOnDryRun"):
            raise status.bad_request(f'admission webhook "{name}" does not support dry run')
        uid = str(uuid.uuid4())
        try:
            answer = await self._post(webhook, {"uid": uid, **request})
            response = _response(answer, uid)
        except Failed as problem:
            if webhook.get("failurePolicy") == "Ignore":
                return {}
            raise status.internal(f'failed calling webhook "{name}": {problem}') from None
        attempt.warnings.extend(str(each) for each in response.get("warnings") or [])
        if not response.get("allowed"):
            raise _denied(name, response.get("status"))
        return response

    async def _post(self, webhook: Json, request: Json) -> Any:
        timeout_s = webhook.get("timeoutSeconds") or _USUAL_TIMEOUT_S
        config = webhook.get("clientConfig") or {}
        shown = f"{addresses.shown(config)}?timeout={timeout_s}s"
        review = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request}
        try:
            place = addresses.of(config, self._store)
            async with (
                asyncio.timeout(timeout_s),
                self._client().post(
                    place.url,
                    params={"timeout": f"{timeout_s}s"},
                    data=objects.encode(review),
                    headers={"Content-Type": "application/json", "Accept": "application/json"},
                    ssl=self._context(config.get("caBundle") or ""),
                    server_hostname=place.server_name,
                    allow_redirects=False,
                ) as answer,
            ):
                body = await answer.content.read(_LARGEST_ANSWER)
                if answer.status != 200:
                    raise Failed(f"failed to call webhook: the server answered with {answer.status}")
                return msgspec.json.decode(body)
        except TimeoutError:
            raise Failed(f'failed to call webhook: Post "{shown}": context deadline exceeded') from None
        except (aiohttp.ClientError, OSError, LookupError, ValueError, msgspec.MsgspecError) as problem:
            said = problem.args[0] if isinstance(problem, LookupError) else problem
            raise Failed(f'failed to call webhook: Post "{shown}": {said}') from None

    def _client(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(trust_env=False)
        return self._session

    def _context(self, bundle: str) -> ssl.SSLContext:
        """Trusts the webhook's own authority, or without one those of this machine."""
        if bundle not in self._tls:
            pem = base64.b64decode(bundle).decode() if bundle else None
            self._tls = {bundle: ssl.create_default_context(cadata=pem), **dict(list(self._tls.items())[:63])}
        return self._tls[bundle]

    def _concerned(self, row: kinds.Resource, attempt: Attempt) -> list[Json]:
        entries = self._store.list(row.root)
        if not entries or attempt.served.resource.group in _REVIEWS:
            return []
        labels = self._namespace_labels(attempt)
        found = []
        for entry in entries:
            for webhook in objects.loaded(entry.value, row).get("webhooks") or []:
                if rules.concerns(webhook, attempt, labels):
                    found.append(webhook)
        return found

    def _namespace_labels(self, attempt: Attempt) -> Mapping[str, str] | None:
        if attempt.served.resource is kinds.NAMESPACES:
            obj = attempt.obj if attempt.obj is not None else attempt.old
            return (obj or {}).get("metadata", {}).get("labels") or {}
        if not attempt.served.resource.namespaced:
            return None
        entry = self._store.latest(kinds.NAMESPACES.key("", attempt.namespace))
        found = objects.loaded(entry.value, kinds.NAMESPACES) if entry is not None else {}
        return found.get("metadata", {}).get("labels") or {}


def _identity(obj: Json) -> list[object]:
    metadata = obj.get("metadata")
    kept = [metadata.get(name) for name in ("name", "namespace", "uid")] if isinstance(metadata, dict) else []
    return [obj.get("kind"), obj.get("apiVersion"), *kept]


def _request(attempt: Attempt) -> Json:
    resource, user = attempt.served.resource, attempt.user
    kind = {"group": resource.group, "version": resource.version, "kind": resource.kind}
    which = {"group": resource.group, "version": resource.version, "resource": resource.plural}
    sub = {"subResource": attempt.subresource, "requestSubResource": attempt.subresource} if attempt.subresource else {}
    info: Json = {"username": user.name, "groups": list(user.groups)}
    if user.uid:
        info["uid"] = user.uid
    if user.extra:
        info["extra"] = {name: list(values) for name, values in user.extra.items()}
    request: Json = {
        "kind": kind,
        "resource": which,
        "requestKind": kind,
        "requestResource": which,
        **sub,
        "name": attempt.name,
        "operation": attempt.operation,
        "userInfo": info,
        "object": attempt.obj,
        "oldObject": attempt.old,
        "dryRun": attempt.dry_run,
        "options": {"kind": f"{attempt.operation.capitalize()}Options", "apiVersion": "meta.k8s.io/v1"},
    }
    if attempt.namespace:
        request["namespace"] = attempt.namespace
    return request


def _response(answer: Any, uid: str) -> Json:
    response = answer.get("response") if isinstance(answer, dict) else None
    if not isinstance(response, dict):
        raise Failed("invalid response: it holds no response")
    if response.get("uid") != uid:
        raise Failed(f'expected response.uid="{uid}", got "{response.get("uid", "")}"')
    return response


def _denied(name: str, given: object) -> status.Failure:
    """With the webhook's own code and reason, where it gives any."""
    said: Json = given if isinstance(given, dict) else {}
    start = f'admission webhook "{name}" denied the request'
    message, reason = str(said.get("message") or ""), str(said.get("reason") or "")
    text = f"{start}: {message or reason}" if message or reason else f"{start} without explanation"
    code = said.get("code")
    code = code if isinstance(code, int) and 400 <= code < 600 else 403
    if not reason and code == 403:
        reason = "Forbidden"
    details = said.get("details")
    return status.Failure(code, reason, text, details if isinstance(details, dict) else None)
