"""Text with units to SI and back."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simkv.errors import InputError
from simkv.units import DIMENSIONS, DimensionName, exact, parse, short

READS: list[tuple[object, DimensionName, float]] = [
    ("80GiB", "size", 80 * 2**30),
    ("80 GiB", "size", 80 * 2**30),
    ("2TB", "size", 2e12),
    ("1.5KiB", "size", 1536),
    ("0.3GiB", "size", 322122547),
    ("0GiB", "size", 0),
    ("infGiB", "size", math.inf),
    ("25 GB/s", "rate", 25e9),
    ("25GiB/s", "rate", 25 * 2**30),
    ("25 GB / s", "rate", 25e9),
    ("inf GB/s", "rate", math.inf),
    ("20ms", "time", 0.02),
    ("10us", "time", 1e-5),
    ("10µs", "time", 1e-5),
    ("2min", "time", 120),
    ("1h", "time", 3600),
    ("12 req/s", "request_rate", 12),
    ("12/s", "request_rate", 12),
    ("30 req/min", "request_rate", 0.5),
    ("128Ki tokens", "tokens", 131072),
    ("128Ki", "tokens", 131072),
    ("4096 tokens", "tokens", 4096),
    (4096, "tokens", 4096),
    ("1_000", "tokens", 1000),
    (0.9, "fraction", 0.9),
    ("90%", "fraction", 0.9),
    (256, "count", 256),
    (1e3, "count", 1000),
    (0.7, "number", 0.7),
]

REFUSED: list[tuple[object, DimensionName, str]] = [
    ("25 GB", "rate", '"25 GB" is not a rate; write "25 GB/s"'),
    ("25 GB/s", "size", '"25 GB/s" is not a size; write "25GB"'),
    (200, "size", '200 has no unit; write "200GiB" or "200GB"'),
    (0, "size", '0 has no unit; write "0GiB" or "0GB"'),
    ("80G", "size", '"80G" is not a size; write "80GB" or "80GiB"'),
    ("80gib", "size", '"80gib" is not a size; write "80GiB"'),
    (
        "25 Gb/s",
        "rate",
        '"25 Gb/s" is not a rate (it counts bits); write it in bytes, like "25 GB/s"; 8 bits are one byte',
    ),
    (20, "time", '20 has no unit; write "20s" or "20ms"'),
    ("20 sec", "time", '"20 sec" is not a time; write "20s"'),
    ("2m", "time", '"2m" is not a time; write "2min"'),
    (12, "request_rate", '12 has no unit; write "12 req/s" or "12 req/min"'),
    ("128k", "tokens", '"128k" is not a number of tokens; write "128Ki"'),
    (1.5, "tokens", '1.5 is not a whole number; write it like "4096" or "128Ki"'),
    ("110%", "fraction", '"110%" is too large; the most that makes sense here is 1'),
    (-1, "count", "-1 is negative; a count is zero or more"),
    ("-1GiB", "size", '"-1GiB" is negative; a size is zero or more'),
    ("nanGiB", "size", '"nanGiB" is not a number; write it like "80GiB"'),
    (math.nan, "count", 'nan is not a number; write it like "256"'),
    (math.inf, "count", 'inf is infinite; write a finite value like "256"'),
    ("1e308GiB", "size", '"1e308GiB" is too large; the most that makes sense here is 1e+21 B'),
    (True, "count", 'true is not a count; write it like "256"'),
    ([], "time", '[] is not a time; write it like "20ms"'),
    ("", "time", '"" is not a time; write it like "20ms"'),
    ("\x00", "size", '"\\x00" is not a size; write it like "80GiB"'),
]


@pytest.mark.parametrize(("text", "dimension", "value"), READS)
def test_parse_quantity_gives_si(text: object, dimension: DimensionName, value: float) -> None:
    assert parse(text, dimension) == value


@pytest.mark.parametrize(("text", "dimension", "message"), REFUSED)
def test_parse_wrong_quantity_says_how_to_write_it(text: object, dimension: DimensionName, message: str) -> None:
    with pytest.raises(InputError) as caught:
        parse(text, dimension)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    "text", ["9" * 5000, "1e" + "9" * 50 + "GiB", "GiB" * 5000, 10**5000], ids=["digits", "exponent", "units", "int"]
)
def test_parse_enormous_text_is_refused(text: object) -> None:
    with pytest.raises(InputError):
        parse(text, "size")


def test_gigabyte_is_not_gibibyte() -> None:
    assert parse("1GiB", "size") - parse("1GB", "size") == 73741824


def finite(dimension: DimensionName) -> st.SearchStrategy[float]:
    dim = DIMENSIONS[dimension]
    if dim.integer:
        return st.integers(0, dim.largest)
    return st.floats(0, dim.largest, allow_subnormal=True)


@pytest.mark.parametrize("dimension", list(DIMENSIONS))
@given(data=st.data())
def test_exact_parsed_gives_the_same_value(dimension: DimensionName, data: st.DataObject) -> None:
    value = data.draw(finite(dimension))
    assert parse(exact(value, dimension), dimension) == value


@pytest.mark.parametrize("dimension", [name for name, dim in DIMENSIONS.items() if dim.infinite])
def test_exact_infinity_parses_back(dimension: DimensionName) -> None:
    assert parse(exact(math.inf, dimension), dimension) == math.inf


@given(st.floats(0, 1e4), st.sampled_from(sorted(u for u in DIMENSIONS["time"].units)))
def test_parse_time_any_unit_is_number_times_unit(number: float, unit: str) -> None:
    assert parse(f"{number!r}{unit}", "time") == pytest.approx(number * float(DIMENSIONS["time"].units[unit]))


@given(st.text(max_size=30), st.sampled_from(sorted(DIMENSIONS)))
def test_parse_any_text_gives_value_or_input_error(text: str, dimension: DimensionName) -> None:
    try:
        assert parse(text, dimension) >= 0
    except InputError as error:
        assert error.problems[0].mend


@pytest.mark.parametrize(
    ("value", "dimension", "text"),
    [
        (200 * 2**30, "size", "200GiB"),
        (2 * 10**12, "size", "2TB"),
        (25e9, "rate", "25 GB/s"),
        (0.02, "time", "20ms"),
        (3600.0, "time", "1h"),
        (0.5, "request_rate", "0.5 req/s"),
        (131072, "tokens", "131072"),
        (0, "size", "0GiB"),
    ],
)
def test_exact_common_values_read_well(value: float, dimension: DimensionName, text: str) -> None:
    assert exact(value, dimension) == text


@pytest.mark.parametrize(
    ("value", "dimension", "text"),
    [
        (1288490188800, "size", "1.17 TiB"),
        (0.0324, "time", "32.4 ms"),
        (65.46, "time", "65.5 s"),
        (25.2e9, "rate", "25.2 GB/s"),
        (131072, "tokens", "131,072"),
        (0, "size", "0 B"),
        (0, "time", "0 s"),
        (math.inf, "size", "unlimited"),
        (math.nan, "time", "-"),
    ],
)
def test_short_values_have_three_digits(value: float, dimension: DimensionName, text: str) -> None:
    assert short(value, dimension) == text
