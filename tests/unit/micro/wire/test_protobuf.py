"""The coder against the published messages: same bytes, same values."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict
from google.protobuf.struct_pb2 import Struct
from hypothesis import given
from hypothesis import strategies as st

from micro.wire import protobuf
from micro.wire.faults import EXHAUSTED, INVALID, CallFailure
from micro.wire.messages import CALLS, MESSAGES, SERVICES
from rpc.api import messages as published
from rpc.api.table import SERVICES as PUBLISHED

TABLES = {
    f"/{service}/{name}": (request, reply)
    for service, _, calls in SERVICES + CALLS
    for name, _, request, reply, _ in calls
}
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.floats(allow_nan=False, allow_infinity=False), st.text(max_size=5)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=3), inner, max_size=3)),
    max_leaves=6,
)


def descriptors() -> dict[str, tuple[Any, Any]]:
    classes = {}
    for service, _, _ in SERVICES + CALLS:
        for method in published.service(service, PUBLISHED[service].module).methods:
            classes[f"/{service}/{method.name}"] = (
                method.input_type._concrete_class,
                method.output_type._concrete_class,
            )
    return classes


CLASSES = descriptors()


def sample(number: int, depth: int = 0) -> dict[str, Any]:
    """Return a message with a value that is not the default in every field."""
    values: dict[str, Any] = {}
    simple = {0: True, 1: 7, 2: -7, 4: 0.125, 5: 2.5, 6: "ä", 7: b"\x01", 9: {"a": [1.0, None]}, 10: {"b": "c"}}
    for _, name, kind, inner in MESSAGES[number]:
        base = kind & 15
        value = sample(inner, depth + 1) if base == protobuf.MESSAGE else simple[base]
        if kind & protobuf.MAP:
            values[name] = {"key": value["value"]}
        elif kind & protobuf.REPEATED:
            values[name] = [value, value]
        else:
            values[name] = value
    if "binary" in values:
        values["struct"] = None  # only one of both
    return values


@pytest.mark.parametrize("path", TABLES)
def test_every_published_message_is_read_and_written(path: str) -> None:
    for number, cls in zip(TABLES[path], CLASSES[path], strict=True):
        values = sample(number)
        data = bytes(protobuf.encode(number, values))
        message = cls.FromString(data)
        assert {field.name for field, _ in message.ListFields()} == {
            name for name in values if values[name] is not None
        }
        assert protobuf.decode(number, message.SerializeToString()) == values


def test_absent_fields_have_defaults() -> None:
    request, _ = TABLES["/viam.component.motor.v1.MotorService/GoFor"]
    assert protobuf.decode(request, b"") == {"name": "", "rpm": 0.0, "revolutions": 0.0}
    request, reply = TABLES["/viam.robot.v1.RobotService/GetMachineStatus"]
    assert protobuf.decode(reply, b"") == {"resources": [], "config": None, "state": 0}


@given(st.dictionaries(st.text(max_size=5), JSON, max_size=4))
def test_structs_round_trip(values: dict[str, Any]) -> None:
    request, _ = TABLES["/viam.component.generic.v1.GenericService/DoCommand"]
    data = bytes(protobuf.encode(request, {"name": "x", "command": values}))
    cls = CLASSES["/viam.component.generic.v1.GenericService/DoCommand"][0]
    struct_ = Struct()
    struct_.update(values)
    assert MessageToDict(cls.FromString(data).command) == MessageToDict(struct_)
    assert protobuf.decode(request, cls(name="x", command=struct_).SerializeToString())["command"] == values


@given(st.binary(max_size=120), st.sampled_from(sorted(TABLES)))
def test_noise_is_refused_with_a_status(data: bytes, path: str) -> None:
    for number in TABLES[path]:
        status = INVALID
        try:
            protobuf.decode(number, data)
        except CallFailure as failure:
            status = failure.status
        assert status in (INVALID, EXHAUSTED)


def test_deep_and_wide_values_are_refused() -> None:
    request, _ = TABLES["/viam.component.generic.v1.GenericService/DoCommand"]
    deep: Any = 1.0
    for _ in range(20):
        deep = [deep]
    with pytest.raises(CallFailure, match="nested") as caught:
        protobuf.decode(request, bytes(protobuf.encode(request, {"command": {"x": deep}})))
    assert caught.value.status == INVALID
    with pytest.raises(CallFailure, match="256 items") as caught:
        protobuf.decode(request, bytes(protobuf.encode(request, {"command": {"x": [None] * 300}})))
    assert caught.value.status == EXHAUSTED


@pytest.mark.parametrize(
    "data",
    [b"\x0a\x05ab", b"\x0a", b"\x0a\x01\xff", b"\x08\x01", b"\x11" + struct.pack("<d", 1)[:5], b"\x00\x01", b"\x0b"],
)
def test_broken_messages_are_refused(data: bytes) -> None:
    request, _ = TABLES["/viam.component.motor.v1.MotorService/SetPower"]
    with pytest.raises(CallFailure, match="not a valid message"):
        protobuf.decode(request, data)


@pytest.mark.parametrize(("number", "size"), [(0, 1), (127, 1), (128, 2), (16383, 2), (16384, 3), (-1, 10)])
def test_a_number_has_as_few_bytes_as_possible(number: int, size: int) -> None:
    out = bytearray()
    protobuf.put_varint(out, number)
    assert len(out) == size
