"""What lies in a pod's volumes, and where?

Each volume is a directory of the pod (`emptyDir`, and files made from ConfigMaps, Secrets, fields and tokens) or a path
of this machine (`hostPath`). Files are replaced all at once: they are links through `..data`, which is swapped.

At its mount path a volume appears where the kernel lets us make a mount namespace (as root, or with user namespaces).
Where it does not, nothing can be mounted; then the variable `VOLUME_<NAME>` of the container's environment says where
the volume lies, as it does everywhere. Limits: `medium: Memory` and `sizeLimit` of an emptyDir have no effect, and
persistent volume claims and other drivers are refused.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from octarbiter.api import errors
from octarbiter.cluster.nodeagent import environment
from octarbiter.cluster.nodeagent.pods import (
    Container,
    DownwardVolume,
    HostPath,
    KeyToPath,
    Pod,
    ProjectedVolume,
    Volume,
    VolumeMount,
)
from octarbiter.cluster.nodeagent.runtimes.protocol import NotPrepared, Place
from octarbiter.cluster.nodeagent.sources import Sources

PUBLIC = 0o644
PRIVATE = 0o600
"""Of what came from a Secret, unless a mode is asked for: nobody else on this machine has a right to it."""


class File(msgspec.Struct, frozen=True):
    content: bytes
    mode: int


class Mount(msgspec.Struct, frozen=True):
    source: str
    target: str
    read_only: bool


async def make(pod: Pod, place: Place, directory: Path, sources: Sources) -> None:
    """Raises NotPrepared. Files that exist are brought up to date."""
    for volume in pod.spec.volumes:
        path = directory / volume.name
        if volume.empty_dir is not None:
            path.mkdir(exist_ok=True)
        elif volume.host_path is not None:
            _check_host_path(volume.name, volume.host_path)
        else:
            try:
                _write(path, await _files(volume, pod, place, sources))
            except (environment.Missing, errors.ApiError) as problem:
                raise NotPrepared(f'MountVolume.SetUp failed for volume "{volume.name}" : {problem}') from problem


async def _files(volume: Volume, pod: Pod, place: Place, sources: Sources) -> dict[str, File]:
    namespace = pod.metadata.namespace
    if (config_map := volume.config_map) is not None:
        data = await sources.config_map(namespace, config_map.name)
        mode = PUBLIC if config_map.default_mode is None else config_map.default_mode
        return _chosen("configmap", config_map.name, data, config_map.items, config_map.optional, mode)
    if (secret := volume.secret) is not None:
        data = await sources.secret(namespace, secret.secret_name)
        mode = PRIVATE if secret.default_mode is None else secret.default_mode
        return _chosen("secret", secret.secret_name, data, secret.items, secret.optional, mode)
    if volume.downward_api is not None:
        return _downward(volume.downward_api, pod, place, volume.downward_api.default_mode)
    if volume.projected is not None:
        return await _projected(volume.projected, pod, place, sources)
    raise environment.Missing(
        "this kind of volume is not known here: use emptyDir, hostPath, configMap, secret, downwardAPI or projected"
    )


async def _projected(volume: ProjectedVolume, pod: Pod, place: Place, sources: Sources) -> dict[str, File]:
    made: dict[str, File] = {}
    namespace, mode = pod.metadata.namespace, volume.default_mode
    private = PRIVATE if mode is None else mode & ~0o077  # the API server fills in 0644 for all
    for source in volume.sources:
        if (config_map := source.config_map) is not None:
            data = await sources.config_map(namespace, config_map.name)
            public = PUBLIC if mode is None else mode
            made |= _chosen("configmap", config_map.name, data, config_map.items, config_map.optional, public)
        if (secret := source.secret) is not None:
            data = await sources.secret(namespace, secret.name)
            made |= _chosen("secret", secret.name, data, secret.items, secret.optional, private)
        if source.downward_api is not None:
            made |= _downward(source.downward_api, pod, place, mode)
        if source.service_account_token is not None:
            token = await sources.token(pod, source.service_account_token)
            made[source.service_account_token.path] = File(token, private)
    return made


def _chosen(
    kind: str, name: str, data: Mapping[str, bytes] | None, items: Sequence[KeyToPath], optional: bool, mode: int
) -> dict[str, File]:
    if data is None:
        if optional:
            return {}
        raise environment.Missing(f'{kind} "{name}" not found')
    if not items:
        return {key: File(value, mode) for key, value in data.items()}
    missing = [item.key for item in items if item.key not in data]
    if missing and not optional:
        raise environment.Missing(f'{kind} "{name}" references non-existent config key: {missing[0]}')
    present = [item for item in items if item.key in data]
    return {item.path: File(data[item.key], mode if item.mode is None else item.mode) for item in present}


def _downward(volume: DownwardVolume, pod: Pod, place: Place, mode: int | None) -> dict[str, File]:
    made = {}
    for item in volume.items:
        if item.field_ref is not None:
            text = environment.field(item.field_ref, pod, place)
        elif item.resource_field_ref is not None:
            text = environment.resource(item.resource_field_ref, pod, Container(), place)
        else:
            raise environment.Missing(f"{item.path}: needs a fieldRef or a resourceFieldRef")
        chosen = item.mode if item.mode is not None else mode
        made[item.path] = File(text.encode(), PUBLIC if chosen is None else chosen)
    return made


def _write(path: Path, files: Mapping[str, File]) -> None:
    """Into a directory of its own, made visible by one rename."""
    path.mkdir(exist_ok=True)
    old = path / "..data"
    if old.is_symlink() and _content(old) == files:
        return
    fresh = path / f"..{secrets.token_hex(8)}"
    fresh.mkdir()
    for name, file in files.items():
        place = inside(fresh, name)
        place.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(place, os.O_CREAT | os.O_EXCL | os.O_WRONLY, file.mode)
        with os.fdopen(descriptor, "wb") as opened:
            opened.write(file.content)
            os.fchmod(descriptor, file.mode)  # whatever the umask says
    before = old.resolve() if old.is_symlink() else None
    link = path / "..data.new"
    link.unlink(missing_ok=True)
    link.symlink_to(fresh.name)
    link.replace(old)
    wanted = {Path(name).parts[0] for name in files}
    for entry in path.iterdir():
        if entry.is_symlink() and entry.name != "..data" and entry.name not in wanted:
            entry.unlink()
    for name in wanted:
        if not (path / name).is_symlink():
            (path / name).symlink_to(Path("..data") / name)
    if before is not None:
        shutil.rmtree(before, ignore_errors=True)


def _content(directory: Path) -> dict[str, File]:
    real = directory.resolve()
    files = [path for path in real.rglob("*") if path.is_file()]
    return {str(path.relative_to(real)): File(path.read_bytes(), path.stat().st_mode & 0o777) for path in files}


def inside(directory: Path, name: str) -> Path:
    """The server checks such names, too; but this writes to the disk."""
    parts = Path(name).parts
    if not parts or Path(name).is_absolute() or ".." in parts or parts[0] == "..data":
        raise environment.Missing(f"{name!r} cannot be a path inside a volume")
    return directory.joinpath(*parts)


def _check_host_path(name: str, host_path: HostPath) -> None:
    path = Path(host_path.path)
    checks = {"Directory": path.is_dir, "File": path.is_file, "Socket": path.is_socket}
    try:
        if host_path.type == "DirectoryOrCreate":
            path.mkdir(mode=0o755, exist_ok=True)
        elif host_path.type == "FileOrCreate":
            path.touch(mode=0o644, exist_ok=True)
        elif host_path.type in checks and not checks[host_path.type]():
            raise NotPrepared(f'volume "{name}": hostPath type check failed: {path} is not a {host_path.type.lower()}')
    except OSError as problem:
        raise NotPrepared(f'volume "{name}": hostPath {path}: {problem.strerror}') from problem


def mounts(pod: Pod, container: Container, directory: Path, known: Mapping[str, str]) -> list[Mount]:
    """Raises Missing. `known`: the container's environment, for subPathExpr."""
    volumes = {volume.name: volume for volume in pod.spec.volumes}
    made = [_mount(volumes, mount, directory, known) for mount in container.volume_mounts]
    return sorted(made, key=lambda mount: mount.target.count("/"))  # /a before /a/b


def _mount(volumes: Mapping[str, Volume], mount: VolumeMount, directory: Path, known: Mapping[str, str]) -> Mount:
    volume = volumes.get(mount.name)
    if volume is None:
        raise environment.Missing(f'volumeMounts name "{mount.name}", which is no volume of the pod')
    source = location(volume, directory)
    below = mount.sub_path or environment.expand(mount.sub_path_expr, known)
    if below:
        root, source = source.resolve(), inside(source, below)
        if not source.exists():
            source.mkdir(parents=True)
        if not source.resolve().is_relative_to(root):
            raise environment.Missing(f"subPath {below!r} leads out of the volume")
        source = source.resolve()
    target = mount.mount_path if mount.mount_path.startswith("/") else f"/{mount.mount_path}"
    return Mount(str(source), os.path.normpath(target), mount.read_only)


def location(volume: Volume, directory: Path) -> Path:
    return Path(volume.host_path.path) if volume.host_path is not None else directory / volume.name


def variables(pod: Pod, directory: Path) -> dict[str, str]:
    """Where the volumes lie, whether or not they could be mounted."""
    return {_variable(volume.name): str(location(volume, directory)) for volume in pod.spec.volumes}


def _variable(name: str) -> str:
    return "VOLUME_" + re.sub(r"[^A-Z0-9]", "_", name.upper())
