"""Messages parsed in pieces: same results, within limits, in order, and stopped when the client leaves."""

from __future__ import annotations

import gzip
import random
import struct
import zlib
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Final

import pytest
import trio
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.descriptor_pb2 import SourceCodeInfo
from google.protobuf.message import DecodeError
from google.protobuf.struct_pb2 import ListValue, Struct
from grpclib.const import Cardinality, Handler, Status
from grpclib.exceptions import GRPCError
from hypothesis import given
from hypothesis import strategies as st

from rpc import parsing
from rpc.api import messages
from rpc.call import ServerCall, ServerCore, accept
from rpc.inbox import Budget
from rpc.limits import MIB
from rpc.parsing import MAX_ENTRIES, MAX_STRUCTURE, merging, one_by_one
from rpc.turns import Flow

SAVE: Final = "/a.Data/Save"
UPLOAD: Final = messages.load("app.datasync.v1.data_sync_pb2").DataCaptureUploadRequest
PART: Final = messages.load("app.v1.app_pb2").UpdateRobotPartRequest
TENSORS: Final = messages.load("service.mlmodel.v1.mlmodel_pb2").InferRequest
LISTS: Final[Any] = ListValue
STRUCTS: Final[Any] = Struct
TYPES: Final = (UPLOAD, PART, TENSORS, SourceCodeInfo, Struct, ListValue)


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limit pieces to a few bytes."""
    for name, value in (("PIECE", 12), ("FIELDS", 3), ("_FILE", 6), ("_FEW", 2)):
        monkeypatch.setattr(parsing, name, value)


def fill(message: Any, chance: random.Random, depth: int = 0) -> None:
    """Set some fields of `message` to arbitrary values."""
    for field in message.DESCRIPTOR.fields:
        if chance.random() < 0.4 or depth > 4:
            continue
        entry = field.message_type is not None and field.message_type.GetOptions().map_entry
        for _ in range(chance.randrange(6) if field.is_repeated else 1):
            if entry:
                key, value = field.message_type.fields
                at = scalar(key, chance)
                if value.message_type is not None:
                    fill(getattr(message, field.name)[at], chance, depth + 1)
                else:
                    getattr(message, field.name)[at] = scalar(value, chance)
            elif field.message_type is not None:
                inner = getattr(message, field.name)
                inner = inner.add() if field.is_repeated else inner
                inner.SetInParent()
                fill(inner, chance, depth + 1)
            elif field.is_repeated:
                getattr(message, field.name).append(scalar(field, chance))
            else:
                setattr(message, field.name, scalar(field, chance))


def scalar(field: FieldDescriptor, chance: random.Random) -> Any:
    """Return a random value for a field that is not a message."""
    match field.cpp_type:
        case FieldDescriptor.CPPTYPE_STRING:
            text = "aü" * chance.choice((0, 1, 3, 20))
            return text.encode() if field.type == FieldDescriptor.TYPE_BYTES else text
        case FieldDescriptor.CPPTYPE_BOOL:
            return chance.random() < 0.5
        case FieldDescriptor.CPPTYPE_ENUM:
            assert field.enum_type is not None
            return chance.choice(field.enum_type.values).number
        case FieldDescriptor.CPPTYPE_DOUBLE | FieldDescriptor.CPPTYPE_FLOAT:
            return chance.choice((0.0, -1.5, 1e30))
        case _:
            return chance.choice((0, 1, 127, 300, 2**31 - 1))


def in_pieces(kind: Any, data: bytes) -> Any:
    """Return the message parsed by `merging`."""
    steps = merging(kind, data)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value


def same(item: Any, other: Any) -> bool:
    """Report whether two messages are equal, unknown fields included."""
    return bool(item.SerializeToString(deterministic=True) == other.SerializeToString(deterministic=True))


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize("kind", TYPES)
def test_a_message_in_pieces_is_the_whole_message(kind: Any) -> None:
    @given(st.integers(0, 2**32))
    def check(seed: int) -> None:
        chance = random.Random(seed)
        message = kind()
        fill(message, chance)
        data = message.SerializeToString()
        assert same(in_pieces(kind, data), kind.FromString(data))

    check()


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize("kind", TYPES)
def test_bytes_that_no_encoder_wrote_are_refused_where_the_library_refuses_them(kind: Any) -> None:
    @given(st.integers(0, 2**32))
    def check(seed: int) -> None:
        chance = random.Random(seed)
        message = chance.choice(TYPES)()  # another type gives unknown fields and wrong wire types
        fill(message, chance)
        data = bytearray(message.SerializeToString())
        for _ in range(chance.randrange(4)):
            if data:
                data[chance.randrange(len(data))] = chance.randrange(256)
        try:
            result = in_pieces(kind, bytes(data))
        except (ValueError, DecodeError):
            return
        assert same(result, kind.FromString(bytes(data)))

    check()


@pytest.mark.usefixtures("tiny")
def test_unknown_fields_are_kept() -> None:
    data = UPLOAD(metadata={"part_id": "p" * 40}).SerializeToString() + b"\xfa\x3f\x04abcd" * 20
    assert in_pieces(UPLOAD, data).SerializeToString().count(b"abcd") == 20


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize(
    "data",
    [
        b"\x0a\x10" + b"x" * 9,  # truncated
        b"\x0a\x80",
        b"\x0a\x80\x80\x80\x80\x80\x01" + b"x" * 20,  # a length of six bytes
        b"\x0b\x08\x01\x0c" * 20,  # a group
        b"\x0c" * 20,
        b"\x0f" * 20,
        b"\x00" * 20,
        b"\x09" * 20 + b"\x09",
        STRUCTS(fields={"a": {"string_value": "x"}}).SerializeToString()[:-1] * 9,
    ],
)
def test_malformed_bytes_are_not_a_message(data: bytes) -> None:
    with pytest.raises((ValueError, DecodeError)):
        in_pieces(Struct, data)


@pytest.mark.usefixtures("tiny")
def test_a_single_field_that_is_there_twice_is_refused() -> None:
    twice = PART(robot_config={"a": 1}).SerializeToString() * 2
    with pytest.raises(ValueError, match="robot_config occurs twice"):
        in_pieces(PART, twice)


def entries(count: int) -> bytes:
    """Return a serialized Struct with `count` entries."""
    return b"".join(b"\x0a\x0a\x0a\x06%06d\x12\x00" % number for number in range(count))


def wrapped(data: bytes) -> bytes:
    """Return a serialized ListValue with one Value that holds the Struct `data`."""
    for tag in (b"\x2a", b"\x0a"):
        data = tag + parsing._length(len(data)) + data
    return data


@pytest.mark.parametrize(("kind", "wrap"), [(Struct, bytes), (ListValue, wrapped)])
def test_entries_of_one_map_are_bounded(kind: Any, wrap: Any) -> None:
    assert in_pieces(kind, wrap(entries(MAX_ENTRIES))).ByteSize() == len(wrap(entries(MAX_ENTRIES)))
    with pytest.raises(GRPCError) as caught:
        in_pieces(kind, wrap(entries(MAX_ENTRIES + 1)))
    assert caught.value.status is Status.RESOURCE_EXHAUSTED
    assert "Struct.fields has more than 50,000 entries" in str(caught.value.message)


def test_messages_that_are_not_files_are_bounded() -> None:
    picture = UPLOAD(sensor_contents=[{"binary": bytes(5000)}]).SerializeToString()
    many = picture * (MAX_STRUCTURE // len(picture) + 10)
    assert len(in_pieces(UPLOAD, many).sensor_contents) > 1600
    with pytest.raises(GRPCError) as caught:
        in_pieces(UPLOAD, b"\x12\x00" * (MAX_STRUCTURE // 2 + 1))
    assert caught.value.status is Status.RESOURCE_EXHAUSTED
    assert "more than 8 MiB without files" in str(caught.value.message)


def test_a_file_is_one_piece_and_many_values_are_many() -> None:
    file = UPLOAD(sensor_contents=[{"binary": bytes(MIB)}]).SerializeToString()
    assert len(list(merging(UPLOAD, file))) == 1
    readings = UPLOAD(sensor_contents=[{"struct": {"a": 1}}] * 20_000).SerializeToString()
    assert len(list(merging(UPLOAD, readings))) >= len(readings) // parsing.PIECE
    whole = LISTS(values=[{"list_value": {"values": [{"number_value": 1}] * 20_000}}]).SerializeToString()
    assert len(list(merging(ListValue, whole))) >= len(whole) // parsing.PIECE


# ---- calls


class Carrier:
    """Transmits nothing."""

    def __init__(self) -> None:
        self.budget = Budget(96 * MIB)
        self.flow = Flow()

    def consumed(self, sid: int, n: int) -> None:
        """Ignore the bytes."""


def called(core: ServerCore, *requests: bytes) -> ServerCall:
    """Return a call that has received `requests`."""
    headers = [(":method", "POST"), (":path", SAVE), ("content-type", "application/grpc")]
    call = accept(Carrier(), 1, headers, core)  # type: ignore[arg-type]
    assert isinstance(call, ServerCall)
    for data in requests:
        call.feed(struct.pack(">BI", 0, len(data)) + data, 0)
    call.end()
    return call


def core_of(kind: Any) -> ServerCore:
    """Return a server with one method whose requests are of type `kind`."""
    return ServerCore({SAVE: Handler(lambda stream: None, Cardinality.STREAM_UNARY, kind, kind)})


def long_list(first: float) -> bytes:
    """Return a ListValue large enough to be parsed in pieces."""
    data: bytes = LISTS(values=[{"number_value": first}] + [{"number_value": 0}] * 50_000).SerializeToString()
    return data


async def test_requests_of_a_stream_stay_in_order() -> None:
    small = LISTS(values=[{"number_value": 2}]).SerializeToString()
    call = called(core_of(ListValue), long_list(1), small, long_list(3), small)
    assert [request.values[0].number_value async for request in call] == [1, 2, 3, 2]


async def test_other_tasks_run_between_the_pieces_one_call_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    core, order = core_of(ListValue), list[str]()
    real = parsing._Merging.merge

    def merge(self: Any, *value: Any) -> Iterator[None]:
        for step in real(self, *value):
            order.append("piece")
            yield step

    monkeypatch.setattr(parsing._Merging, "merge", merge)
    running = True

    async def other() -> None:
        while running:
            order.append("pass")
            await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(other)
        async with trio.open_nursery() as calls:
            for _ in range(3):
                calls.start_soon(called(core, long_list(1)).recv_message)
        running = False
    assert order.count("piece") >= 3 * len(long_list(1)) // parsing.PIECE
    assert ("piece", "piece") not in pairwise(order)


async def test_a_call_that_is_cancelled_takes_no_further_step_and_leaves_the_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    core, steps, scope = core_of(ListValue), 0, trio.CancelScope()

    def merge(self: Any, *value: Any) -> Iterator[None]:
        nonlocal steps
        while True:
            steps += 1
            if steps == 3:
                scope.cancel()
            yield

    monkeypatch.setattr(parsing._Merging, "merge", merge)
    with trio.fail_after(30), scope:
        await called(core, long_list(1)).recv_message()
    assert scope.cancelled_caught
    assert steps == 3
    monkeypatch.undo()
    with trio.fail_after(30):
        assert await called(core, long_list(1)).recv_message() is not None


async def test_a_large_request_that_is_refused_says_why() -> None:
    core = core_of(Struct)
    for data, status, text in (
        (b"\x0a\x10" * 50_000, Status.INTERNAL, "the request is not a valid Struct"),
        (entries(MAX_ENTRIES + 1), Status.RESOURCE_EXHAUSTED, "50,000 entries"),
    ):
        with pytest.raises(GRPCError) as caught:
            await called(core, data).recv_message()
        assert caught.value.status is status
        assert text in str(caught.value.message)


def objects(depth: int, wide: int = 0) -> bytes:
    """Return a serialized Struct of `depth` nested objects, the innermost with `wide` texts."""
    values: dict[str, Any] = {f"k{number}": "v" for number in range(wide)}
    for _ in range(depth - 1):
        values = {"a": values}
    message = STRUCTS()
    message.update(values)
    return bytes(message.SerializeToString())


@pytest.mark.parametrize("wide", [0, 20_000])
async def test_a_request_that_is_nested_too_deeply_is_named(wide: int) -> None:
    assert await called(core_of(Struct), objects(34, 0)).recv_message() is not None
    with pytest.raises(GRPCError, match="Struct is nested too deeply: messages may have at most 100 levels") as caught:
        await called(core_of(Struct), objects(100 if wide else 35, wide)).recv_message()
    assert caught.value.status is Status.INVALID_ARGUMENT


async def test_malformed_input_is_not_reported_as_too_deep() -> None:
    for data in (objects(34)[:-1], b"\x0a" * 100_000, b"\xff" * 20, b"\x0a\x05", b"\x0b" * 300):
        with pytest.raises(GRPCError) as caught:
            await called(core_of(Struct), data).recv_message()
        assert caught.value.status is Status.INTERNAL


def test_how_deep_a_message_is_takes_bounded_steps() -> None:
    steps = list(parsing.too_deep(LISTS, b"\x0a\x00" * 20_000))
    assert len(steps) == 20_000 // parsing.FIELDS


async def test_classes_that_pass_messages_on_unread_get_them_whole() -> None:
    class Raw(bytes):
        @classmethod
        def FromString(cls, data: bytes) -> Raw:
            return cls(data)

    data = b"\x0b" * 100_000
    assert await called(core_of(Raw), data).recv_message() == data


async def test_long_content_is_decompressed_in_steps() -> None:

    data = random.Random(1).randbytes(300_000) + bytes(3 * MIB)
    for packed in (gzip.compress(data), zlib.compress(data)):
        steps = list(parsing.inflating(packed, len(data)))
        assert len(steps) >= len(data) // parsing.INFLATED
        assert await one_by_one(parsing.inflating(packed, len(data))) == data
        for wrong, limit, text in (
            (packed, len(data) - 1, "larger than the limit"),
            (packed[:-20], len(data), "truncated"),
            (b"x" + packed, len(data), "not valid gzip or deflate"),
        ):
            with pytest.raises(GRPCError, match=text):
                await one_by_one(parsing.inflating(wrong, limit))
