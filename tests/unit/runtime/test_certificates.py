"""Who vouches for whom?"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.exceptions import InvalidSignature

from octarbiter.runtime import certificates
from octarbiter.runtime.certificates import Authority

HOUR = timedelta(hours=1)
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_an_authority_vouches_for_what_it_issued_and_for_nothing_else() -> None:
    one, other = Authority.new("one", HOUR), Authority.new("one", HOUR)
    issued = x509.load_pem_x509_certificate(one.issue("s", HOUR, purpose=certificates.SERVER).certificate)

    issued.verify_directly_issued_by(one.certificate)
    with pytest.raises(InvalidSignature):
        issued.verify_directly_issued_by(other.certificate)


def test_an_authority_is_the_same_after_it_was_kept() -> None:
    one = Authority.new("one", HOUR)
    again = Authority.load(one.pem, one.key_pem)
    issued = again.issue("s", HOUR, purpose=certificates.CLIENT, organizations=["o"])

    x509.load_pem_x509_certificate(issued.certificate).verify_directly_issued_by(one.certificate)


def test_a_server_has_its_names_and_addresses_and_its_time() -> None:
    issued = Authority.new("a", HOUR, NOW).issue(
        "s", HOUR, purpose=certificates.SERVER, names=["s.svc", "127.0.0.1", "::1"], now=NOW
    )
    certificate = x509.load_pem_x509_certificate(issued.certificate)

    assert certificates.names_of(certificate) == certificates.alternatives(["s.svc", "127.0.0.1", "::1"])
    assert certificate.not_valid_after_utc == NOW + HOUR
    assert certificate.not_valid_before_utc == NOW - certificates.CLOCK_SKEW


def test_a_secret_file_is_its_owners_alone_whatever_was_there(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_bytes(b"older and longer")
    file.chmod(0o644)
    certificates.write_secret(file, b"new")

    assert file.read_bytes() == b"new"
    assert file.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [file]
