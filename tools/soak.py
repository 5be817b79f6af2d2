"""How many times can the controller, or the arbitrator, be killed before something goes wrong?

    python tools/soak.py [--what controller|arbitrator] [--kills 1000] [--seed N] [--tasksets 50]

The sweeps of the tests (`tests/kubernetes/crash_sweep.py`, `arbitration_sweep.py`) on a Kubernetes of their own, for as
long as it takes. Exits with 1 if anything was wrong, and then tells the story of it.
"""

from __future__ import annotations

import argparse
import secrets
import sys
from pathlib import Path

from octarbiter.testing.kubernetes import bed

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "kubernetes"))

import arbitration_sweep
import arbitration_tenants
import crash_sweep

FAKE_NODES = 8


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--what", choices=["controller", "arbitrator"], default="controller", help="who dies [default: %(default)s]"
    )
    parser.add_argument("--kills", type=int, default=1000, help="how often [default: %(default)s]")
    parser.add_argument("--seed", type=int, help="repeats the choices, if not the moments, of an earlier run")
    parser.add_argument(
        "--tasksets", type=int, default=50, help="under way for the controller at any time [default: %(default)s]"
    )
    chosen = parser.parse_args()
    seed = secrets.randbelow(1_000_000) if chosen.seed is None else chosen.seed
    print(f"{chosen.kills} kills of the {chosen.what}, seed {seed}", flush=True)
    outcome: crash_sweep.Outcome | arbitration_sweep.Outcome
    if chosen.what == "arbitrator":
        outcome = _arbitrator(chosen.kills, seed)
    else:
        outcome = _controller(chosen.kills, seed, chosen.tasksets)
    print(f"\n{outcome}" if sys.stdout.isatty() else outcome)
    for problem in outcome.problems:
        print(f"\nPROBLEM: {problem}")
    return 1 if outcome.problems else 0


def _controller(kills: int, seed: int, tasksets: int) -> crash_sweep.Outcome:
    with bed.Testbed(fake_nodes=FAKE_NODES) as testbed:
        plane = testbed.control_plane
        return crash_sweep.CrashSweep(plane, kills=kills, seed=seed, tasksets=tasksets, say=_Teller().say).run()


def _arbitrator(kills: int, seed: int) -> arbitration_sweep.Outcome:
    with bed.Testbed(fake_nodes=1, resources=arbitration_tenants.SIZE) as testbed:
        return arbitration_sweep.ArbitrationSweep(testbed, kills=kills, seed=seed, say=_Teller().say).run()


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
