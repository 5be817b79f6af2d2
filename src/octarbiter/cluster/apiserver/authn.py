"""Who is asking?

A bearer token or a client certificate of our own authority says it. What somebody may do is another question, see
`authorization`.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

import msgspec

from octarbiter.cluster.apiserver import status

MASTERS: Final = "system:masters"
AUTHENTICATED: Final = "system:authenticated"
UNAUTHENTICATED: Final = "system:unauthenticated"
AUDIENCE: Final = "https://kubernetes.default.svc"
"""What tokens are for, if for the API server."""


class User(msgspec.Struct, frozen=True):
    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, Sequence[str]] = {}
    """What else is known about the credential."""


ADMIN: Final = User("kubernetes-admin", (MASTERS, AUTHENTICATED), uid="kubernetes-admin")
ANONYMOUS: Final = User("system:anonymous", (UNAUTHENTICATED,))
"""Whoever says nothing about himself where that is allowed."""


class Issuer(Protocol):
    """Knows the tokens it has issued."""

    def user(self, token: str, audiences: Sequence[str]) -> User | None: ...


class Authenticator:
    def __init__(self, tokens: Mapping[str, User], issuer: Issuer | None = None) -> None:
        self._tokens = {token.encode(): user for token, user in tokens.items()}
        self._issuer = issuer

    def know(self, token: str, user: User) -> None:
        """From now on this token is that user's."""
        self._tokens[token.encode()] = user

    def user(self, authorization: str, certificate: Mapping[str, Any] | None) -> User:
        """`certificate` has been verified by TLS. Raises a refusal (401)."""
        if certificate and (user := _user_of(certificate)):
            return user
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() == "bearer" and (found := self.by_token(token.strip())):
            return found
        raise status.unauthorized()

    def by_token(self, token: str, audiences: Sequence[str] = (AUDIENCE,)) -> User | None:
        if self._issuer is not None and (user := self._issuer.user(token, audiences)):
            return user
        if AUDIENCE not in audiences:
            return None
        given = token.encode()
        found = None
        # Every one is compared, and in constant time: how long it takes tells nothing about the tokens.
        for known, user in self._tokens.items():
            if hmac.compare_digest(known, given):
                found = user
        return found


def _user_of(certificate: Mapping[str, Any]) -> User | None:
    names = [pair for part in certificate.get("subject", ()) for pair in part]
    common = next((value for kind, value in names if kind == "commonName"), "")
    groups = tuple(value for kind, value in names if kind == "organizationName")
    return User(common, (*groups, AUTHENTICATED)) if common else None
