"""Who may do what on a control plane, and how do they prove who they are?

People and components have a bearer token each, by which the API server knows their user and groups, and a kubeconfig
that holds it. What the API server itself needs, its own certificate and the ones it shows to others, is made here too.
"""

import base64
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from octarbiter.testing.kubernetes import certificates

_CLUSTER = "octarbiter-bed"


@dataclass(frozen=True, slots=True)
class User:
    name: str
    groups: tuple[str, ...] = ()
    token: str = field(default_factory=lambda: secrets.token_hex(32), repr=False)


class Credentials:
    """Written into `directory`, secrets readable by their owner alone."""

    def __init__(self, directory: Path, bind_address: str, node_names: Sequence[str]) -> None:
        self._directory = directory
        self.users = {
            "admin": User("admin", ("system:masters",)),
            "controller-manager": User("system:kube-controller-manager"),
            "scheduler": User("system:kube-scheduler"),
        } | {f"node-{name}": User(f"system:node:{name}", ("system:nodes",)) for name in node_names}
        self.authority = certificates.Authority(directory)
        names = dict.fromkeys([bind_address, "127.0.0.1", "localhost", "kubernetes.default.svc", "kubernetes"])
        self._server = self.authority.issue_server("apiserver", list(names))
        # By these the API server shows itself to kubelets, and to the aggregated servers it relays to.
        self._to_kubelets = self.authority.issue_client("kubelet-client", "kube-apiserver", ["system:masters"])
        self._to_aggregated = self.authority.issue_client("front-proxy", "front-proxy")
        self._service_accounts = certificates.write_signing_pair(directory, "service-account")
        self._tokens = directory / "tokens.csv"
        lines = [f'{user.token},{user.name},{name},"{",".join(user.groups)}"\n' for name, user in self.users.items()]
        certificates.write_secret(self._tokens, "".join(lines).encode())

    @property
    def ca_data(self) -> str:
        """The authority's certificate as a kubeconfig holds it."""
        return base64.b64encode(self.authority.pem).decode()

    def kubeconfig_of(self, user: str) -> Path:
        return self._directory / f"{user}.kubeconfig"

    def write_kubeconfigs(self, url: str) -> None:
        for name, user in self.users.items():
            cluster = {"server": url, "certificate-authority-data": self.ca_data}
            content = {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": _CLUSTER,
                "clusters": [{"name": _CLUSTER, "cluster": cluster}],
                "users": [{"name": name, "user": {"token": user.token}}],
                "contexts": [{"name": _CLUSTER, "context": {"cluster": _CLUSTER, "user": name}}],
            }
            certificates.write_secret(self.kubeconfig_of(name), yaml.safe_dump(content).encode())

    def flags_of_apiserver(self) -> list[str]:
        return [
            f"--tls-cert-file={self._server[0]}",
            f"--tls-private-key-file={self._server[1]}",
            f"--client-ca-file={self.authority.file}",
            f"--token-auth-file={self._tokens}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={self._service_accounts[0]}",
            f"--service-account-signing-key-file={self._service_accounts[1]}",
            f"--kubelet-client-certificate={self._to_kubelets[0]}",
            f"--kubelet-client-key={self._to_kubelets[1]}",
            f"--proxy-client-cert-file={self._to_aggregated[0]}",
            f"--proxy-client-key-file={self._to_aggregated[1]}",
            f"--requestheader-client-ca-file={self.authority.file}",
            "--requestheader-allowed-names=front-proxy",
            "--requestheader-username-headers=X-Remote-User",
            "--requestheader-group-headers=X-Remote-Group",
            "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        ]

    def flags_of_controller_manager(self) -> list[str]:
        return [
            f"--kubeconfig={self.kubeconfig_of('controller-manager')}",
            "--use-service-account-credentials=true",
            f"--service-account-private-key-file={self._service_accounts[1]}",
            f"--root-ca-file={self.authority.file}",
        ]
