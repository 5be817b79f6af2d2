"""What do kubeconfig files say? Their words, read and merged; `kubeconfig` finds out what they mean."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec
import yaml

from octarbiter.api import errors
from octarbiter.api.errors import FieldProblem
from octarbiter.runtime import credentials as creds


class _Part(msgspec.Struct, frozen=True, kw_only=True, rename="kebab"):
    pass


class Extension(_Part, frozen=True):
    name: str = ""
    extension: Any = None


class Cluster(_Part, frozen=True):
    server: str = ""
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    insecure_skip_tls_verify: bool = False
    tls_server_name: str = ""
    proxy_url: str = ""
    extensions: list[Extension] = []


class AuthProvider(_Part, frozen=True):
    name: str = ""


class User(_Part, frozen=True):
    token: str = ""
    token_file: str = msgspec.field(name="tokenFile", default="")
    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    username: str = ""
    password: str = ""
    as_: str = msgspec.field(name="as", default="")
    as_uid: str = ""
    as_groups: list[str] = []
    as_user_extra: dict[str, list[str]] = {}
    exec: creds.ExecSpec | None = None
    auth_provider: AuthProvider | None = None


class Context(_Part, frozen=True):
    cluster: str = ""
    user: str = ""
    namespace: str = ""


class _NamedCluster(_Part, frozen=True):
    name: str
    cluster: Cluster = Cluster()


class _NamedUser(_Part, frozen=True):
    name: str
    user: User = User()


class _NamedContext(_Part, frozen=True):
    name: str
    context: Context = Context()


class _File(_Part, frozen=True):
    current_context: str = ""
    clusters: list[_NamedCluster] = []
    users: list[_NamedUser] = []
    contexts: list[_NamedContext] = []


P = TypeVar("P")


class Found(msgspec.Struct, Generic[P], frozen=True):
    """A named part, and the directory of its file, from which its relative paths count."""

    part: P
    directory: Path


class Merged:
    def __init__(self, files: tuple[Path, ...]) -> None:
        self.files = files
        self.current_context = ""
        self.clusters: dict[str, Found[Cluster]] = {}
        self.users: dict[str, Found[User]] = {}
        self.contexts: dict[str, Found[Context]] = {}
        for path in files:
            content, directory = _read(path), path.absolute().parent
            self.current_context = self.current_context or content.current_context
            for cluster in content.clusters:
                self.clusters.setdefault(cluster.name, Found(cluster.cluster, directory))
            for user in content.users:
                self.users.setdefault(user.name, Found(user.user, directory))
            for context in content.contexts:
                self.contexts.setdefault(context.name, Found(context.context, directory))


def _read(path: Path) -> _File:
    what = f"kubeconfig {path}"
    try:
        parsed = yaml.load(path.read_bytes(), yaml.CSafeLoader)
    except OSError as problem:
        raise errors.Refused([FieldProblem("", f"cannot be read: {problem.strerror}")], what) from problem
    except (yaml.YAMLError, UnicodeDecodeError) as problem:
        raise errors.Refused([FieldProblem("", f"is no YAML: {problem}")], what) from problem
    try:
        return msgspec.convert(_without_nulls(parsed or {}), _File)
    except msgspec.ValidationError as problem:
        raise errors.Refused([FieldProblem("", str(problem))], what) from problem


def _without_nulls(value: Any) -> Any:
    """`users: null` and `namespace:` mean absent; kubectl itself writes the former."""
    if isinstance(value, dict):
        return {key: _without_nulls(inner) for key, inner in value.items() if inner is not None}
    if isinstance(value, list):
        return [_without_nulls(inner) for inner in value]
    return value
