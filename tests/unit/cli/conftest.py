"""`octo` in this process, without a cluster."""

import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from octarbiter.cli import main

Octo = Callable[..., Result]


@pytest.fixture
def octo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Octo]:
    """`octo("get", "-A")`: what it printed and its exit code. There is no kubeconfig unless the test makes one."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    for variable in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "OCTO_DEBUG"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))

    def run(*arguments: str, **more: Any) -> Result:
        return CliRunner().invoke(main.cli, arguments, prog_name="octo", **more)

    yield run
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.fixture
def away(tmp_path: Path) -> Path:
    """A kubeconfig whose API server does not answer."""
    file = tmp_path / "away.kubeconfig"
    file.write_text(
        "apiVersion: v1\nkind: Config\ncurrent-context: away\n"
        "contexts: [{name: away, context: {cluster: away, user: me}}]\n"
        "clusters: [{name: away, cluster: {server: 'https://127.0.0.1:1'}}]\n"
        "users: [{name: me, user: {token: none}}]\n"
    )
    return file
