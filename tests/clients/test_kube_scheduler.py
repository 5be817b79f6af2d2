"""The scheduler of Kubernetes itself, on our API server: what it reads, watches, binds and records."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubectl_runner import Kubectl

from octarbiter.testing.cluster import EmbeddedCluster
from octarbiter.testing.kubernetes import processes


@pytest.fixture(scope="module")
def scheduled_cluster(
    programs: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[EmbeddedCluster, processes.Process]]:
    directory = tmp_path_factory.mktemp("scheduler")
    resources = {"nvidia.com/gpu": "2"}
    with EmbeddedCluster(nodes=2, resources=resources, services=False, scheduler_name="nobody") as cluster:
        configuration = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "leaderElection": {
                "leaderElect": True,
                "leaseDuration": "15s",
                "renewDeadline": "10s",
                "retryPeriod": "1s",
            },
            "clientConnection": {"kubeconfig": str(cluster.kubeconfig)},
        }
        file = directory / "scheduler.yaml"
        file.write_text(yaml.safe_dump(configuration))
        scheduler = processes.Process(
            "kube-scheduler",
            [str(programs["kube-scheduler"]), f"--config={file}", "--secure-port=0"],
            directory / "kube-scheduler.log",
            env={"PATH": os.environ.get("PATH", os.defpath), "HOME": str(directory)},
            directory=directory,
        )
        scheduler.start()
        try:
            yield cluster, scheduler
        finally:
            scheduler.stop(grace_s=2.0)


@pytest.fixture
def scheduled(
    programs: dict[str, Path], scheduled_cluster: tuple[EmbeddedCluster, processes.Process], home: Path
) -> Kubectl:
    cluster, _ = scheduled_cluster
    return Kubectl(programs["kubectl"], cluster.kubeconfig, home, cluster.create_namespace())


def pod(name: str, **spec: Any) -> dict[str, Any]:
    container = {"name": "main", "image": "busybox", "command": ["sleep", "1000"]}
    limits = {"limits": {"nvidia.com/gpu": spec.pop("gpus")}} if "gpus" in spec else {}
    spec["containers"] = [container | {"resources": limits}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": "x"}}, "spec": spec}


def test_it_places_pods_where_there_is_room_and_says_why_not(scheduled: Kubectl) -> None:
    for name in ("first", "second"):
        scheduled("create", "-f", "-", input=pod(name, gpus=2))
    scheduled("wait", "--for=condition=Ready", "pod/first", "pod/second", "--timeout=60s")
    nodes = scheduled("get", "pods", "-o=jsonpath={.items[*].spec.nodeName}").split()
    assert len(set(nodes)) == 2

    scheduled("create", "-f", "-", input=pod("third", gpus=1))
    scheduled("wait", "--for=jsonpath={.status.conditions[0].reason}=Unschedulable", "pod/third", "--timeout=60s")
    message = scheduled("get", "pod", "third", "-o=jsonpath={.status.conditions[0].message}")
    assert message.startswith("0/2 nodes are available: 2 Insufficient nvidia.com/gpu.")

    scheduled("delete", "pod", "first", "--now")
    scheduled("wait", "--for=condition=Ready", "pod/third", "--timeout=60s")
    events = scheduled("get", "events", "--field-selector=involvedObject.name=third", "-o=jsonpath={.items[*].reason}")
    assert set(events.split()) == {"FailedScheduling", "Scheduled"}
    scheduled("delete", "pods", "--all", "--now")


def test_it_preempts_what_is_less_important(scheduled: Kubectl) -> None:
    scheduled("create", "priorityclass", "urgent", "--value=1000")
    for name in ("low-1", "low-2"):
        scheduled("create", "-f", "-", input=pod(name, gpus=2, terminationGracePeriodSeconds=1))
    scheduled("wait", "--for=condition=Ready", "pod/low-1", "pod/low-2", "--timeout=60s")
    scheduled("create", "-f", "-", input=pod("high", gpus=2, priorityClassName="urgent"))

    scheduled("wait", "--for=condition=Ready", "pod/high", "--timeout=60s")
    left = set(scheduled("get", "pods", "-o=name").split())
    assert left in ({"pod/high", "pod/low-1"}, {"pod/high", "pod/low-2"})
    scheduled("delete", "pods", "--all", "--now")


def test_it_leads_by_a_lease_and_complains_about_nothing_of_ours(
    scheduled: Kubectl, scheduled_cluster: tuple[EmbeddedCluster, processes.Process]
) -> None:
    scheduled("create", "-f", "-", input=pod("placed"))
    scheduled("wait", "--for=condition=PodScheduled", "pod/placed", "--timeout=60s")
    holder = scheduled("-n", "kube-system", "get", "lease", "kube-scheduler", "-o=jsonpath={.spec.holderIdentity}")
    log = scheduled_cluster[1].log.read_text()

    assert holder
    assert [line for line in log.splitlines() if line.startswith("E")] == []
