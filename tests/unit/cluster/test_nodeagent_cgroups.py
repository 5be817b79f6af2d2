"""Where control groups are made, and what is written into them, in both of their versions."""

from __future__ import annotations

import pytest

from octarbiter.cluster.nodeagent.runtimes import cgroups

OLD_OWN = "5:memory:/batch/7\n3:cpu,cpuacct:/\n0::/\n"
OLD_MOUNTS = """\
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct
35 31 0:32 /batch /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
"""
NEW_OWN = "0::/user.slice/app.slice/shell.scope\n"
NEW_MOUNTS = "41 31 0:38 / /sys/fs/cgroup rw,relatime - cgroup2 cgroup2 rw\n"


def writable(monkeypatch: pytest.MonkeyPatch, *places: str) -> None:
    """Groups can be made in these directories, with these files in them."""
    monkeypatch.setattr(cgroups, "_can_make", lambda home, sign: f"{home}/{sign}" in places)


def test_groups_of_the_first_version_are_made_below_our_own(monkeypatch: pytest.MonkeyPatch) -> None:
    writable(
        monkeypatch,
        "/sys/fs/cgroup/memory/7/memory.limit_in_bytes",
        "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us",
        "/sys/fs/cgroup/memory/memory.limit_in_bytes",
    )

    assert cgroups.homes(OLD_OWN, OLD_MOUNTS) == {
        "memory": (1, "/sys/fs/cgroup/memory/7"),
        "cpu": (1, "/sys/fs/cgroup/cpu,cpuacct"),
    }


def test_groups_of_the_second_version_are_made_in_the_nearest_group_that_shares_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    slice_ = "/sys/fs/cgroup/user.slice/app.slice"
    writable(monkeypatch, f"{slice_}/memory.max", "/sys/fs/cgroup/user.slice/memory.max")

    assert cgroups.homes(NEW_OWN, NEW_MOUNTS) == {"memory": (2, slice_)}


def test_where_nothing_can_be_made_nothing_is_planned(monkeypatch: pytest.MonkeyPatch) -> None:
    writable(monkeypatch)

    assert cgroups.plan(cgroups.homes(OLD_OWN, OLD_MOUNTS), 2**20, 500) == []


def test_limits_are_written_as_each_version_wants_them() -> None:
    old = {"memory": (1, "/m"), "cpu": (1, "/c")}
    new = {"memory": (2, "/g"), "cpu": (2, "/g")}

    assert cgroups.plan(old, 2**20, 1500) == [
        {"home": "/m", "files": {"memory.limit_in_bytes": "1048576", "memory.memsw.limit_in_bytes": "1048576"}},
        {"home": "/c", "files": {"cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": "150000"}},
    ]
    limits = {"memory.max": "1048576", "memory.swap.max": "0", "memory.oom.group": "1", "cpu.max": "1000 100000"}
    assert cgroups.plan(new, 2**20, 1) == [{"home": "/g", "files": limits}]


def test_who_has_no_limits_needs_no_group() -> None:
    assert cgroups.plan({"memory": (2, "/g"), "cpu": (2, "/g")}, 0, 0) == []
