"""Where the programs come from. A stand-in for Go plays the compiler: what is tested is everything around it."""

import io
import re
import subprocess
import sys
from pathlib import Path

import pytest

from octarbiter.testing.kubernetes import build, kubectls, versions

_GO = """#!/bin/sh
case "$1" in
env) echo {version} ;;
build)
    while [ "$1" != -o ]; do shift; done
    echo "$2 $3" >> {directory}/built
    sleep {seconds}
    printf '#!/bin/sh\\necho %s\\n' "$3" > "$2"
    chmod +x "$2"
    exit {code} ;;
esac
"""


class FakeGo:
    def __init__(self, directory: Path) -> None:
        self._directory = directory
        (directory / "bin").mkdir()
        self.behave()

    def behave(self, version: str = "go1.99.0", seconds: float = 0, code: int = 0) -> None:
        go = self._directory / "bin" / "go"
        go.write_text(_GO.format(version=version, seconds=seconds, code=code, directory=self._directory))
        go.chmod(0o755)

    @property
    def built(self) -> list[str]:
        record = self._directory / "built"
        return [line.split()[1] for line in record.read_text().splitlines()] if record.exists() else []


@pytest.fixture
def go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeGo:
    monkeypatch.setenv("OCTARBITER_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:/usr/bin:/bin")
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    return FakeGo(tmp_path)


def test_what_is_missing_is_built_and_what_is_there_is_not(go: FakeGo) -> None:
    first = build.ensure(["etcd"])
    both = build.ensure(["etcd", "kubectl"])

    assert go.built == ["go.etcd.io/etcd/server/v3", "k8s.io/kubernetes/cmd/kubectl"]
    assert first["etcd"] == both["etcd"] == build.binaries_home() / "etcd"
    assert subprocess.check_output([both["kubectl"]], text=True) == "k8s.io/kubernetes/cmd/kubectl\n"


def test_assets_of_the_person_go_before_the_cache(go: FakeGo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = tmp_path / "assets" / "etcd"
    own.parent.mkdir()
    own.write_text("#!/bin/sh\n")
    own.chmod(0o755)
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(own.parent))

    assert build.ensure(["etcd", "kubectl"]) == {"etcd": own, "kubectl": build.binaries_home() / "kubectl"}
    assert go.built == ["k8s.io/kubernetes/cmd/kubectl"]


def test_a_failed_build_shows_what_the_compiler_said_and_leaves_nothing(go: FakeGo) -> None:
    go.behave(code=2)
    with pytest.raises(build.Unavailable, match=r"building etcd .* failed with exit code 2"):
        build.ensure(["etcd"])

    assert build.missing(["etcd"]) == ["etcd"]


def test_progress_is_told_line_by_line_where_there_is_no_terminal(go: FakeGo) -> None:
    told = io.StringIO()
    build.ensure(["etcd", "kubectl"], told)

    lines = [re.sub(r"\d+ s,", "N s,", line) for line in told.getvalue().splitlines()]
    assert lines == [
        f"building etcd {versions.ETCD} (1 of 2)",
        f"building etcd {versions.ETCD} (1 of 2): N s, done",
        f"building kubectl {versions.KUBERNETES} (2 of 2)",
        f"building kubectl {versions.KUBERNETES} (2 of 2): N s, done",
    ]


def test_two_processes_that_need_the_same_program_build_it_once(go: FakeGo) -> None:
    go.behave(seconds=1)
    program = "from octarbiter.testing.kubernetes import build; print(build.ensure(['etcd'])['etcd'])"
    both = [subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) for _ in range(2)]

    assert {process.communicate()[0] for process in both} == {f"{build.binaries_home()}/etcd\n"}
    assert go.built == ["go.etcd.io/etcd/server/v3"]


def test_without_a_usable_go_the_message_says_what_to_do(go: FakeGo, monkeypatch: pytest.MonkeyPatch) -> None:
    go.behave(version="go1.19.8")
    monkeypatch.setattr(build, "_GO_PLACES", ())
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/")
    monkeypatch.setenv("PIP_RETRIES", "0")
    with pytest.raises(build.Unavailable, match=r"Go 1\.26\.0 or later is needed .* set KUBEBUILDER_ASSETS"):
        build.ensure(["etcd"])

    assert go.built == []


def test_the_modules_pin_the_versions_that_are_announced() -> None:
    modules = Path(build.__file__).parent / "gomod"
    pinned = {name: (modules / name / "go.mod").read_text() for name in ("kubernetes", "etcd", "kwok")}

    assert f"k8s.io/kubernetes {versions.KUBERNETES}\n" in pinned["kubernetes"]
    assert f"go.etcd.io/etcd/server/v3 {versions.ETCD}\n" in pinned["etcd"]
    assert f"sigs.k8s.io/kwok {versions.KWOK}\n" in pinned["kwok"]
    announced = tuple(int(part) for part in versions.GO_FROM_PYPI.split("."))
    needed = [re.search(r"^go (\d+)\.(\d+)\.(\d+)$", text, re.MULTILINE) for text in pinned.values()]
    assert max(tuple(int(part) for part in found.groups()) for found in needed if found) == versions.GO_MINIMUM
    assert announced >= versions.GO_MINIMUM


def test_a_kubectl_of_another_version_is_built_once_and_found_again(go: FakeGo) -> None:
    assert kubectls.found() == {}
    made = kubectls.ensure(["1.27", "1.30"])

    assert kubectls.ensure(["1.30"]) == {"1.30": made["1.30"]}
    assert kubectls.found() == made
    assert made["1.27"] != made["1.30"]
    assert go.built == [".", "."]


def test_kubectls_are_asked_for_by_minor_version() -> None:
    assert kubectls.named("1.30, 1.27,") == ["1.27", "1.30"]
    assert kubectls.named(f"{versions.MINOR},1.30") == ["1.30"]
    assert kubectls.named("all") == list(kubectls.MINORS)
    assert kubectls.named("") == []
    with pytest.raises(ValueError, match=r"no kubectl 1\.2: there are 1\.27, "):
        kubectls.named("1.2")


def test_there_is_a_kubectl_of_every_minor_version_and_its_module_file_pins_it() -> None:
    minors = sorted(int(minor.removeprefix("1.")) for minor in (*kubectls.MINORS, versions.MINOR))
    assert minors == list(range(27, minors[-1] + 1))
    modules = Path(build.__file__).parent / "gomod" / "kubectl"
    for minor, version in kubectls.MINORS.items():
        pinned = (modules / f"v{minor}.mod").read_text()
        assert f"k8s.io/kubectl v0{version.removeprefix('v1')}\n" in pinned
        assert f"k8s.io/kubectl v0{version.removeprefix('v1')} h1:" in (modules / f"v{minor}.sum").read_text()
        needed = re.search(r"^go ([\d.]+)$", pinned, re.MULTILINE)
        assert needed is not None
        assert tuple(int(part) for part in needed[1].split(".")) <= versions.GO_MINIMUM
