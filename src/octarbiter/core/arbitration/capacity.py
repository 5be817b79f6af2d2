"""What does each claim get when everybody was promised something, and what is left over may be borrowed?

Resource by resource: the guarantee; then up to what was promised (by weight, if there is not enough for all promises);
then the rest, divided by weight, up to what each asks and its cap allows.
"""

from __future__ import annotations

from collections.abc import Sequence

from octarbiter.core.arbitration import proportion, vectors
from octarbiter.core.arbitration.claims import Claim, Grant, Vector


def share(total: Vector, claims: Sequence[Claim]) -> list[Grant]:
    total = vectors.clamped(total)
    floors = vectors.floors(total, claims)
    most = [vectors.asked(claim) for claim in claims]
    promised = [
        vectors.larger(floor, vectors.smaller(ask, claim.promised)) if claim.promised else floor
        for claim, floor, ask in zip(claims, floors, most, strict=True)
    ]
    held = proportion.filled(total, claims, floors, promised)
    rest = vectors.less(total, vectors.total_of(held, len(total)))
    wanted = [vectors.less(ask, amount) for ask, amount in zip(most, held, strict=True)]
    nothing = [(0,) * len(total)] * len(claims)
    borrowed = proportion.filled(rest, claims, nothing, wanted)
    return proportion.granted(claims, [vectors.plus(one, more) for one, more in zip(held, borrowed, strict=True)])
