"""Several streams in one, as SPDY/3.1 writes them."""

from __future__ import annotations

import asyncio
import contextlib
import struct
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from octarbiter.cluster.apiserver.pods import spdy

IDENTITY_OF_THE_DICTIONARY = 0xE3C6A7C2
"""What every compressed stream of headers that is made with it begins with."""

streams = st.integers(1, 0x7FFFFFFF)
texts = st.text(max_size=40)


def read(data: bytes) -> list[spdy.Frame]:
    async def collect() -> list[spdy.Frame]:
        source = asyncio.StreamReader()
        source.feed_data(data)
        source.feed_eof()
        return [frame async for frame in spdy.frames(source)]

    return asyncio.run(collect())


def control(kind: int, body: bytes, flags: int = 0, version: int = 3) -> bytes:
    return struct.pack("!HHI", 0x8000 | version, kind, flags << 24 | len(body)) + body


class Opener:
    """Opens streams as a client does."""

    def __init__(self) -> None:
        self._headers = zlib.compressobj(zdict=spdy.DICTIONARY)

    def open(self, stream: int, headers: dict[str, str], *, is_last: bool = False) -> bytes:
        parts = [struct.pack("!I", len(headers))]
        for text in (each.encode() for pair in headers.items() for each in pair):
            parts += [struct.pack("!I", len(text)), text]
        block = self._headers.compress(b"".join(parts)) + self._headers.flush(zlib.Z_SYNC_FLUSH)
        return control(1, struct.pack("!IIH", stream, 0, 0) + block, flags=int(is_last))


def test_the_dictionary_is_that_of_the_protocol() -> None:
    assert len(spdy.DICTIONARY) == 1423
    assert zlib.adler32(spdy.DICTIONARY) == IDENTITY_OF_THE_DICTIONARY


@settings(deadline=None)
@given(st.lists(st.tuples(streams, st.dictionaries(texts, texts, max_size=5), st.booleans()), max_size=5))
def test_headers_of_many_streams_are_read_in_their_order(opened: list[tuple[int, dict[str, str], bool]]) -> None:
    client = Opener()
    sent = b"".join(client.open(stream, headers, is_last=is_last) for stream, headers, is_last in opened)

    assert read(sent) == [spdy.Opened(*each) for each in opened]


@settings(deadline=None)
@given(st.lists(st.tuples(streams, st.binary(max_size=100), st.booleans()), max_size=10))
def test_data_is_read_as_it_was_written(written: list[tuple[int, bytes, bool]]) -> None:
    writer = spdy.Writer()
    sent = b"".join(writer.data(stream, data, is_last=is_last) for stream, data, is_last in written)

    assert read(sent) == [spdy.Sent(*each) for each in written]


def test_much_data_goes_in_several_frames_and_only_the_last_ends_the_stream() -> None:
    data = bytes(range(256)) * 16 * 1024
    found = [frame for frame in read(spdy.Writer().data(7, data, is_last=True)) if isinstance(frame, spdy.Sent)]

    assert b"".join(frame.data for frame in found) == data
    assert [frame.is_last for frame in found] == [False, False, False, True]


def test_answers_are_understood_by_the_other_side() -> None:
    writer, headers = spdy.Writer(), zlib.decompressobj(zdict=spdy.DICTIONARY)
    for stream in (1, 3):
        answer = writer.accept(stream)
        assert answer[:4] == bytes.fromhex("8003 0002")
        assert int.from_bytes(answer[4:8], "big") == len(answer) - 8
        assert int.from_bytes(answer[8:12], "big") == stream
        assert headers.decompress(answer[12:]) == bytes(4)

    assert read(writer.refuse(5) + writer.pong(9)) == [spdy.Dropped(5), spdy.Pinged(9)]


def test_nothing_is_read_after_a_goodbye_and_what_is_unknown_is_passed_over() -> None:
    ping, settings, goodbye = control(6, struct.pack("!I", 1)), control(4, bytes(4)), control(7, bytes(8))

    assert read(settings + ping + goodbye + ping) == [spdy.Pinged(1)]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (control(6, bytes(4), version=2), "version 2"),
        (control(6, bytes(2)), "too short"),
        (struct.pack("!HHI", 0x8003, 1, 70_000), "too large"),
        (struct.pack("!II", 1, 5 * 1024 * 1024), "too large"),
        (control(1, bytes(10) + b"nonsense"), "cannot be read"),
        (Opener().open(1, {"a": "b" * 100_000}), "too large"),
    ],
)
def test_what_is_no_spdy_is_refused_with_a_reason(data: bytes, said: str) -> None:
    with pytest.raises(spdy.Broken, match=said):
        read(data)


@settings(deadline=None)
@given(st.binary(max_size=200), st.booleans())
def test_whatever_comes_is_read_or_refused(data: bytes, is_header: bool) -> None:
    """Nothing else is ever raised."""
    client = zlib.compressobj(zdict=spdy.DICTIONARY)
    block = client.compress(data) + client.flush(zlib.Z_SYNC_FLUSH)
    with contextlib.suppress(spdy.Broken):
        read(control(1, bytes(10) + block) if is_header else data)
