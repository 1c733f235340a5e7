"""The file format, checked with handwritten bytes and by reading back what was written."""

from __future__ import annotations

import json
import math
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from telemetry.metrics.ftdc import Damaged, FtdcEncoder, read_ftdc, samples

FLOATS = st.floats(width=32, allow_nan=False)
NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)


def test_bytes_follow_the_format() -> None:
    """The bytes follow the format description: schema, bit 0 zero, a bit for each value, time, changed values."""
    encoder = FtdcEncoder()
    first = encoder.encode(5, {"a": 1.5, "b": 0.0})
    assert first == b'\x01["a","b"]\n' + bytes((0b010,)) + struct.pack(">q", 5) + struct.pack(">f", 1.5)
    assert encoder.encode(6, {"a": 1.5, "b": -2.0}) == bytes((0b100,)) + struct.pack(">q", 6) + struct.pack(">f", -2.0)
    assert encoder.encode(7, {"a": 1.5, "b": -2.0}) == b"\0" + struct.pack(">q", 7)


def test_eight_values_need_a_second_byte_of_bits() -> None:
    values = {str(number): float(number == 7) for number in range(8)}
    data = FtdcEncoder().encode(1, values)
    bits = data.partition(b"\n")[2][:2]
    assert bits == bytes((0, 1))


def test_other_names_begin_a_new_schema_and_count_from_zero() -> None:
    encoder = FtdcEncoder()
    data = (
        encoder.encode(1, {"a": 1.0})
        + encoder.encode(2, {"a": 1.0, "b": 2.0})
        + encoder.encode(3, {"b": 2.0, "a": 1.0})
    )
    assert data.count(b"\x01[") == 3
    assert [(list(names), list(values)) for _, names, values in samples(data)] == [
        (["a"], [1.0]),
        (["a", "b"], [1.0, 2.0]),
        (["b", "a"], [2.0, 1.0]),
    ]


def test_numbers_beyond_float32_are_infinite() -> None:
    data = FtdcEncoder().encode(1, {"a": 1e300, "b": -1e300, "c": math.inf, "d": math.nan})
    ((_, _, values),) = samples(data)
    assert values[:3] == (math.inf, -math.inf, math.inf)
    assert math.isnan(values[3])


@given(st.lists(st.dictionaries(NAMES, FLOATS, min_size=1, max_size=20), min_size=1, max_size=20))
def test_written_samples_are_read_back(taken: list[dict[str, float]]) -> None:
    encoder = FtdcEncoder()
    data = b"".join(encoder.encode(number + 1, values) for number, values in enumerate(taken))
    back = [(when, dict(zip(names, values, strict=True))) for when, names, values in samples(data)]
    assert back == [(number + 1, values) for number, values in enumerate(taken)]


@given(st.lists(st.fixed_dictionaries({"a": FLOATS, "b": FLOATS}), min_size=2, max_size=9), st.data())
def test_a_file_cut_anywhere_gives_all_complete_samples(taken: list[dict[str, float]], data: st.DataObject) -> None:
    encoder = FtdcEncoder()
    parts = [encoder.encode(number + 1, values) for number, values in enumerate(taken)]
    whole = b"".join(parts)
    size = data.draw(st.integers(0, len(whole) - 1))
    recording = read_ftdc(whole[:size])
    ends = [sum(map(len, parts[: count + 1])) for count in range(len(parts))]
    assert recording.samples == sum(end <= size for end in ends)
    starts = [0, *ends]
    schemas = [starts[at] + part.index(b"\n") + 1 for at, part in enumerate(parts) if part.startswith(b"\x01")]
    if size not in (0, *schemas, *ends):
        assert recording.problem


@pytest.mark.parametrize("zeros", [1, 8, 9, 100])
def test_zeros_at_the_end_are_not_samples(zeros: int) -> None:
    data = FtdcEncoder().encode(1, {"a": 1.0}) + bytes(zeros)
    recording = read_ftdc(data)
    assert recording.samples == 1
    assert recording.problem


@pytest.mark.parametrize(
    "data",
    [
        b"\0" * 20,
        b"\x01[1]\n",
        b"\x01{}\n",
        b"\x01[\n",
        b"\x01",
        b'\x01["a"]\n\x03' + bytes(30),
        b'\x01["a"]\n\xf0' + bytes(99),
    ],
)
def test_other_files_are_damaged_from_the_start(data: bytes) -> None:
    with pytest.raises(Damaged):
        list(samples(data))
    assert read_ftdc(data).samples == 0
    assert read_ftdc(data).problem


@given(st.binary(max_size=200))
def test_any_bytes_can_be_read(data: bytes) -> None:
    recording = read_ftdc(b'\x01["a","b","c"]\n' + data)
    assert recording.samples >= 0


def test_a_recording_has_a_series_for_each_name() -> None:
    encoder = FtdcEncoder()
    data = encoder.encode(10, {"a": 1.0}) + encoder.encode(20, {"a": 2.0, "b": 3.0})
    recording = read_ftdc(data)
    assert (recording.samples, recording.first, recording.last, recording.problem) == (2, 10, 20, "")
    assert recording.series["a"].times == [10, 20]
    assert recording.series["a"].values == [1.0, 2.0]
    assert recording.series["b"].times == [20]


def test_names_can_contain_any_characters() -> None:
    name = 'rdk:component:motor/"left"\n é'
    data = FtdcEncoder().encode(1, {name: 1.0})
    assert json.loads(data[1 : data.index(b"\n")]) == [name]
    assert list(read_ftdc(data).series) == [name]
