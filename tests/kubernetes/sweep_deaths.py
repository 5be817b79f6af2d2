"""When and how do controllers die in a sweep? At random moments after they began to act; most of them alone, some as
the leader of two: killed, or frozen for longer than the lease and woken when the other leads."""

from __future__ import annotations

import random
import time
from collections.abc import Callable

from sweep_controllers import LEASE_S, Controller

SHORTEST_S, LONGEST_S = 0.05, 2.0
START_TIMEOUT_S = 90.0
TICK_S = 0.02
ELECTIONS = 0.1
"""So many rounds have two controllers; each of them is up to three kills."""
FREEZES = 0.3
"""So many leaders are frozen, and not killed at once."""


class Deaths:
    """`start` makes the controller of that number, which stands by or not; `tick` is called all the time; `killed` is
    called after each kill."""

    def __init__(
        self,
        dice: random.Random,
        start: Callable[[int, bool], Controller],
        tick: Callable[[], None],
        killed: Callable[[], None] = lambda: None,
    ) -> None:
        self._dice, self._make, self._on_tick, self._killed = dice, start, tick, killed
        self.alive: list[Controller] = []
        self.kills = self.freezes = self.elections = self.starts = 0
        self.problems: list[str] = []

    def round(self, most: int) -> None:
        """At least one dies, and never more than `most`."""
        if self._dice.random() < ELECTIONS:
            self._election(most)
            return
        controller = self.start()
        self.wait_until_one_acts()
        self.pass_time(self._dice.uniform(SHORTEST_S, LONGEST_S))
        self._kill(controller)

    def start(self, stands_by: bool = False) -> Controller:
        self.starts += 1
        controller = self._make(self.starts, stands_by)
        self.alive.append(controller)
        return controller

    def end(self, controller: Controller) -> None:
        controller.kill()
        self.alive.remove(controller)

    def end_all(self) -> None:
        for controller in list(self.alive):
            self.end(controller)

    def wait_until_one_acts(self) -> Controller:
        deadline = time.monotonic() + START_TIMEOUT_S
        while True:
            for controller in list(self.alive):
                if not controller.is_alive:
                    self._replace(controller)
                elif controller.acts:
                    return controller
            if time.monotonic() > deadline:
                raise RuntimeError(f"no controller acts:\n{self.alive[0].log.read_text()[-3000:]}")
            self.tick()

    def _replace(self, ended: Controller) -> None:
        """On a machine that is too busy a leader may fail to renew its lease in time; then it must end, and that is no
        fault."""
        said = ended.log.read_text()
        if '"lost the lease"' not in said:
            raise RuntimeError(f"a controller ended by itself:\n{said[-3000:]}")
        self.alive.remove(ended)
        self.start(stands_by=True)

    def pass_time(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.tick()

    def tick(self) -> None:
        time.sleep(TICK_S)
        self._on_tick()

    def _election(self, most: int) -> None:
        """Two at once; up to three leaders die, one way or the other."""
        self.elections += 1
        for _ in range(2):
            self.start(stands_by=True)
        for _ in range(min(self._dice.randint(1, 3), most)):
            leader = self.wait_until_one_acts()
            self.pass_time(self._dice.uniform(SHORTEST_S, LONGEST_S))
            if self._dice.random() < FREEZES:
                self._freeze(leader)
            else:
                self._kill(leader)
            self.start(stands_by=True)
        self.end_all()

    def _kill(self, controller: Controller) -> None:
        self.kills += 1
        self.end(controller)
        self._killed()

    def _freeze(self, leader: Controller) -> None:
        self.kills += 1
        self.freezes += 1
        leader.freeze()
        self.alive.remove(leader)
        try:
            self.pass_time(LEASE_S)
            self.wait_until_one_acts()
            self.pass_time(self._dice.uniform(0.0, 1.0))
            if not leader.wake():
                self.problems.append("a leader that had been frozen for longer than its lease did not end")
        finally:
            leader.kill()
        self._killed()
