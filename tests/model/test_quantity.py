"""Quantities: every suffix, every exponent, always rounded up."""

from __future__ import annotations

from fractions import Fraction

import hypothesis
import hypothesis.strategies as st
import pytest

from edgelet.model import quantity

BYTES = [
    ("0", 0),
    ("128974848", 128974848),
    ("129e6", 129_000_000),
    ("129M", 129_000_000),
    ("123Mi", 123 * 2**20),
    ("1Ki", 1024),
    ("1Gi", 2**30),
    ("1Ti", 2**40),
    ("1Pi", 2**50),
    ("1Ei", 2**60),
    ("1k", 1000),
    ("1G", 10**9),
    ("1T", 10**12),
    ("1P", 10**15),
    ("1E", 10**18),
    ("1E3", 1000),
    ("1e-3", 1),
    ("1.5Gi", 3 * 2**29),
    (".5Ki", 512),
    ("5.", 5),
    ("+7", 7),
    ("-7", -7),
    ("100m", 1),
    ("1n", 1),
    ("1u", 1),
    ("16Ei", 2**63 - 1),
]


@pytest.mark.parametrize(("text", "value"), BYTES)
def test_bytes(text: str, value: int) -> None:
    assert quantity.whole(text) == value


@pytest.mark.parametrize(
    ("text", "value"), [("0.5", 500), ("500m", 500), ("1", 1000), ("1.0001", 1001), ("100u", 1), ("2k", 2_000_000)]
)
def test_milli_cpu(text: str, value: int) -> None:
    assert quantity.milli(text) == value


@pytest.mark.parametrize(
    "text", ["", "Mi", "1 Mi", "1mi", "1KI", "0x10", "1e", "1e3Mi", "--1", "1_000", "1" * 200, "1e9999"]
)
def test_what_is_no_quantity(text: str) -> None:
    with pytest.raises(ValueError, match="is not a quantity"):
        quantity.parse(text)


@pytest.mark.parametrize(
    ("text", "meant"), [("64MB", "64M"), ("64mb", "64M"), ("1gi", "1Gi"), ("2GiB", "2Gi"), ("3 Gi", "")]
)
def test_what_was_meant(text: str, meant: str) -> None:
    with pytest.raises(ValueError, match="is not a quantity") as caught:
        quantity.parse(text)
    assert ("did you mean" in str(caught.value)) == bool(meant)
    assert meant in str(caught.value)


@hypothesis.given(st.integers(0, 10**6), st.sampled_from(["n", "u", "m", "", "k", "M", "Ki", "Mi", "Gi"]))
def test_rounds_up_by_less_than_one(number: int, suffix: str) -> None:
    exact = Fraction(*quantity.parse(f"{number}{suffix}"))
    assert 0 <= quantity.whole(f"{number}{suffix}") - exact < 1
    assert 0 <= Fraction(quantity.milli(f"{number}{suffix}"), 1000) - exact < Fraction(1, 1000)


@hypothesis.given(st.sampled_from([t for t, _ in BYTES]), st.sampled_from([t for t, _ in BYTES]))
def test_more(one: str, two: str) -> None:
    assert quantity.more(one, two) == (Fraction(*quantity.parse(one)) > Fraction(*quantity.parse(two)))


@pytest.mark.parametrize(
    ("number", "binary", "decimal"),
    [(0, "0", "0"), (512, "512", "512"), (1024, "1Ki", "1024"), (2**30, "1Gi", "1073741824"),
     (1536 << 20, "1536Mi", "1610612736"), (2000, "2000", "2k"), (10**18, "976562500000000Ki", "1E")],
)  # fmt: skip
def test_numbers_as_an_api_server_writes_them(number: int, binary: str, decimal: str) -> None:
    assert (quantity.binary(number), quantity.decimal(number)) == (binary, decimal)
    assert quantity.whole(binary) == min(number, quantity.LIMIT)
