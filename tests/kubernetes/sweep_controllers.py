"""How are controllers started, killed and frozen? As processes, by signals, as a machine's death would."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from octarbiter.testing.kubernetes import processes

LEASE_S = 3.0
_LEASE = ("--lease-duration-s", str(LEASE_S), "--renew-deadline-s", "2", "--retry-period-s", "0.5")
_EXIT_S = 15.0


class Controller:
    """One process. `command`: of `octo`. With `stands_by` it takes part in the election, else it acts at once."""

    def __init__(
        self, kubeconfig: Path, command: Sequence[str], lease_namespace: str, log: Path, stands_by: bool = False
    ) -> None:
        election = ["--lease-namespace", lease_namespace, *_LEASE] if stands_by else ["--no-leader-elect"]
        argv = [sys.executable, "-m", "octarbiter", *command, "--health-address", "", "--log-format", "json", *election]
        environment = {"PATH": os.environ.get("PATH", os.defpath), "KUBECONFIG": str(kubeconfig)}
        self._sign = b'"leading"' if stands_by else b'"all caches are filled"'
        self._acts = False
        self.log = log
        self._process = processes.Process(f"octo {command[0]}", argv, log, env=environment)
        self._process.start()

    @property
    def acts(self) -> bool:
        """Has it begun to act, as its log says?"""
        if not self._acts:
            self._acts = self._sign in self.log.read_bytes()
        return self._acts

    @property
    def is_alive(self) -> bool:
        return self._process.is_alive

    def kill(self) -> None:
        self._signal(signal.SIGKILL)
        self._process.wait(_EXIT_S)

    def freeze(self) -> None:
        self._signal(signal.SIGSTOP)

    def wake(self) -> bool:
        """A leader that was frozen for longer than its lease must end by itself; did it?"""
        self._signal(signal.SIGCONT)
        return self._process.wait(_EXIT_S) is not None

    def _signal(self, number: signal.Signals) -> None:
        if (pid := self._process.pid) is not None:
            os.killpg(pid, number)
