"""How are several streams of bytes written into one? SPDY/3.1, as far as clients of Kubernetes speak it.

They open streams with headers that say what each is for, send data, and mark the end of what they send. They keep no
windows: whoever is slow slows the whole connection. Headers are compressed, all of a connection in one go, so frames
must be read, and written, in their order.
"""

from __future__ import annotations

import asyncio
import struct
import zlib
from collections.abc import AsyncIterator
from typing import Final, Protocol

import msgspec

_FIN: Final = 1
_CONTROL: Final = 0x8003
"""The bit of control frames, and the version."""
_SYN_STREAM, _SYN_REPLY, _RST_STREAM, _PING, _GOAWAY = 1, 2, 3, 6, 7
_REFUSED: Final = 3
_ID_MASK: Final = 0x7FFFFFFF
_LARGEST_CONTROL: Final = 64 * 1024
_LARGEST_DATA: Final = 4 * 1024 * 1024
_LARGEST_HEADERS: Final = 64 * 1024
_PIECE: Final = 1024 * 1024
"""Of data, in one frame."""

# What both sides pretend to have compressed before: words of HTTP, some with their lengths.
_WORDS: Final = (
    "options head post put delete trace accept accept-charset accept-encoding accept-language accept-ranges age allow "
    "authorization cache-control connection content-base content-encoding content-language content-length "
    "content-location content-md5 content-range content-type date etag expect expires from host if-match "
    "if-modified-since if-none-match if-range if-unmodified-since last-modified location max-forwards pragma "
    "proxy-authenticate proxy-authorization range referer retry-after server te trailer transfer-encoding upgrade "
    "user-agent vary via warning www-authenticate method get status 200_OK version HTTP/1.1 url public set-cookie "
    "keep-alive origin"
)
_TAIL: Final = (
    b"100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505"
    b"203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized403 Forbidden"
    b"404 Not Found500 Internal Server Error501 Not Implemented503 Service Unavailable"
    b"Jan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMT"
    b"chunked,text/html,image/png,image/jpg,image/gif,application/xml,application/xhtml+xml,text/plain,text/javascript,"
    b"publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0."
)
DICTIONARY: Final = (
    b"".join(len(word).to_bytes(4, "big") + word.replace("_", " ").encode() for word in _WORDS.split()) + _TAIL
)


class Broken(ConnectionError):
    """The other side does not speak SPDY/3.1."""


class Opened(msgspec.Struct, frozen=True):
    stream: int
    headers: dict[str, str]
    is_last: bool
    """Nothing will be sent on it."""


class Sent(msgspec.Struct, frozen=True):
    stream: int
    data: bytes
    is_last: bool


class Dropped(msgspec.Struct, frozen=True):
    """A stream that the other side neither reads nor writes any more."""

    stream: int


class Pinged(msgspec.Struct, frozen=True):
    number: int


Frame = Opened | Sent | Dropped | Pinged


class Source(Protocol):
    async def readexactly(self, n: int) -> bytes: ...


async def frames(source: Source) -> AsyncIterator[Frame]:
    """Until the other side has said goodbye or is gone. Raises Broken."""
    headers = zlib.decompressobj(zdict=DICTIONARY)
    while True:
        try:
            first, second = struct.unpack("!II", await source.readexactly(8))
            flags, length = second >> 24, second & 0xFFFFFF
            is_control = first >> 31
            if length > (_LARGEST_CONTROL if is_control else _LARGEST_DATA):
                raise Broken(f"a frame of {length} bytes is too large")
            body = await source.readexactly(length)
        except asyncio.IncompleteReadError:
            return
        if not is_control:
            yield Sent(first, body, bool(flags & _FIN))
            continue
        if first >> 16 != _CONTROL:
            raise Broken(f"version {first >> 16 & 0x7FFF} of SPDY is not understood")
        kind = first & 0xFFFF
        if kind == _GOAWAY:
            return
        if kind == _SYN_STREAM:
            block = _inflated(headers, body[10:])
            yield Opened(_number(body), _headers(block), bool(flags & _FIN))
        elif kind == _RST_STREAM:
            yield Dropped(_number(body))
        elif kind == _PING:
            yield Pinged(_number(body))


class Writer:
    """Makes the frames of one side of a connection."""

    def __init__(self) -> None:
        self._headers = zlib.compressobj(zdict=DICTIONARY)

    def accept(self, stream: int) -> bytes:
        """A stream that was opened is welcome."""
        block = self._headers.compress(bytes(4)) + self._headers.flush(zlib.Z_SYNC_FLUSH)
        return _control(_SYN_REPLY, struct.pack("!I", stream) + block)

    def refuse(self, stream: int) -> bytes:
        return _control(_RST_STREAM, struct.pack("!II", stream, _REFUSED))

    def data(self, stream: int, data: bytes, *, is_last: bool = False) -> bytes:
        pieces = [data[start : start + _PIECE] for start in range(0, len(data), _PIECE)] or [b""]
        flags = [0] * (len(pieces) - 1) + [_FIN if is_last else 0]
        heads = (struct.pack("!II", stream, flag << 24 | len(piece)) for piece, flag in zip(pieces, flags, strict=True))
        return b"".join(part for pair in zip(heads, pieces, strict=True) for part in pair)

    def pong(self, number: int) -> bytes:
        return _control(_PING, struct.pack("!I", number))


def _control(kind: int, body: bytes) -> bytes:
    return struct.pack("!HHI", _CONTROL, kind, len(body)) + body


def _number(body: bytes) -> int:
    if len(body) < 4:
        raise Broken("a control frame is too short")
    return int.from_bytes(body[:4], "big") & _ID_MASK


def _inflated(headers: zlib._Decompress, block: bytes) -> bytes:
    try:
        found = headers.decompress(block, _LARGEST_HEADERS)
    except zlib.error as problem:
        raise Broken(f"headers cannot be read: {problem}") from None
    if headers.unconsumed_tail:
        raise Broken(f"headers of more than {_LARGEST_HEADERS} bytes are too large")
    return found


def _headers(block: bytes) -> dict[str, str]:
    found: dict[str, str] = {}
    try:
        (count,) = struct.unpack_from("!I", block)
        position = 4
        for _ in range(count):
            name, position = _text(block, position)
            found[name], position = _text(block, position)
    except (struct.error, UnicodeDecodeError):
        raise Broken("headers are cut off or no text") from None
    return found


def _text(block: bytes, position: int) -> tuple[str, int]:
    (length,) = struct.unpack_from("!I", block, position)
    start, end = position + 4, position + 4 + length
    if end > len(block):
        raise Broken("headers are cut off")
    return block[start:end].decode(), end
