"""Where is the API server, and what do we show it? Found the way kubectl finds it.

An explicit file, else every file of $KUBECONFIG (the first to say something wins), else ~/.kube/config; and where none
of them exists, the service account of the pod we run in. Everything wrong with it is told at once.
"""

from __future__ import annotations

import binascii
import logging
import os
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from octarbiter.api import errors
from octarbiter.api.errors import FieldProblem
from octarbiter.api.meta import Json
from octarbiter.runtime import credentials as creds
from octarbiter.runtime import kubeconfig_files, proxies

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
EXEC_EXTENSION = "client.authentication.k8s.io/exec"

log = logging.getLogger(__name__)


class Connection(msgspec.Struct, frozen=True, kw_only=True):
    """All that is needed to speak to one API server."""

    server: str
    credentials: creds.Credentials
    namespace: str = "default"
    ca_pem: bytes = b""
    """Empty: the system's certificate authorities."""
    verify_tls: bool = True
    tls_server_name: str = ""
    proxy: str = ""
    origin: str = ""
    """Where this was read, for messages: `context kind of /home/ada/.kube/config`."""


def load(
    path: str | None = None,
    context: str | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    service_account: Path = SERVICE_ACCOUNT,
) -> Connection:
    """Raises Refused with every problem found."""
    environment = os.environ if environment is None else environment
    files = _files(path, environment)
    if files:
        return _from_files(files, context, environment)
    if context is None and environment.get("KUBERNETES_SERVICE_HOST"):
        return _in_cluster(service_account, environment)
    looked_at = environment.get("KUBECONFIG") or _default_file(environment)
    advice = "Name one with --kubeconfig or $KUBECONFIG, or start a cluster with `octo up`"
    raise errors.Refused([FieldProblem("", f"no kubeconfig found: {looked_at} does not exist. {advice}")])


def _default_file(environment: Mapping[str, str]) -> Path:
    return Path(environment.get("HOME", "~")).expanduser() / ".kube" / "config"


def _files(path: str | None, environment: Mapping[str, str]) -> tuple[Path, ...]:
    if path:
        return (Path(path).expanduser(),)  # must exist: somebody asked for it
    named = environment.get("KUBECONFIG", "")
    places = [Path(place) for place in named.split(os.pathsep) if place] or [_default_file(environment)]
    return tuple(place for place in places if place.exists())


def _from_files(files: tuple[Path, ...], asked: str | None, environment: Mapping[str, str]) -> Connection:
    merged = kubeconfig_files.Merged(files)
    name = asked or merged.current_context
    shown = ", ".join(map(str, files))
    if name not in merged.contexts:
        known = ", ".join(sorted(merged.contexts)) or "none at all"
        wrong = f"there is no context {name!r}" if name else "no context is chosen"
        raise errors.Refused(
            [FieldProblem("", f"{wrong}; there are: {known}. Choose with --context or `kubectl config use-context`")],
            f"kubeconfig {shown}",
        )
    context = merged.contexts[name].part
    reader = _Reader(f"context {name} of {shown}")
    cluster = merged.clusters.get(context.cluster)
    user = merged.users.get(context.user) if context.user else kubeconfig_files.Found(kubeconfig_files.User(), Path())
    if cluster is None:
        reader.problem(f"contexts[{name}].cluster", f"there is no cluster {context.cluster!r}")
    if user is None:
        reader.problem(f"contexts[{name}].user", f"there is no user {context.user!r}")
    if cluster is None or user is None:
        raise reader.refused()
    at = f"clusters[{context.cluster}]"
    ca_pem = reader.pem(
        f"{at}.certificate-authority",
        cluster.part.certificate_authority,
        cluster.part.certificate_authority_data,
        cluster.directory,
    )
    _check_cluster(reader, at, cluster.part, bool(ca_pem))
    credentials = _credentials(reader, merged, name, context.user, user, _told_to_plugins(cluster.part, ca_pem))
    if reader.problems or credentials is None:
        raise reader.refused()
    if cluster.part.insecure_skip_tls_verify:
        log.warning("the API server's certificate is not verified", extra={"server": cluster.part.server})
    server = cluster.part.server.rstrip("/")
    return Connection(
        server=server,
        # As kubectl does: over plain HTTP everybody on the way could read them.
        credentials=credentials if server.startswith("https:") else creds.Direct(),
        namespace=context.namespace or "default",
        ca_pem=_contents(ca_pem),
        verify_tls=not cluster.part.insecure_skip_tls_verify,
        tls_server_name=cluster.part.tls_server_name,
        proxy=cluster.part.proxy_url or proxies.proxy_for(server, environment),
        origin=reader.origin,
    )


def _check_cluster(reader: _Reader, at: str, cluster: kubeconfig_files.Cluster, has_ca: bool) -> None:
    if not cluster.server.startswith(("https://", "http://")):
        reader.problem(f"{at}.server", f"must be an https:// URL, is {cluster.server!r}")
    if cluster.insecure_skip_tls_verify and has_ca:
        reader.problem(f"{at}.insecure-skip-tls-verify", "contradicts the certificate-authority beside it: remove one")
    if cluster.proxy_url and not cluster.proxy_url.startswith(("http://", "https://")):
        reader.problem(f"{at}.proxy-url", f"only http:// and https:// proxies are known, not {cluster.proxy_url!r}")


def _credentials(
    reader: _Reader,
    merged: kubeconfig_files.Merged,
    context: str,
    name: str,
    found: kubeconfig_files.Found[kubeconfig_files.User],
    cluster: Json,
) -> creds.Credentials | None:
    user, at = found.part, f"users[{name}]"
    impersonation = tuple(_impersonation(user))
    if user.exec is not None and user.auth_provider is not None:
        reader.problem(at, "has both exec and auth-provider: remove one")
    if user.auth_provider is not None:
        return creds.AuthProvider(user.auth_provider.name, merged.files, context, name, headers=impersonation)
    if user.exec is not None and not user.token and not user.token_file:
        if user.exec.api_version not in creds.EXEC_VERSIONS:
            known = " or ".join(creds.EXEC_VERSIONS)
            reader.problem(f"{at}.exec.apiVersion", f"must be {known}, is {user.exec.api_version!r}")
        if not user.exec.command:
            reader.problem(f"{at}.exec.command", "is missing")
        return creds.ExecPlugin(user.exec, found.directory, cluster, headers=impersonation)
    authorization: creds.Headers = ()
    token_file = found.directory / user.token_file if user.token_file else None
    if token_file is not None:
        reader.readable(f"{at}.tokenFile", token_file)
    elif user.token:
        authorization = creds.bearer(user.token)
    elif user.username:
        authorization = creds.basic(user.username, user.password)
    certificate = reader.pem(
        f"{at}.client-certificate", user.client_certificate, user.client_certificate_data, found.directory
    )
    key = reader.pem(f"{at}.client-key", user.client_key, user.client_key_data, found.directory)
    if bool(certificate) != bool(key):
        reader.problem(at, "has only one of client-certificate and client-key: both are needed")
    if reader.problems:
        return None
    return creds.Direct(headers=authorization + impersonation, token_file=token_file, certificate=certificate, key=key)


def _impersonation(user: kubeconfig_files.User) -> Iterator[tuple[str, str]]:
    if user.as_:
        yield "Impersonate-User", user.as_
    if user.as_uid:
        yield "Impersonate-Uid", user.as_uid
    for group in user.as_groups:
        yield "Impersonate-Group", group
    for key, values in user.as_user_extra.items():
        for value in values:
            yield f"Impersonate-Extra-{key}", value


def _told_to_plugins(cluster: kubeconfig_files.Cluster, ca_pem: bytes | Path) -> Json:
    told: Json = {
        "server": cluster.server,
        "tls-server-name": cluster.tls_server_name,
        "insecure-skip-tls-verify": cluster.insecure_skip_tls_verify,
        "certificate-authority-data": b64encode(_contents(ca_pem)).decode(),
        "proxy-url": cluster.proxy_url,
        "config": next((e.extension for e in cluster.extensions if e.name == EXEC_EXTENSION), None),
    }
    return {key: value for key, value in told.items() if value}


class _Reader:
    """Collects what is wrong while reading on."""

    def __init__(self, origin: str) -> None:
        self.origin = origin
        self.problems: list[FieldProblem] = []

    def problem(self, path: str, message: str) -> None:
        self.problems.append(FieldProblem(path, message))

    def refused(self) -> errors.Refused:
        return errors.Refused(self.problems, self.origin)

    def pem(self, field: str, file: str, data: str, directory: Path) -> bytes | Path:
        """Data beside a file wins, as with kubectl. A file stays a path: it may be rotated."""
        if data:
            try:
                return b64decode("".join(data.split()), validate=True)
            except binascii.Error as problem:
                self.problem(f"{field}-data", f"is no base64: {problem}")
                return b""
        if not file:
            return b""
        path = directory / Path(file).expanduser()
        return path if self.readable(field, path) else b""

    def readable(self, field: str, path: Path) -> bool:
        try:
            path.read_bytes()
        except OSError as problem:
            self.problem(field, f"cannot read {path}: {problem.strerror}")
            return False
        return True


def _contents(source: bytes | Path) -> bytes:
    return source if isinstance(source, bytes) else source.read_bytes()


def _in_cluster(service_account: Path, environment: Mapping[str, str]) -> Connection:
    host, port = environment["KUBERNETES_SERVICE_HOST"], environment.get("KUBERNETES_SERVICE_PORT", "443")
    server = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    reader = _Reader("the pod's service account")
    token, ca, namespace = (service_account / name for name in ("token", "ca.crt", "namespace"))
    for path in (token, ca):
        reader.readable("", path)
    if reader.problems:
        raise reader.refused()
    return Connection(
        server=server,
        credentials=creds.Direct(token_file=token),
        namespace=namespace.read_text().strip() if namespace.exists() else "default",
        ca_pem=ca.read_bytes(),
        proxy=proxies.proxy_for(server, environment),
        origin=reader.origin,
    )
