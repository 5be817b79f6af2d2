"""`octo` against a bed, for the tests of the command line; for `test_cli*.py` to import."""

import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from octarbiter.api import scheme
from octarbiter.api.meta import Json
from octarbiter.cli import main
from octarbiter.testing.kubernetes.bed import Testbed
from octarbiter.testing.kubernetes.connection import MERGE_PATCH, ApiError
from octarbiter.testing.kubernetes.controlplane import ControlPlane


def job(name: str = "demo", **spec: Any) -> Json:
    template = {"spec": {"containers": [{"name": "main", "image": "busybox", "command": ["sleep", "1"]}]}}
    return {
        "apiVersion": "octopus.openi.pcl.cn/v1alpha1",
        "kind": "TaskSet",
        "metadata": {"name": name},
        "spec": {"roles": [{"name": "worker", "replicas": 2, "template": template}], **spec},
    }


class Octo:
    """One namespace of one cluster, as somebody at a terminal sees it."""

    def __init__(self, plane: ControlPlane, namespace: str, kubeconfig: Path | None = None) -> None:
        self.plane, self.namespace = plane, namespace
        self.kubeconfig = kubeconfig or plane.kubeconfig

    def __call__(self, *arguments: str, input: str | None = None) -> Result:
        root = logging.getLogger()
        handlers, level = root.handlers[:], root.level
        try:
            return CliRunner().invoke(main.cli, [*self._where(), *arguments], input=input, prog_name="octo")
        finally:
            root.handlers[:] = handlers
            root.setLevel(level)

    @contextmanager
    def running(self, *arguments: str) -> Iterator[subprocess.Popen[str]]:
        """As a process of its own, for commands that stay."""
        argv = [sys.executable, "-u", "-m", "octarbiter.cli.main", *self._where(), *arguments]
        with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            try:
                yield process
            finally:
                process.kill()

    def _where(self) -> list[str]:
        return ["--kubeconfig", str(self.kubeconfig), "--namespace", self.namespace]

    def path(self, name: str = "", subresource: str = "") -> str:
        return scheme.TASKSETS.path(self.namespace, name, subresource)

    def create(self, body: Json) -> Json:
        made: Json = self.plane.request("POST", self.path(), body)
        return made

    def get(self, name: str) -> Json:
        found: Json = self.plane.request("GET", self.path(name))
        return found

    def set_status(self, name: str, **status: Any) -> None:
        """What a controller would write."""
        self.plane.request("PATCH", self.path(name, "status"), {"status": status}, MERGE_PATCH)

    def names(self) -> list[str]:
        return [item["metadata"]["name"] for item in self.plane.request("GET", self.path())["items"]]

    def exists(self, path: str) -> bool:
        try:
            self.plane.request("GET", path)
        except ApiError as error:
            if error.status != 404:
                raise
            return False
        return True


def kubeconfig_of_account(plane: ControlPlane, namespace: str, account: str, file: Path) -> Path:
    """The kubeconfig of a service account, as a pod that runs as it would have it."""
    token = plane.kubectl("create", "token", account, f"--namespace={namespace}").stdout.strip()
    cluster = {"server": plane.url, "certificate-authority-data": plane.ca_data}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "it",
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
        "clusters": [{"name": "it", "cluster": cluster}],
        "users": [{"name": "it", "user": {"token": token}}],
    }
    file.touch(mode=0o600)
    file.write_text(json.dumps(config))
    return file


def with_crds(bed: Testbed) -> Testbed:
    said = Octo(bed.control_plane, "default")("install", "--apply", "--crds-only")
    assert said.exit_code == 0, said.output
    return bed
