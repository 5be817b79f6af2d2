"""Progressive filling, slow and obvious: every level, every unit, every fraction is worked out anew at every step."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from octarbiter.core.arbitration.claims import Claim, Grant, Vector

Amounts = list[Fraction]


class Tenant:
    def __init__(self, claim: Claim, floor: Vector, measure: Vector) -> None:
        self.claim, self.floor, self.measure = claim, floor, measure
        self.given = [0] * len(claim.path)
        self.extra = [0] * len(floor)
        """What it has of its rest, once that is rounded."""
        self.part: Fraction | None = None
        """Of its rest, once that is final."""
        self.grows = False
        self.walks = True

    def base(self, given: Sequence[int]) -> list[int]:
        units = [
            sum(block.unit[place] * count for block, count in zip(self.claim.path, given, strict=True))
            for place in range(len(self.floor))
        ]
        return [max(one, other) + more for one, other, more in zip(self.floor, units, self.extra, strict=True)]

    def level_of(self, amounts: Sequence[int | Fraction]) -> Fraction:
        shares = [Fraction(amount) / there for amount, there in zip(amounts, self.measure, strict=True) if there]
        return max(shares, default=Fraction(0)) / self.claim.weight

    def level(self) -> Fraction:
        return self.level_of(self.base(self.given))

    def most(self) -> Fraction:
        most = Fraction(1)
        base = self.base(self.given)
        for place, amount in enumerate(self.claim.rest):
            if amount and self.claim.cap is not None:
                most = min(most, Fraction(self.claim.cap[place] - base[place], amount))
        return max(most, Fraction(0))

    def part_at(self, level: Fraction) -> Fraction:
        if self.part is not None:
            return self.part
        if not self.grows:
            return Fraction(0)
        base = self.base(self.given)
        bounds = [
            (level * self.claim.weight * self.measure[place] - base[place]) / amount
            for place, amount in enumerate(self.claim.rest)
            if amount
        ]
        return max(Fraction(0), min(self.most(), *bounds))

    def bends(self) -> list[Fraction]:
        """All levels at which its line might bend or end."""
        base = self.base(self.given)
        levels = []
        places = [place for place, amount in enumerate(self.claim.rest) if amount]
        for place in places:
            rest, whole = self.claim.rest[place], self.claim.weight * self.measure[place]
            levels.append((base[place] + self.most() * rest) / Fraction(whole))
            for other in places:
                one = (Fraction(whole, rest), Fraction(base[place], rest))
                two = (
                    Fraction(self.claim.weight * self.measure[other], self.claim.rest[other]),
                    Fraction(base[other], self.claim.rest[other]),
                )
                if one[0] != two[0]:
                    levels.append((one[1] - two[1]) / (one[0] - two[0]))
        return levels


class Reference:
    def __init__(self, total: Vector, claims: Sequence[Claim], measure: Vector | None = None) -> None:
        self.total = [max(0, amount) for amount in total]
        whole = tuple(max(one, other) for one, other in zip(self.total, measure or self.total, strict=True))
        wanted = [
            [min(amount, cap) for amount, cap in zip(claim.floor, claim.cap or claim.floor, strict=True)]
            for claim in claims
        ]
        sums = [sum(column) for column in zip(*wanted, strict=True)]
        floors = [
            tuple(
                amount if needed <= there else amount * there // needed
                for amount, needed, there in zip(floor, sums, self.total, strict=True)
            )
            for floor in wanted
        ]
        self.tenants = [Tenant(claim, floor, whole) for claim, floor in zip(claims, floors, strict=True)]
        self.level = Fraction(0)

    def share(self) -> list[Grant]:
        self.fill(may_grow=True)
        for tenant in self.tenants:
            part = tenant.part or Fraction(0)
            tenant.extra = [int(part * amount) for amount in tenant.claim.rest]
            tenant.part, tenant.grows, tenant.walks = None, False, True
        self.fill(may_grow=False)
        return [Grant(tuple(tenant.base(tenant.given)), tuple(tenant.given)) for tenant in self.tenants]

    def free(self, level: Fraction) -> Amounts:
        left = [Fraction(amount) for amount in self.total]
        for tenant in self.tenants:
            part = tenant.part_at(level)
            for place, amount in enumerate(tenant.base(tenant.given)):
                left[place] -= amount
                if not any(tenant.extra):
                    left[place] -= part * tenant.claim.rest[place]
        return left

    def fill(self, may_grow: bool) -> None:
        self.level = Fraction(0)
        while True:
            walking = sorted((t for t in self.tenants if t.walks), key=lambda t: (t.level(), t.claim.key))
            growing = [t for t in self.tenants if t.grows and t.part is None]
            if growing and not self.rise(growing, walking[0].level() if walking else None):
                continue
            if not walking:
                return
            tenant = walking[0]
            self.level = tenant.level()
            if self.next_unit(tenant):
                continue
            tenant.walks = False
            barred = any(
                block.is_barrier and count < block.count
                for block, count in zip(tenant.claim.path, tenant.given, strict=True)
            )
            if may_grow and any(tenant.claim.rest) and not barred:
                self.begin(tenant)

    def next_unit(self, tenant: Tenant) -> bool:
        there = self.free(self.level)
        for index, block in enumerate(tenant.claim.path):
            need = 1 if tenant.given[index] else max(1, block.least)
            if tenant.given[index] + need <= block.count:
                given = list(tenant.given)
                given[index] += need
                after, before = tenant.base(given), tenant.base(tenant.given)
                cap = tenant.claim.cap or after
                if all(
                    new <= top and (new - old <= left or new == old)
                    for new, old, left, top in zip(after, before, there, cap, strict=True)
                ):
                    tenant.given = given
                    return True
            if block.is_barrier and tenant.given[index] < block.count:
                return False
        return False

    def begin(self, tenant: Tenant) -> None:
        places = [place for place, amount in enumerate(tenant.claim.rest) if amount]
        if not all(tenant.measure[place] for place in places):
            tenant.part = Fraction(0)
            return
        there = self.free(self.level)
        tenant.grows = True
        wanted = tenant.part_at(self.level)
        possible = min(max(Fraction(0), there[place]) / tenant.claim.rest[place] for place in places)
        if possible < wanted or wanted == tenant.most():
            tenant.part = min(wanted, possible)

    def rise(self, growing: Sequence[Tenant], until: Fraction | None) -> bool:
        """Up to `until`, or until somebody grows no more (False)."""
        levels = sorted({level for t in growing for level in t.bends() if level > self.level} | {self.level})
        if until is not None:
            levels = [level for level in levels if level < until] + [until]
        for low, high in zip(levels, [*levels[1:], levels[-1]], strict=True):
            here, there = self.free(low), self.free(high)
            out = [
                low + (high - low) * left / (left - right) if left > right else low
                for place, (left, right) in enumerate(zip(here, there, strict=True))
                if (right < 0 or left == 0) and any(t.claim.rest[place] for t in growing)
            ]
            if out:
                self.level = min(out)
                gone = [place for place, left in enumerate(self.free(self.level)) if left <= 0]
                stopped = [t for t in growing if any(t.claim.rest[place] for place in gone)]
            else:
                self.level = high
                stopped = [t for t in growing if t.part_at(high) == t.most()]
            if stopped:
                for tenant in stopped:
                    tenant.part = tenant.part_at(self.level)
                return False
        return True


def share(total: Vector, claims: Sequence[Claim], measure: Vector | None = None) -> list[Grant]:
    return Reference(total, claims, measure).share()
