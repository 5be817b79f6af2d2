"""Which certificate does the webhook show, whom must the API server trust for that, and when do both change?

A rotation has three steps, and between two of them everybody gets time to notice, so that no request is ever refused
for it: the next authority joins those that the API server trusts; then the server shows the next certificate; then the
old authority leaves. The authority's key signs one certificate and is thrown away: nobody can steal it later.

All of it is kept in one Secret: `tls.crt` and `tls.key`, which are shown, `ca.crt`, all authorities to be trusted, and,
during the first step, `next.crt` and `next.key`.
"""

from __future__ import annotations

import base64
import binascii
import ssl
import tempfile
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

import msgspec
from cryptography import x509
from cryptography.exceptions import InvalidSignature

from octarbiter.api.errors import FieldProblem, Refused
from octarbiter.api.meta import Object
from octarbiter.api.scheme import Resource
from octarbiter.runtime import certificates

DAY_S: Final = 86400.0
SECRET: Final = "octarbiter-webhook-tls"  # noqa: S105 - a name
_AUTHORITY: Final = "octarbiter webhook"
_PEM_END: Final = b"-----END CERTIFICATE-----"


class Secret(Object, frozen=True):
    type: str = ""
    data: dict[str, str] = {}


SECRETS: Final = Resource("", "v1", "Secret", "secrets", True, Secret)


class Held(msgspec.Struct, frozen=True):
    """What the Secret holds; PEM."""

    shown: certificates.Issued
    trusted: tuple[bytes, ...]
    next: certificates.Issued | None = None

    @property
    def bundle(self) -> bytes:
        return b"".join(self.trusted)

    @property
    def expires(self) -> datetime:
        return _parsed(self.shown).not_valid_after_utc


class Terms(msgspec.Struct, frozen=True):
    names: tuple[str, ...]
    """By which the API server calls us."""
    lifetime_s: float = 90 * DAY_S
    rotate_s: float = 60 * DAY_S
    """At this age a certificate is replaced."""
    settle_s: float = 120.0
    """Between two steps: API servers and other replicas see a change within this time."""

    def __post_init__(self) -> None:
        # A certificate has spent two steps of its life when the rotation that brought it is over; the next one needs
        # one more before its successor is shown, and the fourth is for a busy API server.
        needed_s = self.rotate_s + 4 * self.settle_s
        if self.lifetime_s < needed_s:
            problem = f"{self.lifetime_s:g} s is too short to be replaced in time: at least {needed_s:g} s are needed"
            raise Refused([FieldProblem("lifetime of the webhook's certificate", problem)])


def read(data: Mapping[str, str]) -> Held | None:
    """From a Secret; None if there is nothing of use in it."""
    try:
        files = {name: base64.b64decode(value, validate=True) for name, value in data.items()}
        shown = certificates.Issued(files["tls.crt"], files["tls.key"])
        following = certificates.Issued(files["next.crt"], files["next.key"]) if files.get("next.crt") else None
        trusted = tuple(part.strip() + b"\n" + _PEM_END + b"\n" for part in files["ca.crt"].split(_PEM_END)[:-1])
        held = Held(shown, trusted, following)
        for each in (shown, following):
            if each is not None:
                server_context(each)
                _issuer(each, trusted)
    except (KeyError, ValueError, binascii.Error, ssl.SSLError, LookupError):
        return None
    return held


def written(held: Held) -> dict[str, str | None]:
    """For a Secret's `data`, also as a merge patch."""
    files: dict[str, bytes | None] = {
        "tls.crt": held.shown.certificate,
        "tls.key": held.shown.key,
        "ca.crt": held.bundle,
        "next.crt": held.next.certificate if held.next else None,
        "next.key": held.next.key if held.next else None,
    }
    return {name: None if value is None else base64.b64encode(value).decode() for name, value in files.items()}


def first(terms: Terms, now: datetime) -> Held:
    issued, authority = _new(terms, now)
    return Held(issued, (authority,))


def step(held: Held, terms: Terms, since: datetime, now: datetime) -> tuple[Held, float]:
    """What is to be held now, and in how many seconds to look again. `since`: everything has been as it is, and the API
    server told so, since then."""
    settled_in = terms.settle_s - (now - since).total_seconds()
    if held.next is not None:
        return (held, settled_in) if settled_in > 0 else (Held(held.next, held.trusted), terms.settle_s)
    if len(held.trusted) > 1:
        if settled_in > 0:
            return held, settled_in
        return Held(held.shown, (_issuer(held.shown, held.trusted),)), terms.settle_s
    due_in = (held.expires - now).total_seconds() - (terms.lifetime_s - terms.rotate_s)
    is_ours = certificates.names_of(_parsed(held.shown)) == certificates.alternatives(terms.names)
    if due_in > 0 and is_ours:
        return held, due_in
    if held.expires <= now:
        return first(terms, now), terms.settle_s  # nothing is left to be gentle with
    issued, authority = _new(terms, now)
    return Held(held.shown, (*held.trusted, authority), issued), terms.settle_s


def server_context(shown: certificates.Issued) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    show(context, shown)
    return context


def show(context: ssl.SSLContext, shown: certificates.Issued) -> None:
    """From the next connection on. Raises ssl.SSLError if key and certificate do not belong together."""
    # The ssl module reads only files. This one is ours alone (0600) and gone as soon as it is read.
    with tempfile.NamedTemporaryFile(prefix="octarbiter-") as file:
        file.write(shown.certificate.rstrip() + b"\n" + shown.key)
        file.flush()
        context.load_cert_chain(file.name)


def _new(terms: Terms, now: datetime) -> tuple[certificates.Issued, bytes]:
    lifetime = timedelta(seconds=terms.lifetime_s)
    # Each has a name of its own, so that nobody who verifies takes one for another.
    authority = certificates.Authority.new(f"{_AUTHORITY} {now.isoformat()}", lifetime, now)
    issued = authority.issue(terms.names[0], lifetime, purpose=certificates.SERVER, names=terms.names, now=now)
    return issued, authority.pem


def _issuer(issued: certificates.Issued, trusted: Sequence[bytes]) -> bytes:
    """Raises LookupError."""
    certificate = _parsed(issued)
    for authority in trusted:
        try:
            certificate.verify_directly_issued_by(x509.load_pem_x509_certificate(authority))
        except (ValueError, TypeError, InvalidSignature):
            continue
        return authority
    raise LookupError("no authority that is trusted has issued the certificate")


def _parsed(issued: certificates.Issued) -> x509.Certificate:
    return x509.load_pem_x509_certificate(issued.certificate)
