"""How many times can the controller be killed before something goes wrong?

    python tools/soak.py [--kills 1000] [--seed N] [--tasksets 50]

The crash sweep of the tests (`tests/kubernetes/crash_sweep.py`) on a Kubernetes of its own, for as long as it takes.
Exits with 1 if anything was wrong, and then tells the story of every TaskSet concerned.
"""

from __future__ import annotations

import argparse
import secrets
import sys
from pathlib import Path

from octarbiter.testing.kubernetes import bed

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "kubernetes"))

from crash_sweep import CrashSweep

FAKE_NODES = 8


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=1000, help="how often [default: %(default)s]")
    parser.add_argument("--seed", type=int, help="repeats the choices, if not the moments, of an earlier run")
    parser.add_argument("--tasksets", type=int, default=50, help="under way at any time [default: %(default)s]")
    chosen = parser.parse_args()
    seed = secrets.randbelow(1_000_000) if chosen.seed is None else chosen.seed
    print(f"{chosen.kills} kills, {chosen.tasksets} TaskSets under way, seed {seed}", flush=True)
    with bed.Testbed(fake_nodes=FAKE_NODES) as testbed:
        sweep = CrashSweep(
            testbed.control_plane, kills=chosen.kills, seed=seed, tasksets=chosen.tasksets, say=_Teller().say
        )
        outcome = sweep.run()
    print(f"\n{outcome}" if sys.stdout.isatty() else outcome)
    for problem in outcome.problems:
        print(f"\nPROBLEM: {problem}")
    return 1 if outcome.problems else 0


class _Teller:
    """On a terminal the progress stays on one line."""

    def __init__(self) -> None:
        self._is_terminal = sys.stdout.isatty()

    def say(self, line: str) -> None:
        if self._is_terminal and not line.startswith("PROBLEM"):
            print(f"\r\033[K{line}", end="", flush=True)
        else:
            print(f"\r\033[K{line}" if self._is_terminal else line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
