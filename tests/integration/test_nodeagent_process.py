"""Containers as real processes: what is started, what is left, what is remembered."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from octarbiter.api import codec
from octarbiter.cluster.nodeagent import logs, news
from octarbiter.cluster.nodeagent.places import Places
from octarbiter.cluster.nodeagent.pods import Pod, TokenProjection
from octarbiter.cluster.nodeagent.runtimes import cgroups, commands, ending, launch, records
from octarbiter.cluster.nodeagent.runtimes.process import ProcessRuntime
from octarbiter.cluster.nodeagent.runtimes.protocol import Place

PLACE = Place("127.0.0.1", "127.64.0.9", {"cpu": "4"}, {"KUBERNETES_SERVICE_HOST": "127.0.0.1"})


class Shelf:
    """ConfigMaps and Secrets without a server."""

    def __init__(self) -> None:
        self.config_maps: dict[str, Mapping[str, bytes]] = {}

    async def config_map(self, namespace: str, name: str) -> Mapping[str, bytes] | None:
        return self.config_maps.get(name)

    async def secret(self, namespace: str, name: str) -> Mapping[str, bytes] | None:
        return {"key": b"hidden"} if name == "s" else None

    async def token(self, pod: Pod, wanted: TokenProjection) -> bytes:
        return b"token"


class Agent:
    """A runtime, and everything it told."""

    def __init__(self, root: Path, groups: Mapping[str, cgroups.Home] | None = None) -> None:
        self.shelf = Shelf()
        self.runtime = ProcessRuntime(root, self.shelf, groups=groups)
        self.told: list[news.Event] = []
        self._news = asyncio.Event()
        self._closed = False
        self.runtime.attach(self._hear)

    def _hear(self, uid: str, event: news.Event) -> None:
        self.told.append(event)
        self._news.set()

    async def close(self) -> None:
        if not self._closed:
            self._closed = True
            await self.runtime.close()

    async def run(self, pod: Pod, name: str = "main", attempt: int = 0) -> None:
        await self.runtime.prepare(pod, PLACE)
        await self.runtime.start(pod, name, attempt, PLACE)

    async def heard(self, kind: type[news.Event]) -> Any:
        async with asyncio.timeout(30):
            while True:
                for event in self.told:
                    if isinstance(event, kind):
                        return event
                self._news.clear()
                await self._news.wait()

    async def outcome(self) -> news.Outcome:
        ended: news.ContainerEnded = await self.heard(news.ContainerEnded)
        return ended.outcome

    async def output(self, name: str = "main", **query: Any) -> str:
        path = logs.find(self.runtime.places, "team", "web", name)
        return b"".join([piece async for piece in logs.read(path, logs.Query(**query), lambda: True)]).decode()


@pytest.fixture
async def make(tmp_path: Path) -> AsyncIterator[Callable[[], Agent]]:
    agents: list[Agent] = []

    def begin() -> Agent:
        agents.append(Agent(tmp_path / "state"))
        return agents[-1]

    yield begin
    for agent in agents:
        await agent.close()
    assert await ending.kill_all(Places(tmp_path / "state")) == []


@pytest.fixture
async def agent(make: Callable[[], Agent]) -> Agent:
    return make()


def pod(script: str = "", **container: Any) -> Pod:
    main: dict[str, Any] = {"name": "main", "image": "busybox"}
    main |= {"command": ["/bin/sh", "-c", script]} if script else {}
    volumes = container.pop("volumes", [])
    return codec.from_json(
        {
            "metadata": {"name": "web", "namespace": "team", "uid": "u-1", "annotations": container.pop("notes", {})},
            "spec": {"nodeName": "n1", "containers": [main | container], "volumes": volumes},
        },
        Pod,
    )


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110 - what is waited for happens in other processes
            await asyncio.sleep(0.01)


def exists(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize(
    ("script", "code"), [("exit 0", 0), ("exit 7", 7), ("kill -9 $$$$", 137), ("kill -TERM $$$$", 143)]
)
async def test_a_container_ends_with_the_code_of_its_command(agent: Agent, script: str, code: int) -> None:
    await agent.run(pod(script))

    outcome = await agent.outcome()
    assert (outcome.exit_code, outcome.reason) == (code, "Completed" if code == 0 else "Error")
    assert isinstance(agent.told[0], news.ContainerStarted)


async def test_output_is_kept_line_by_line_with_times(agent: Agent) -> None:
    await agent.run(pod("echo one; echo two >&2; printf three"))
    await agent.outcome()

    assert (await agent.output(stream="stdout")) == "one\nthree"
    assert (await agent.output(stream="stderr")) == "two\n"
    stamped = (await agent.output(timestamps=True, stream="stderr")).split(" ")
    assert stamped[0].endswith("Z")
    assert len(stamped[0]) == len("2026-01-01T00:00:00.000000000Z")


async def test_a_command_that_does_not_exist_fails_with_a_start_error_that_says_what_to_do(agent: Agent) -> None:
    await agent.run(pod(command=["no-such-program"]))

    outcome = await agent.outcome()
    assert (outcome.exit_code, outcome.reason) == (128, "StartError")
    assert 'cannot run "no-such-program"' in outcome.message
    assert "must be installed here" in outcome.message


async def test_a_container_without_a_command_says_that_images_are_not_pulled(agent: Agent) -> None:
    await agent.run(pod())

    outcome = await agent.outcome()
    assert (outcome.exit_code, outcome.reason) == (128, "StartError")
    assert "Images are not pulled" in outcome.message


async def test_a_missing_working_directory_is_named(agent: Agent) -> None:
    await agent.run(pod("true", workingDir="/no/such/place"))

    assert "/no/such/place" in (await agent.outcome()).message


async def test_signals_reach_the_whole_group(agent: Agent) -> None:
    await agent.run(pod("trap 'echo got it; exit 3' TERM; echo up; while :; do sleep 0.05; done"))
    await until(lambda: "up" in (agent.runtime.places.log(pod(), "main", 0)).read_text())
    agent.runtime.send_signal(pod(), "main", 0, "SIGTERM")

    assert (await agent.outcome()).exit_code == 3
    assert "got it" in await agent.output()


async def test_nothing_survives_a_kill_also_if_it_left_the_group(agent: Agent, tmp_path: Path) -> None:
    note = tmp_path / "pid"
    await agent.run(pod(f"setsid sh -c 'echo $$$$ > {note}.new; mv {note}.new {note}; sleep 1000' & sleep 1000"))
    await until(note.exists)
    agent.runtime.send_signal(pod(), "main", 0, "SIGKILL")

    assert (await agent.outcome()).exit_code == 137
    assert not exists(int(note.read_text()))


async def test_what_a_command_leaves_behind_ends_with_it(agent: Agent, tmp_path: Path) -> None:
    note = tmp_path / "pid"
    await agent.run(pod(f"setsid sleep 1000 & echo $! > {note}; exit 0"))

    assert (await agent.outcome()).exit_code == 0
    assert not exists(int(note.read_text()))


async def test_the_environment_is_the_containers_and_nothing_of_ours(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OUR_SECRET", "x")
    env = [{"name": "A", "value": "1"}, {"name": "B", "value": "$(A)2"}]
    await agent.run(pod("env", env=env))
    await agent.outcome()

    said = (await agent.output()).split("\n")
    assert {"B=12", "HOSTNAME=web", "KUBERNETES_SERVICE_HOST=127.0.0.1"} <= set(said)
    assert not any(line.startswith("OUR_SECRET") for line in said)


async def test_a_missing_configmap_means_not_yet_and_runs_nothing(agent: Agent) -> None:
    missing = pod("echo $A", env=[{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k"}}}])
    await agent.run(missing)

    assert agent.told == [news.ConfigurationFailed("main", 0, 'configmap "c" not found')]
    agent.shelf.config_maps["c"] = {"k": b"found"}
    await agent.runtime.start(missing, "main", 0, PLACE)
    await agent.outcome()
    assert await agent.output() == "found\n"


async def test_volumes_are_shared_and_their_place_is_told(agent: Agent) -> None:
    agent.shelf.config_maps["c"] = {"app.ini": b"x=1\n"}
    wanted = pod(
        "cat $VOLUME_CONF/app.ini; cat $VOLUME_HIDDEN/key; touch $VOLUME_DATA/here",
        volumes=[
            {"name": "conf", "configMap": {"name": "c"}},
            {"name": "hidden", "secret": {"secretName": "s"}},
            {"name": "data", "emptyDir": {}},
        ],
    )
    await agent.run(wanted)
    await agent.outcome()

    assert await agent.output() == "x=1\nhidden"
    assert (agent.runtime.places.volumes("u-1") / "data" / "here").exists()
    assert (agent.runtime.places.volumes("u-1") / "hidden" / "key").stat().st_mode & 0o777 == 0o600


async def test_volumes_appear_at_their_mount_paths(agent: Agent) -> None:
    if not agent.runtime.can_mount:
        pytest.skip("NO MOUNT NAMESPACES: this kernel allows none to this user")
    agent.shelf.config_maps["c"] = {"app.ini": b"x=1\n"}
    wanted = pod(
        "cat /etc/my/conf/app.ini; echo hi > /data/deep/f; cat /data/deep/f; touch /ro/x || echo read-only; "
        "echo bye > /dev/termination-log; test -e /bin/sh && test -c /dev/null && ls /proc/self/stat",
        volumes=[{"name": "conf", "configMap": {"name": "c"}}, {"name": "data", "emptyDir": {}}],
        volumeMounts=[
            {"name": "conf", "mountPath": "/etc/my/conf"},
            {"name": "data", "mountPath": "/data/deep"},
            {"name": "data", "mountPath": "/ro", "readOnly": True},
        ],
    )
    await agent.run(wanted)
    outcome = await agent.outcome()

    assert (await agent.output(stream="stdout")) == "x=1\nhi\nread-only\n/proc/self/stat\n"
    assert (outcome.exit_code, outcome.message) == (0, "bye\n")
    assert not os.path.exists("/etc/my")  # noqa: ASYNC240
    assert not os.path.exists("/ro")  # noqa: ASYNC240


async def test_the_last_words_are_those_of_the_file_or_else_of_the_log(agent: Agent) -> None:
    await agent.run(pod("echo from the file > $TERMINATION_MESSAGE_PATH; echo from the log; exit 1"))
    assert (await agent.outcome()).message == "from the file\n"
    agent.told.clear()
    await agent.run(pod("echo from the log; exit 1", terminationMessagePolicy="FallbackToLogsOnError"), attempt=1)

    assert (await agent.outcome()).message == "from the log\n"


def is_there(path: Path) -> bool:
    return path.exists()


def eater(**notes: str) -> Pod:
    command = [sys.executable, "-c", "x = bytearray(300_000_000)"]
    return pod(command=command, resources={"limits": {"memory": "100Mi", "cpu": "500m"}}, notes=notes)


async def test_who_takes_more_memory_than_its_limit_is_killed_for_it(agent: Agent) -> None:
    if "memory" not in cgroups.homes():
        pytest.skip("control groups cannot be made here")
    await agent.run(eater())

    outcome = await agent.outcome()
    assert (outcome.exit_code, outcome.reason) == (137, "OOMKilled")


async def test_without_control_groups_a_memory_limit_is_enforced_where_asked_for(tmp_path: Path) -> None:
    agent = Agent(tmp_path / "state", groups={})
    await agent.run(eater(**{"node.octarbiter/memory-limits": "enforced"}))

    assert (await agent.outcome()).exit_code == 1
    assert "MemoryError" in await agent.output()
    agent.told.clear()
    await agent.run(eater(), attempt=1)
    assert (await agent.outcome()).exit_code == 0
    await agent.close()


async def test_control_groups_hold_all_of_a_container_and_go_with_it(agent: Agent, tmp_path: Path) -> None:
    if "cpu" not in cgroups.homes():
        pytest.skip("control groups cannot be made here")
    limited = pod(f"until [ -e {tmp_path}/gate ]; do sleep 0.05; done", resources={"limits": {"cpu": "500m"}})
    await agent.run(limited)
    record = records.read(agent.runtime.places.run("u-1", "main", 0) / "record.json")
    assert record is not None
    group = Path(record["groups"][0])
    assert str(record["pid"]) in (group / "cgroup.procs").read_text().split()
    beside = await commands.answer(agent.runtime.places.run("u-1", "main", 0), ["cat", "/proc/self/cgroup"], 30)
    assert group.name in beside.output
    (tmp_path / "gate").touch()
    await agent.outcome()

    assert not is_there(group)


async def test_control_groups_of_a_supervisor_that_was_killed_go_with_the_pod(agent: Agent) -> None:
    if "cpu" not in cgroups.homes():
        pytest.skip("control groups cannot be made here")
    limited = pod("sleep 1000", resources={"limits": {"cpu": "500m"}})
    await agent.run(limited)
    record = records.read(agent.runtime.places.run("u-1", "main", 0) / "record.json")
    assert record is not None
    os.kill(record["supervisor"], signal.SIGKILL)
    await agent.outcome()
    await agent.runtime.release(limited)

    assert not is_there(Path(record["groups"][0]))


async def test_the_log_of_the_run_before_is_kept_and_older_ones_are_not(agent: Agent) -> None:
    for attempt in range(3):
        agent.told.clear()
        await agent.run(pod(f"echo {attempt}"), attempt=attempt)
        await agent.outcome()

    places = agent.runtime.places
    previous = logs.find(places, "team", "web", "main", previous=True)
    assert [piece async for piece in logs.read(previous, logs.Query(), lambda: True)] == [b"1\n"]
    assert list(places.attempts("u-1", "main")) == [1, 2]


async def test_logs_stay_when_the_pod_is_released(agent: Agent) -> None:
    await agent.run(pod("echo here"))
    await agent.outcome()
    await agent.runtime.release(pod())

    assert not agent.runtime.places.pod("u-1").exists()
    assert await agent.output() == "here\n"


async def test_a_new_agent_takes_over_what_runs(make: Callable[[], Agent]) -> None:
    first = make()
    await first.run(pod("trap 'exit 5' TERM; while :; do sleep 0.05; done"))
    started: news.ContainerStarted = await first.heard(news.ContainerStarted)
    await first.close()
    second = make()

    (run,) = await second.runtime.known(pod())
    assert (run.id, run.outcome) == (started.id, None)
    assert [found.metadata.uid for found in await second.runtime.remembered()] == ["u-1"]
    second.runtime.send_signal(pod(), "main", 0, "SIGTERM")
    assert (await second.outcome()).exit_code == 5


async def test_a_new_agent_learns_of_an_end_that_nobody_saw(make: Callable[[], Agent], tmp_path: Path) -> None:
    first, gate = make(), tmp_path / "gate"
    await first.run(pod(f"while [ ! -e {gate} ]; do sleep 0.02; done; exit 9"))
    await first.heard(news.ContainerStarted)
    await first.close()
    gate.touch()
    await until((first.runtime.places.run("u-1", "main", 0) / "exit.json").exists)

    (run,) = await make().runtime.known(pod())
    assert run.outcome is not None
    assert run.outcome.exit_code == 9


async def test_a_start_that_was_interrupted_before_its_record_never_happens(make: Callable[[], Agent]) -> None:
    first = make()
    await first.runtime.prepare(pod("true"), PLACE)
    directory = first.runtime.places.run("u-1", "main", 0)
    directory.mkdir(parents=True)
    records.write(directory / "spawn.json", b"{}")
    await first.close()

    assert await make().runtime.known(pod("true")) == []
    assert not directory.exists()


async def test_the_kill_of_a_supervisor_takes_everything_with_it(agent: Agent, tmp_path: Path) -> None:
    note = tmp_path / "pid"
    await agent.run(pod(f"setsid sleep 1000 & echo $! > {note}.new; mv {note}.new {note}; sleep 1000"))
    await until(note.exists)
    record = records.read(agent.runtime.places.run("u-1", "main", 0) / "record.json")
    assert record is not None
    os.kill(record["supervisor"], signal.SIGKILL)

    assert (await agent.outcome()).reason == "ContainerStatusUnknown"
    await until(lambda: not exists(int(note.read_text())) and not exists(record["pid"]))


async def test_a_command_in_a_running_container_has_its_environment(agent: Agent) -> None:
    await agent.run(pod("sleep 1000", env=[{"name": "A", "value": "1"}]))
    said: list[bytes] = []

    async def keep(data: bytes) -> None:
        said.append(data)

    async def typed() -> AsyncIterator[bytes]:
        yield b"typed\n"

    command = ["sh", "-c", "echo $A; cat; pwd; exit 4"]
    code = await agent.runtime.execute(pod(), "main", command, stdout=keep, stdin=typed())
    assert code == 4
    assert b"".join(said).decode().split() == ["1", "typed", str(agent.runtime.places.work("u-1", "main"))]


async def test_a_command_may_have_a_terminal(agent: Agent) -> None:
    await agent.run(pod("sleep 1000"))
    said: list[bytes] = []

    async def keep(data: bytes) -> None:
        said.append(data)

    async def sizes() -> AsyncIterator[tuple[int, int]]:
        yield 100, 40

    script = "while [ $(tput -T xterm cols) != 100 ]; do sleep 0.05; done; test -t 0 && echo a terminal"
    command = ["sh", "-c", script]
    assert await agent.runtime.execute(pod(), "main", command, stdout=keep, tty=True, sizes=sizes()) == 0
    assert b"a terminal" in b"".join(said)


async def words(*typed: bytes) -> AsyncIterator[bytes]:
    for word in typed:
        yield word


async def test_what_is_typed_is_read_also_after_the_agent_was_replaced(make: Callable[[], Agent]) -> None:
    reader = pod("read a; echo $a; read b; echo $b", stdin=True)
    first = make()
    await first.run(reader)
    await first.runtime.type_into(reader, "main", words(b"on", b"e\n"))
    await first.close()
    second = make()
    await second.runtime.known(reader)
    await second.runtime.type_into(reader, "main", words(b"two\n"))

    assert (await second.outcome()).exit_code == 0
    assert await second.output() == "one\ntwo\n"


async def test_input_that_is_given_once_ends_with_the_first_who_gives_it(agent: Agent) -> None:
    reader = pod("cat; echo over; read word || sleep 0.2", stdin=True, stdinOnce=True)
    large = b"x" * 99 + b"\n"
    await agent.run(reader)
    await agent.runtime.type_into(reader, "main", words(*[large * 100] * 100))

    assert (await agent.outcome()).exit_code == 0
    assert await agent.output() == (large * 10_000).decode() + "over\n"


async def test_who_reads_no_input_is_not_disturbed_by_any(agent: Agent, tmp_path: Path) -> None:
    deaf = pod(f"until [ -e {tmp_path}/gate ]; do sleep 0.05; done; echo fine")
    await agent.run(deaf)
    await agent.runtime.type_into(deaf, "main", words(b"lost\n"))
    (tmp_path / "gate").touch()

    assert (await agent.outcome()).exit_code == 0
    assert await agent.output() == "fine\n"


async def test_a_container_may_have_a_terminal(agent: Agent) -> None:
    """Its prompts are seen before they are answered, it has a size, and what is typed is echoed, as terminals do."""

    async def sizes() -> AsyncIterator[tuple[int, int]]:
        yield 101, 37

    async def typed() -> AsyncIterator[bytes]:
        async with asyncio.timeout(30):
            while "name? " not in await agent.output():  # noqa: ASYNC110 - what is waited for happens in other processes
                await asyncio.sleep(0.01)
        yield b"me\n"

    shell = pod("test -t 0 && test -t 1 && printf 'name? '; read n; echo $TERM $n $(stty size)", stdin=True, tty=True)
    await agent.run(shell)
    await agent.runtime.type_into(shell, "main", typed(), sizes())

    assert (await agent.outcome()).exit_code == 0
    assert await agent.output() == "name? me\r\nxterm me 37 101\r\n"


async def test_a_probe_command_that_takes_too_long_is_killed_and_fails(agent: Agent) -> None:
    await agent.run(pod("sleep 1000"))
    directory = agent.runtime.places.run("u-1", "main", 0)

    assert (await commands.answer(directory, ["true"], 30)).passed
    assert not (await commands.answer(directory, ["sleep", "1000"], 0.2)).passed
    assert (await commands.answer(directory, ["sh", "-c", "echo why; exit 1"], 30)).output == "why"


async def test_a_command_that_runs_in_mounted_volumes_sees_them_too(agent: Agent) -> None:
    if not agent.runtime.can_mount:
        pytest.skip("NO MOUNT NAMESPACES: this kernel allows none to this user")
    agent.shelf.config_maps["c"] = {"app.ini": b"x=1\n"}
    await agent.run(
        pod(
            "sleep 1000",
            volumes=[{"name": "conf", "configMap": {"name": "c"}}],
            volumeMounts=[{"name": "conf", "mountPath": "/my/conf"}],
        )
    )
    answer = await commands.answer(agent.runtime.places.run("u-1", "main", 0), ["cat", "/my/conf/app.ini"], 30)

    assert (answer.passed, answer.output) == (True, "x=1")


async def test_two_agents_never_work_in_one_directory(agent: Agent, make: Callable[[], Agent]) -> None:
    with pytest.raises(RuntimeError, match="another agent works in"):
        make()


async def test_logs_can_be_followed_to_the_end(agent: Agent, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    await agent.run(pod(f"echo one; while [ ! -e {gate} ]; do sleep 0.02; done; echo two"))
    said = []
    async for piece in agent.runtime.read_logs("team", "web", "main", logs.Query(follow=True)):
        said.append(piece)
        gate.touch()

    assert said == [b"one\n", b"two\n"]


async def test_logs_of_a_container_that_never_was_are_refused_with_a_sentence(agent: Agent) -> None:
    with pytest.raises(LookupError, match="there are no logs of container"):
        agent.runtime.read_logs("team", "web", "main", logs.Query())
    with pytest.raises(LookupError, match="cannot be the name"):
        agent.runtime.read_logs("team", "../../etc", "main", logs.Query())


@pytest.mark.parametrize("there", ["void", "record.json"])
async def test_a_supervisor_that_comes_too_late_starts_nothing(tmp_path: Path, there: str) -> None:
    spawn = {"id": "x", "argv": ["touch", str(tmp_path / "ran")], "env": {}, "cwd": "/", "log": str(tmp_path / "log")}
    records.write(tmp_path / "spawn.json", json.dumps(spawn | {"memory": 0, "mounts": []}).encode())
    (tmp_path / there).touch()
    done = await asyncio.to_thread(subprocess.run, launch.supervisor(tmp_path), capture_output=True, timeout=60)

    assert done.returncode != 0
    assert not (tmp_path / "ran").exists()


async def test_a_run_has_one_supervisor(agent: Agent) -> None:
    await agent.run(pod("sleep 1000"))
    directory = agent.runtime.places.run("u-1", "main", 0)
    done = await asyncio.to_thread(subprocess.run, launch.supervisor(directory), capture_output=True, timeout=60)

    assert b"another supervisor is at work here" in done.stderr
