"""How do a server and its clients on one machine recognise each other?

By an authority of the server's own, made once and kept in its directory with everything else that must stay the same
when it is started again: the server's certificate, the administrator's token, and the kubeconfig that holds both.
What is secret is readable by its owner alone from the first byte on.
"""

from __future__ import annotations

import base64
import datetime
import secrets
import ssl
from pathlib import Path
from typing import Final

import yaml
from cryptography import x509

from octarbiter.runtime import certificates
from octarbiter.runtime.certificates import Authority
from octarbiter.runtime.certificates import private_pem as private_pem
from octarbiter.runtime.certificates import write_secret as write_secret

_AUTHORITY_LIFETIME: Final = datetime.timedelta(days=3650)
_SERVER_LIFETIME: Final = datetime.timedelta(days=365)
_RENEW_BEFORE: Final = datetime.timedelta(days=30)
_NAMES: Final = ("localhost", "127.0.0.1", "kubernetes", "kubernetes.default", "kubernetes.default.svc")
_CLUSTER: Final = "octarbiter"


class Identity:
    """The files of a server's directory; they are made where they are missing."""

    def __init__(self, directory: Path, host: str) -> None:
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._directory = directory
        self._names = tuple(dict.fromkeys([host, *_NAMES]))
        self.kubeconfig = directory / "kubeconfig"
        authority = self._authority()
        self.ca_pem = authority.pem
        self._ensure_server_certificate(authority)
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

    def _authority(self) -> Authority:
        key_file, certificate_file = self._directory / "ca.key", self._directory / "ca.crt"
        if key_file.exists() and certificate_file.exists():
            try:
                return Authority.load(certificate_file.read_bytes(), key_file.read_bytes())
            except ValueError as problem:
                raise ValueError(f"{key_file}: {problem}; remove {self._directory} to start anew") from problem
        authority = Authority.new("octarbiter cluster", _AUTHORITY_LIFETIME)
        write_secret(key_file, authority.key_pem)
        write_secret(certificate_file, authority.pem)
        return authority

    def _ensure_server_certificate(self, authority: Authority) -> None:
        key_file, certificate_file = self._directory / "apiserver.key", self._directory / "apiserver.crt"
        if key_file.exists() and certificate_file.exists():
            present = x509.load_pem_x509_certificate(certificate_file.read_bytes())
            left = present.not_valid_after_utc - datetime.datetime.now(datetime.UTC)
            if left > _RENEW_BEFORE and certificates.names_of(present) == certificates.alternatives(self._names):
                return
        issued = authority.issue(self._names[0], _SERVER_LIFETIME, purpose=certificates.SERVER, names=self._names)
        write_secret(key_file, issued.key)
        write_secret(certificate_file, issued.certificate)

    def _kept_token(self) -> str:
        file = self._directory / "token"
        if file.exists() and (kept := file.read_text().strip()):
            return kept
        token = secrets.token_hex(32)
        write_secret(file, token.encode())
        return token
