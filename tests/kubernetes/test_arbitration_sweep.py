"""However often and whenever the arbitrator is killed, nobody gets more than deserved or is evicted in vain."""

from __future__ import annotations

import pytest
from arbitration_sweep import ArbitrationSweep
from arbitration_tenants import SIZE

from octarbiter.testing.kubernetes.bed import Testbed

KILLS = 40
SEED = 5


@pytest.mark.timeout(900)
def test_kills_at_random_moments_overstep_no_quota_and_lose_double_or_waste_no_eviction(programs: None) -> None:
    # A bed of its own: all of it is shared out, and its arbitrator is nobody else's.
    with Testbed(fake_nodes=1, resources=SIZE) as bed:
        outcome = ArbitrationSweep(bed, kills=KILLS, seed=SEED, say=print).run()
    print(outcome)

    assert not outcome.problems, f"seed {SEED}:\n" + "\n\n".join(outcome.problems)
    assert outcome.kills >= KILLS
    assert outcome.evictions > KILLS
    assert outcome.raises > KILLS
