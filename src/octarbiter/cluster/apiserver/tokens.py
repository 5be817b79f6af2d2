"""How does a program in a pod prove who it is?

By a token that says for which ServiceAccount, until when, and perhaps for which pod it was issued, signed with a key of
our own (JWT, ES256). It is worth nothing any more when the account or the pod is gone, or another has its name.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections import OrderedDict
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, utils

from octarbiter.api.meta import Json
from octarbiter.cluster.apiserver import certificates, kinds, objects, status
from octarbiter.cluster.apiserver.authn import AUDIENCE, AUTHENTICATED, User
from octarbiter.cluster.apiserver.validation.problems import Problem
from octarbiter.cluster.store.store import Store

GROUP: Final = "authentication.k8s.io"
_USUAL_S: Final = 3600
_SHORTEST_S: Final = 600
_LONGEST_S: Final = 1 << 32
_LONGEST_TOKEN: Final = 8192
_MOST_KNOWN: Final = 1024
_HALF: Final = 32
"""Bytes of each of the two numbers of a signature."""
_EXTRA: Final = "authentication.kubernetes.io/"
_ACCOUNTS: Final = next(row for row in kinds.BUILT_IN if row.plural == "serviceaccounts")
_BINDABLE: Final = {row.kind: row for row in kinds.BUILT_IN if not row.group and row.kind in ("Pod", "Secret", "Node")}


class Tokens:
    def __init__(self, directory: Path, store: Store, clock: Callable[[], datetime]) -> None:
        self._store = store
        self._clock = clock
        self._key = _kept_key(directory / "accounts.key")
        public = self._key.public_key().public_bytes(
            serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        self._header = _encoded({"alg": "ES256", "kid": _text(hashlib.sha256(public).digest())})
        self._known: OrderedDict[str, Json] = OrderedDict()  # signed by us, whatever else is to be said about them

    def issue(self, account: Json, request: Json) -> Json:
        """The TokenRequest with its answer. Raises a refusal (400, 404, 409, 422)."""
        spec = request.get("spec") or {}
        lifetime_s = spec.get("expirationSeconds") or _USUAL_S
        _check_lifetime(lifetime_s)
        audiences = list(spec.get("audiences") or [AUDIENCE])
        meta, now = account["metadata"], self._clock()
        until = now + timedelta(seconds=lifetime_s)
        private: Json = {
            "namespace": meta["namespace"],
            "serviceaccount": {"name": meta["name"], "uid": meta["uid"]},
        }
        bound = spec.get("boundObjectRef")
        if bound:
            private |= self._binding(bound, meta["namespace"])
        claims = {
            "aud": audiences,
            "exp": int(until.timestamp()),
            "iat": int(now.timestamp()),
            "iss": AUDIENCE,
            "jti": objects.new_uid(),
            "kubernetes.io": private,
            "nbf": int(now.timestamp()),
            "sub": _user_name(private),
        }
        return {
            "kind": "TokenRequest",
            "apiVersion": f"{GROUP}/v1",
            "metadata": {name: meta[name] for name in ("name", "namespace", "uid", "creationTimestamp")},
            "spec": {"audiences": audiences, "expirationSeconds": lifetime_s, "boundObjectRef": bound or None},
            "status": {"token": self._signed(claims), "expirationTimestamp": objects.timestamp(until)},
        }

    def user(self, token: str, audiences: Sequence[str] = (AUDIENCE,)) -> User | None:
        """None: it is not worth anything, or not for any of these audiences."""
        claims = self._claims(token)
        if claims is None:
            return None
        now = self._clock().timestamp()
        if not claims["nbf"] - 60 <= now < claims["exp"] or not set(audiences) & set(claims["aud"]):
            return None
        private = claims["kubernetes.io"]
        if not self._is_alive(private):
            return None
        extra = {f"{_EXTRA}credential-id": [f"JTI={claims['jti']}"]}
        if pod := private.get("pod"):
            extra |= {f"{_EXTRA}pod-name": [pod["name"]], f"{_EXTRA}pod-uid": [pod["uid"]]}
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{private['namespace']}", AUTHENTICATED)
        return User(claims["sub"], groups, private["serviceaccount"]["uid"], extra)

    def _is_alive(self, private: Json) -> bool:
        namespace = private["namespace"]
        bound = {kind: row for kind, row in _BINDABLE.items() if kind.lower() in private}
        for kind, row in {**bound, "serviceaccount": _ACCOUNTS}.items():
            named = private[kind.lower()]
            entry = self._store.get(row.key(namespace, named["name"]))
            if entry is None or objects.meta(entry.value).uid != named["uid"]:
                return False
        return True

    def _binding(self, bound: Json, namespace: str) -> Json:
        kind, name, uid = (str(bound.get(field) or "") for field in ("kind", "name", "uid"))
        row = _BINDABLE.get(kind)
        if row is None or bound.get("apiVersion") != "v1":
            group, _, version = str(bound.get("apiVersion") or "").rpartition("/")
            raise status.bad_request(f"cannot bind token to object of type {group}/{version}, Kind={kind}")
        entry = self._store.get(row.key(namespace, name))
        if entry is None:
            raise status.not_found(row, name)
        present = objects.meta(entry.value).uid
        if uid and uid != present:
            why = (
                f"the UID in the bound object reference ({uid}) does not match the UID in record. "
                "The object might have been deleted and then recreated"
            )
            message = f'Operation cannot be fulfilled on {kind} "{name}": {why}'
            raise status.Failure(409, "Conflict", message, {"name": name, "kind": kind})
        return {kind.lower(): {"name": name, "uid": present}}

    def _signed(self, claims: Json) -> str:
        body = f"{self._header}.{_encoded(claims)}"
        first, second = utils.decode_dss_signature(self._key.sign(body.encode(), ec.ECDSA(hashes.SHA256())))
        return f"{body}.{_text(first.to_bytes(_HALF) + second.to_bytes(_HALF))}"

    def _claims(self, token: str) -> Json | None:
        """None unless we have signed it."""
        if token in self._known:
            self._known.move_to_end(token)
            return self._known[token]
        head, dot, signature = token.rpartition(".")
        if not dot or len(token) > _LONGEST_TOKEN or not head.startswith(f"{self._header}."):
            return None
        try:
            raw = _bytes(signature)
            numbers = int.from_bytes(raw[:_HALF]), int.from_bytes(raw[_HALF:])
            public = self._key.public_key()
            public.verify(utils.encode_dss_signature(*numbers), head.encode(), ec.ECDSA(hashes.SHA256()))
        except (InvalidSignature, binascii.Error, ValueError):
            return None
        claims: Json = msgspec.json.decode(_bytes(head.rpartition(".")[2]))
        self._known[token] = claims
        if len(self._known) > _MOST_KNOWN:
            self._known.popitem(last=False)
        return claims


def _user_name(private: Json) -> str:
    return f"system:serviceaccount:{private['namespace']}:{private['serviceaccount']['name']}"


def _check_lifetime(lifetime_s: object) -> None:
    rule = ""
    if not isinstance(lifetime_s, int) or lifetime_s < _SHORTEST_S:
        rule = "may not specify a duration less than 10 minutes"
    elif lifetime_s > _LONGEST_S:
        rule = "may not specify a duration larger than 2^32 seconds"
    if rule:
        problem = Problem("FieldValueInvalid", "spec.expirationSeconds", f"Invalid value: {lifetime_s}: {rule}")
        details = {
            "group": GROUP,
            "kind": "TokenRequest",
            "causes": [{"reason": problem.reason, "message": problem.message, "field": problem.field}],
        }
        message = f'TokenRequest.{GROUP} "" is invalid: {problem.field}: {problem.message}'
        raise status.Failure(422, "Invalid", message, details)


def _kept_key(file: Path) -> ec.EllipticCurvePrivateKey:
    if file.exists():
        kept = serialization.load_pem_private_key(file.read_bytes(), None)
        if not isinstance(kept, ec.EllipticCurvePrivateKey):
            raise ValueError(f"{file} holds a key of another kind; remove it, and all tokens are worthless")
        return kept
    key = ec.generate_private_key(ec.SECP256R1())
    certificates.write_secret(file, certificates.private_pem(key))
    return key


def _encoded(value: Any) -> str:
    return _text(msgspec.json.encode(value))


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _bytes(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
