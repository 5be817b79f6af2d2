"""How do ten thousand pods run on a laptop? Nothing runs: containers start at once and end as their `script` says.

All times come from one heap. What must survive a restart of the agent is in the pods' status: the exact start of a
container is the end of its id.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime, timedelta

from octarbiter.cluster.nodeagent import logs, news
from octarbiter.cluster.nodeagent.alarms import Alarms
from octarbiter.cluster.nodeagent.pods import Handler, Pod
from octarbiter.cluster.nodeagent.runtimes import script
from octarbiter.cluster.nodeagent.runtimes.protocol import Answer, Listener, Output, Place, Size
from octarbiter.runtime import clock as clocks

TERMINATED = 128 + 15
KILLED = 128 + 9

_Key = tuple[str, str, int]


class PretendRuntime:
    scheme = "pretend"
    is_real = False

    def __init__(self, clock: clocks.Clock = clocks.SYSTEM) -> None:
        self._clock = clock
        self._listener: Listener = lambda uid, event: None
        self._ends: Alarms[_Key] = Alarms(self._end, clock)
        self._running: dict[_Key, news.Outcome] = {}
        """How each is to end, if nothing else happens to it."""
        self._started: dict[str, dict[_Key, datetime]] = {}
        """By pod: those that nobody has asked to end, and since when they run."""

    def attach(self, listener: Listener) -> None:
        self._listener = listener

    def is_silent(self, pod: Pod) -> bool:
        return script.is_silent(pod)

    async def remembered(self) -> Sequence[Pod]:
        return ()

    async def known(self, pod: Pod) -> Sequence[news.Run]:
        found = []
        for seen in (*pod.status.init_container_statuses, *pod.status.container_statuses):
            if seen.state.running is not None and seen.container_id.startswith(f"{self.scheme}://"):
                started_at = _start(seen.container_id)
                self._run(pod, seen.name, seen.restart_count, started_at)
                found.append(news.Run(seen.name, seen.restart_count, seen.container_id, started_at))
        return found

    async def prepare(self, pod: Pod, place: Place) -> None:
        pass

    async def start(self, pod: Pod, container: str, attempt: int, place: Place) -> None:
        now = self._clock.now()
        millis = int(now.timestamp() * 1000)
        id_ = f"{self.scheme}://{pod.metadata.uid}/{container}/{millis}"
        self._listener(pod.metadata.uid, news.ContainerStarted(container, attempt, id_, now))
        self._run(pod, container, attempt, now)

    def _run(self, pod: Pod, container: str, attempt: int, started_at: datetime) -> None:
        plan, duration = script.of(pod), None
        code, message = 0, ""
        if any(container == init.name for init in pod.spec.init_containers):
            if pod.container(container).restart_policy != "Always":
                duration = timedelta()  # init containers have nothing to do here
        else:
            duration, code, message = plan.duration, plan.exit_code, plan.message
        key = (pod.metadata.uid, container, attempt)
        self._running[key] = _outcome(code, message)
        self._started.setdefault(pod.metadata.uid, {})[key] = started_at
        if duration is not None:
            self._ends.set(key, started_at + duration)
        else:
            self._ends.cancel(key)

    def changed(self, pod: Pod) -> None:
        """The script may have been rewritten while it was being played."""
        for (_, container, attempt), started_at in list(self._started.get(pod.metadata.uid, {}).items()):
            self._run(pod, container, attempt, started_at)

    def send_signal(self, pod: Pod, container: str, attempt: int, signal: str) -> None:
        key = (pod.metadata.uid, container, attempt)
        if key not in self._running:
            return
        self._started.get(pod.metadata.uid, {}).pop(key, None)
        now, plan = self._clock.now(), script.of(pod)
        is_sidecar = any(container == init.name for init in pod.spec.init_containers)
        if signal == "SIGKILL":
            self._running[key] = _outcome(KILLED, plan.message)
            self._ends.set(key, now)
        else:
            # Their own end may come sooner, and then counts as theirs no more: it was asked for.
            self._running[key] = _outcome(0 if is_sidecar else TERMINATED, plan.message)
            self._ends.set(key, now + plan.lingers)

    def _end(self, key: _Key) -> None:
        uid, container, attempt = key
        planned = self._running.pop(key, None)
        self._started.get(uid, {}).pop(key, None)
        if planned is not None:
            now = self._clock.now()
            outcome = news.Outcome(planned.exit_code, planned.reason, planned.message, now)
            self._listener(uid, news.ContainerEnded(container, attempt, outcome))

    async def act(
        self, pod: Pod, container: str, attempt: int, handler: Handler, place: Place, timeout_s: float
    ) -> Answer:
        return Answer(True)

    async def execute(
        self,
        pod: Pod,
        container: str,
        command: Sequence[str],
        *,
        stdout: Output,
        stderr: Output | None = None,
        stdin: AsyncIterator[bytes] | None = None,
        tty: bool = False,
        sizes: AsyncIterator[Size] | None = None,
    ) -> int:
        raise LookupError(f'container "{container}" is only pretended: nothing runs in it, so no command can either')

    async def type_into(
        self, pod: Pod, container: str, stdin: AsyncIterator[bytes] | None, sizes: AsyncIterator[Size] | None = None
    ) -> None:
        """Nobody reads it."""
        if stdin is not None:
            async for _ in stdin:
                pass

    async def read_logs(
        self, namespace: str, pod: str, container: str, query: logs.Query, *, uid: str = "", previous: bool = False
    ) -> AsyncIterator[bytes]:
        """Nothing runs, so nothing was ever said."""
        silence: Sequence[bytes] = ()
        for piece in silence:
            yield piece

    async def release(self, pod: Pod) -> None:
        self._started.pop(pod.metadata.uid, None)

    async def close(self) -> None:
        self._ends.close()


def _outcome(code: int, message: str) -> news.Outcome:
    return news.Outcome(code, "Completed" if code == 0 else "Error", message)


def _start(id_: str) -> datetime:
    millis = id_.rpartition("/")[2]
    return datetime.fromtimestamp(int(millis) / 1000 if millis.isdecimal() else 0, UTC)
