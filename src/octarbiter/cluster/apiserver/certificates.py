"""How do a server and its clients on one machine recognise each other?

By an authority of the server's own, made once and kept in its directory with everything else that must stay the same
when it is started again: the server's certificate, the administrator's token, and the kubeconfig that holds both.
What is secret is readable by its owner alone from the first byte on.
"""

from __future__ import annotations

import base64
import datetime
import ipaddress
import os
import secrets
import ssl
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_AUTHORITY_LIFETIME: Final = datetime.timedelta(days=3650)
_SERVER_LIFETIME: Final = datetime.timedelta(days=365)
_RENEW_BEFORE: Final = datetime.timedelta(days=30)
_CLOCK_SKEW: Final = datetime.timedelta(minutes=5)
_NAMES: Final = ("localhost", "127.0.0.1", "kubernetes", "kubernetes.default", "kubernetes.default.svc")
_CLUSTER: Final = "octarbiter"


class Identity:
    """The files of a server's directory; they are made where they are missing."""

    def __init__(self, directory: Path, host: str) -> None:
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._directory = directory
        self._names = tuple(dict.fromkeys([host, *_NAMES]))
        self.kubeconfig = directory / "kubeconfig"
        key, certificate = self._authority()
        self.ca_pem = certificate.public_bytes(serialization.Encoding.PEM)
        self._ensure_server_certificate(key, certificate)
        self.token = self._kept_token()

    def server_context(self) -> ssl.SSLContext:
        """Client certificates are welcome and checked, but nobody needs one."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cadata=self.ca_pem.decode())
        context.load_cert_chain(self._directory / "apiserver.crt", self._directory / "apiserver.key")
        context.verify_mode = ssl.CERT_OPTIONAL
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(["http/1.1"])
        return context

    def write_kubeconfig(self, url: str) -> None:
        cluster = {"server": url, "certificate-authority-data": base64.b64encode(self.ca_pem).decode()}
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": _CLUSTER,
            "clusters": [{"name": _CLUSTER, "cluster": cluster}],
            "users": [{"name": _CLUSTER, "user": {"token": self.token}}],
            "contexts": [{"name": _CLUSTER, "context": {"cluster": _CLUSTER, "user": _CLUSTER}}],
        }
        write_secret(self.kubeconfig, yaml.safe_dump(content).encode())

    def _authority(self) -> tuple[ec.EllipticCurvePrivateKey, x509.Certificate]:
        key_file, certificate_file = self._directory / "ca.key", self._directory / "ca.crt"
        if key_file.exists() and certificate_file.exists():
            key = serialization.load_pem_private_key(key_file.read_bytes(), None)
            if not isinstance(key, ec.EllipticCurvePrivateKey):
                raise ValueError(f"{key_file} holds a key of another kind; remove {self._directory} to start anew")
            return key, x509.load_pem_x509_certificate(certificate_file.read_bytes())
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "octarbiter cluster")])
        certificate = (
            _builder(name, name, key.public_key(), _AUTHORITY_LIFETIME)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_usage(signs_certificates=True), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .sign(key, hashes.SHA256())
        )
        write_secret(key_file, private_pem(key))
        write_secret(certificate_file, certificate.public_bytes(serialization.Encoding.PEM))
        return key, certificate

    def _ensure_server_certificate(self, authority: ec.EllipticCurvePrivateKey, issuer: x509.Certificate) -> None:
        key_file, certificate_file = self._directory / "apiserver.key", self._directory / "apiserver.crt"
        if key_file.exists() and certificate_file.exists():
            present = x509.load_pem_x509_certificate(certificate_file.read_bytes())
            left = present.not_valid_after_utc - datetime.datetime.now(datetime.UTC)
            names = present.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
            if left > _RENEW_BEFORE and list(names) == _alternatives(self._names):
                return
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, self._names[0])])
        certificate = (
            _builder(subject, issuer.subject, key.public_key(), _SERVER_LIFETIME)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .add_extension(x509.SubjectAlternativeName(_alternatives(self._names)), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.public_key()), critical=False)
            .sign(authority, hashes.SHA256())
        )
        write_secret(key_file, private_pem(key))
        write_secret(certificate_file, certificate.public_bytes(serialization.Encoding.PEM))

    def _kept_token(self) -> str:
        file = self._directory / "token"
        if file.exists() and (kept := file.read_text().strip()):
            return kept
        token = secrets.token_hex(32)
        write_secret(file, token.encode())
        return token


def write_secret(file: Path, content: bytes) -> None:
    """All of it or nothing, and never readable by others, whatever was there before."""
    fresh = file.with_name(f".{file.name}.{secrets.token_hex(4)}")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as handle:
        handle.write(content)
    fresh.replace(file)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, lifetime: datetime.timedelta
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCK_SKEW)
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


def _alternatives(names: Sequence[str]) -> list[x509.GeneralName]:
    return [_alternative(name) for name in names]


def _alternative(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def private_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
