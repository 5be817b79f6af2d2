"""What lies in a pod's volumes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from nodeagent_builders import container, pod

from octarbiter.cluster.nodeagent import environment, volumes
from octarbiter.cluster.nodeagent.pods import Pod, TokenProjection
from octarbiter.cluster.nodeagent.runtimes.protocol import NotPrepared, Place

PLACE = Place("10.0.0.1", "127.64.0.9", {"cpu": "8"})


class Shelf:
    def __init__(self) -> None:
        self.data: dict[str, Mapping[str, bytes]] = {"c": {"a": b"1", "b": b"2"}, "s": {"key": b"hidden"}}

    async def config_map(self, namespace: str, name: str) -> Mapping[str, bytes] | None:
        return self.data.get(name)

    async def secret(self, namespace: str, name: str) -> Mapping[str, bytes] | None:
        return self.data.get(name)

    async def token(self, pod: Pod, wanted: TokenProjection) -> bytes:
        return b"token"


async def made(directory: Path, shelf: Shelf | None = None, **volume: Any) -> dict[str, str]:
    one = pod(volumes=[{"name": "v", **volume}], metadata={"labels": {"app": "x", "b": "y"}})
    await volumes.make(one, PLACE, directory, shelf or Shelf())
    root = directory / "v"
    visible = [
        path for path in root.rglob("*") if path.is_file() and not path.relative_to(root).parts[0].startswith("..")
    ]
    return {str(path.relative_to(root)): path.read_text() for path in visible}


async def test_a_configmap_becomes_a_file_a_key(tmp_path: Path) -> None:
    assert await made(tmp_path, configMap={"name": "c"}) == {"a": "1", "b": "2"}


async def test_chosen_keys_get_the_paths_and_modes_asked_for(tmp_path: Path) -> None:
    items = [{"key": "a", "path": "deep/er", "mode": 0o400}]

    await made(tmp_path, configMap={"name": "c", "items": items})

    assert (tmp_path / "v" / "deep" / "er").read_text() == "1"
    assert (tmp_path / "v" / "deep" / "er").stat().st_mode & 0o777 == 0o400


async def test_files_are_replaced_all_at_once_and_what_is_gone_goes(tmp_path: Path) -> None:
    shelf = Shelf()
    await made(tmp_path, shelf, configMap={"name": "c"})
    shelf.data["c"] = {"a": b"9", "z": b"8"}

    assert await made(tmp_path, shelf, configMap={"name": "c"}) == {"a": "9", "z": "8"}
    assert len([path for path in (tmp_path / "v").iterdir() if path.is_dir() and not path.is_symlink()]) == 1


async def test_files_that_did_not_change_are_left_alone(tmp_path: Path) -> None:
    await made(tmp_path, configMap={"name": "c"})
    before = (tmp_path / "v" / "..data").readlink()
    await made(tmp_path, configMap={"name": "c"})

    assert (tmp_path / "v" / "..data").readlink() == before


async def test_a_secret_is_for_the_owner_only(tmp_path: Path) -> None:
    assert await made(tmp_path, secret={"secretName": "s"}) == {"key": "hidden"}
    assert (tmp_path / "v" / "key").stat().st_mode & 0o777 == 0o600


async def test_sources_are_projected_into_one_directory(tmp_path: Path) -> None:
    sources = [
        {"configMap": {"name": "c", "items": [{"key": "a", "path": "conf"}]}},
        {"secret": {"name": "s"}},
        {"downwardAPI": {"items": [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]}},
        {"serviceAccountToken": {"path": "token"}},
    ]

    assert await made(tmp_path, projected={"sources": sources, "defaultMode": 0o644}) == {
        "conf": "1",
        "key": "hidden",
        "labels": 'app="x"\nb="y"',
        "token": "token",
    }
    assert (tmp_path / "v" / "token").stat().st_mode & 0o777 == 0o600


async def test_what_is_missing_is_named_with_its_volume(tmp_path: Path) -> None:
    with pytest.raises(NotPrepared, match='volume "v" : configmap "none" not found'):
        await made(tmp_path, configMap={"name": "none"})
    with pytest.raises(NotPrepared, match="references non-existent config key: q"):
        await made(tmp_path, configMap={"name": "c", "items": [{"key": "q", "path": "q"}]})


async def test_what_is_optional_may_be_missing(tmp_path: Path) -> None:
    assert await made(tmp_path, configMap={"name": "none", "optional": True}) == {}


async def test_a_kind_of_volume_that_is_not_known_here_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(NotPrepared, match="use emptyDir, hostPath"):
        await made(tmp_path, persistentVolumeClaim={"claimName": "x"})


@pytest.mark.parametrize("path", ["../x", "/etc/x", "a/../../x", "..data/x"])
async def test_no_file_is_written_outside_its_volume(tmp_path: Path, path: str) -> None:
    with pytest.raises(NotPrepared, match="cannot be a path inside a volume"):
        await made(tmp_path, configMap={"name": "c", "items": [{"key": "a", "path": path}]})


async def test_a_host_path_must_be_what_it_is_said_to_be(tmp_path: Path) -> None:
    with pytest.raises(NotPrepared, match="is not a directory"):
        await made(tmp_path, hostPath={"path": str(tmp_path / "none"), "type": "Directory"})
    await made(tmp_path, hostPath={"path": str(tmp_path / "new"), "type": "DirectoryOrCreate"})
    assert (tmp_path / "new").is_dir()


def mounts(directory: Path, *wanted: dict[str, Any]) -> list[volumes.Mount]:
    (directory / "v").mkdir(exist_ok=True)
    one = pod([container(volumeMounts=list(wanted))], volumes=[{"name": "v", "emptyDir": {}}])
    return volumes.mounts(one, one.spec.containers[0], directory, {"POD": "web"})


def test_outer_mounts_come_before_inner_ones(tmp_path: Path) -> None:
    made = mounts(tmp_path, {"name": "v", "mountPath": "/a/b/"}, {"name": "v", "mountPath": "/a"})

    assert [mount.target for mount in made] == ["/a", "/a/b"]


def test_a_sub_path_is_made_and_may_use_variables(tmp_path: Path) -> None:
    (made,) = mounts(tmp_path, {"name": "v", "mountPath": "/a", "subPathExpr": "x/$(POD)", "readOnly": True})

    assert made == volumes.Mount(str(tmp_path / "v" / "x" / "web"), "/a", True)
    assert (tmp_path / "v" / "x" / "web").is_dir()


def test_a_sub_path_cannot_lead_out_of_the_volume(tmp_path: Path) -> None:
    (tmp_path / "v").mkdir()
    (tmp_path / "v" / "link").symlink_to("/etc")
    for path in ("../x", "link"):
        with pytest.raises(environment.Missing):
            mounts(tmp_path, {"name": "v", "mountPath": "/a", "subPath": path})


def test_the_environment_says_where_volumes_lie(tmp_path: Path) -> None:
    one = pod(volumes=[{"name": "my-data", "emptyDir": {}}, {"name": "host", "hostPath": {"path": "/srv"}}])

    assert volumes.variables(one, tmp_path) == {"VOLUME_MY_DATA": str(tmp_path / "my-data"), "VOLUME_HOST": "/srv"}
