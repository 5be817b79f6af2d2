"""Which address has a pod? Its own of 127.64.0.0/10: processes share the machine's network, but every loopback address
reaches a server that listens on all of them, and no two pods have the same."""

from __future__ import annotations

import ipaddress
import zlib
from typing import Final

FIRST: Final = int(ipaddress.IPv4Address("127.64.0.1"))
COUNT: Final = 2**22 - 2


class Addresses:
    def __init__(self) -> None:
        self._of: dict[str, str] = {}
        self._taken: set[str] = set()

    def give(self, uid: str, had: str = "") -> str:
        """The same as long as the pod lives; `had`: what was reported of it before."""
        if uid in self._of:
            return self._of[uid]
        address = had if had and had not in self._taken else self._free(uid)
        self._of[uid] = address
        self._taken.add(address)
        return address

    def take_back(self, uid: str) -> None:
        self._taken.discard(self._of.pop(uid, ""))

    def _free(self, uid: str) -> str:
        # Begun at a place of the pod's own: addresses just given back are not given out again at once.
        start = zlib.crc32(uid.encode())
        for step in range(COUNT):
            address = str(ipaddress.IPv4Address(FIRST + (start + step) % COUNT))
            if address not in self._taken:
                return address
        raise RuntimeError("all loopback addresses are taken")
