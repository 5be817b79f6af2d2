"""`kill -9` of the whole cluster, again and again, at any instant: nothing runs twice, nothing is lost, all end right.

The witness is a file that the containers themselves write: each of them adds a line when it begins, and one when it
ends. The kill takes everything that is the cluster; the containers, which outlive it, are to be recognised.
"""

from __future__ import annotations

import base64
import os
import random
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from octarbiter.testing.kubernetes.connection import ApiError, Connection

TASKSETS = 20
KILLS = int(os.environ.get("OCTARBITER_SWEEP_KILLS", "10"))
SEED = int(os.environ.get("OCTARBITER_SWEEP_SEED", str(random.randrange(10**6))))
PATH = "/apis/octopus.openi.pcl.cn/v1alpha1/namespaces/default/tasksets"
PATIENCE_S = 240.0
Json = dict[str, Any]

# What a container does: its line, some work, its last line, and the end that its numbers stand for. The pod's name ends
# with the attempt of the TaskSet, the attempt of the replica, and the replica's index.
SCRIPT = """
echo begins $POD >> {journal}
sleep $SECONDS_OF_WORK
echo ends $POD >> {journal}
replica=${{POD%-*}}; replica=${{replica##*-}}
taskset=${{POD%-*-*}}; taskset=${{taskset##*-}}
if [ $replica -lt $REPLICA_FAILURES ] || [ $taskset -lt $TASKSET_FAILURES ]; then exit 3; fi
if [ $RESTARTS -gt 0 ] && ! [ -e $SCRATCH/failed ]; then touch $SCRATCH/failed; exit 4; fi
"""


class Plan:
    """One TaskSet: how often its replicas fail, the whole of it fails, its containers are restarted in place."""

    def __init__(self, number: int, dice: random.Random) -> None:
        self.name = f"job-{number}"
        self.replica_failures = dice.choice([0, 0, 1, 2])
        self.taskset_failures = 0 if self.replica_failures else dice.choice([0, 0, 1])
        self.restarts = 0 if self.replica_failures or self.taskset_failures else dice.choice([0, 1])
        self.replicas = 1 if self.taskset_failures else 2
        self.seconds = dice.choice([0, 0.3, 1, 2, 4])

    def body(self, journal: Path) -> Json:
        values = {
            "SECONDS_OF_WORK": self.seconds,
            "REPLICA_FAILURES": self.replica_failures,
            "TASKSET_FAILURES": self.taskset_failures,
            "RESTARTS": self.restarts,
        }
        env = [{"name": name, "value": str(value)} for name, value in values.items()]
        env.append({"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}})
        env.append({"name": "SCRATCH", "value": f"{journal.parent}/$(POD)"})
        script = f"mkdir -p $SCRATCH; {SCRIPT.format(journal=journal)}"
        container = {"name": "main", "image": "any", "command": ["sh", "-c", script], "env": env}
        role = {
            "name": "worker",
            "replicas": self.replicas,
            "retryPolicy": {"retry": True, "maxRetryCount": self.replica_failures, "delay": 0},
            "template": {
                "spec": {"restartPolicy": "OnFailure" if self.restarts else "Never", "containers": [container]}
            },
        }
        return {
            "apiVersion": "octopus.openi.pcl.cn/v1alpha1",
            "kind": "TaskSet",
            "metadata": {"name": self.name},
            "spec": {"roles": [role], "retryPolicy": {"retry": True, "maxRetryCount": self.taskset_failures}},
        }

    def runs(self) -> Counter[str]:
        """By pod."""
        return Counter(
            {
                f"{self.name}-worker-{taskset}-{replica}-{index}": 1 + self.restarts
                for taskset in range(self.taskset_failures + 1)
                for replica in range(self.replica_failures + 1)
                for index in range(self.replicas)
            }
        )


class Mortal:
    """A cluster that is killed."""

    def __init__(self, home: Path) -> None:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("OCTO_", "KUBECONFIG"))}
        self._env = kept | {"OCTO_HOME": str(home)}
        self._directory = home / "cluster"
        self._process: subprocess.Popen[bytes] | None = None
        self.log = home.parent / "cluster.log"

    def start(self) -> None:
        (self._directory / "process.json").unlink(missing_ok=True)
        with self.log.open("ab") as log:
            argv = [sys.executable, "-m", "octarbiter", "up", "--foreground"]
            self._process = subprocess.Popen(argv, env=self._env, stdout=log, stderr=log, start_new_session=True)

    @property
    def answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, self.log.read_text()[-5000:]
        return (self._directory / "process.json").exists()

    def connect(self) -> Connection:
        config = yaml.safe_load((self._directory / "kubeconfig").read_text())
        cluster = config["clusters"][0]["cluster"]
        authority = base64.b64decode(cluster["certificate-authority-data"])
        return Connection(cluster["server"], authority, config["users"][0]["user"]["token"])

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def end(self) -> None:
        """Also what its pods run, if there still are any."""
        is_up = self._process is not None and self._process.poll() is None
        for command in ([] if is_up else [["up"]]) + [["down", "--delete"]]:
            argv = [sys.executable, "-m", "octarbiter", *command]
            subprocess.run(argv, env=self._env, check=False, capture_output=True, timeout=120)
        self.kill()


@pytest.fixture
def mortal(tmp_path: Path) -> Iterator[Mortal]:
    made = Mortal(tmp_path / "home")
    yield made
    made.end()


def until(mortal: Mortal, deadline: float) -> None:
    while not mortal.answers:
        assert time.monotonic() < deadline, f"the cluster does not answer:\n{mortal.log.read_text()[-5000:]}"
        time.sleep(0.02)


def submit(mortal: Mortal, bodies: list[Json], kill_at: float) -> None:
    """Takes away from the list what the cluster has acknowledged; it is killed meanwhile, maybe."""
    api = mortal.connect()
    try:
        while bodies and time.monotonic() < kill_at:
            try:
                api.request("POST", PATH, bodies[0])
            except ApiError as refusal:
                if refusal.status != 409:  # it was stored, and the answer killed
                    raise
            del bodies[0]
    finally:
        api.close()


@pytest.mark.timeout(300 + 30 * KILLS)
def test_a_cluster_that_is_killed_again_and_again_runs_everything_once(mortal: Mortal, tmp_path: Path) -> None:
    print(f"OCTARBITER_SWEEP_SEED={SEED} says again what happens here")
    dice = random.Random(SEED)
    journal = tmp_path / "journal"
    plans = [Plan(number, dice) for number in range(TASKSETS)]
    waiting = [plan.body(journal) for plan in plans]
    share = -(-TASKSETS // max(1, KILLS - 2))
    for _ in range(KILLS):
        mortal.start()
        if dice.random() < 0.2:
            time.sleep(dice.uniform(0.1, 1.5))  # while it is still beginning; the instant is what is tried out
        else:
            until(mortal, time.monotonic() + PATIENCE_S)
            portion, waiting[:share] = waiting[:share], []
            submit(mortal, portion, time.monotonic() + dice.uniform(0.01, 1.0))
            waiting[:0] = portion
            time.sleep(dice.uniform(0.0, 2.0))
        mortal.kill()
    mortal.start()
    deadline = time.monotonic() + PATIENCE_S
    until(mortal, deadline)
    submit(mortal, waiting, deadline)
    api = mortal.connect()
    ended: dict[str, Json] = {}
    while len(ended) < TASKSETS:
        items = api.request("GET", PATH)["items"]
        assert len(items) == TASKSETS  # what was acknowledged is there
        ended = {
            item["metadata"]["name"]: item["status"]
            for item in items
            if item.get("status", {}).get("state") in ("Succeeded", "Failed")
        }
        assert time.monotonic() < deadline, f"{sorted({plan.name for plan in plans} - ended.keys())} do not end"
        time.sleep(0.2)
    api.close()
    lines = journal.read_text().splitlines()

    assert {name: status["state"] for name, status in ended.items()} == {plan.name: "Succeeded" for plan in plans}
    runs: Counter[str] = sum((plan.runs() for plan in plans), Counter())
    assert Counter(line.removeprefix("begins ") for line in lines if line.startswith("begins ")) == runs
    assert Counter(line.removeprefix("ends ") for line in lines if line.startswith("ends ")) == runs
    assert overlapping(lines) == []
    for plan in plans:
        replicas = [replica for role in ended[plan.name]["roleStatus"] for replica in role["replicaStatus"]]
        assert {replica.get("totalRetriedCount", 0) for replica in replicas} == {plan.replica_failures}
        assert ended[plan.name].get("totalRetriedCount", 0) == plan.taskset_failures
        assert {replica.get("lostCount", 0) for replica in replicas} == {0}


def overlapping(lines: list[str]) -> list[str]:
    """Pods that began while an earlier one of the same replica ran."""
    running: dict[tuple[str, ...], str] = {}
    found = []
    for line in lines:
        word, pod = line.split()
        named = re.fullmatch(r"(.+)-\d+-\d+-(\d+)", pod)
        assert named is not None
        replica = named.groups()
        if word == "ends":
            running.pop(replica, None)
        else:
            if replica in running:
                found.append(f"{pod} began while {running[replica]} ran")
            running[replica] = pod
    return found
