"""Who are we to the API server, at this moment?

Credentials go stale while a controller runs: tokens are rotated in their files, plugins hand out short-lived ones. So
the client asks before each request (cheap when nothing changed), and says so when the server refused what it got.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import ssl
import sys
from base64 import b64encode
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

import msgspec

from octarbiter.api import codec, errors
from octarbiter.api.meta import Json, Noun, Status
from octarbiter.runtime import clock as clocks

REREAD_S = 10.0
"""How old what was read from a file may be. A rotated token is valid well before the old one ends."""
RENEW_PAUSE_S = 5.0
"""A plugin whose answers the server refuses is not run for each of a thousand refused requests."""
PLUGIN_TIMEOUT_S = 120.0
EXEC_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")

Headers = tuple[tuple[str, str], ...]


class Identity(msgspec.Struct, frozen=True):
    headers: Headers = ()
    certificate: bytes = b""
    """PEM, with `key` beside it. Empty: no client certificate."""
    key: bytes = b""

    def __repr__(self) -> str:  # it must not appear in a log or a traceback
        return f"Identity({', '.join(name for name, _ in self.headers)})"


class Credentials(Protocol):
    async def identity(self) -> Identity: ...

    async def renew(self, refused: Identity) -> bool:
        """The server answered 401 to this identity. True: there is another one by now, try again."""
        ...


def bearer(token: str) -> Headers:
    return (("Authorization", f"Bearer {token}"),)


def basic(username: str, password: str) -> Headers:
    return (("Authorization", "Basic " + b64encode(f"{username}:{password}".encode()).decode()),)


class Direct:
    """What stands in the kubeconfig itself, or in files it names, which are read again and again."""

    def __init__(
        self,
        *,
        headers: Headers = (),
        token_file: Path | None = None,
        certificate: bytes | Path = b"",
        key: bytes | Path = b"",
        clock: clocks.Clock = clocks.SYSTEM,
    ) -> None:
        self._headers = headers
        self._token_file = token_file
        self._certificate = certificate
        self._key = key
        self._clock = clock
        self._changes = token_file is not None or isinstance(certificate, Path) or isinstance(key, Path)
        self._identity = self._read()
        self._read_at = clock.monotonic()

    async def identity(self) -> Identity:
        if self._changes and self._clock.monotonic() - self._read_at > REREAD_S:
            self._reread()
        return self._identity

    async def renew(self, refused: Identity) -> bool:
        if self._changes and self._identity == refused:
            self._reread()
        return self._identity != refused

    def _reread(self) -> None:
        self._read_at = self._clock.monotonic()
        try:
            self._identity = self._read()
        except OSError:
            return  # in the middle of a rotation; what we have may still be good, and if not, the server says so

    def _read(self) -> Identity:
        headers = self._headers
        if self._token_file is not None:
            headers = bearer(self._token_file.read_text().strip()) + headers
        return Identity(headers, _contents(self._certificate), _contents(self._key))


class ExecSpec(Noun, frozen=True):
    command: str = ""
    args: list[str] = []
    env: list[dict[str, str]] = []
    api_version: str = ""
    install_hint: str = ""
    provide_cluster_info: bool = False
    interactive_mode: str = "IfAvailable"


class _ExecStatus(Noun, frozen=True):
    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: datetime | None = None


class _ExecCredential(Noun, frozen=True):
    api_version: str = ""
    kind: str = ""
    status: _ExecStatus = _ExecStatus()


class ExecPlugin:
    """A program that prints a token or a certificate (an ExecCredential), kept until it expires or is refused."""

    def __init__(
        self,
        spec: ExecSpec,
        directory: Path,
        cluster: Json,
        *,
        headers: Headers = (),
        clock: clocks.Clock = clocks.SYSTEM,
    ) -> None:
        """`directory`: of the kubeconfig, from which a relative command is found. `cluster`: told if it asks for it."""
        self._spec = spec
        self._directory = directory
        self._cluster = cluster
        self._headers = headers
        self._clock = clock
        self._lock = asyncio.Lock()
        self._identity: Identity | None = None
        self._expires: datetime | None = None
        self._ran_at = 0.0

    async def identity(self) -> Identity:
        identity = self._identity
        if identity is not None and (self._expires is None or self._clock.now() < self._expires):
            return identity
        async with self._lock:
            if self._identity is None or self._identity is identity:
                self._identity = await self._run()
            return self._identity

    async def renew(self, refused: Identity) -> bool:
        async with self._lock:
            if self._identity == refused and self._clock.monotonic() - self._ran_at > RENEW_PAUSE_S:
                self._identity = await self._run()
            return self._identity != refused

    async def _run(self) -> Identity:
        interactive = self._spec.interactive_mode != "Never" and sys.stdin is not None and sys.stdin.isatty()
        if self._spec.interactive_mode == "Always" and not interactive:
            raise self._failed("wants to ask something, and there is no terminal")
        try:
            process = await asyncio.create_subprocess_exec(
                self._command(),
                *self._spec.args,
                stdin=None if interactive else asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,  # stderr stays ours: there it asks people to log in
                env=self._environment(interactive),
            )
        except OSError as problem:
            raise self._failed(f"cannot be started: {problem.strerror}") from problem
        try:
            async with asyncio.timeout(None if interactive else PLUGIN_TIMEOUT_S):
                printed, _ = await process.communicate()
        except TimeoutError:
            raise self._failed(f"did not answer within {PLUGIN_TIMEOUT_S:.0f} s") from None
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if process.returncode != 0:
            raise self._failed(f"ended with exit code {process.returncode}")
        self._ran_at = self._clock.monotonic()
        return self._understood(printed)

    def _understood(self, printed: bytes) -> Identity:
        try:
            credential = codec.decode(printed, _ExecCredential)
        except msgspec.MsgspecError as problem:
            raise self._failed(f"printed no ExecCredential: {problem}") from None  # not what it printed: secrets
        if credential.api_version != self._spec.api_version:
            raise self._failed(f"speaks {credential.api_version!r}, the kubeconfig asks for {self._spec.api_version!r}")
        status = credential.status
        if bool(status.client_certificate_data) != bool(status.client_key_data):
            raise self._failed("printed only one of clientCertificateData and clientKeyData")
        if not status.token and not status.client_key_data:
            raise self._failed("printed neither a token nor a client certificate")
        self._expires = status.expiration_timestamp
        headers = bearer(status.token) if status.token else ()
        return Identity(
            headers + self._headers, status.client_certificate_data.encode(), status.client_key_data.encode()
        )

    def _command(self) -> str:
        command = self._spec.command
        return str(self._directory / command) if "/" in command else command

    def _environment(self, interactive: bool) -> dict[str, str]:
        spec: Json = {"interactive": interactive}
        if self._spec.provide_cluster_info:
            spec["cluster"] = self._cluster
        told = {"apiVersion": self._spec.api_version, "kind": "ExecCredential", "spec": spec}
        added = {entry.get("name", ""): entry.get("value", "") for entry in self._spec.env}
        return {**os.environ, **added, "KUBERNETES_EXEC_INFO": codec.encode(told).decode()}

    def _failed(self, what: str) -> errors.Unauthorized:
        hint = f"\n{self._spec.install_hint}" if self._spec.install_hint else ""
        message = f"the credential plugin {self._spec.command} of the kubeconfig {what}{hint}"
        return errors.Unauthorized(Status(code=401, reason="Unauthorized", message=message))


class AuthProvider:
    """`auth-provider` (OIDC and its like): left to the official client, imported only here because that takes long."""

    def __init__(self, name: str, files: tuple[Path, ...], context: str, user: str, *, headers: Headers = ()) -> None:
        self._name = name
        self._files = files
        self._context = context
        self._user = user
        self._headers = headers
        self._lock = asyncio.Lock()
        self._identity: Identity | None = None

    async def identity(self) -> Identity:
        if self._identity is None:
            async with self._lock:
                if self._identity is None:
                    self._identity = await self._load()
        return self._identity

    async def renew(self, refused: Identity) -> bool:
        async with self._lock:
            if self._identity == refused:
                self._identity = await self._load()
            return self._identity != refused

    async def _load(self) -> Identity:
        try:
            authorization, reason = await asyncio.to_thread(self._ask_official_client), ""
        except Exception as problem:  # whatever that library and the ones below it raise
            authorization, reason = "", f": {problem}"
        if not authorization:
            message = (
                f"the auth-provider {self._name} of context {self._context} gave no token{reason}\n"
                "Log in again, or use a credential plugin (`exec`) instead."
            )
            raise errors.Unauthorized(Status(code=401, reason="Unauthorized", message=message))
        return Identity((("Authorization", authorization), *self._headers))

    def _ask_official_client(self) -> str:
        # By name and not by `import`, because that library is not typed.
        kube_config: Any = importlib.import_module("kubernetes.config.kube_config")
        configuration: Any = importlib.import_module("kubernetes.client").Configuration()
        merger = kube_config.KubeConfigMerger(os.pathsep.join(map(str, self._files)))
        provider = merger.config["users"].get_with_name(self._user)["user"]["auth-provider"]
        settings: dict[str, Any] = provider["config"].value if "config" in provider else {}
        # Where the kubeconfig names no authority for the identity provider, the library would trust anybody.
        trust: dict[str, str] = {}
        if not settings.keys() & {"idp-certificate-authority", "idp-certificate-authority-data"}:
            trust = {"idp-certificate-authority": _public_authorities()}
            settings.update(trust)

        def persist() -> None:  # a refresh token may be good for one use only: kubectl needs the new one
            for name in trust:
                del settings[name]
            merger.save_changes()
            settings.update(trust)

        loader = kube_config.KubeConfigLoader(
            config_dict=merger.config, active_context=self._context, config_base_path=None, config_persister=persist
        )
        loader.load_and_set(configuration)
        # The key was renamed between versions of that library.
        token: str = configuration.api_key.get("BearerToken") or configuration.api_key.get("authorization") or ""
        return token


def _public_authorities() -> str:
    return ssl.get_default_verify_paths().cafile or str(importlib.import_module("certifi").where())


def _contents(source: bytes | Path) -> bytes:
    return source if isinstance(source, bytes) else source.read_bytes()
