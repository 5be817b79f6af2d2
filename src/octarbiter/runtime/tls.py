"""Whom do we trust, and with which certificate do we show ourselves?"""

from __future__ import annotations

import ssl
import tempfile

from octarbiter.api import errors
from octarbiter.api.errors import FieldProblem
from octarbiter.runtime.credentials import Identity
from octarbiter.runtime.kubeconfig import Connection


def client_context(connection: Connection, identity: Identity) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cadata=connection.ca_pem.decode() if connection.ca_pem else None)
    except (ssl.SSLError, UnicodeDecodeError) as problem:
        raise errors.Refused(
            [FieldProblem("certificate-authority", f"is no PEM certificate: {problem}")], connection.origin
        ) from problem
    # Python 3.13 refuses authorities without certain extensions; many clusters have such, and every other client
    # of theirs accepts them. The chain and the name are verified all the same.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if not connection.verify_tls:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if identity.key:
        _load_certificate(context, identity, connection.origin)
    return context


def _load_certificate(context: ssl.SSLContext, identity: Identity, origin: str) -> None:
    # The ssl module reads only files. This one is ours alone (0600) and gone as soon as it is read.
    with tempfile.NamedTemporaryFile(prefix="octarbiter-") as file:
        file.write(identity.certificate.rstrip() + b"\n" + identity.key)
        file.flush()
        try:
            context.load_cert_chain(file.name, password=lambda: b"")  # without it an encrypted key would ask on stdin
        except (ssl.SSLError, ValueError, OSError) as problem:
            raise errors.Refused(
                [FieldProblem("client-certificate", f"it and its client-key cannot be used together: {problem}")],
                origin,
            ) from problem
