"""However often and whenever the controller is killed, every TaskSet comes out right."""

from __future__ import annotations

import pytest
import sweep_cases
from crash_sweep import CrashSweep
from embedded_bed import EmbeddedBed

from octarbiter.testing.kubernetes.bed import Testbed

KILLS = 40
SEED = 20


@pytest.mark.timeout(900)
@pytest.mark.parametrize("kind", [Testbed, EmbeddedBed], ids=["kubernetes", "embedded"])
def test_kills_at_random_moments_change_neither_outcomes_nor_counters_and_never_double_a_pod(
    programs: None, kind: type[Testbed]
) -> None:
    # A bed of its own: in the shared one another controller, which nobody kills, would do all the work.
    with kind(fake_nodes=5) as bed:
        outcome = CrashSweep(bed.control_plane, kills=KILLS, seed=SEED, say=print).run()
    print(outcome)

    assert not outcome.problems, f"seed {SEED}:\n" + "\n\n".join(outcome.problems)
    assert outcome.kills >= KILLS
    assert min(outcome.under_way) > 0
    assert {kind.__name__.replace("_", "-") for kind in sweep_cases.KINDS} == set(outcome.finished)
