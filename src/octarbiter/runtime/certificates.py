"""Who vouches for whom? Keys, authorities, and the certificates that an authority issues.

Only elliptic curves, whose keys cost next to nothing to make, so they are made anew with every certificate and never
kept longer. What is secret is readable by its owner alone from the first byte on.
"""

from __future__ import annotations

import datetime
import ipaddress
import os
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

CLOCK_SKEW: Final = datetime.timedelta(minutes=5)
"""Clocks of machines that trust each other may differ by so much."""

SERVER, CLIENT = ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH


class Issued(msgspec.Struct, frozen=True):
    """PEM, both."""

    certificate: bytes
    key: bytes


class Authority:
    def __init__(self, key: ec.EllipticCurvePrivateKey, certificate: x509.Certificate) -> None:
        self.certificate = certificate
        self._key = key

    @classmethod
    def new(cls, common_name: str, lifetime: datetime.timedelta, now: datetime.datetime | None = None) -> Authority:
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
        certificate = (
            _builder(name, name, key.public_key(), lifetime, now)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_usage(signs_certificates=True), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .sign(key, hashes.SHA256())
        )
        return cls(key, certificate)

    @classmethod
    def load(cls, certificate: bytes, key: bytes) -> Authority:
        """Both PEM. Raises ValueError."""
        loaded = serialization.load_pem_private_key(key, None)
        if not isinstance(loaded, ec.EllipticCurvePrivateKey):
            raise ValueError("the authority's key is of another kind than we make")
        return cls(loaded, x509.load_pem_x509_certificate(certificate))

    @property
    def pem(self) -> bytes:
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    @property
    def key_pem(self) -> bytes:
        return private_pem(self._key)

    def issue(
        self,
        common_name: str,
        lifetime: datetime.timedelta,
        *,
        purpose: x509.ObjectIdentifier,
        names: Sequence[str] = (),
        organizations: Sequence[str] = (),
        now: datetime.datetime | None = None,
    ) -> Issued:
        """`names`: host names and addresses by which a server is reached."""
        key = ec.generate_private_key(ec.SECP256R1())
        attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, name) for name in organizations]
        subject = x509.Name([*attributes, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        builder = (
            _builder(subject, self.certificate.subject, key.public_key(), lifetime, now)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
            .add_extension(issuer, critical=False)
        )
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(alternatives(names)), critical=False)
        certificate = builder.sign(self._key, hashes.SHA256())
        return Issued(certificate.public_bytes(serialization.Encoding.PEM), private_pem(key))


def alternatives(names: Sequence[str]) -> list[x509.GeneralName]:
    return [_alternative(name) for name in names]


def names_of(certificate: x509.Certificate) -> list[x509.GeneralName]:
    """Of a server's certificate."""
    return list(certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value)


def private_pem(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def write_secret(file: Path, content: bytes) -> None:
    """All of it or nothing, and never readable by others, whatever was there before."""
    fresh = file.with_name(f".{file.name}.{secrets.token_hex(4)}")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as handle:
        handle.write(content)
    fresh.replace(file)


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePublicKey,
    lifetime: datetime.timedelta,
    now: datetime.datetime | None,
) -> x509.CertificateBuilder:
    now = now or datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCK_SKEW)
        .not_valid_after(now + lifetime)
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _alternative(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)
