"""How did a run end, in the words of the kubelet?"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from octarbiter.cluster.nodeagent import logs, news
from octarbiter.cluster.nodeagent.life import LOST
from octarbiter.cluster.nodeagent.pods import Container
from octarbiter.cluster.nodeagent.runtimes import supervisor


def read(spec: Container, ended: Mapping[str, Any], message: Path, log: Path) -> news.Outcome:
    """`ended`: what the supervisor left in `exit.json`. `message`: the file of the container's last words."""
    at = datetime.fromtimestamp(ended["at"], UTC)
    if problem := ended.get("problem"):
        return news.Outcome(supervisor.CANNOT_START, "StartError", _cannot_run(spec, problem), at)
    code = int(ended["exitCode"])
    reason = "OOMKilled" if ended.get("outOfMemory") else "Completed" if code == 0 else "Error"
    return news.Outcome(code, reason, logs.termination_message(spec, message, log, code), at)


def lost() -> news.Outcome:
    """Somebody killed the supervisor: nobody knows."""
    return msgspec.structs.replace(LOST, finished_at=datetime.now(UTC))


def start_error(container: str, attempt: int, id_: str, message: str) -> news.ContainerEnded:
    outcome = news.Outcome(supervisor.CANNOT_START, "StartError", message, datetime.now(UTC))
    return news.ContainerEnded(container, attempt, outcome, id_)


def _cannot_run(spec: Container, problem: str) -> str:
    name = [*spec.command, *spec.args, ""][0]
    return (
        f'failed to start container "{spec.name}": cannot run "{name}": {problem}. Images are not pulled here: the '
        f'command runs from this machine and not from "{spec.image}", so it must be installed here'
    )
