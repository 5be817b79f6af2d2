"""When does the webhook's certificate change, and does everybody know in time?"""

from __future__ import annotations

import base64
import itertools
from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from cryptography import x509

from octarbiter.api.errors import Refused
from octarbiter.runtime import certificates as keys
from octarbiter.services.webhook import certificates
from octarbiter.services.webhook.certificates import Held, Terms

START = datetime(2026, 1, 1, tzinfo=UTC)
TERMS = Terms(("webhook.example.svc", "127.0.0.1"), lifetime_s=3600.0, rotate_s=2400.0, settle_s=60.0)


def history(held: Held, terms: Terms, hours: int) -> list[tuple[datetime, Held]]:
    """What is held from when on, if a leader looks whenever it should."""
    now, since = START, START
    seen = [(now, held)]
    while now < START + timedelta(hours=hours):
        after, again_s = certificates.step(held, terms, since, now)
        assert again_s > 0
        if after != held:
            held, since = after, now
            seen.append((now, held))
        else:
            now += timedelta(seconds=again_s)
    return seen


def is_trusted(shown: keys.Issued, trusted: tuple[bytes, ...]) -> bool:
    certificate = x509.load_pem_x509_certificate(shown.certificate)
    for authority in trusted:
        try:
            certificate.verify_directly_issued_by(x509.load_pem_x509_certificate(authority))
        except Exception:
            continue
        return True
    return False


def test_whoever_hears_of_changes_late_trusts_what_is_shown_all_the_same() -> None:
    seen = history(certificates.first(TERMS, START), TERMS, hours=5)

    assert len({held.shown.certificate for _, held in seen}) > 5
    for at, held in seen:
        for heard_at, heard in seen:
            # From `heard_at` until the next change somebody knows `heard`, and `settle_s` longer if he is late.
            following = min((when for when, _ in seen if when > heard_at), default=at)
            if heard_at <= at < following + timedelta(seconds=TERMS.settle_s):
                assert is_trusted(held.shown, heard.trusted)


@pytest.mark.parametrize("rotate_s", [0.0, 60.0, 2400.0, 3360.0])
def test_what_is_shown_is_always_valid_and_old_authorities_leave(rotate_s: float) -> None:
    terms = msgspec.structs.replace(TERMS, rotate_s=rotate_s)
    seen = history(certificates.first(terms, START), terms, hours=5)

    for (_, held), (until, _) in itertools.pairwise(seen):
        assert until < held.expires
        assert len(held.trusted) <= 2
    assert any(len(held.trusted) == 1 for _, held in seen[1:])


def test_a_life_too_short_for_a_rotation_is_refused() -> None:
    with pytest.raises(Refused, match="too short to be replaced in time: at least 3601 s"):
        msgspec.structs.replace(TERMS, rotate_s=3361.0)


def test_a_certificate_for_other_names_is_replaced_gently() -> None:
    other = msgspec.structs.replace(TERMS, names=("elsewhere.svc",))
    seen = history(certificates.first(other, START), TERMS, hours=0)
    held, _ = certificates.step(seen[0][1], TERMS, START, START)

    assert held.shown == seen[0][1].shown
    assert held.next is not None
    names = keys.names_of(x509.load_pem_x509_certificate(held.next.certificate))
    assert names == keys.alternatives(TERMS.names)


def test_an_expired_certificate_is_replaced_at_once() -> None:
    old = certificates.first(TERMS, START)
    held, _ = certificates.step(old, TERMS, START, START + timedelta(hours=2))

    assert held.shown != old.shown
    assert len(held.trusted) == 1


def test_a_secret_holds_everything_and_no_key_of_an_authority() -> None:
    first = certificates.first(TERMS, START)
    joining, _ = certificates.step(first, TERMS, START, START + timedelta(minutes=59))
    assert joining.next is not None
    for held in (first, joining):
        data = {name: value for name, value in certificates.written(held).items() if value is not None}
        assert certificates.read(data) == held
        assert b"PRIVATE KEY" not in base64.b64decode(data["ca.crt"])


@pytest.mark.parametrize("spoil", ["tls.crt", "tls.key", "ca.crt"])
def test_a_spoilt_secret_is_none(spoil: str) -> None:
    data = {name: value or "" for name, value in certificates.written(certificates.first(TERMS, START)).items()}
    other = certificates.written(certificates.first(TERMS, START))[spoil] or ""
    for value in ("", "?", base64.b64encode(b"x").decode(), other):
        assert certificates.read({**data, spoil: value}) is None
    assert certificates.read({name: value for name, value in data.items() if name != spoil}) is None
