"""Which container images does a node without internet run, and where do they come from?

Two, made on the spot from the machine's own static busybox: `busybox`, with every applet of that binary on its path,
and the pause image each pod's sandbox runs. Both are docker-archive tar files, the one form `ctr images import`
takes without a registry. The bytes depend on the busybox binary alone, so an image keeps its digest from run to run.
"""

import hashlib
import io
import json
import platform
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import Any

BUSYBOX = "docker.io/library/busybox:latest"
# A name that no registry serves: containerd finds it among the imported images or says so.
PAUSE = "octarbiter.invalid/pause:latest"

_PATH = "/bin:/usr/bin"
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
_DIRECTORIES = ("bin", "dev", "etc", "proc", "root", "sys", "tmp", "usr", "usr/bin", "var")
_FILES = {
    "etc/passwd": "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n",
    "etc/group": "root:x:0:\nnogroup:x:65534:\n",
}
# `wait` lets the trap run at once; a plain foreground sleep would hold SIGTERM back until it ends.
_PAUSE_SCRIPT = "trap 'exit 0' TERM INT; while :; do sleep 3600 & wait; done"


def static_busybox() -> Path | None:
    """A busybox that runs in an image holding nothing else; one that needs a dynamic loader does not."""
    found = shutil.which("busybox")
    if found is None:
        return None
    with open(found, "rb") as binary:
        return None if b"/ld-" in binary.read(4096) else Path(found)


def write_busybox(archive: Path, busybox: Path) -> None:
    _write(archive, busybox, BUSYBOX, {"Cmd": ["sh"]})


def write_pause(archive: Path, busybox: Path) -> None:
    _write(archive, busybox, PAUSE, {"Entrypoint": ["/bin/sh", "-c", _PAUSE_SCRIPT]})


def _write(archive: Path, busybox: Path, name: str, run: dict[str, Any]) -> None:
    layer = _layer(busybox)
    diff = hashlib.sha256(layer).hexdigest()
    config = json.dumps(
        {
            "architecture": _ARCHITECTURES.get(platform.machine(), platform.machine()),
            "os": "linux",
            "config": {"Env": [f"PATH={_PATH}"], **run},
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{diff}"]},
        }
    ).encode()
    config_name = f"{hashlib.sha256(config).hexdigest()}.json"
    manifest = json.dumps([{"Config": config_name, "RepoTags": [name], "Layers": [f"{diff}/layer.tar"]}]).encode()
    with tarfile.open(archive, "w") as tar:
        _add_file(tar, config_name, config)
        _add_file(tar, f"{diff}/layer.tar", layer)
        _add_file(tar, "manifest.json", manifest)


def _layer(busybox: Path) -> bytes:
    applets = subprocess.run([busybox, "--list"], check=True, capture_output=True, text=True).stdout.split()
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as tar:
        for name in _DIRECTORIES:
            _add_directory(tar, name, mode=0o1777 if name == "tmp" else 0o755)
        for name, text in _FILES.items():
            _add_file(tar, name, text.encode())
        _add_file(tar, "bin/busybox", busybox.read_bytes(), mode=0o755)
        for applet in sorted(set(applets) - {"busybox"}):
            _add_link(tar, f"bin/{applet}", "busybox")
        # Scripts begin with `#!/usr/bin/env ...` wherever they were written.
        _add_link(tar, "usr/bin/env", "/bin/busybox")
    return content.getvalue()


def _add_directory(tar: tarfile.TarFile, name: str, mode: int) -> None:
    member = tarfile.TarInfo(name)
    member.type, member.mode = tarfile.DIRTYPE, mode
    tar.addfile(member)


def _add_file(tar: tarfile.TarFile, name: str, content: bytes, mode: int = 0o644) -> None:
    member = tarfile.TarInfo(name)
    member.mode, member.size = mode, len(content)
    tar.addfile(member, io.BytesIO(content))


def _add_link(tar: tarfile.TarFile, name: str, target: str) -> None:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = tarfile.SYMTYPE, target
    tar.addfile(member)
