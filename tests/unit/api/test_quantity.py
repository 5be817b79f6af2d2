"""Quantities: what Kubernetes takes them for, exactly, and words for those it should not take."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from octarbiter.api import quantity
from octarbiter.api.errors import Refused

# text, canonical form, milli-units: as the Go library of Kubernetes answers.
KNOWN = [
    ("100m", "100m", 100),
    ("1.5", "1500m", 1_500),
    ("0.5", "500m", 500),
    (".5", "500m", 500),
    ("5.", "5", 5_000),
    ("1000m", "1", 1_000),
    ("0", "0", 0),
    ("0Ki", "0", 0),
    ("+3", "3", 3_000),
    ("-1500m", "-1500m", -1_500),
    ("12000k", "12M", 12_000_000_000),
    ("5E", "5E", 5 * 10**21),
    ("512", "512", 512_000),
    ("1024", "1024", 1_024_000),
    ("2Gi", "2Gi", 2_147_483_648_000),
    ("1.5Gi", "1536Mi", 1_610_612_736_000),
    ("1024Mi", "1Gi", 1_073_741_824_000),
    ("1000Ki", "1000Ki", 1_024_000_000),
    ("1023Ki", "1023Ki", 1_047_552_000),
    ("-1024Ki", "-1Mi", -1_048_576_000),
    ("0.5Ki", "512", 512_000),
    ("1.1Ki", "1126400m", 1_126_400),
    ("1e3", "1e3", 1_000_000),
    ("1e4", "10e3", 10_000_000),
    ("10e2", "1e3", 1_000_000),
    ("5e1", "50", 50_000),
    ("1e-3", "1e-3", 1),
    ("25e-1", "2500e-3", 2_500),
    ("1n", "1n", 1),
    ("1001u", "1001u", 2),
    ("9223372036854775807", "9223372036854775807", (2**63 - 1) * 1000),
]


@pytest.mark.parametrize(("text", "canonical", "milli"), KNOWN)
def test_a_quantity_means_what_it_means_to_kubernetes(text: str, canonical: str, milli: int) -> None:
    parsed = quantity.parse(text)

    assert (canonical, milli) == (str(parsed), parsed.milli)


@pytest.mark.parametrize(("number", "canonical"), [(2, "2"), (0.5, "500m"), (0.1, "100m"), (1e21 / 1e3, "1e18")])
def test_a_bare_number_of_yaml_is_taken_digit_by_digit(number: float, canonical: str) -> None:
    assert canonical == str(quantity.parse(number))


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("1.5.5", "not a quantity"),
        ("", "not a quantity"),
        ("abc", "not a quantity"),
        ("1 Gi", "not a quantity"),
        ("٣", "not a quantity"),
        ("2gi", "did you mean Gi"),
        ("2GB", "did you mean G"),
        ("1KB", "did you mean k"),
        ("3x", "no suffix"),
        (str(2**70), "too large"),
        ("8Ei", "too large"),
        ("1e99", "exponent must be between"),
        ("1e999999999", "exponent must be between"),
        ("0.1n", "finer than a nano-unit"),
        ("9" * 65, "at most 64 characters"),
    ],
)
def test_a_slip_of_the_pen_is_refused_with_the_field_and_a_hint(text: str, hint: str) -> None:
    with pytest.raises(Refused) as refused:
        quantity.parse(text, "resources.limits.memory")

    (problem,) = refused.value.problems
    assert problem.path == "resources.limits.memory"
    assert hint in problem.message


@pytest.mark.parametrize("value", [True, None, [], {}])
def test_what_is_no_number_at_all_is_refused(value: object) -> None:
    with pytest.raises(Refused):
        quantity.parse(value)  # type: ignore[arg-type]


@settings(deadline=None)
@given(
    st.integers(-quantity.LARGEST * quantity.NANO, quantity.LARGEST * quantity.NANO),
    st.sampled_from(["decimal", "binary", "exponent"]),
)
def test_the_canonical_form_loses_nothing(nano: int, family: quantity.Family) -> None:
    shown = str(quantity.Quantity(nano, family))

    assert nano == quantity.parse(shown).nano
    assert shown == str(quantity.parse(shown))


@settings(deadline=None)
@given(st.text())
def test_any_text_is_a_quantity_or_is_refused(text: str) -> None:
    with contextlib.suppress(Refused):
        assert quantity.parse(text).nano is not None
