"""What does each claim get when dominant shares are fair at every node of a tree?

Again and again the walk goes from the root to the child with the smallest share over weight, down to a leaf, which
takes its next unit. What an inner node has, as its siblings see it, is not the plain sum: a node whose one child took
much of a resource that nobody else wants would starve its other children. So the children that can still grow count
only as much as the least of them, and those that are blocked count with all they have.
(Bhattacharya et al., Hierarchical Scheduling for Diverse Datacenter Workloads.)

An inner claim with another policy is a leaf here. Divisible claims take their rest in small pieces, finer and finer
where one does not fit; without inner nodes it is plain dominant resource fairness, where they grow steadily.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction

from octarbiter.core.arbitration import drf, paths, vectors
from octarbiter.core.arbitration.claims import Block, Claim, Grant, Vector
from octarbiter.core.arbitration.filling import ALL, Parts, Scales, Taker

NAME = "hdrf"
PIECES = 64
"""The rest of a claim is taken in so many pieces, as long as they fit."""
ZERO = Fraction(0)


def share(total: Vector, claims: Sequence[Claim], measure: Vector | None = None) -> list[Grant]:
    if not any(map(_is_inner, claims)):
        return drf.share(total, claims, measure)
    total = vectors.clamped(total)
    tree = Tree(total, claims, vectors.larger(total, measure) if measure else total)
    tree.fill()
    return [node.grant() for node in tree.root.children]


def path(measure: Vector, claims: Sequence[Claim]) -> tuple[Block, ...]:
    if not any(map(_is_inner, claims)):
        return drf.path(measure, claims)
    return Tree(measure, claims, measure).path()


def _is_inner(claim: Claim) -> bool:
    return bool(claim.children) and claim.policy == NAME


class Node:
    def __init__(self, claim: Claim | None, parent: Node | None, floor: Vector) -> None:
        self.claim = claim
        self.parent = parent
        self.weight = claim.weight if claim else 1
        self.key = claim.key if claim else ""
        self.children: list[Node] = []
        self.taker: Taker | None = None
        self.rest: Rest | None = None
        self.is_blocked = False
        self.floor = floor
        self.used: Vector = (0,) * len(floor)
        """Of an inner node: what its children hold. What its floor has beyond that is kept for them."""
        self.vector: Sequence[int | Fraction] = ()
        self.share = ZERO

    @property
    def level(self) -> tuple[Fraction, str]:
        return self.share / self.weight, self.key

    @property
    def held(self) -> Vector:
        if self.taker and self.rest:
            return vectors.plus(self.taker.held, self.rest.taken)
        return vectors.larger(self.floor, self.used)

    def leaves(self) -> Iterator[Node]:
        if self.taker:
            yield self
        for child in self.children:
            yield from child.leaves()

    def room(self, free: Vector) -> Vector:
        """What there is for one of its children, if there is so much for all of the tree."""
        if not self.parent or not self.claim:
            return free
        there = vectors.plus(self.parent.room(free), self.held)
        if self.claim.cap is not None:
            there = vectors.smaller(there, self.claim.cap)
        return vectors.less(there, self.used)

    def use(self, more: Vector) -> Vector:
        """Books what a child takes; answers what of that was not kept for it before."""
        before = self.held
        self.used = vectors.plus(self.used, more)
        beyond = vectors.less(self.held, before)
        return self.parent.use(beyond) if self.parent else more

    def grant(self) -> Grant:
        return Grant(self.held, tuple(self.taker.given) if self.taker else ())


class Rest:
    """Taken in pieces: `done` of `pieces` so far."""

    def __init__(self, claim: Claim) -> None:
        self._all = vectors.clamped(claim.rest)
        self._done, self._pieces = 0, PIECES
        self.taken: Vector = (0,) * len(self._all)

    def next(self, taker: Taker, free: Sequence[int]) -> Vector | None:
        """The next piece that fits, as large as it can be; None: there is none."""
        while self._done < self._pieces:
            upto = tuple(amount * (self._done + 1) // self._pieces for amount in self._all)
            piece = vectors.less(upto, self.taken)
            if not any(piece) and max(self._all) < self._pieces:
                return None
            cap = taker.claim.cap or (ALL,) * len(piece)
            held = vectors.plus(vectors.plus(taker.held, self.taken), piece)
            if all(more <= there for more, there in zip(piece, free, strict=True)) and held == vectors.smaller(
                held, cap
            ):
                return piece
            self._done, self._pieces = 2 * self._done, 2 * self._pieces
        return None

    def take(self, taker: Taker, free: list[int]) -> None:
        piece = self.next(taker, free)
        if piece is not None:
            self._done += 1
            self.taken = vectors.plus(self.taken, piece)
            free[:] = vectors.less(free, piece)


class Tree:
    def __init__(self, total: Vector, claims: Sequence[Claim], measure: Vector) -> None:
        self._measure = measure
        self._parts = Parts()
        self._scale = Scales(measure, [1]).of(1)
        self.root = Node(None, None, (0,) * len(measure))
        self._plant(self.root, claims, vectors.floors(total, claims))
        self._leaves = list(self.root.leaves())
        self._free = vectors.less(total, self.root.used)
        self._enough = self._largest()

    def fill(self) -> None:
        def take(leaf: Node, taker: Taker, room: list[int]) -> None:
            if not taker.advance(room, taker.level, True) and leaf.rest:
                leaf.rest.take(taker, room)

        self._walk(take, ALL)

    def path(self) -> tuple[Block, ...]:
        way = paths.Path(())

        def take(leaf: Node, taker: Taker, room: list[int]) -> None:
            paths.add_next(way, taker, room, taker.level, True)

        for leaf in self._leaves:
            leaf.rest = None
        self._walk(take, paths.TURNS)
        for leaf in self._leaves:
            if leaf.taker:
                paths.add_others(way, leaf.taker, self._measure)
        return way.blocks()

    def _plant(self, parent: Node, claims: Sequence[Claim], floors: Sequence[Vector]) -> None:
        for claim, floor in zip(claims, floors, strict=True):
            node = Node(claim, parent, floor)
            parent.children.append(node)
            if _is_inner(claim):
                self._plant(node, claim.children, vectors.floors(floor, claim.children))
            else:
                node.taker = Taker(claim, floor, self._scale, self._parts)
                node.rest = Rest(claim)
            parent.used = vectors.plus(parent.used, node.floor)

    def _let(self, leaf: Node, take: Callable[[Node, Taker, list[int]], None]) -> None:
        """Lets a leaf take something, and books it all the way up."""
        assert leaf.taker
        assert leaf.parent
        room = leaf.parent.room(self._free)
        left = list(room)
        take(leaf, leaf.taker, left)
        self._free = vectors.less(self._free, leaf.parent.use(vectors.less(room, left)))

    def _walk(self, take: Callable[[Node, Taker, list[int]], None], turns: int) -> None:
        self._block(self._leaves)
        for leaf in self._leaves:
            self._measure_up(leaf)
        while not self.root.is_blocked and turns:
            turns -= 1
            node = self.root
            while node.children:
                node = min((child for child in node.children if not child.is_blocked), key=lambda child: child.level)
            self._let(node, take)
            blocked = self._block([node] if self._is_plenty() else self._leaves)
            for leaf in blocked if node in blocked else [node, *blocked]:
                self._measure_up(leaf)

    def _largest(self) -> Vector | None:
        """As much of everything as the largest step of anybody takes. None: who can take a step is not seen from what
        is free alone, because of caps on the way."""
        largest = (0,) * len(self._measure)
        for leaf in self._leaves:
            node = leaf
            while node and node.claim:
                if node.claim.cap is not None:
                    return None
                node = node.parent or self.root
            for unit, least in {(block.unit, block.least) for block in leaf.taker.path} if leaf.taker else ():
                largest = vectors.larger(largest, tuple(amount * least for amount in unit))
            if leaf.claim:
                largest = vectors.larger(largest, leaf.claim.rest)
        return largest

    def _is_plenty(self) -> bool:
        return self._enough is not None and vectors.smaller(self._enough, self._free) == self._enough

    def _block(self, leaves: Sequence[Node]) -> list[Node]:
        """Those of these that found a moment ago that nothing of theirs fits any more."""
        blocked = []
        for leaf in leaves:
            if leaf.is_blocked or not leaf.taker or not leaf.parent:
                continue
            room = leaf.parent.room(self._free)
            if leaf.taker.seek(room) != (0, 0):
                continue
            if leaf.rest is None or leaf.taker.is_barred or leaf.rest.next(leaf.taker, room) is None:
                leaf.is_blocked = True
                blocked.append(leaf)
        return blocked

    def _measure_up(self, leaf: Node) -> None:
        """What the leaf has, and every node above it, as their siblings see it."""
        assert leaf.taker
        leaf.vector = leaf.held if leaf.rest else tuple(leaf.taker.held)
        leaf.share = self._share(leaf.vector)
        node = leaf.parent
        while node:
            growing = [child for child in node.children if not child.is_blocked]
            node.is_blocked = not growing
            least = min((child.share / child.weight for child in growing), default=ZERO)
            sums: list[Fraction | int] = [0] * len(self._measure)
            for child in node.children:
                factor = least * child.weight / child.share if not child.is_blocked and child.share else Fraction(1)
                for place, amount in enumerate(child.vector):
                    sums[place] += amount * factor
            node.vector = sums
            node.share = self._share(sums)
            node = node.parent

    def _share(self, vector: Sequence[int | Fraction]) -> Fraction:
        return max(
            (Fraction(amount) / whole for amount, whole in zip(vector, self._measure, strict=True) if whole),
            default=ZERO,
        )
