"""Uploaded readings: the quick way gives what the rules give, for any readings."""

from __future__ import annotations

import struct
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloud.domain.data.readings import text_of
from cloud.services.data import contents
from cloud.services.data.contents import Captured, UploadContents
from cloud.services.data.data_messages import SensorData
from cloud.values.times import stored
from rpc.api import messages
from rpc.api.convert.decode import field_reader, message_reader
from rpc.api.convert.fit import FitError
from rpc.api.convert.hints import parse
from rpc.api.convert.values import fill_struct
from rpc.api.server.check import misfits

SYNC = messages.load("app.datasync.v1.data_sync_pb2")
BY_RULES = message_reader(SYNC.SensorData.DESCRIPTOR, parse(SensorData))
START = datetime(2026, 1, 1, tzinfo=UTC)

NUMBERS = st.one_of(st.floats(), st.sampled_from([0.0, -0.0, 1.0, 1e16, 1e-7, 5e-324, 1_000_000.5, 2_000_001.5]))
TEXTS = st.one_of(st.text(max_size=4), st.sampled_from(["%", "%s", "null", "NaN", '"', "1000000.5", "2000000.5", "ä"]))
LEAVES = st.one_of(NUMBERS, st.booleans(), TEXTS, st.none())
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXTS, inner, max_size=3)),
    max_leaves=8,
)
DATA = st.dictionaries(TEXTS, VALUES, max_size=4)
TIMES = st.one_of(
    st.none(),
    st.tuples(st.integers(0, 4_000_000_000), st.integers(0, 999_999_999)),
    st.tuples(st.integers(-(2**62), 2**62), st.integers(-(2**31), 2**31 - 1)),
)


def other_numbers(value: Any, numbers: Any) -> Any:
    """Return `value` with other numbers."""
    if isinstance(value, float):
        return next(numbers)
    if isinstance(value, list):
        return [other_numbers(item, numbers) for item in value]
    if isinstance(value, dict):
        return {key: other_numbers(item, numbers) for key, item in value.items()}
    return value


def message_of(data: Any, requested: Any = (1, 0), received: Any = (1, 0)) -> Any:
    message = SYNC.SensorData()
    for name, time in (("time_requested", requested), ("time_received", received)):
        if time is not None:
            field = getattr(message.metadata, name)
            field.SetInParent()
            field.seconds, field.nanos = time
    if data is not None:
        message.struct.SetInParent()
        fill_struct(message.struct, data)
    return message


@st.composite
def uploads(draw: st.DrawFn) -> list[Any]:
    """Return messages of a few kinds of readings, of which most are like the one before."""
    result = []
    for _ in range(draw(st.integers(1, 3))):
        data = draw(DATA)
        for _ in range(draw(st.integers(1, 4))):
            numbers = iter(draw(st.lists(NUMBERS, min_size=40, max_size=40)))
            result.append(message_of(other_numbers(data, numbers), draw(TIMES), draw(TIMES)))
    return result


def by_rules(sent: list[Any]) -> list[Captured] | str:
    """Return what the readings are by the rules, or the error."""
    readings: list[Captured] = []
    for index, message in enumerate(sent):
        try:
            item = BY_RULES(message)
        except FitError as error:
            error.inside(str(index))
            return str(error)
        times = item.metadata
        both = (None, None) if times is None else (times.time_requested, times.time_received)
        requested, received = (None if time is None else stored(time) for time in both)
        readings.append((requested, received, text_of(item.struct or {})))
    return readings


def quickly(sent: list[Any]) -> list[Captured] | str:
    try:
        result = UploadContents.read(sent, BY_RULES)
    except FitError as error:
        return str(error)
    assert not result.items
    return list(result.readings)


@given(uploads())
def test_readings_are_the_same_as_by_the_rules(sent: list[Any]) -> None:
    assert quickly(sent) == by_rules(sent)


def counted(sent: list[Any]) -> int:
    """Return how many messages were converted by the rules."""
    calls = []

    def convert(message: Any) -> Any:
        calls.append(message)
        return BY_RULES(message)

    assert list(UploadContents.read(sent, convert).readings) == by_rules(sent)
    return len(calls)


@pytest.mark.parametrize(
    "data",
    [
        {"readings": {"a": 1.0, "b": -0.5}},
        {"state": "on", "nested": {"list": [1.0, [2.0, True], {}], "x": 0.1}, "100 %": 3.0},
        {"only": "text"},
        {},
        {str(number): float(number) for number in range(200)},
    ],
)
def test_readings_with_the_same_keys_are_converted_together(data: Any) -> None:
    sent = [
        message_of(other_numbers(data, iter([index + 0.25 * place for place in range(300)])), (index, index * 1000))
        for index in range(250)
    ]
    assert counted(sent) == 1


def test_an_upload_of_few_kinds_in_a_row_needs_the_rules_once_for_each() -> None:
    sent = [message_of({name: index / 7}) for name in "abcde" for index in range(40)]
    assert counted(sent) == 5


def test_readings_without_a_like_do_not_cost_more_than_a_few_attempts(monkeypatch: pytest.MonkeyPatch) -> None:
    attempts = []
    shape_of = contents._shape_of

    def noted(message: Any) -> Any:
        attempts.append(message)
        return shape_of(message)

    monkeypatch.setattr(contents, "_shape_of", noted)
    assert counted([message_of({"text": str(index)}) for index in range(500)]) == 500
    assert len(attempts) == contents.SHAPES


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_a_number_that_is_not_finite_stays_one(value: float) -> None:
    sent = [message_of({"a": 1.0}), message_of({"a": 2.0}), message_of({"a": value}), message_of({"a": 3.0})]
    assert quickly(sent) == by_rules(sent)


def test_unknown_fields_and_doubled_ones_are_read_by_the_rules() -> None:
    plain = message_of({"a": 1.0}).SerializeToString()
    odd = [
        plain + b"\x7a\x01x",  # a field of the item that is not known
        plain + b"\x12\x00",  # a second struct: both are merged
        plain + plain,
        message_of({"a": 1.0}).metadata.SerializeToString(),
        b"\x12" + bytes([len(body := message_of({"a": 1.0}).struct.SerializeToString() + b"\x7a\x01x")]) + body,
        b"\x0a\x02\x18\x01" + plain,  # with a type of content
        b"",
        b"\x12\x00",
    ]
    for data in odd:
        sent = [SYNC.SensorData.FromString(each) for each in (plain, plain, data, data, plain)]
        assert quickly(sent) == by_rules(sent)


def test_an_error_names_the_reading() -> None:
    sent = [message_of({"a": 1.0}), message_of({"a": 1.0}), message_of({"a": 1.0}, (2**62, 0))]
    assert str(quickly(sent)).startswith("2.metadata.time_requested")


def test_a_file_among_readings_makes_all_of_them_items() -> None:
    sent = [message_of({"a": 1.0}), SYNC.SensorData(binary=b"picture")]
    result = UploadContents.read(sent, BY_RULES)
    assert [item.binary for item in result.items] == [None, b"picture"]
    assert not result.readings


def test_places_of_numbers() -> None:
    data = message_of({"a": 1.5, "b": {"c": [2.5, "x", True, None]}}).struct.SerializeToString(deterministic=True)
    places = contents._places(data)
    assert places is not None
    assert [struct.unpack_from("<d", data, place)[0] for place in places] == [1.5, 2.5]


def test_the_class_reads_the_field_of_the_request() -> None:
    field = SYNC.DataCaptureUploadRequest.DESCRIPTOR.fields_by_name["sensor_contents"]
    assert misfits(field, parse(UploadContents), "sensor_contents") == []
    request = SYNC.DataCaptureUploadRequest(sensor_contents=[message_of({"a": 1.0}), message_of({"a": 2.0})])
    assert field_reader(field, parse(UploadContents))(request) == UploadContents.read(request.sensor_contents, BY_RULES)
