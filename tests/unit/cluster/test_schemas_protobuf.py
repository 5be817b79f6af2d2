"""Protobuf bodies, compared with what a real server says in JSON about the same objects."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

import pytest
import recorded
from hypothesis import given
from hypothesis import strategies as st

from octarbiter.cluster.apiserver import defaults
from octarbiter.cluster.apiserver.schemas import protobuf

SAMPLES = recorded.of("protobuf")


def said(case: dict[str, Any]) -> dict[str, Any]:
    api_version, kind, found = protobuf.decode(base64.b64decode(case["protobuf"]))
    defaults.apply(api_version.rpartition("/")[0], kind, found)  # the real server's answers have them
    return {"apiVersion": api_version, "kind": kind, **found}


@pytest.mark.parametrize("case", SAMPLES, ids=lambda case: case["json"]["kind"])
def test_protobuf_says_what_json_says(case: dict[str, Any]) -> None:
    assert said(case) == case["json"]


def envelope(api_version: str, kind: str, raw: bytes) -> bytes:
    names = field(1, api_version.encode()) + field(2, kind.encode())
    return protobuf.MAGIC + field(1, names) + field(2, raw)


def field(number: int, data: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(data)) + data


def varint(value: int) -> bytes:
    found = b""
    while value > 0x7F:
        found += bytes([value & 0x7F | 0x80])
        value >>= 7
    return found + bytes([value])


def test_zeros_of_pointers_are_kept_and_others_dropped() -> None:
    spec = varint(4 << 3) + b"\0" + varint(11 << 3) + b"\0"  # terminationGracePeriodSeconds, hostNetwork

    pod = protobuf.decode(envelope("v1", "Pod", field(2, spec)))[2]

    assert pod["spec"]["terminationGracePeriodSeconds"] == 0
    assert "hostNetwork" not in pod["spec"]


def test_negative_numbers_keep_their_sign() -> None:
    value = varint(2 << 3) + varint(2**64 - 5)

    assert protobuf.decode(envelope("scheduling.k8s.io/v1", "PriorityClass", value))[2]["value"] == -5


def test_fields_from_the_future_are_skipped() -> None:
    assert protobuf.decode(envelope("v1", "ConfigMap", field(1000, b"x")))[2] == {"metadata": {}}


@pytest.mark.parametrize(
    ("body", "what"),
    [
        (b"", "empty data"),
        (protobuf.MAGIC, "empty body"),
        (b"{}", "does not appear to be a protobuf message"),
        (envelope("v1", "Foo", b""), 'no kind "Foo" is registered for version "v1"'),
        (envelope("v1", "Pod", b"\x0a\xff"), "unexpected EOF"),
        (envelope("v1", "Pod", b"\x0a\x05x"), "unexpected EOF"),
        (envelope("v1", "Pod", b"\x0b"), "illegal wireType 3"),
        (envelope("v1", "Pod", b"\xff" * 11), "more than 64 bits"),
        (envelope("v1", "Pod", b"\x08\x01"), "bytes were expected"),
        (envelope("v1", "PodList", field(2, b"") * 100_001), "more than 100000 messages"),
    ],
)
def test_malformed_bodies_are_refused_with_a_sentence(body: bytes, what: str) -> None:
    with pytest.raises(protobuf.Malformed, match=what):
        protobuf.decode(body)


def in_not(schema: bytes) -> bytes:
    return field(28, schema)


def in_items(schema: bytes) -> bytes:
    return field(24, field(1, schema))


@pytest.mark.parametrize("wrap", [in_not, in_items])
def test_a_nest_without_end_is_refused(wrap: Callable[[bytes], bytes]) -> None:
    schema = b""
    for _ in range(2000):
        schema = wrap(schema)
    versions = field(2, field(7, field(4, field(1, schema))))

    with pytest.raises(protobuf.Malformed, match="nested deeper"):
        protobuf.decode(envelope("apiextensions.k8s.io/v1", "CustomResourceDefinition", versions))


def test_json_inside_that_is_no_json_is_refused() -> None:
    revision = field(2, field(1, b"{"))

    with pytest.raises(protobuf.Malformed, match="JSON inside"):
        protobuf.decode(envelope("apps/v1", "ControllerRevision", revision))


KINDS = [("v1", "Pod"), ("batch/v1", "Job"), ("apiextensions.k8s.io/v1", "CustomResourceDefinition"), ("v1", "Event")]


@given(st.sampled_from(KINDS), st.binary(max_size=300))
def test_garbage_is_understood_or_refused(kind: tuple[str, str], raw: bytes) -> None:
    try:
        found = protobuf.decode(envelope(*kind, raw))[2]
    except protobuf.Malformed:
        return
    assert json.dumps(found, allow_nan=False).encode()


@given(st.sampled_from(SAMPLES), st.data())
def test_damaged_bodies_are_understood_or_refused(case: dict[str, Any], data: st.DataObject) -> None:
    body = bytearray(base64.b64decode(case["protobuf"]))
    for _ in range(data.draw(st.integers(1, 4))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))

    try:
        found = protobuf.decode(bytes(body))[2]
    except protobuf.Malformed:
        return
    assert json.dumps(found, allow_nan=False).encode()
