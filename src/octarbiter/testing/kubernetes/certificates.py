"""Which keys and certificates does a control plane need, and who vouches for them?

One authority per control plane, made anew each time and gone with it: it signs the server's certificate, and clients
verify against it. Nothing is ever trusted unseen.
"""

import datetime
from collections.abc import Sequence
from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from octarbiter.runtime import certificates
from octarbiter.runtime.certificates import write_secret as write_secret

_LIFETIME = datetime.timedelta(days=30)


class Authority:
    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._authority = certificates.Authority.new("octarbiter test bed", _LIFETIME)
        self.pem = self._authority.pem
        self.file = directory / "ca.crt"
        self.file.write_bytes(self.pem)

    def issue_server(self, file_stem: str, names: Sequence[str]) -> tuple[Path, Path]:
        """Certificate and key for a server reached by these host names and addresses."""
        issued = self._authority.issue(names[0], _LIFETIME, purpose=certificates.SERVER, names=names)
        return self._written(file_stem, issued)

    def issue_client(self, file_stem: str, user: str, groups: Sequence[str] = ()) -> tuple[Path, Path]:
        """Certificate and key by which the API server recognises this user and these groups."""
        issued = self._authority.issue(user, _LIFETIME, purpose=certificates.CLIENT, organizations=groups)
        return self._written(file_stem, issued)

    def _written(self, file_stem: str, issued: certificates.Issued) -> tuple[Path, Path]:
        certificate_file, key_file = self._directory / f"{file_stem}.crt", self._directory / f"{file_stem}.key"
        certificate_file.write_bytes(issued.certificate)
        write_secret(key_file, issued.key)
        return certificate_file, key_file


def write_signing_pair(directory: Path, file_stem: str) -> tuple[Path, Path]:
    """Public and private key with which ServiceAccount tokens are signed."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    public_file, private_file = directory / f"{file_stem}.pub", directory / f"{file_stem}.key"
    public = key.public_key()
    public_file.write_bytes(
        public.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    )
    write_secret(private_file, certificates.private_pem(key))
    return public_file, private_file
