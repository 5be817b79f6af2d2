"""How do tests call kubectl? As a person would, with a home directory of its own."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from octarbiter.testing.kubernetes import versions

_PATIENCE_S = 60.0


class Failed(Exception):
    """kubectl ended with an error; the message is what it said."""


class Kubectl:
    """In one namespace of one cluster."""

    def __init__(
        self, program: Path, kubeconfig: Path, home: Path, namespace: str, version: str = versions.KUBERNETES
    ) -> None:
        self.namespace = namespace
        self.version = version
        self.minor = int(version.split(".")[1])
        self._argv = [str(program), f"--kubeconfig={kubeconfig}"]
        # A clean one: no settings of the person who runs the tests. kubectl remembers what the server serves in HOME.
        self._environment = {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(home), "TMPDIR": str(home)}

    def __call__(self, *arguments: str, input: object = None, editor: str = "") -> str:
        """What it printed, with a newline less at the end; Failed if it ended with an error."""
        done = self.run(*arguments, input=input, editor=editor)
        if done.returncode:
            raise Failed(f"kubectl {' '.join(arguments)}: exit code {done.returncode}: {done.stderr}{done.stdout}")
        return done.stdout.rstrip("\n")

    def refusal(self, *arguments: str, input: object = None, code: int = 1) -> str:
        """What it complained about; it must have ended with `code`."""
        done = self.run(*arguments, input=input)
        assert done.returncode == code, f"exit code {done.returncode}: {done.stderr}{done.stdout}"
        return done.stderr.rstrip("\n")

    def run(self, *arguments: str, input: object = None, editor: str = "") -> subprocess.CompletedProcess[str]:
        text = input if input is None or isinstance(input, str) else json.dumps(input)
        return subprocess.run(
            [*self._argv, *self._place(arguments)],
            input=text,
            stdin=subprocess.DEVNULL if text is None else None,
            capture_output=True,
            text=True,
            timeout=_PATIENCE_S,
            env=self._environment | ({"KUBE_EDITOR": editor} if editor else {}),
            check=False,
        )

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """One that goes on; whoever starts it ends it."""
        argv = [*self._argv, *self._place(arguments)]
        return subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, env=self._environment
        )

    def json(self, *arguments: str) -> Any:
        return json.loads(self(*arguments, "-o", "json"))

    def deleted(self, what: str) -> str:
        """How it says that something of its namespace is gone."""
        return f"{what} deleted from {self.namespace} namespace" if self.minor >= 34 else f"{what} deleted"

    def _place(self, arguments: tuple[str, ...]) -> list[str]:
        return ["-n", self.namespace, *arguments]
