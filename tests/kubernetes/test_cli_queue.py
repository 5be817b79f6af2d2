"""`octo queue`, `octo queuejob` and `octo why` on a cluster that shares 9 CPU and 18Gi."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest
import yaml
from click.testing import Result
from embedded_bed import EmbeddedPlane
from eventual import eventually
from octo_runner import Octo, job

from octarbiter.cli.exits import Exit
from octarbiter.testing.kubernetes.connection import ApiError
from octarbiter.testing.kubernetes.controlplane import ControlPlane

pytestmark = pytest.mark.xdist_group("cli-queue")

GROUP = "/apis/arbitrator.incubator.k8s.io/v1"
UNIT = "cpu=1,memory=1Gi"


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    with EmbeddedPlane(resources={"cpu": "9", "memory": "18Gi"}) as made:
        yield cast(ControlPlane, made)


@pytest.fixture
def team(plane: ControlPlane) -> Iterator[Callable[[], Octo]]:
    """A namespace each time it is called; what was made there is gone afterwards, because all share one cluster."""
    made: list[Octo] = []

    def another() -> Octo:
        made.append(Octo(plane, plane.create_namespace()))
        return made[-1]

    yield another
    for octo in made:
        for path in (f"{GROUP}/namespaces/{octo.namespace}/queuejobs", f"{GROUP}/namespaces/{octo.namespace}/queues"):
            plane.request("DELETE", path)
        plane.request("DELETE", f"/api/v1/namespaces/{octo.namespace}")
    eventually(
        lambda: not any(octo.exists(f"/api/v1/namespaces/{octo.namespace}") for octo in made), "an empty cluster"
    )


def done(said: Result) -> str:
    assert said.exit_code == Exit.OK, said.output
    return said.stdout


def queues(octo: Octo) -> dict[str, dict[str, str]]:
    """What `octo queue list` prints, by name."""
    head, *rows = [line.split("   ") for line in octo("queue", "list").stdout.splitlines()] or [[]]
    cells = [[cell.strip() for cell in row if cell.strip()] for row in (head, *rows)]
    return {row[0]: dict(zip(cells[0], row, strict=True)) for row in cells[1:]}


def until_listed(octo: Octo, name: str, **wanted: str) -> None:
    def so() -> bool:
        found = queues(octo).get(name, {})
        return all(found.get(column.upper()) == value for column, value in wanted.items())

    eventually(so, lambda: f"{name} with {wanted}; is {queues(octo)}")


def until_says(octo: Octo, words: tuple[str, ...], part: str) -> str:
    return eventually(
        lambda: said if part in (said := octo(*words).stdout) else "",
        lambda: f"{part!r} from octo {' '.join(words)}; it says {octo(*words).output}",
    )


def sleeper(name: str, queue: str, replicas: int, cpu: str = "1") -> Any:
    wanted = {"cpu": cpu, "memory": "1Gi"}
    container = {"name": "main", "image": "none", "command": ["sleep", "600"]}
    container["resources"] = {"requests": wanted, "limits": wanted}  # type: ignore[assignment]
    spec = {"terminationGracePeriodSeconds": 1, "containers": [container]}
    return job(name, queue=queue, roles=[{"name": "worker", "replicas": replicas, "template": {"spec": spec}}])


def test_what_is_created_and_set_shows_in_the_figures(team: Callable[[], Octo]) -> None:
    one, two = team(), team()
    done(one("queue", "create", "one"))
    done(two("queue", "create", "two"))
    done(one("queuejob", "create", "j", "--queue=one", "--unit=cpu=1,memory=4Gi", "--units=9"))
    done(two("queuejob", "create", "j", "--queue=two", "--unit=cpu=3,memory=1Gi", "--units=9"))

    until_listed(one, "one", resources="cpu,memory", demand="9,36Gi", deserved="3,12Gi", share="66.7% memory")
    until_listed(two, "two", allocated="6,2Gi", used="0,0", preempting="0,0", share="66.7% cpu", weight="1")

    assert done(two("queue", "set", "two", "--capability", "cpu=3")).endswith("two changed\n")
    until_listed(two, "two", deserved="3,1Gi")
    assert done(two("queue", "set", "two", "--capability", "")).endswith("two changed\n")
    until_listed(two, "two", deserved="6,2Gi")
    assert done(two("queue", "set", "two", "--weight", "1")).endswith("two unchanged\n")


def test_a_description_names_who_is_ahead_and_what_the_quota_says(team: Callable[[], Octo]) -> None:
    octo = team()
    done(octo("queue", "create", "q", "--capability", "cpu=4"))
    for name, priority in (("first", "0"), ("last", "-1"), ("urgent", "9")):
        words = ("--queue", "q", "--unit", UNIT, "--units", "3", "--priority", priority)
        done(octo("queuejob", "create", name, *words))
    until_says(octo, ("queue", "describe", "q"), "requests.cpu      4")

    page = until_says(octo, ("queue", "describe", "q"), "2          last")
    rows = page.partition("Jobs, in their order:")[2].partition("\n\n")[0].splitlines()[2:]
    jobs = [[*row.split()[:2], row.split()[4]] for row in rows]
    told = until_says(octo, ("queuejob", "describe", "last"), "Position:    2 among those that wait")

    assert jobs == [["-", "urgent", "3/3"], ["1", "first", "1/3"], ["2", "last", "0/3"]]
    assert [name in told.partition("Ahead of it:")[2] for name in ("urgent", "first")] == [True, True]
    assert "Satisfied" in page.partition("Conditions:")[2]


def test_a_taskset_tells_why_its_queue_holds_it_back(team: Callable[[], Octo]) -> None:
    octo = team()
    done(octo("queue", "create", "q", "--capability", "cpu=2"))
    octo.create(sleeper("large", "q", 3))

    sentence = "never fits: q is limited to 2 CPU"
    until_says(octo, ("why", "large"), sentence)
    assert "Waits for:   its share of queue q: it waits, number 1 in q: 3 CPU" in done(octo("describe", "large"))
    told = json.loads(done(octo("why", "taskset/large", "--json")))
    assert (told["kind"], told["name"], told["waits"]) == ("TaskSet", "large", True)
    assert sentence in told["sentence"]
    assert told["helps"]

    done(octo("queue", "set", "q", "--capability", "cpu=3"))
    done(octo("wait", "large", "--for=running", "--timeout=60s"))
    assert done(octo("why", "queuejob/large")).startswith("large: it has all 3 units")
    assert done(octo("why", "large")).startswith("large: runs")


def test_who_watches_a_run_sees_what_its_queue_says(team: Callable[[], Octo], tmp_path: Path) -> None:
    octo, file = team(), tmp_path / "job.json"
    done(octo("queue", "create", "q", "--capability", "cpu=2"))
    body = sleeper("large", "q", 3)
    body["spec"]["roles"][0]["template"]["spec"]["containers"][0]["command"] = ["sleep", "1"]
    file.write_text(json.dumps(body))

    with octo.running("run", str(file), "--keep") as process:
        assert process.stdout is not None
        lines = iter(process.stdout)
        assert next(line for line in lines if "never fits: q is limited to 2 CPU" in line).startswith(
            "large: Waiting: its share of queue q: it waits, number 1 in q:"
        )
        done(octo("queue", "set", "q", "--capability", ""))
        assert next(line for line in lines if "Succeeded: all roles" in line)
        assert process.wait(60) == Exit.OK


def test_a_name_that_means_several_is_not_guessed(team: Callable[[], Octo]) -> None:
    octo = team()
    done(octo("queue", "create", "x"))
    done(octo("queuejob", "create", "x", "--queue", "x", "--unit", UNIT))

    said, none = octo("why", "x"), octo("why", "y")

    assert "`octo why queue/x` or `octo why queuejob/x`" in said.stderr
    assert said.exit_code == Exit.INVALID
    assert none.exit_code == octo("why", "queue", "y").exit_code == Exit.NOT_FOUND
    assert until_says(octo, ("why", "queue/x"), "x has all it asks for")


def test_the_servers_refusal_is_told_with_its_field(team: Callable[[], Octo]) -> None:
    octo = team()
    done(octo("queue", "create", "one"))

    def refused() -> Result | None:
        said = octo("queue", "create", "two", "--dry-run=server")
        return said if said.exit_code else None

    said = eventually(refused, "the webhook to know the first queue")
    assert "metadata.namespace: a namespace has one queue without children" in said.stderr
    assert said.exit_code == Exit.INVALID


def test_who_watches_sees_each_change(team: Callable[[], Octo]) -> None:
    octo = team()
    done(octo("queue", "create", "q", "--request", "cpu=1"))
    until_listed(octo, "q", demand="1")

    with octo.running("queue", "list", "--watch") as process:
        assert process.stdout is not None
        assert process.stdout.readline().split()[:2] == ["NAME", "WEIGHT"]
        assert process.stdout.readline().split()[:2] == ["q", "1"]
        done(octo("queue", "set", "q", "--weight", "7"))
        assert process.stdout.readline().split()[:2] == ["q", "7"]


def test_who_may_see_little_sees_that_and_is_told(team: Callable[[], Octo], tmp_path: Path) -> None:
    octo = team()
    done(octo("queue", "create", "q", "--request", "cpu=1"))
    until_listed(octo, "q", demand="1")
    account = f"--serviceaccount={octo.namespace}:default"
    octo.plane.kubectl("create", "role", "look", "--verb=get,list", "--resource=queues", f"-n={octo.namespace}")
    octo.plane.kubectl("create", "rolebinding", "look", "--role=look", account, f"-n={octo.namespace}")
    config = yaml.safe_load(octo.kubeconfig.read_text())
    token = octo.plane.kubectl("create", "token", "default", f"-n={octo.namespace}").stdout.strip()
    config["users"][0]["user"] = {"token": token}
    kubeconfig = tmp_path / "little"
    kubeconfig.touch(0o600)
    kubeconfig.write_text(yaml.safe_dump(config))

    page = done(Octo(octo.plane, octo.namespace, kubeconfig)("queue", "describe", "q"))

    assert "you may not see" in page
    assert "Quota:" not in page
    assert "Quota:" in until_says(octo, ("queue", "describe", "q"), "requests.cpu")


def test_lists_are_there_for_programs_too(team: Callable[[], Octo]) -> None:
    octo = team()
    done(octo("queue", "create", "q"))
    done(octo("queuejob", "create", "j", "--queue", "q", "--unit", UNIT))

    assert done(octo("queue", "list", "-o", "name")) == "queue.arbitrator.incubator.k8s.io/q\n"
    assert json.loads(done(octo("queuejob", "list", "j", "-o", "json")))["spec"]["queue"] == "q"
    assert octo("queue", "list", "other").exit_code == Exit.NOT_FOUND
    assert octo("queue", "delete", "other").exit_code == Exit.NOT_FOUND
    assert octo("queue", "delete", "other", "--ignore-not-found").exit_code == Exit.OK


def test_without_its_queue_what_a_claim_started_waits_and_goes_on_when_it_is_back(team: Callable[[], Octo]) -> None:
    octo = team()
    pods = f"/api/v1/namespaces/{octo.namespace}/pods"
    quotas = f"/api/v1/namespaces/{octo.namespace}/resourcequotas"
    done(octo("queue", "create", "q", "--request", UNIT))
    octo.create(sleeper("train", "q", 2))
    done(octo("wait", "train", "--for=running", "--timeout=60s"))
    eventually(lambda: octo.plane.request("GET", quotas)["items"], "the quota")

    done(octo("queue", "delete", "q"))

    until_says(octo, ("why", "train"), "queue q does not exist")
    eventually(lambda: not octo.plane.request("GET", pods)["items"], "its pods to be gone")
    eventually(lambda: not octo.plane.request("GET", quotas)["items"], "the quota to be gone")
    assert octo.get("train")["spec"]["suspend"] is True
    assert octo.get("train")["status"].get("totalRetriedCount", 0) == 0

    done(octo("queue", "create", "q", "--request", UNIT))
    done(octo("wait", "train", "--for=running", "--timeout=60s"))


def test_without_its_queue_a_pod_of_nobodys_claim_runs_on(team: Callable[[], Octo]) -> None:
    octo = team()
    done(octo("queue", "create", "q", "--request", UNIT))
    eventually(
        lambda: octo.plane.request("GET", f"/api/v1/namespaces/{octo.namespace}/resourcequotas")["items"], "the quota"
    )
    wanted = {"cpu": "1", "memory": "1Gi"}
    container = {"name": "main", "image": "none", "command": ["sleep", "600"]}
    spec = {"containers": [container | {"resources": {"requests": wanted, "limits": wanted}}]}
    path = f"/api/v1/namespaces/{octo.namespace}/pods"
    eventually(lambda: _created(octo, path, {"metadata": {"name": "lone"}, "spec": spec}), "room for a pod")
    eventually(lambda: octo.plane.request("GET", f"{path}/lone")["status"].get("phase") == "Running", "it to run")

    done(octo("queue", "delete", "q"))
    rival = team()
    done(rival("queue", "create", "rival", "--request", "cpu=100,memory=100Gi"))

    # Who has no queue is not shared with: the pod stays, and what it uses is not there for the others.
    until_listed(rival, "rival", deserved="8,8Gi")
    assert octo.plane.request("GET", f"{path}/lone")["status"]["phase"] == "Running"


def _created(octo: Octo, path: str, body: Any) -> bool:
    try:
        octo.plane.request("POST", path, body)
    except ApiError as error:
        if "exceeded quota" not in str(error) and "status unknown" not in str(error):
            raise
        return False
    return True
