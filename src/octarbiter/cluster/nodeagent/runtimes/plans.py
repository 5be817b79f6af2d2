"""What must a supervisor know of the run it begins? Command, environment, directory, log, limits and mounts."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any, Final

from octarbiter.api import quantity
from octarbiter.cluster.nodeagent import environment, volumes
from octarbiter.cluster.nodeagent.places import Places
from octarbiter.cluster.nodeagent.pods import Container, Pod
from octarbiter.cluster.nodeagent.runtimes import cgroups
from octarbiter.cluster.nodeagent.runtimes.protocol import Place
from octarbiter.cluster.nodeagent.sources import Sources

MEMORY_LIMITS: Final = "node.octarbiter/memory-limits"
MARK: Final = "OCTARBITER_CONTAINER"
"""In the environment of everything a container starts."""
DEFAULT_MESSAGE_PATH: Final = "/dev/termination-log"


class Plans:
    def __init__(
        self,
        places: Places,
        sources: Sources,
        inherited: Mapping[str, str],
        scheme: str,
        can_mount: bool,
        groups: Mapping[str, cgroups.Home],
    ) -> None:
        self._places = places
        self._sources = sources
        self._inherited = inherited
        self._scheme = scheme
        self._can_mount = can_mount
        self._groups = groups

    async def make(self, pod: Pod, spec: Container, attempt: int, place: Place) -> dict[str, Any]:
        """Raises Missing, and what `sources` raise."""
        uid, namespace = pod.metadata.uid, pod.metadata.namespace
        needs = environment.needs(spec)
        config_maps = {name: await self._sources.config_map(namespace, name) for name in needs.config_maps}
        hidden = {name: await self._sources.secret(namespace, name) for name in needs.secrets}
        variables = environment.resolve(pod, spec, place, config_maps, hidden, self._inherited)
        argv = environment.command_line(spec, variables)
        message = str(self._places.run(uid, spec.name, attempt) / "termination-log")
        offered = volumes.variables(pod, self._places.volumes(uid)) | {"TERMINATION_MESSAGE_PATH": message}
        id_ = f"{self._scheme}://{secrets.token_hex(16)}"
        if spec.tty:
            offered["TERM"] = "xterm"
        variables = offered | variables | {MARK: id_}
        work = self._places.work(uid, spec.name)
        work.mkdir(parents=True, exist_ok=True)
        return {
            "id": id_,
            "argv": argv,
            "env": variables,
            "cwd": spec.working_dir or str(work),
            "stdin": spec.stdin,
            "tty": spec.tty,
            "log": str(self._places.log(pod, spec.name, attempt)),
            "groups": cgroups.plan(self._groups, _limit(spec, "memory"), _limit(spec, "cpu", 1000)),
            "memory": _memory_rlimit(pod, spec) if "memory" not in self._groups else 0,
            "mounts": self._mounts(pod, spec, variables, message),
        }

    def _mounts(self, pod: Pod, spec: Container, variables: Mapping[str, str], message: str) -> list[dict[str, Any]]:
        found = volumes.mounts(pod, spec, self._places.volumes(pod.metadata.uid), variables)
        if not self._can_mount:
            return []
        # A namespace has its price, so nobody gets one for the sake of the usual message file alone.
        if found or spec.termination_message_path != DEFAULT_MESSAGE_PATH:
            found.append(volumes.Mount(message, spec.termination_message_path, False))
        return [{"source": m.source, "target": m.target, "readOnly": m.read_only} for m in found]


def _limit(spec: Container, resource: str, parts: int = 1) -> int:
    """In bytes, or thousandths of a CPU; 0: no limit."""
    limit = spec.resources.limits.get(resource)
    return 0 if limit is None else quantity.parse(limit).nano * parts // quantity.NANO


def _memory_rlimit(pod: Pod, spec: Container) -> int:
    """Only where it is asked for: programs that reserve more than they use would not even begin."""
    return _limit(spec, "memory") if pod.metadata.annotations.get(MEMORY_LIMITS) == "enforced" else 0


def no_command(spec: Container) -> str:
    return (
        f'container "{spec.name}" has no command. Images are not pulled here, so the entrypoint of "{spec.image}" '
        "is not known: say in `command` which program of this machine to run"
    )
